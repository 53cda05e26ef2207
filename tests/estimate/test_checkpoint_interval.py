"""The cost of a preemption and the best checkpoint interval, compared with brute force and with simulated
runs.
"""

import math
import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.estimate.checkpoint_interval import (
    GAIN_MIN,
    GAIN_SHARE_MIN,
    PRIOR_MTBF_S,
    RESTART_S,
    Advice,
    Pace,
    advise,
    best_interval_s,
    daly_s,
    loss_s,
    loss_share,
    mtbf_s,
    young_s,
)
from tests.core.given import PROPERTY

HOUR_S = 3600.0
PACE = Pace(stall_s=20, upload_s=200, mtbf_s=20 * HOUR_S, restart_s=400)
LIVES = 20_000

PACES = st.builds(
    Pace,
    stall_s=st.sampled_from([0.0, 0.5, 6.0, 30.0, 150.0, 900.0]),
    upload_s=st.sampled_from([0.0, 1.0, 45.0, 600.0, 5000.0]),
    mtbf_s=st.sampled_from([HOUR_S / 4, HOUR_S, 7 * HOUR_S, 100 * HOUR_S]),
    restart_s=st.sampled_from([0.0, 60.0, 900.0]),
    step_s=st.sampled_from([None, 0.3, 7.0, 400.0]),
    interval_s=st.floats(1, 50_000),
)
"""Paces, including unusual ones: uploads longer than the time between preemptions, steps longer than the best
interval.
"""


def given_advice(pace: Pace, usd_per_hour: float = 3.0) -> Advice:
    advice = advise(pace, usd_per_hour=usd_per_hour)
    assert advice is not None
    return advice


def played_share(pace: Pace, interval_s: float) -> float:
    """Return the share of the paid time that is lost if machines live for exponentially distributed times,
    save on schedule and skip saves during an upload.
    """
    dice = random.Random(1974)
    apart = max(1, math.ceil(pace.upload_s / interval_s))
    paid_s = useful_s = 0.0
    for _ in range(LIVES):
        life_s = dice.expovariate(1 / pace.mtbf_s)
        uploading_s = life_s - pace.restart_s - pace.upload_s
        saves = (
            1 + apart * math.floor((uploading_s / interval_s - 1) / apart) if uploading_s >= interval_s else 0
        )
        paid_s, useful_s = paid_s + life_s, useful_s + saves * (interval_s - pace.stall_s)
    return 1 - useful_s / paid_s


def exact_share(stall_s: float, mtbf_s: float, interval_s: float) -> float:
    """Return the lost share by Daly's complete model, without restarts, with exponential failures at any
    time.
    """
    return 1 - (interval_s - stall_s) / (mtbf_s * math.expm1(interval_s / mtbf_s))


# ------------------------------------------------------------------------------------------------------------
# loss


def test_a_preemption_loses_half_an_interval_the_upload_and_the_restart() -> None:
    assert loss_s(PACE, 600) == 300 + 200 + 400


def test_the_share_that_is_lost_is_the_stalls_and_the_preemptions() -> None:
    assert loss_share(PACE, 600) == pytest.approx(20 / 600 + 900 / 72_000)


def test_where_an_upload_takes_longer_than_an_interval_only_some_saves_count() -> None:
    assert loss_s(replace(PACE, upload_s=1500), 600) == 1800 / 2 + 1500 + 400
    assert loss_s(replace(PACE, upload_s=600), 600) == 600 / 2 + 600 + 400


def test_no_more_than_everything_can_be_lost() -> None:
    assert loss_share(replace(PACE, mtbf_s=60), 600) == 1.0


@pytest.mark.parametrize(
    ("pace", "interval_s"),
    [
        (PACE, 600),
        (PACE, 1700),
        (replace(PACE, upload_s=1500), 600),
        (replace(PACE, upload_s=0, restart_s=0), 3600),
        (replace(PACE, stall_s=60, restart_s=600), 300),
    ],
)
def test_runs_that_are_played_through_lose_what_the_formula_says(pace: Pace, interval_s: float) -> None:
    assert loss_share(pace, interval_s) == pytest.approx(played_share(pace, interval_s), rel=0.04)


def test_runs_that_are_played_through_lose_least_at_the_best_interval() -> None:
    best_s = best_interval_s(PACE)
    assert best_s is not None
    assert played_share(PACE, best_s) < min(
        played_share(PACE, best_s * factor) for factor in (0.4, 0.6, 1.7, 2.5)
    )


# ------------------------------------------------------------------------------------------------------------
# optimum


@PROPERTY
@given(stall_s=st.floats(0.01, 900), between_s=st.floats(900, 400_000), factor=st.floats(0.05, 20))
def test_no_interval_loses_less_to_first_order_than_youngs(
    stall_s: float, between_s: float, factor: float
) -> None:
    def lost(interval_s: float) -> float:
        return stall_s / interval_s + interval_s / 2 / between_s

    best_s = young_s(stall_s, between_s)
    assert lost(best_s) <= lost(best_s * factor) * (1 + 1e-12)


