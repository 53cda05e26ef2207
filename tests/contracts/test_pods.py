"""The contract of every provider of machines. A row of PROVIDERS is a provider without pods, and the number
of agents that it started on one.
"""

import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from prime_train.errors import NoCapacity, PermanentError, TemporaryError
from prime_train.market.ranking import rank
from prime_train.providers.local.pods import LocalPods
from prime_train.providers.memory import MemoryPods
from prime_train.providers.port import Pods
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.choices import Spot
from prime_train.spec.spec import HardwareSpec
from tests.builders import is_gone
from tests.contracts.kubernetes_account import KubernetesAccount
from tests.contracts.lambda_account import LambdaAccount
from tests.contracts.meadow_account import AGENT, MeadowAccount
from tests.contracts.prime_account import PrimeAccount
from tests.contracts.rented_account import Started
from tests.contracts.runpod_account import RunPodAccount
from tests.contracts.ssh_account import SshAccount
from tests.contracts.vast_account import VastAccount
from tests.waiting import HANG_S, await_true

HARDWARE = HardwareSpec(disk_gib=1)
NAME, OTHER = "pt-tiny-1-e1", "pt-other-e3"
TICKET = Ticket(run="tiny-1", attempt=1, url="http://127.0.0.1:1", key="0123abcd")


@dataclass(frozen=True)
class Provider:
    """Makes the port with this stock of each offer and this boot time, and returns what was started on a
    pod.
    """

    make: Callable[[Mapping[str, int], int], Pods]
    agents: Callable[[Pods, Pod], int]
    close: Callable[[], None] = lambda: None
    has_spot: bool = True
    one_per_name: bool = False
    """Whether a second create call with the same name answers the first one's pod."""


def local(folder: Path) -> Provider:
    def make(stock: Mapping[str, int], boot_s: int) -> Pods:
        return LocalPods(
            folder / "pods", agent_command=[sys.executable, "-c", AGENT], stock=stock, boot_s=boot_s
        )

    def agents(pods: Pods, pod: Pod) -> int:
        assert isinstance(pods, LocalPods)
        return started_on(pods.disk(pod.pod_id))

    return Provider(make, agents)


def started_on(disk: Path | None) -> int:
    """Return how many agents have left their line on a disk, as soon as there is one."""
    assert disk is not None
    await_true(
        "the agent says that it is there",
        lambda: (disk / "started").exists() and (disk / "started").stat().st_size,
    )
    return len((disk / "started").read_text())


def memory(folder: Path) -> Provider:
    def make(stock: Mapping[str, int], boot_s: int) -> Pods:
        return MemoryPods(stock=dict(stock), boot_s=boot_s)

    def agents(pods: Pods, pod: Pod) -> int:
        assert isinstance(pods, MemoryPods)
        return len(pods.tickets(pod.pod_id))

    return Provider(make, agents)


def prime(folder: Path) -> Provider:
    account = PrimeAccount(folder / "prime")
    return rented(account.pods, account.started, account.close, has_spot=True)


def runpod(folder: Path) -> Provider:
    account = RunPodAccount()
    return rented(account.pods, account.started, account.close)


def lambda_cloud(folder: Path) -> Provider:
    account = LambdaAccount()
    return rented(account.pods, account.started, account.close)


def vast(folder: Path) -> Provider:
    account = VastAccount()
    return rented(account.pods, account.started, account.close, has_spot=True)


def own_machines(folder: Path) -> Provider:
    account = SshAccount(folder / "machines")
    return rented(account.pods, account.started, lambda: None)


def meadow(folder: Path) -> Provider:
    account = MeadowAccount(folder)
    return Provider(account.pods, lambda pods, pod: started_on(account.disk(pod.pod_id)), account.close)


def rented(
    make: Callable[[Mapping[str, int], int], Pods],
    started: Started,
    close: Callable[[], None],
    *,
    has_spot: bool = False,
) -> Provider:
    return Provider(make, lambda pods, pod: len(started[pod.pod_id]), close, has_spot=has_spot)


