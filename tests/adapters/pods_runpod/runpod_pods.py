"""What the tests of the provider RunPod share."""

from pathlib import Path
from typing import Any

from prime_train.providers.by_name import AccountOfOne
from prime_train.providers.rental.account_check import InFile, Owner
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.runpod.client import RunPodClient
from prime_train.providers.runpod.pods import RunPodPods
from prime_train.providers.runpod.provider import WORDS, RunPodAccount, account_names
from prime_train.providers.runpod.settings import RunPodSettings
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod
from prime_train.spec.spec import HardwareSpec
from tests.adapters.rental_apis import shared
from tests.adapters.rental_apis.shared import NAME
from tests.adapters.rented_days import Days, Pushed, world_of
from tests.fakes import runpod
from tests.fakes.runpod import FakeRunPod

HARDWARE = HardwareSpec(gpus=("H100",), count=2, disk_gib=50)
RunPodDays = Days[FakeRunPod, runpod.Pod]


def client_of(fake: FakeRunPod, key: str = "", **options: Any) -> RunPodClient:
    return RunPodClient(RunPodSettings(key or fake.api_key, fake.url), pause_s=0.0, **options)


def pods_of(fake: FakeRunPod, **options: Any) -> RunPodPods:
    return RunPodPods(
        options.pop("client", None) or client_of(fake), options.pop("pusher", shared.Pushed()), **options
    )


def guarded(fake: FakeRunPod, folder: Path, key: str = "", **options: Any) -> RunPodPods:
    """Return the pods of a new process, which compares the account with the one in the folder."""
    client = client_of(fake, key)
    return pods_of(
        fake,
        client=client,
        **{"owner": Owner(lambda: account_names(client), InFile(folder / "account"), WORDS), **options},
    )


def days_of(fake: FakeRunPod, folder: Path) -> RunPodDays:
    # The pause that a 429 asks for passes in the fake's time.
    client = client_of(fake, clock=fake.now_s)
    pushed = Pushed(fake)
    pods = pods_of(fake, client=client, pusher=pushed, mark=PodMark("11111111"))
    account = AccountOfOne(RunPodAccount(client, pods.burn_usd_per_hour, clock=fake.now_s))
    return Days(fake, "runpod", world_of("runpod", pods, folder, accounts=(account,)), pushed)


def account_of(fake: FakeRunPod) -> RunPodAccount:
    return RunPodAccount(client_of(fake), lambda: 0.0)


def first(pods: RunPodPods, hardware: HardwareSpec = HARDWARE) -> Offer:
    return shared.first(pods, hardware)


def rent(pods: RunPodPods, name: str = NAME, hardware: HardwareSpec = HARDWARE) -> Pod:
    return pods.create(name, first(pods, hardware), hardware)