@pytest.mark.parametrize("ratio", [0.001, 0.01, 0.03, 0.1, 0.3, 1.0, 1.9, 2.0, 5.0])
def test_dalys_interval_is_the_best_of_a_fine_grid_where_a_save_is_not_short(ratio: float) -> None:
    stall_s = ratio * HOUR_S
    grid = [stall_s + step * HOUR_S / 1000 for step in range(1, 5000)]
    useful = max(1 - exact_share(stall_s, HOUR_S, interval_s) for interval_s in grid)
    assert 1 - exact_share(stall_s, HOUR_S, daly_s(stall_s, HOUR_S)) == pytest.approx(useful, rel=2e-3)


def test_youngs_interval_falls_behind_where_a_save_is_long() -> None:
    stall_s = 0.3 * HOUR_S
    assert daly_s(stall_s, HOUR_S) > 1.1 * young_s(stall_s, HOUR_S)
    assert exact_share(stall_s, HOUR_S, young_s(stall_s, HOUR_S)) > 1.005 * exact_share(
        stall_s, HOUR_S, daly_s(stall_s, HOUR_S)
    )


def test_young_and_daly_agree_where_a_save_is_short() -> None:
    assert daly_s(0.01, 1000 * HOUR_S) == pytest.approx(young_s(0.01, 1000 * HOUR_S), rel=1e-3)


@pytest.mark.parametrize(
    ("stall_s", "formula"), [(36.0, young_s), (37.0, daly_s), (900.0, daly_s), (8000.0, daly_s)]
)
def test_a_stall_that_is_not_small_beside_the_time_between_preemptions_calls_for_daly(
    stall_s: float, formula: Any
) -> None:
    assert best_interval_s(replace(PACE, stall_s=stall_s, mtbf_s=HOUR_S)) == formula(stall_s, HOUR_S)


@PROPERTY
@given(pace=PACES, factor=st.floats(0.01, 100))
def test_no_interval_that_is_possible_loses_noticeably_less_than_the_best(pace: Pace, factor: float) -> None:
    best_s = best_interval_s(pace)
    if best_s is None:
        return
    other_s = max(best_s * factor, pace.upload_s, pace.stall_s)
    if pace.step_s is not None:
        other_s = math.ceil(other_s / pace.step_s) * pace.step_s + pace.stall_s
    assert loss_share(pace, best_s) <= loss_share(pace, other_s) * 1.01 + 1e-9


@PROPERTY
@given(pace=PACES)
def test_the_best_interval_leaves_time_for_the_upload_the_save_and_a_step(pace: Pace) -> None:
    best_s = best_interval_s(pace)
    if best_s is None:
        assert pace.stall_s == pace.upload_s == 0
        assert pace.step_s is None
        return
    assert best_s >= max(pace.upload_s, pace.stall_s) * (1 - 1e-9)
    if pace.step_s is not None:
        steps = (best_s - pace.stall_s) / pace.step_s
        assert steps == pytest.approx(round(steps))
        assert round(steps) >= 1


def test_where_a_save_costs_nothing_uploads_follow_one_another() -> None:
    assert best_interval_s(replace(PACE, stall_s=0)) == 200


@pytest.mark.parametrize(("step_s", "steps"), [(1200, 2), (1800, 1), (10_000, 1)])
def test_the_best_interval_is_of_so_many_complete_steps_as_lose_least(step_s: float, steps: int) -> None:
    pace = Pace(stall_s=30, upload_s=60, mtbf_s=24 * HOUR_S, step_s=step_s)
    assert best_interval_s(pace) == steps * step_s + 30


def test_where_neither_save_nor_upload_takes_time_every_step_is_saved() -> None:
    assert best_interval_s(replace(PACE, stall_s=0, upload_s=0, step_s=7)) == 7


# ------------------------------------------------------------------------------------------------------------
# preemptions, lag


def test_a_run_that_was_often_preempted_is_taken_at_its_own_figures() -> None:
    assert mtbf_s(10 * HOUR_S, 4) == 2.5 * HOUR_S


def test_before_anything_was_seen_a_machine_is_believed_to_last_as_others_do() -> None:
    assert mtbf_s(0, 0) == PRIOR_MTBF_S


def test_a_long_time_without_a_preemption_raises_what_is_believed() -> None:
    assert mtbf_s(10 * PRIOR_MTBF_S, 0) == 11 * PRIOR_MTBF_S


def test_one_preemption_in_the_first_minute_does_not_mean_one_a_minute() -> None:
    assert mtbf_s(60, 1) == (60 + PRIOR_MTBF_S) / 2


@PROPERTY
@given(paid_s=st.one_of(st.just(0.0), st.floats(1, 1e8)), preemptions=st.integers(0, 1000))
def test_one_more_preemption_never_makes_a_machine_look_safer(paid_s: float, preemptions: int) -> None:
    assert mtbf_s(paid_s, preemptions) >= mtbf_s(paid_s, preemptions + 1) > 0


