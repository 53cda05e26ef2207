"""The bill of a run, line by line."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.core.offers import Offer
from prime_train.core.run import Run, RunState
from prime_train.estimate.cost.bill import Amount, Known, Rate, StepTime, full_run, smoke_run
from prime_train.estimate.cost.duration import Between
from prime_train.estimate.cost.measured import measured
from tests.core.given import PROPERTY, a_run

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


# ------------------------------------------------------------------------------------------------------------- measured steps


def trained(last_step: int, first_step_s: int | None = 1000, last_sign_s: int | None = 1990, **changes: object) -> Run:
    run = a_run(RunState.TRAINING, **changes)
    assert run.current_attempt is not None
    attempt = replace(run.current_attempt, first_step_s=first_step_s, last_sign_s=last_sign_s, last_step=last_step, resumed_step=0)
    return replace(run, attempts=(attempt,))


def test_an_earlier_run_of_the_same_config_tells_the_time_of_a_step() -> None:
    run = trained(100)
    found = measured([run], run.spec)
    assert found is not None
    assert found.seconds.expected == pytest.approx(10)
    assert (found.known, found.why) == (Known.MEASURED, f"{run.run_id}, 99 steps")


def test_another_config_or_too_few_steps_tell_nothing() -> None:
    run = trained(100)
    other = trained(100, trainer={"steps": 7})
    assert measured([other], run.spec) is None
    assert measured([trained(3)], run.spec) is None
    assert measured([trained(100, last_sign_s=None)], run.spec) is None
    assert measured([trained(3), run], run.spec) is not None


def test_of_a_run_with_variants_the_attempts_count_that_had_the_same_one() -> None:
    large = {"count": 2, "gpu_gb_min": 80, "set": {"environment.A": "1"}}
    hardware = {"gpus": ["RTX4090_24GB", "H100_80GB"], "variants": [large, {"count": 1, "set": {"trainer.command": "train.py --small"}}]}
    run = trained(100, hardware=hardware)
    (attempt,) = run.attempts
    fast = replace(attempt, offer=Offer("prime", "a", 4.0, spot=False, gpu="H100_80GB", gpu_count=2), last_sign_s=1099)
    slow = replace(attempt, offer=Offer("prime", "b", 1.0, spot=False, gpu="RTX4090_24GB", gpu_count=1))
    run = replace(run, attempts=(fast, slow))
    found = [measured([run], run.spec.variant(number)) for number in (0, 1)]
    assert [step.seconds.expected if step is not None else None for step in found] == pytest.approx([1, 10])
    one_gpu_of_the_first = run.spec.model_copy(update={"hardware": run.spec.variant(1).hardware})
    assert measured([run], one_gpu_of_the_first) is None
