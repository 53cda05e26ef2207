"""What the tests of the provider Vast.ai share."""

from pathlib import Path
from typing import Any

from prime_train.providers.by_name import AccountOfOne
from prime_train.providers.rental.account_check import InFile, Owner
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.rental.rate_limit import RequestPace
from prime_train.providers.vast.client import VastClient
from prime_train.providers.vast.pods import VastPods
from prime_train.providers.vast.provider import WORDS, VastAccount, account_names
from prime_train.providers.vast.search import Searches
from prime_train.providers.vast.settings import VastSettings
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod
from prime_train.spec.spec import HardwareSpec
from tests.adapters.rental_apis import shared
from tests.adapters.rental_apis.shared import NAME
from tests.adapters.rented_days import Days, Pushed, world_of
from tests.fakes.vast import FakeVast, Instance

HARDWARE = HardwareSpec(gpus=("RTX4090",), count=2, disk_gib=50)
MARK = PodMark("11111111")
SEARCH, LIST, CREATE = "/api/v0/bundles", "/api/v1/instances", "^/api/v0/asks/"
INSTANCE = "^/api/v0/instances/[0-9]+$"
VastDays = Days[FakeVast, Instance]


def client_of(fake: FakeVast, key: str = "", **options: Any) -> VastClient:
    options = {"pace": RequestPace("Vast.ai", {}), "pause_s": 0.0, **options}
    return VastClient(VastSettings(key or fake.api_key, fake.url), **options)


def pods_of(fake: FakeVast, **options: Any) -> VastPods:
    client = options.pop("client", None) or client_of(fake)
    searches = options.pop("searches", None) or Searches(client, clock=fake.now_s, wall=fake.now_s)
    return VastPods(client, options.pop("pusher", shared.Pushed()), searches=searches, **options)


def guarded(fake: FakeVast, folder: Path, key: str = "", **options: Any) -> VastPods:
    """Return the pods of a new process, which compares the account with the one in the folder."""
    client = client_of(fake, key)
    return pods_of(
        fake,
        client=client,
        **{"owner": Owner(lambda: account_names(client), InFile(folder / "account"), WORDS), **options},
    )


def days_of(fake: FakeVast, folder: Path) -> VastDays:
    # The pause that a 429 asks for passes in the fake's time.
    client, pushed = client_of(fake, clock=fake.now_s), Pushed(fake)
    pods = pods_of(fake, client=client, pusher=pushed, mark=MARK)
    account = AccountOfOne(
        VastAccount(client, MARK, pods.burn_usd_per_hour, clock=fake.now_s, wall=fake.now_s)
    )
    return Days(fake, "vast", world_of("vast", pods, folder, accounts=(account,)), pushed)


def account_of(fake: FakeVast) -> VastAccount:
    return VastAccount(client_of(fake), MARK, lambda: 0.0, clock=fake.now_s, wall=fake.now_s)


def first(pods: VastPods, hardware: HardwareSpec = HARDWARE) -> Offer:
    return shared.first(pods, hardware)


def rent(pods: VastPods, name: str = NAME, hardware: HardwareSpec = HARDWARE) -> Pod:
    return pods.create(name, first(pods, hardware), hardware)