def kubernetes(folder: Path) -> Provider:
    account = KubernetesAccount()

    def agents(pods: Pods, pod: Pod) -> int:
        return account.agents(pod.pod_id)

    return Provider(account.pods, agents, account.close, one_per_name=True)


PROVIDERS: dict[str, Callable[[Path], Provider]] = {
    "memory": memory,
    "local": local,
    "prime": prime,
    "runpod": runpod,
    "lambda": lambda_cloud,
    "kubernetes": kubernetes,
    "ssh": own_machines,
    "vast": vast,
    "meadow": meadow,
}
BOOTING = [name for name in PROVIDERS if name != "ssh"]
"""The providers whose machines are started for a pod, and boot."""


@pytest.fixture(params=PROVIDERS, name="provider")
def _provider(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Provider]:
    provider = PROVIDERS[request.param](tmp_path)
    yield provider
    left = provider.make({}, 0)
    for pod in left.list():
        left.terminate(pod.pod_id)
    provider.close()


@pytest.fixture(name="pods")
def _pods(provider: Provider) -> Pods:
    return provider.make({}, 0)


def first(pods: Pods) -> Offer:
    return pods.offers(HARDWARE)[0]


def rent(pods: Pods, name: str = NAME, offer: Offer | None = None) -> Pod:
    """Rent a pod, and return it as listed afterwards, because the response to the create call may be
    older.
    """
    created = pods.create(name, offer or first(pods), HARDWARE)
    seen = pods.get(created.pod_id)
    assert seen is not None
    assert created in (seen, replace(seen, status=PodStatus.PENDING))
    return seen


def test_a_new_pod_is_found_and_listed_under_the_name_it_was_given(pods: Pods) -> None:
    pod = rent(pods)
    assert (pod.name, pod.status) == (NAME, PodStatus.ACTIVE)
    assert pod.usd_per_hour == first(pods).usd_per_hour
    assert pod.created_s > 1_700_000_000
    assert pods.get(pod.pod_id) == pod
    assert list(pods.list()) == [pod]


def test_two_pods_of_one_name_are_two_pods_or_the_same(provider: Provider, pods: Pods) -> None:
    one, two = rent(pods), rent(pods)
    assert (one.pod_id == two.pod_id) is provider.one_per_name
    assert sorted(pod.pod_id for pod in pods.list()) == sorted({one.pod_id, two.pod_id})
    assert {pod.name for pod in pods.list()} == {NAME}


def test_a_terminated_pod_is_gone_for_good_and_the_others_stay(pods: Pods) -> None:
    one, two = rent(pods), rent(pods, OTHER)
    for _ in range(3):
        pods.terminate(one.pod_id)
        assert is_gone(pods.get(one.pod_id))
        assert list(pods.list()) == [two]
    assert rent(pods).pod_id not in (one.pod_id, two.pod_id)


@pytest.mark.parametrize(
    "pod_id", ["", "nothing", "local-0000000000000000", "local-", "..", "../pods", "/", "a\0b", "x" * 5000]
)
def test_an_id_nobody_gave_is_unknown_and_ending_it_is_no_error(pods: Pods, pod_id: str) -> None:
    kept = rent(pods)
    pods.terminate(pod_id)
    assert is_gone(pods.get(pod_id))
    assert list(pods.list()) == [kept]


def test_nothing_is_listed_before_anything_was_rented(pods: Pods) -> None:
    assert list(pods.list()) == []


def test_the_ladder_of_offers_starts_with_the_cheapest_spot_machine(provider: Provider, pods: Pods) -> None:
    offers = pods.offers(HARDWARE)
    assert len({offer.offer_id for offer in offers}) == len(offers)
    best = rank(offers, HARDWARE).best
    assert best[0].spot is provider.has_spot
    rentable = [offer for offer in offers if not offer.hindrance]
    assert best[0].usd_per_hour == min(
        offer.usd_per_hour for offer in rentable if offer.spot is provider.has_spot
    )
    on_demand = rank(offers, HardwareSpec(disk_gib=1, spot=Spot.NEVER)).best
    assert on_demand
    assert not any(offer.spot for offer in on_demand)


