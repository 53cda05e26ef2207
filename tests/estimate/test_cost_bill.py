"""The bill of a run, line by line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.estimate.cost.bill import Amount, Known, Rate, StepTime, full_run, smoke_run
from prime_train.estimate.cost.duration import Between
from tests.core.given import PROPERTY

GIVEN = StepTime(Between(10, 10), Known.GIVEN)
ON_DEMAND, SPOT = Rate(6.0, spot=False), Rate(6.0, spot=True)


def names(amount: Amount, rate: Rate) -> list[str]:
    return [line.name for line in full_run(amount, rate).lines]


def test_a_given_step_time_is_taken_as_it_is() -> None:
    bill = full_run(Amount(360, GIVEN), ON_DEMAND)
    (training,) = [line for line in bill.lines if line.name == "training"]
    assert (training.time.low, training.time.high) == (3600, 3600)
    assert bill.rate.usd(training.time) == Between(6.0, 6.0)
    assert training.why == "360 steps of 10 s, given"


def test_only_what_there_is_has_a_line() -> None:
    assert names(Amount(10, GIVEN), ON_DEMAND) == ["provisioning", "set-up", "training"]
    complete = Amount(10, GIVEN, every_steps=5, smoke_steps=2, smoke_s_max=600)
    assert names(complete, SPOT) == ["provisioning", "set-up", "smoke run", "training", "saving", "preemptions"]


def test_the_lines_make_the_total() -> None:
    bill = full_run(Amount(500, GIVEN, every_steps=50, smoke_s_max=300), SPOT)
    assert bill.time.low == pytest.approx(sum(line.time.low for line in bill.lines))
    assert bill.usd.high == pytest.approx(sum(bill.rate.usd(line.time).high for line in bill.lines))


def test_a_smoke_run_costs_at_most_its_time_out_and_is_a_part_of_the_complete() -> None:
    amount = Amount(1000, GIVEN, smoke_steps=50, smoke_s_max=120)
    smoke = smoke_run(amount, ON_DEMAND)
    assert smoke is not None
    assert smoke.lines[-1].time.high == 120
    assert smoke.usd.high < full_run(amount, ON_DEMAND).usd.low
    assert smoke_run(Amount(1000, GIVEN), ON_DEMAND) is None


def test_seldom_checkpoints_make_preemptions_dearer() -> None:
    often, seldom = (full_run(Amount(5000, GIVEN, every_steps=every), SPOT).lines[-1] for every in (20, 2000))
    assert often.name == seldom.name == "preemptions"
    assert seldom.time.high > 2 * often.time.high


@pytest.mark.parametrize(
    ("usd", "hours", "message"),
    [(1.0, None, "too small: $1.00"), (7.0, None, "may be too small"), (100.0, None, "enough"), (100.0, 0.5, "too few hours: 0.5 h")],
)
def test_a_budget_says_whether_it_is_enough_and_why(usd: float, hours: float | None, message: str) -> None:
    assert full_run(Amount(360, GIVEN), ON_DEMAND).budget_says(usd, hours).startswith(message)


@PROPERTY
@given(st.integers(1, 10**9), st.floats(0, 1e6), st.integers(0, 10**9), st.floats(0, 1e15), st.floats(0, 1e5))
def test_any_amount_has_a_bill(steps: int, step_s: float, every: int, size: float, usd_per_hour: float) -> None:
    amount = Amount(steps, StepTime(Between(step_s, 2 * step_s), Known.PUBLISHED), every or None, 3, 600.0, size, size)
    spot, kept = (full_run(amount, Rate(usd_per_hour, spot=spot)) for spot in (True, False))
    assert 0 <= kept.usd.low <= kept.usd.high <= spot.usd.high
    assert spot.budget_says(10.0)


def test_no_steps_are_no_run() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        Amount(0, GIVEN)
