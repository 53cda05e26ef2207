"""What a run is expected to cost on an offer, in which order that puts the offers, and the reasons in
words.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.market.observations import Losses, Observations, Times
from prime_train.market.quotes import Market, Quote, Work
from prime_train.market.ranking import Ranking, rank
from prime_train.market.step_times import StepTime, TimeSource
from prime_train.runs.offer import Offer
from prime_train.spec.spec import HardwareSpec
from tests.core.given import OFFERS, PROPERTY

SPOT = Offer("prime", "spot", 2.0, spot=True, gpu="H100", gpu_count=1, disk_gib=100)
STEADY = replace(SPOT, offer_id="steady", usd_per_hour=3.0, spot=False)
HARDWARE = HardwareSpec.model_validate({"gpus": ("H100", "A100"), "count": 1, "disk_gib": 50})
WORK = Work(
    "demo", steps=3600, step_times={("H100", 1): StepTime(10.0, TimeSource.MEASURED)}, interval_steps=180
)
MARKET = Market(WORK)


def ranked(*offers: Offer, market: Market = MARKET, **changes: Any) -> Ranking:
    return rank(offers, HARDWARE, market=market, **changes)


def order(*offers: Offer, market: Market = MARKET, **changes: Any) -> list[str]:
    return [offer.offer_id for offer in ranked(*offers, market=market, **changes).best]


def losing(per_h: float, *, market: Market = MARKET) -> Market:
    """Return the market for an account that has seen spot machines being lost that often, for a thousand
    hours.
    """
    seen = replace(market.seen, losses={("prime", True): Losses(1000, 1000 * per_h)}, machines=50)
    return replace(market, seen=seen)


def quote(offer: Offer, market: Market = MARKET) -> Quote:
    (found,) = market.quotes([offer])
    return found


def test_a_spot_machine_that_is_seldom_lost_comes_first() -> None:
    assert order(STEADY, SPOT, market=losing(0.05)) == ["spot", "steady"]


def test_a_cheaper_spot_machine_that_is_often_lost_comes_after_on_demand() -> None:
    assert order(STEADY, SPOT, market=losing(1.5)) == ["steady", "spot"]


def test_a_cheap_slow_machine_comes_after_a_fast_one_that_is_cheaper_to_the_end() -> None:
    slow = replace(SPOT, offer_id="slow", gpu="A100", usd_per_hour=1.5)
    times = {**WORK.step_times, ("A100", 1): StepTime(25.0, TimeSource.SCALED)}
    assert order(slow, SPOT, market=Market(replace(WORK, step_times=times))) == ["spot", "slow"]
    assert order(
        slow,
        SPOT,
        market=Market(replace(WORK, step_times={**times, ("A100", 1): StepTime(12.0, TimeSource.SCALED)})),
    ) == [
        "slow",
        "spot",
    ]


def test_the_users_order_of_kinds_comes_first_if_the_speed_of_one_is_not_known() -> None:
    other = replace(SPOT, offer_id="other", gpu="A100", usd_per_hour=0.5)
    assert order(other, STEADY, SPOT, market=losing(1.5)) == ["steady", "spot", "other"]


def test_offers_that_would_end_too_late_come_last_but_stay() -> None:
    slow = replace(SPOT, offer_id="slow", gpu="A100", usd_per_hour=0.2)
    times = {**WORK.step_times, ("A100", 1): StepTime(25.0, TimeSource.SCALED)}
    market = Market(replace(WORK, step_times=times, deadline_h=14))
    assert order(slow, SPOT, market=market) == ["spot", "slow"]
    assert order(slow, market=market) == ["slow"]
    assert (
        ranked(slow, market=market)
        .quotes[0]
        .why.endswith("not expected to end by the deadline: it takes 27.1 h, and 14.0 h are left")
    )


def test_what_failed_or_is_closed_comes_after_all_others_whatever_it_costs() -> None:
    cheap = replace(SPOT, offer_id="cheap", usd_per_hour=0.1)
    assert order(cheap, STEADY, excluded={"cheap": "its disk failed"}) == ["steady", "cheap"]
    assert order(replace(cheap, provider="runpod"), STEADY, closed={"runpod"}) == ["steady", "cheap"]


def test_more_losses_are_expected_where_a_machine_was_preempted_recently_but_a_much_cheaper_one_is_still_first() -> (
    None
):
    like, dear = (
        replace(SPOT, offer_id="like", usd_per_hour=SPOT.usd_per_hour * 0.99),
        replace(SPOT, offer_id="dear", usd_per_hour=2.2),
    )
    assert order(like, SPOT, dear, avoided={"like"}) == ["spot", "like", "dear"]
    usual, avoided = ranked(SPOT, dear).quotes[0], ranked(SPOT, dear, avoided={"spot"}).quotes[0]
    assert avoided.losses_per_h == pytest.approx(2 * usual.losses_per_h)


def test_a_spot_price_close_to_on_demand_promises_fewer_losses() -> None:
    low, high = ranked(
        replace(SPOT, usd_per_hour=0.9), replace(SPOT, offer_id="b", usd_per_hour=2.9), STEADY
    ).quotes[:2]
    assert low.losses_per_h > 3 * high.losses_per_h


def test_traffic_is_part_of_the_cost() -> None:
    paid = replace(STEADY, usd_per_gib_down=0.01, usd_per_gib_up=0.02)
    market = Market(replace(WORK, model_bytes=100 * 2**30, checkpoint_bytes=10 * 2**30))
    assert quote(paid, market).traffic_usd == pytest.approx(1.0 + 20 * 10 * 0.02, rel=0.05)
    assert quote(paid, market).usd == pytest.approx(
        quote(STEADY, market).usd + quote(paid, market).traffic_usd
    )


def test_measured_start_times_replace_the_assumed_ones() -> None:
    slow = Observations(
        boot={"prime": Times(100, 100 * 1800)}, resume={"demo": Times(100, 100 * 3600)}, machines=100
    )
    assert quote(SPOT).hours_per_loss < 0.7
    assert quote(SPOT, Market(WORK, slow)).hours_per_loss > 1.5


def test_a_resumed_run_pays_for_a_restore_at_its_first_start_too() -> None:
    assert quote(STEADY, Market(replace(WORK, resumes=True))).start_h > quote(STEADY).start_h


def test_the_reasons_are_one_sentence_with_every_figure() -> None:
    assert (
        quote(SPOT, losing(0.05)).why
        == "$21 to the end: 10.0 h of training at $2.00/h, 0.5 losses expected, 30 min each"
    )
    assert quote(STEADY).why == "$31 to the end: 10.0 h of training at $3.00/h, hardly any losses expected"


@pytest.mark.parametrize(
    ("work", "says"),
    [
        (
            replace(WORK, step_times={("H100", 1): StepTime(10.0, TimeSource.ESTIMATED)}),
            "10.0 h of training (estimated)",
        ),
        (replace(WORK, steps=None), "10.0 h of training (assumed)"),
        (Work(hours=3.0), "3.0 h of training (assumed)"),
    ],
)
def test_the_reasons_say_where_the_time_comes_from(work: Work, says: str) -> None:
    assert says in quote(STEADY, Market(work)).why


def test_a_run_that_would_never_end_says_so_and_comes_last() -> None:
    market = losing(1000.0)
    assert order(SPOT, STEADY, market=market) == ["steady", "spot"]
    assert quote(SPOT, market).why == "would not end: a machine is lost every 3 s, and a start takes 10 min"


@pytest.mark.parametrize(
    ("market", "says"),
    [
        (Market(has_store=False), "the control plane's store cannot be read here"),
        (Market(), "no machine of this account was seen yet"),
        (losing(0.1), "as seen on 50 machines"),
    ],
)
def test_the_basis_is_named(market: Market, says: str) -> None:
    assert says in ranked(SPOT, market=market).basis


@PROPERTY
@given(
    price=st.floats(0.1, 50), more=st.floats(0.01, 10), per_h=st.floats(0, 3), restart_s=st.floats(0, 3600)
)
def test_a_dearer_machine_or_one_that_is_lost_more_often_never_costs_less(
    price: float, more: float, per_h: float, restart_s: float
) -> None:
    offer, market = replace(SPOT, usd_per_hour=price), losing(per_h)
    usd = quote(offer, market).usd
    assert quote(replace(offer, usd_per_hour=price + more), market).usd > usd
    assert quote(offer, losing(per_h + more)).usd >= usd
    slow = replace(
        market,
        seen=replace(
            market.seen, resume={"demo": Times(100, 100 * (600 + restart_s))}, setup={"demo": Times(100, 0)}
        ),
    )
    slower = replace(slow, seen=replace(slow.seen, resume={"demo": Times(100, 100 * (660 + restart_s))}))
    assert quote(offer, slower).usd >= quote(offer, slow).usd


@PROPERTY
@given(offers=st.lists(OFFERS, max_size=6, unique_by=lambda o: o.offer_id), data=st.data())
def test_the_order_does_not_depend_on_the_order_in_which_providers_list(
    offers: list[Offer], data: st.DataObject
) -> None:
    shuffled = data.draw(st.permutations(offers))
    assert (
        rank(offers, HardwareSpec(), market=Market()).quotes
        == rank(shuffled, HardwareSpec(), market=Market()).quotes
    )


@PROPERTY
@given(
    offers=st.lists(OFFERS, max_size=6),
    hardware=st.builds(HardwareSpec, gpus=st.sampled_from([(), ("H100",), ("A100", "H100")])),
)
def test_what_is_known_changes_the_order_but_not_which_offers_fit(
    offers: list[Offer], hardware: HardwareSpec
) -> None:
    plain, known = (
        rank(offers, hardware),
        rank(offers, hardware, market=Market(Work(steps=100, given_step_s=60.0))),
    )
    assert sorted(map(repr, plain.best)) == sorted(map(repr, known.best))
    assert plain.left_out == known.left_out
