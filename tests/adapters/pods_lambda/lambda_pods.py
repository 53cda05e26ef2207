"""What the tests of the provider Lambda Cloud share."""

from pathlib import Path
from typing import Any

from prime_train.providers.lambda_cloud.client import LEAST_S, LambdaClient
from prime_train.providers.lambda_cloud.pods import LambdaPods, OwnSshKey
from prime_train.providers.lambda_cloud.provider import WORDS, account_names
from prime_train.providers.lambda_cloud.settings import LambdaSettings
from prime_train.providers.rental.account_check import InFile, Owner
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.rental.rate_limit import RequestPace
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod
from prime_train.spec.spec import HardwareSpec
from tests.adapters.rental_apis import shared
from tests.adapters.rental_apis.shared import NAME, PUBLIC_KEY
from tests.adapters.rented_days import Days, Pushed, world_of
from tests.fakes.lambda_cloud import API_KEY, FakeLambdaCloud, Instance

HARDWARE = HardwareSpec(gpus=("H100",), count=8, disk_gib=50)
TYPES, INSTANCES, KEYS = "/api/v1/instance-types", "/api/v1/instances", "/api/v1/ssh-keys"
LAUNCH, TERMINATE = "/api/v1/instance-operations/launch", "/api/v1/instance-operations/terminate"
LambdaDays = Days[FakeLambdaCloud, Instance]


def client_of(fake: FakeLambdaCloud, key: str = API_KEY, **options: Any) -> LambdaClient:
    """Return a client without a pace, unless one is given."""
    return LambdaClient(
        LambdaSettings(key, fake.url), **{"pause_s": 0.0, "pace": RequestPace("Lambda Cloud", {}), **options}
    )


def pods_of(fake: FakeLambdaCloud, **options: Any) -> LambdaPods:
    client = options.pop("client", None) or client_of(fake)
    own_key = options.pop("own_key", None) or OwnSshKey(client, PUBLIC_KEY)
    return LambdaPods(client, options.pop("pusher", shared.Pushed()), own_key=own_key, **options)


def guarded(fake: FakeLambdaCloud, folder: Path, key: str = API_KEY, **options: Any) -> LambdaPods:
    """Return the pods of a new process, which compares the account with the one in the folder."""
    client = client_of(fake, key)
    own_key = OwnSshKey(client, PUBLIC_KEY)
    owner = Owner(lambda: account_names(own_key), InFile(folder / "account"), WORDS)
    return pods_of(fake, client=client, own_key=own_key, **{"owner": owner, **options})


def days_of(fake: FakeLambdaCloud, folder: Path) -> LambdaDays:
    """Return days at the pace that Lambda Cloud allows, whose pauses pass in the fake's time; one request too
    early is refused.
    """
    fake.limits.request_s, fake.limits.launch_s, fake.plan.end_s = 1.0, 12.0, 60.0
    client = client_of(
        fake,
        clock=fake.now_s,
        pace=RequestPace("Lambda Cloud", LEAST_S, clock=fake.now_s, pause=fake.advance),
    )
    pushed = Pushed(fake)
    pods = pods_of(
        fake,
        client=client,
        own_key=OwnSshKey(client, PUBLIC_KEY),
        pusher=pushed,
        mark=PodMark("11111111"),
        wall=fake.now_s,
    )
    return Days(fake, "lambda", world_of("lambda", pods, folder), pushed)


def first(pods: LambdaPods, hardware: HardwareSpec = HARDWARE) -> Offer:
    return shared.first(pods, hardware)


def rent(pods: LambdaPods, name: str = NAME, hardware: HardwareSpec = HARDWARE) -> Pod:
    return pods.create(name, first(pods, hardware), hardware)