def test_an_offer_nobody_made_is_refused_and_nothing_is_created(pods: Pods) -> None:
    with pytest.raises(PermanentError, match="no-such-offer"):
        pods.create(NAME, replace(first(pods), offer_id="no-such-offer"), HARDWARE)
    assert list(pods.list()) == []


def test_the_price_is_the_providers_and_not_the_one_queried_with(pods: Pods) -> None:
    offer = first(pods)
    assert pods.create(NAME, replace(offer, usd_per_hour=0.01), HARDWARE).usd_per_hour == offer.usd_per_hour


def test_without_capacity_nothing_is_created_and_a_terminated_pod_makes_room(provider: Provider) -> None:
    offer = first(provider.make({}, 0))
    pods = provider.make({offer.offer_id: 1}, 0)
    only = rent(pods, offer=offer)
    assert offer.offer_id not in [o.offer_id for o in pods.offers(HARDWARE)]
    with pytest.raises(NoCapacity, match=offer.offer_id):
        pods.create(OTHER, offer, HARDWARE)
    assert list(pods.list()) == [only]
    other = pods.create(OTHER, first(pods), HARDWARE)
    pods.terminate(only.pod_id)
    assert first(pods).offer_id == offer.offer_id
    again = pods.create(NAME, offer, HARDWARE)
    assert {pod.pod_id for pod in pods.list()} == {other.pod_id, again.pod_id}


def test_the_last_machines_are_not_given_out_twice(provider: Provider) -> None:
    offer = first(provider.make({}, 0))
    pods = provider.make({offer.offer_id: 3}, 0)
    gate = threading.Barrier(8)

    def ask(number: int) -> bool:
        gate.wait(HANG_S)
        try:
            pods.create(f"pt-tiny-1-e{number + 1}", offer, HARDWARE)
        except NoCapacity:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(8))) == 3
    assert len(pods.list()) == 3


def test_putting_the_agent_twice_starts_one(provider: Provider, pods: Pods) -> None:
    one, two = rent(pods), rent(pods, OTHER)
    for _ in range(3):
        pods.put_agent(one, TICKET)
    assert provider.agents(pods, one) == 1
    pods.put_agent(two, TICKET)
    assert provider.agents(pods, two) == 1


def test_eight_watchers_that_put_the_agent_at_once_start_one(provider: Provider, pods: Pods) -> None:
    pod = rent(pods)
    gate = threading.Barrier(8)

    def put(_: int) -> None:
        gate.wait(HANG_S)
        pods.put_agent(pod, TICKET)

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(put, range(8)))
    assert provider.agents(pods, pod) == 1


def test_no_agent_is_put_on_a_pod_that_is_gone(pods: Pods) -> None:
    pod = rent(pods)
    pods.terminate(pod.pod_id)
    with pytest.raises(TemporaryError, match="gone"):
        pods.put_agent(pod, TICKET)
    assert list(pods.list()) == []


@pytest.mark.parametrize("provider", BOOTING, indirect=True)
def test_a_pod_that_boots_is_pending_and_takes_no_agent_yet(provider: Provider) -> None:
    pods = provider.make({}, 3600)
    pod = rent(pods)
    assert pod.status is PodStatus.PENDING
    assert pods.get(pod.pod_id) == pod
    with pytest.raises(TemporaryError, match="booting"):
        pods.put_agent(pod, TICKET)
    pods.terminate(pod.pod_id)
    assert is_gone(pods.get(pod.pod_id))


@pytest.mark.parametrize("provider", BOOTING, indirect=True)
def test_a_pod_that_has_booted_is_active(provider: Provider) -> None:
    pods = provider.make({}, 1)
    pod = rent(pods)

    def status() -> PodStatus:
        seen = pods.get(pod.pod_id)
        assert seen is not None
        return seen.status

    await_true("the pod is active", lambda: status() is PodStatus.ACTIVE)
    pods.put_agent(pod, TICKET)
    assert provider.agents(pods, pod) == 1
