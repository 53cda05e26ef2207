"""Several providers as one."""

from collections.abc import Sequence

import pytest

from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.providers.by_name import PodsByProvider, provider_of
from prime_train.providers.memory import MemoryPods
from prime_train.providers.port import PartlyListed
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec

TICKET = Ticket(run="tiny-1", attempt=1, url="http://127.0.0.1:1", key="0123abcd")
HERE, THERE = HardwareSpec(provider="local"), HardwareSpec(provider="prime")


def offers(provider: str) -> tuple[Offer, ...]:
    return (Offer(provider, f"{provider}-box", 1.0, spot=True, disk_gib=100),)


class Down(MemoryPods):
    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        raise TemporaryError("503")

    def list(self) -> Sequence[Pod]:
        raise TemporaryError("503")


@pytest.fixture(name="both")
def _both() -> tuple[MemoryPods, MemoryPods, PodsByProvider]:
    local, prime = MemoryPods(offers=offers("local")), MemoryPods(offers=offers("prime"))
    return local, prime, PodsByProvider({"local": local, "prime": prime}, ("prime",))


def test_a_run_is_offered_what_its_provider_has_or_else_the_default_one(
    both: tuple[MemoryPods, MemoryPods, PodsByProvider],
) -> None:
    _, _, pods = both
    assert [offer.provider for offer in pods.offers(HERE)] == ["local"]
    assert [offer.provider for offer in pods.offers(THERE)] == ["prime"]
    assert [offer.provider for offer in pods.offers(HardwareSpec())] == ["prime"]


def test_each_pod_is_with_its_provider_and_found_by_one_id(
    both: tuple[MemoryPods, MemoryPods, PodsByProvider],
) -> None:
    local, prime, pods = both
    here = pods.create("pt-tiny-1-e1", offers("local")[0], HERE)
    there = pods.create("pt-tiny-1-e2", offers("prime")[0], THERE)

    assert {pod.pod_id for pod in pods.list()} == {here.pod_id, there.pod_id}
    assert provider_of(there.pod_id) == ("prime", prime.list()[0].pod_id)
    assert provider_of(here.pod_id) == ("local", local.list()[0].pod_id)
    seen = pods.get(there.pod_id)
    assert seen is not None
    assert seen.pod_id == there.pod_id
    pods.put_agent(seen, TICKET)
    assert prime.tickets(provider_of(there.pod_id)[1]) == (TICKET,)
    pods.terminate(there.pod_id)
    assert prime.list() == []
    assert pods.get(there.pod_id) is None
    assert len(local.list()) == 1


def test_one_that_cannot_be_queried_makes_its_own_pods_unknown_and_those_of_the_others_are_listed() -> None:
    pods = PodsByProvider(
        {"local": MemoryPods(offers=offers("local")), "prime": Down(offers=offers("prime"))}, ("local",)
    )
    here = pods.create("pt-tiny-1-e1", offers("local")[0], HERE)
    with pytest.raises(PartlyListed, match="prime: 503") as raised:
        pods.list()
    assert ([pod.pod_id for pod in raised.value.listed], raised.value.failed) == (
        [here.pod_id],
        {"prime": "503"},
    )


def test_one_alone_that_cannot_be_queried_leaves_nothing_known() -> None:
    pods = PodsByProvider({"prime": Down()}, ("prime",))
    with pytest.raises(TemporaryError, match="503") as raised:
        pods.list()
    assert not isinstance(raised.value, PartlyListed)
    with pytest.raises(TemporaryError, match="503"):
        pods.offers(HardwareSpec())


def test_a_run_that_may_go_to_several_is_offered_what_all_of_them_have_and_one_that_fails_leaves_only_its_own_out() -> (
    None
):
    both = PodsByProvider(
        {"local": MemoryPods(offers=offers("local")), "prime": MemoryPods(offers=offers("prime"))},
        ("prime", "local"),
    )
    assert [offer.provider for offer in both.offers(HardwareSpec())] == ["prime", "local"]
    half = PodsByProvider(
        {"local": MemoryPods(offers=offers("local")), "prime": Down(offers=offers("prime"))},
        ("prime", "local"),
    )
    assert [offer.provider for offer in half.offers(HardwareSpec())] == ["local"]
    with pytest.raises(PermanentError, match="provider other is not set up here"):
        PodsByProvider({}, ("other",)).offers(HardwareSpec())


def test_a_provider_that_is_not_set_up_is_named_with_what_to_do() -> None:
    pods = PodsByProvider({"local": MemoryPods()}, ("local",))
    with pytest.raises(PermanentError, match="set PRIME_API_KEY"):
        pods.offers(THERE)


@pytest.mark.parametrize("verb", ["get", "terminate"])
def test_of_a_pod_whose_provider_is_not_set_up_nothing_is_reported(verb: str) -> None:
    pods = PodsByProvider({"local": MemoryPods()}, ("local",))
    with pytest.raises(ExternalError) as raised:
        getattr(pods, verb)("prime/abc")
    assert isinstance(raised.value, TemporaryError)
