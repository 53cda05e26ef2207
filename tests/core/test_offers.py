"""Which machines fit a run, and in which order they are tried."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.market.ranking import rank
from prime_train.runs.offer import Offer, fits
from prime_train.spec.choices import Spot
from prime_train.spec.spec import HardwareSpec
from tests.core.given import OFFERS, PROPERTY

H100 = Offer("prime", "h", usd_per_hour=2.0, spot=False, gpu="H100", gpu_count=1, disk_gib=100)
WANTS = {"gpus": ("H100", "A100"), "count": 1, "disk_gib": 50}
HARDWARE = st.builds(
    HardwareSpec,
    gpus=st.sampled_from([(), ("H100",), ("A100", "H100")]),
    count=st.sampled_from([1, 8]),
    spot=st.sampled_from(list(Spot)),
    usd_per_hour_max=st.sampled_from([None, 1.0, 2.5]),
    disk_gib=st.sampled_from([1, 50]),
)
IDS = st.frozensets(st.sampled_from("abcdef"), max_size=4)


def wants(**changes: Any) -> HardwareSpec:
    return HardwareSpec.model_validate(WANTS | changes)


def an_offer(offer_id: str, usd_per_hour: float = 2.0, *, spot: bool = False, gpu: str = "H100") -> Offer:
    return Offer("prime", offer_id, usd_per_hour, spot, gpu=gpu, gpu_count=1, disk_gib=100)


def order(offers: list[Offer], hardware: HardwareSpec | None = None, **changes: Any) -> str:
    return "".join(o.offer_id for o in rank(offers, hardware or wants(), **changes).best)


def test_a_machine_that_is_as_wanted_fits() -> None:
    assert fits(H100, wants()) is None


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"gpus": ("B200",)}, "has H100, but hardware.gpus requires B200"),
        ({"count": 8}, "has 1 GPUs, but hardware.count is 8"),
        ({"usd_per_hour_max": 1.99}, "costs $2.00/h, above hardware.usd_per_hour_max 1.99"),
        ({"disk_gib": 101}, "has 100 GiB of disk, but hardware.disk_gib is 101"),
        ({"spot": "only"}, "is on-demand"),
    ],
)
def test_a_machine_that_does_not_fit_is_left_out_with_the_reason(changes: dict[str, Any], says: str) -> None:
    ranking = rank([H100], wants(**changes))
    assert not ranking.best
    assert says in ranking.left_out[0].why


def test_a_spot_machine_is_left_out_where_spot_is_never() -> None:
    assert fits(an_offer("s", spot=True), wants(spot="never")) == "is spot, but hardware.spot is never"


def test_what_speaks_against_a_machine_at_its_provider_is_the_reason() -> None:
    assert (
        fits(replace(H100, hindrance="must be paid 24 h in advance"), wants())
        == "must be paid 24 h in advance"
    )
    assert (
        fits(replace(H100, hindrance="must be paid 24 h in advance"), wants(count=8))
        == "has 1 GPUs, but hardware.count is 8"
    )


def test_price_and_disk_fit_at_their_very_limits() -> None:
    assert fits(H100, wants(usd_per_hour_max=2.0, disk_gib=100)) is None


def test_a_run_without_gpus_takes_any_machine() -> None:
    assert fits(Offer("local", "cpu", 0.1, spot=True, disk_gib=10), HardwareSpec()) is None


def test_while_no_speed_is_known_kinds_come_as_the_config_names_them_and_dollars_decide_within_a_kind() -> (
    None
):
    offers = [
        an_offer("d", 0.1, gpu="A100"),
        an_offer("c", 4.0, spot=True),
        an_offer("b", 3.0, spot=True),
        an_offer("a", 1.0),
        an_offer("e", 0.5, spot=True, gpu="A100"),
    ]
    assert order(offers) == "abcde"


def test_a_machine_that_failed_comes_last_rather_than_never() -> None:
    offers = [an_offer("a", 1.0, spot=True), an_offer("b", 9.0, gpu="A100")]
    assert order(offers, excluded={"a"}) == "ba"
    assert order(offers[:1], excluded={"a"}) == "a"


def test_a_machine_taken_away_recently_comes_after_others_that_cost_about_the_same_only() -> None:
    offers = [an_offer("a", 1.0, spot=True), an_offer("b", 1.01, spot=True), an_offer("c", 3.0)]
    assert order(offers) == "abc"
    assert order(offers, avoided={"a"}) == "bac"


def test_after_too_many_preemptions_spot_is_left_out() -> None:
    offers = [an_offer("a", 1.0, spot=True), an_offer("b", 3.0)]
    assert order(offers, on_demand=True) == "b"
    assert [row.why for row in rank(offers, wants(), on_demand=True).left_out] == [
        "is spot, and too many spot machines were preempted recently"
    ]


def test_spot_stays_where_nothing_else_fits_the_run() -> None:
    assert order([an_offer("a", 1.0, spot=True)], wants(spot="only"), on_demand=True) == "a"
    offers = [an_offer("a", 1.0, spot=True), an_offer("b", 3.0)]
    assert order(offers, wants(usd_per_hour_max=2.0), on_demand=True) == "a", "the run would wait for ever"


def test_no_offers_give_an_empty_ranking() -> None:
    assert rank([], wants()).best == ()


@PROPERTY
@given(
    offers=st.lists(OFFERS, max_size=6), hardware=HARDWARE, excluded=IDS, avoided=IDS, on_demand=st.booleans()
)
def test_every_offer_is_either_ranked_or_left_out_with_a_reason(
    offers: list[Offer],
    hardware: HardwareSpec,
    excluded: frozenset[str],
    avoided: frozenset[str],
    on_demand: bool,
) -> None:
    ranking = rank(offers, hardware, excluded=excluded, avoided=avoided, on_demand=on_demand)
    reported = [*ranking.best, *(row.offer for row in ranking.left_out)]
    assert sorted(map(repr, reported)) == sorted(map(repr, offers))
    assert all(row.why for row in ranking.left_out)
    assert all(fits(offer, hardware) is None for offer in ranking.best)


@PROPERTY
@given(offers=st.lists(OFFERS, max_size=6), hardware=HARDWARE, excluded=IDS, avoided=IDS)
def test_an_excluded_offer_never_comes_before_one_that_is_not(
    offers: list[Offer], hardware: HardwareSpec, excluded: frozenset[str], avoided: frozenset[str]
) -> None:
    bad = [
        offer.offer_id in excluded
        for offer in rank(offers, hardware, excluded=excluded, avoided=avoided).best
    ]
    assert bad == sorted(bad)


UNIQUE = st.lists(OFFERS, max_size=6, unique_by=lambda o: o.offer_id)


@PROPERTY
@given(offers=UNIQUE, hardware=HARDWARE, excluded=IDS, avoided=IDS, data=st.data())
def test_the_ranking_does_not_depend_on_the_order_in_which_a_provider_lists(
    offers: list[Offer],
    hardware: HardwareSpec,
    excluded: frozenset[str],
    avoided: frozenset[str],
    data: st.DataObject,
) -> None:
    shuffled = data.draw(st.permutations(offers))
    assert (
        rank(offers, hardware, excluded=excluded, avoided=avoided).best
        == rank(shuffled, hardware, excluded=excluded, avoided=avoided).best
    )


def test_two_providers_with_offers_of_the_same_name_are_ranked_the_same_in_any_order() -> None:
    one, other = (
        Offer("local", "a", 1.0, spot=True, disk_gib=10),
        Offer("prime", "a", 1.0, spot=True, disk_gib=10),
    )
    assert rank([one, other], HardwareSpec()).best == rank([other, one], HardwareSpec()).best