@pytest.mark.parametrize(("paid_s", "preemptions"), [(-1, 0), (10, -1)])
def test_negative_time_or_preemptions_are_refused(paid_s: float, preemptions: int) -> None:
    with pytest.raises(ValueError, match="negative"):
        mtbf_s(paid_s, preemptions)


# ------------------------------------------------------------------------------------------------------------
# advice


def test_a_trainer_that_saves_too_seldom_is_reported_what_it_would_gain() -> None:
    pace = Pace(stall_s=7, upload_s=90, mtbf_s=10 * HOUR_S, interval_s=HOUR_S)
    assert given_advice(pace).text == "saving every 12 min would lose 3.9 % instead of 7.1 %"


def test_a_trainer_that_saves_too_often_is_reported_in_steps_where_its_steps_are_known() -> None:
    pace = Pace(stall_s=30, upload_s=60, mtbf_s=24 * HOUR_S, step_s=6, interval_steps=20)
    advice = given_advice(pace)
    assert advice.text == "saving every 38 min (374 steps) would lose 3.4 % instead of 20.9 %"
    assert advice.best_interval_s == 374 * 6 + 30


@pytest.mark.parametrize(
    ("interval_s", "mtbf_h", "stall_s", "says"),
    [(600, 0.1, 0.5, "every 20 s "), (20, 4, 5, "every 6 min "), (600, 400, 120, "every 5.2 h ")],
)
def test_times_are_reported_in_the_unit_that_suits_them(
    interval_s: float, mtbf_h: float, stall_s: float, says: str
) -> None:
    pace = Pace(stall_s=stall_s, upload_s=20, mtbf_s=mtbf_h * HOUR_S, restart_s=0, interval_s=interval_s)
    assert says in (given_advice(pace).text or "")


def test_what_a_preemption_costs_is_reported_in_seconds_and_dollars() -> None:
    advice = given_advice(replace(PACE, interval_s=600), usd_per_hour=4.0)
    assert (advice.loss_s, advice.loss_usd) == (900, 1.0)


def test_a_trainer_that_saves_at_about_the_best_interval_is_sent_nothing() -> None:
    advice = given_advice(replace(PACE, interval_s=1500))
    assert advice.text is None
    assert advice.best_loss_share is not None
    assert 0 < advice.best_loss_share <= advice.loss_share


def test_a_gain_that_is_a_large_part_of_a_small_loss_is_not_worth_a_word() -> None:
    advice = given_advice(
        Pace(stall_s=0.1, upload_s=1, mtbf_s=1000 * HOUR_S, restart_s=60, interval_s=HOUR_S)
    )
    assert advice.best_loss_share is not None
    assert advice.best_loss_share < 0.5 * advice.loss_share
    assert advice.text is None


def test_a_gain_that_is_a_small_part_of_a_large_loss_is_not_worth_a_word() -> None:
    advice = given_advice(Pace(stall_s=20, upload_s=10, mtbf_s=HOUR_S, restart_s=1500, interval_s=800))
    assert advice.best_loss_share is not None
    assert advice.loss_share - advice.best_loss_share > 0.01
    assert advice.text is None


@pytest.mark.parametrize("known", [{}, {"step_s": 6.0}, {"interval_steps": 20}])
def test_nothing_is_reported_while_the_interval_is_not_known(known: dict[str, Any]) -> None:
    assert advise(replace(PACE, **known), usd_per_hour=3.0) is None


def test_an_interval_that_was_observed_counts_for_more_than_one_that_was_configured() -> None:
    assert given_advice(replace(PACE, step_s=6, interval_steps=20, interval_s=600)).loss_s == 900


def test_where_saving_takes_no_time_there_is_nothing_to_say() -> None:
    advice = given_advice(replace(PACE, stall_s=0, upload_s=0, interval_s=600))
    assert (advice.best_interval_s, advice.best_loss_share, advice.text) == (None, None, None)


def test_a_run_without_a_preemption_so_far_gets_advice_from_what_is_believed() -> None:
    advice = given_advice(Pace(stall_s=7, upload_s=90, mtbf_s=mtbf_s(600, 0), interval_s=2 * HOUR_S))
    assert advice.loss_s == HOUR_S + 90 + RESTART_S
    assert advice.text is not None


@PROPERTY
@given(pace=PACES)
def test_advice_that_is_given_is_always_worth_it(pace: Pace) -> None:
    advice = given_advice(pace)
    assert 0 <= advice.loss_share <= 1
    if advice.text is not None:
        assert advice.best_loss_share is not None
        gain = advice.loss_share - advice.best_loss_share
        assert gain >= GAIN_MIN
        assert gain >= GAIN_SHARE_MIN * advice.loss_share


@pytest.mark.parametrize(
    "wrong",
    [
        {"stall_s": -1.0},
        {"upload_s": math.nan},
        {"restart_s": -0.1},
        {"mtbf_s": 0.0},
        {"mtbf_s": math.inf},
        {"step_s": 0.0},
        {"interval_s": 0.0},
        {"interval_steps": 0},
    ],
)
def test_a_pace_that_cannot_be_is_refused_by_name(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(wrong))} is "):
        replace(PACE, **wrong)
