"""The bill of a run explains its quote, line by line."""

import math
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.estimate.cost.bill import Bill, bill_of, smoke_bill
from prime_train.estimate.cost.duration import Between
from prime_train.market.observations import Losses, Observations, Times
from prime_train.market.quotes import Market, Work
from prime_train.market.step_times import Measurement, StepTime, TimeSource
from prime_train.runs.offer import Offer
from tests.core.given import PROPERTY

ON_DEMAND = Offer("prime", "a", 6.0, spot=False, gpu="H100_80GB", gpu_count=2, disk_gib=100, gpu_gb=80)
SPOT = replace(ON_DEMAND, offer_id="b", spot=True)
GIVEN = StepTime(10.0, TimeSource.GIVEN)
ESTIMATED = StepTime(10.0, TimeSource.ESTIMATED, factor=2.0)


def bill(
    steps: int = 360,
    step: StepTime = GIVEN,
    offer: Offer = ON_DEMAND,
    seen: Observations | None = None,
    **work: Any,
) -> Bill:
    market = Market(
        Work("qwen", steps=steps, step_times={("H100_80GB", 2): step}, **work), seen or Observations()
    )
    found = bill_of(market, market.quote(offer))
    assert found is not None
    return found


def names(found: Bill) -> list[str]:
    return [line.name for line in found.lines]


def test_a_given_step_time_is_taken_as_it_is() -> None:
    found = bill()
    (training,) = [line for line in found.lines if line.name == "training"]
    assert (training.time, training.expected_s) == (Between(3600, 3600), 3600)
    assert found.usd_of(training.time) == Between(6.0, 6.0)
    assert training.why == "360 steps of 10 s, as given"


def test_only_what_there_is_has_a_line() -> None:
    always = ["provisioning", "set-up", "training", "upload", "losses"]
    assert names(bill()) == always
    complete = bill(step=ESTIMATED, interval_steps=90, stall_s=20.0, smoke_s_max=600.0, smoke_steps=2)
    assert names(complete) == [
        "provisioning",
        "set-up",
        "smoke run",
        "training",
        "saving",
        "upload",
        "losses",
    ]
    assert "saving" not in names(
        bill(step=StepTime(10.0, TimeSource.MEASURED), interval_steps=90, stall_s=20.0)
    )


def test_a_smoke_run_costs_at_most_its_time_out_and_is_a_part_of_the_complete() -> None:
    full = bill(1000, smoke_s_max=120.0, smoke_steps=50)
    smoke = smoke_bill(full)
    assert smoke is not None
    assert names(smoke) == ["provisioning", "set-up", "smoke run"]
    assert smoke.lines[-1].time.high == 120
    assert smoke.usd.high < full.usd.low
    assert smoke_bill(bill()) is None


def test_what_was_seen_is_known_better_than_what_is_assumed() -> None:
    def ratio(seen: Observations) -> float:
        start = bill(seen=seen).lines[1].time
        return start.high / start.low

    once, often = (Observations(setup={"qwen": Times(weight, weight * 420)}) for weight in (1.0, 20.0))
    assert ratio(Observations()) > ratio(once) > ratio(often) > 1.25**2
    assert "as in earlier runs of this config" in bill(seen=once).lines[1].why


def test_where_losses_were_seen_their_number_is_known_better() -> None:
    few, many = (Observations({("prime", True): Losses(count * 12.0, float(count))}) for count in (0, 50))
    wide, narrow = (bill(5000, offer=SPOT, seen=seen).lines[-1].time for seen in (few, many))
    assert wide.high - wide.low > narrow.high - narrow.low


def test_seldom_checkpoints_make_losses_dearer() -> None:
    often, seldom = (bill(5000, offer=SPOT, interval_steps=every).lines[-1] for every in (20, 2000))
    assert often.name == seldom.name == "losses"
    assert seldom.expected_s > 2 * often.expected_s


def test_a_measured_time_says_where_it_was_measured() -> None:
    step = StepTime(10.0, TimeSource.MEASURED, Measurement(10.0, 12, "qwen-probe-x7k2m", is_probe=True))
    assert (
        bill(step=step).lines[2].why
        == "360 steps of 8.7 to 11.5 s, measured in an earlier run: probe qwen-probe-x7k2m, 12 steps"
    )


def test_hours_that_are_only_assumed_are_said_to_be() -> None:
    market = Market(Work("qwen", hours=4.0))
    found = bill_of(market, market.quote(ON_DEMAND))
    assert found is not None
    (training,) = [line for line in found.lines if line.name == "training"]
    assert (training.expected_s, training.why) == (4 * 3600, "assumed: the budget's hours")


@pytest.mark.parametrize(
    ("usd", "hours", "message"),
    [
        (1.0, None, "too small: $1.00"),
        (7.0, None, "may be too small"),
        (100.0, None, "enough"),
        (100.0, 0.5, "too few hours: 0.5 h"),
    ],
)
def test_a_budget_says_whether_it_is_enough_and_why(usd: float, hours: float | None, message: str) -> None:
    assert bill().budget_says(usd, hours).startswith(message)


@pytest.mark.parametrize("usd", [0.01, 10_000.0])
def test_a_budget_is_not_called_too_small_for_a_time_that_is_only_assumed(usd: float) -> None:
    found = bill()
    assumed = replace(found, quote=replace(found.quote, source=None))
    assert (
        assumed.budget_says(usd, 1.0)
        == f"it is not known whether ${usd:,.2f} is enough, because the time of the training is only assumed"
    )


@PROPERTY
@given(
    st.integers(1, 10**6),
    st.floats(1e-3, 1e4),
    st.sampled_from(TimeSource),
    st.integers(1, 10**6),
    st.floats(0, 1e12, allow_subnormal=False),
    st.floats(0, 1e3, allow_subnormal=False),
    st.floats(0, 5, allow_subnormal=False),
    st.booleans(),
)
def test_the_lines_of_a_bill_add_up_to_its_quote_and_every_range_contains_what_is_expected(
    steps: int,
    step_s: float,
    source: TimeSource,
    every: int,
    size: float,
    usd_per_hour: float,
    traffic: float,
    spot: bool,
) -> None:
    offer = replace(
        ON_DEMAND, usd_per_hour=usd_per_hour, usd_per_gib_down=traffic, usd_per_gib_up=traffic, spot=spot
    )
    work = Work(
        "qwen",
        steps,
        {("H100_80GB", 2): StepTime(step_s, source)},
        None,
        every,
        checkpoint_bytes=size,
        model_bytes=size,
    )
    market = Market(replace(work, stall_s=7.0, smoke_s_max=600.0))
    quote = market.quote(offer)
    found = bill_of(market, quote)
    if found is None:
        assert quote.usd == math.inf
        return
    assert found.expected_s == pytest.approx(quote.hours * 3600)
    assert found.expected_usd == pytest.approx(quote.usd)
    for line in found.lines:
        assert line.time.low <= line.expected_s * (1 + 1e-9)
        assert line.expected_s <= line.time.high * (1 + 1e-9)
    assert found.usd.low <= found.expected_usd * (1 + 1e-9) <= found.usd.high * (1 + 2e-9)
    assert found.budget_says(10.0)


def test_a_run_that_would_not_end_has_no_bill() -> None:
    market = Market(Work("qwen", steps=10**7, step_times={("H100_80GB", 2): GIVEN}, interval_steps=10**7))
    assert bill_of(market, market.quote(replace(SPOT, usd_per_hour=1.0), 0.1)) is None
