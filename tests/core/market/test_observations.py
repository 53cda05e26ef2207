"""What the attempts of earlier runs tell of losses and start times."""

from dataclasses import replace
from typing import Any

import pytest

from prime_train.market.observations import (
    HALF_LIFE_H,
    NOTHING_SEEN,
    TIME_S_MAX,
    Losses,
    Observations,
    Times,
    observations,
)
from prime_train.runs.offer import Offer
from prime_train.runs.run import Attempt, Run, RunState
from prime_train.spec.causes import Cause
from tests import builders as b

HOUR_S = 3600
T0_S = 1_000_000
SPOT = Offer("prime", "s", 1.0, spot=True)


def an_attempt(number: int = 1, *, offer: Offer = SPOT, hours: float = 10, **changes: Any) -> Attempt:
    """Return an attempt whose machine was heard after 2 min, trained from 10 min on, and was preempted after
    `hours`.
    """
    at_s = T0_S + number * 100 * HOUR_S
    end_s = at_s + round(hours * HOUR_S)
    times = {
        "first_heartbeat_s": at_s + 120,
        "first_step_s": at_s + 600,
        "last_sign_s": end_s - 60,
        "fenced_s": end_s,
        "ended_s": end_s,
    }
    return replace(
        Attempt(number, offer, at_s, pod_id=f"p{number}", cause=Cause.PREEMPTED), **{**times, **changes}
    )


def a_run(*attempts: Attempt) -> Run:
    return replace(b.run(RunState.QUEUED), attempts=attempts)


def seen(*attempts: Attempt, after_h: float = 0.0) -> Observations:
    """Return what was seen `after_h` hours after the last attempt's end."""
    assert attempts[-1].fenced_s is not None
    return observations([a_run(*attempts)], attempts[-1].fenced_s + round(after_h * HOUR_S))


def test_machine_hours_and_losses_are_counted_by_provider_and_market() -> None:
    steady = replace(SPOT, spot=False)
    found = seen(
        an_attempt(hours=10),
        an_attempt(2, offer=steady, hours=30, cause=Cause.FINISHED),
        an_attempt(3, hours=5),
    )
    assert found.machines == 3
    assert found.losses["prime", True].count == pytest.approx(2, rel=0.4)
    assert found.losses["prime", False].count == 0
    assert found.losses["prime", False].hours == pytest.approx(30, rel=0.4)


@pytest.mark.parametrize("cause", [Cause.NO_CAPACITY, Cause.GPU_OOM, Cause.STOPPED_GRACEFULLY])
def test_what_the_machine_is_not_to_blame_for_is_no_loss(cause: Cause) -> None:
    assert seen(an_attempt(cause=cause)).losses["prime", True].count == 0


def test_a_refused_order_is_no_machine() -> None:
    assert seen(an_attempt(pod_id=None, cause=Cause.NO_CAPACITY)) == NOTHING_SEEN


def test_a_machine_that_still_trains_counts_up_to_now() -> None:
    going_on = an_attempt(fenced_s=None, ended_s=None, cause=None)
    found = observations([a_run(going_on)], going_on.launched_s + 7 * HOUR_S)
    assert found.losses["prime", True] == Losses(7.0, 0.0)


def test_start_times_are_told_apart_by_provider_and_config_and_by_whether_a_checkpoint_was_restored() -> None:
    found = seen(an_attempt(), an_attempt(2, resumed_step=40, first_step_s=an_attempt(2).launched_s + 1320))
    name = a_run().spec.name
    assert found.boot["prime"].mean_s(120) == pytest.approx(120)
    assert found.setup[name].total_s / found.setup[name].weight == pytest.approx(480)
    assert found.resume[name].total_s / found.resume[name].weight == pytest.approx(1200)
    assert found.detection.total_s / found.detection.weight == pytest.approx(60)


def test_one_day_on_which_nothing_could_be_seen_does_not_make_every_loss_a_day_long() -> None:
    late = an_attempt(hours=30)
    found = seen(replace(late, last_sign_s=late.launched_s + 3600))
    assert found.detection.mean_s(0) <= TIME_S_MAX


def test_what_was_seen_counts_half_after_the_half_life() -> None:
    assert seen(an_attempt(hours=10), after_h=HALF_LIFE_H).losses["prime", True] == Losses(5.0, 0.5)


def test_losses_are_the_prior_at_first_and_what_was_seen_later() -> None:
    assert Losses().per_h(12) == pytest.approx(1 / 12)
    assert Losses(hours=12, count=0).per_h(12) == pytest.approx(1 / 24)
    assert Losses(hours=10_000, count=2_000).per_h(12) == pytest.approx(0.2, rel=0.01)


def test_a_time_is_the_prior_at_first_and_what_was_seen_later() -> None:
    assert Times().mean_s(100) == 100
    assert Times(weight=98, total_s=98 * 300).mean_s(100) == pytest.approx(296)


def test_a_run_whose_figures_cannot_be_computed_with_keeps_no_other_from_its_machines() -> None:
    fine = b.run(RunState.TRAINING, attempt=1)
    (attempt,) = fine.attempts
    odd = replace(attempt, timed_steps=10, timed_s=10.0, timed_spread_s=1e200)
    poisoned = replace(fine, run_id="tiny-2", attempts=(odd,))

    seen = observations([poisoned, fine], b.T0_S + 1000)

    assert seen == observations([fine], b.T0_S + 1000)
    assert seen.machines == 1
