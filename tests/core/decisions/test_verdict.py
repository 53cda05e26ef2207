"""The verdict on the evidence, row by row of the table of verdicts, at the exact second at which each limit
is reached.

The defaults: a heartbeat each 30 s, overdue after 90 s, silence limit 300 s, first heartbeat in 1200 s, first
step in 3600 s, step deadline 300 s.
"""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.runs.forecast import Forecast, StepEstimate
from prime_train.runs.links import LAG_S_MAX
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import Attempt, Run, RunState, TrackedStep
from prime_train.runs.verdict import (
    Finished,
    Gone,
    Healthy,
    PodsObserved,
    PodStatus,
    PodsView,
    Sick,
    Silent,
    Stalled,
    TrackerObserved,
    Unknown,
    Verdict,
    judge,
    step_limit_s,
)
from prime_train.runs.wire import JobExit, Phase
from prime_train.spec.after_steps import REFUSED
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.core.given import DOWN, NOW_S, PODS_VIEWS, PROPERTY, a_run, evidence, newest, seen

GONE = seen(gone=("pod-1",))


def after(silent_s: int, **changes: Any) -> Verdict:
    """Return the verdict on a training run whose last heartbeat is this old; that heartbeat's `step_age_s` is
    0 unless it is given.
    """
    of = changes.pop("run", None) or a_run()
    message = {name: changes.pop(name) for name in tuple(changes) if name in type(b.heartbeat()).model_fields}
    return judge(
        of, evidence(of, heartbeat=b.heartbeat(7, **message), heartbeat_s=NOW_S - silent_s, **changes), NOW_S
    )


def waiting(waited_s: int, **changes: Any) -> Verdict:
    """Return the verdict on a run whose machine was requested this long ago and that has sent no heartbeat
    yet.
    """
    of = a_run(RunState.BOOTING)
    return judge(of, evidence(of, **changes), b.T0_S + waited_s)


# ------------------------------------------------------------------------------------------------------------
# gone


def test_a_machine_the_provider_calls_gone_is_gone_once_its_last_heartbeat_is_older_than_one_interval() -> (
    None
):
    assert isinstance(after(31, pods=GONE), Gone)


@pytest.mark.parametrize("age_s", [0, 29, 30])
def test_a_machine_that_sent_a_heartbeat_within_one_interval_is_there_whatever_the_provider_says(
    age_s: int,
) -> None:
    assert after(age_s, pods=GONE) == Healthy(Phase.TRAIN, 10)


@pytest.mark.parametrize("silent_s", [31, 91, 301, 5000])
def test_an_empty_list_from_the_provider_is_not_gone(silent_s: int) -> None:
    assert not isinstance(after(silent_s, pods=seen()), Gone)


def test_a_status_we_do_not_know_is_not_gone() -> None:
    assert not isinstance(after(91, pods=seen(b.pod(status=PodStatus.UNKNOWN))), Gone)


@pytest.mark.parametrize(
    ("status", "broken"), [(PodStatus.BROKEN, True), (PodStatus.UNKNOWN, False), (PodStatus.PENDING, False)]
)
def test_a_machine_that_the_provider_calls_failed_is_given_up_only_while_no_agent_has_come_up(
    status: PodStatus, broken: bool
) -> None:
    verdict = waiting(10, pods=seen(b.pod(status=status)))
    assert (isinstance(verdict, Sick) and verdict.cause is Cause.BOOT_FAILED) is broken
    assert isinstance(after(10, pods=seen(b.pod(status=status))), Healthy)
    assert not isinstance(after(91, pods=seen(b.pod(status=status))), Gone | Sick)


def test_another_attempts_machine_being_gone_says_nothing_of_this_one() -> None:
    of = a_run(RunState.TRAINING, attempt=2)
    at_s = b.T0_S + b.ATTEMPT_S + 700
    assert not isinstance(
        judge(of, evidence(of, pods=seen(gone=("pod-1",)), heartbeat_s=at_s - 60), at_s), Gone
    )


def test_a_machine_that_was_gone_before_its_first_heartbeat_is_gone() -> None:
    assert isinstance(waiting(10, pods=GONE), Gone)


def test_a_machine_that_is_gone_is_gone_also_while_the_watcher_is_blind() -> None:
    assert isinstance(after(400, pods=GONE, blind="3 of 4 runs fell silent"), Gone)
    assert isinstance(waiting(10, pods=GONE, blind="3 of 4 runs fell silent"), Gone)


# ------------------------------------------------------------------------------------------------------------
# the agent's word


@pytest.mark.parametrize("cause", [c for c in Cause if c is not Cause.FINISHED])
@pytest.mark.parametrize("age_s", [0, 5000])
def test_an_exit_the_agent_reported_is_believed_first(cause: Cause, age_s: int) -> None:
    ended = JobExit(cause=cause, detail="exit 1")
    for pods in (seen(), GONE, DOWN):
        assert after(age_s, exit=ended, pods=pods, blind="blind") == Sick(cause, "exit 1", exited=True)


@pytest.mark.parametrize(("step", "verdict"), [(99, Cause.STOPPED_EARLY), (100, None), (101, None)])
def test_success_is_judged_by_the_step_where_the_last_one_is_known(step: int, verdict: Cause | None) -> None:
    message = after(0, run=a_run(trainer={"steps": 100}), step=step, exit=JobExit(cause=Cause.FINISHED))
    assert (
        message == Finished(step)
        if verdict is None
        else isinstance(message, Sick) and message.cause is verdict
    )


def test_a_trainer_that_prints_every_few_steps_and_saved_its_last_one_has_finished() -> None:
    message = after(
        0,
        run=a_run(trainer={"steps": 100}),
        step=95,
        exit=JobExit(cause=Cause.FINISHED, code=0),
        committed_step=100,
    )
    assert message == Finished(100)


def test_exit_code_0_is_success_where_the_last_step_is_not_known() -> None:
    assert after(0, step=3, exit=JobExit(cause=Cause.FINISHED)) == Finished(3)


def test_a_run_that_resumed_at_its_last_step_has_nothing_left_to_do() -> None:
    of = a_run(trainer={"steps": 100}, resume=ResumePoint(step=100, attempt=1, key="k"))
    assert after(0, run=of, step=0, exit=JobExit(cause=Cause.FINISHED)) == Finished(100)


def test_an_agent_that_calls_its_run_sick_is_believed() -> None:
    assert after(0, sick=Cause.ZERO_REWARD, sick_detail="10 steps") == Sick(
        Cause.ZERO_REWARD, "10 steps", exited=False
    )


def test_a_notice_that_the_machine_will_be_taken_away_is_passed_on() -> None:
    assert after(0, preempting=True) == Healthy(Phase.TRAIN, 10, preempting=True)


def test_a_heartbeat_of_an_earlier_attempt_says_nothing_of_this_one() -> None:
    of = a_run(RunState.BOOTING, attempt=2)
    old = b.lease(of, attempt=1, heartbeat=b.heartbeat(9, attempt=1), heartbeat_s=NOW_S)
    assert judge(of, evidence(of, lease=old), newest_launch_s(of.attempts) + 5) == Healthy(None, 0)


def newest_launch_s(attempts: tuple[Attempt, ...]) -> int:
    return attempts[-1].launched_s


# ------------------------------------------------------------------------------------------------------------
# silence


@pytest.mark.parametrize("age_s", [-60, 0, 31, 89, 90])
def test_a_heartbeat_that_is_not_older_than_overdue_is_fresh(age_s: int) -> None:
    assert after(age_s) == Healthy(Phase.TRAIN, 10)


@pytest.mark.parametrize(("silent_s", "past_limit"), [(91, False), (300, False), (301, True), (5000, True)])
def test_heartbeats_overdue_with_nothing_else_moving_is_silent(silent_s: int, past_limit: bool) -> None:
    assert after(silent_s) == Silent(silent_s, past_limit)


def test_heartbeats_overdue_while_the_tracker_advances_is_healthy_but_cut_off() -> None:
    assert after(400, tracker=TrackerObserved(55, NOW_S - 5)) == Healthy(Phase.TRAIN, 55, cut_off=True)


@pytest.mark.parametrize(("received_s", "verdict"), [(300, Healthy), (301, Silent)])
def test_a_tracker_that_has_heard_nothing_for_the_silence_limit_is_no_sign_of_life(
    received_s: int, verdict: type[Verdict]
) -> None:
    assert isinstance(after(400, tracker=TrackerObserved(55, NOW_S - received_s)), verdict)


CUT_OFF_S_MAX = 300 + 1800 + LAG_S_MAX
"""A step's deadline beside a checkpoint, plus the tracker's lag."""


@pytest.mark.parametrize("tracked", [None, TrackedStep(55), TrackedStep(70)])
@pytest.mark.parametrize("step", [0, 55])
@pytest.mark.parametrize(("silent_s", "late"), [(CUT_OFF_S_MAX, False), (CUT_OFF_S_MAX + 1, True)])
def test_a_tracker_whose_step_does_not_rise_speaks_for_a_run_only_so_long_after_its_last_heartbeat(
    silent_s: int, late: bool, step: int, tracked: TrackedStep | None
) -> None:
    of = a_run(attempts=(b.new_attempt(tracked=tracked),))
    found = after(silent_s, run=of, tracker=TrackerObserved(step, NOW_S - 5), step_slow_s=1.0)
    alone = after(silent_s, run=of, step_slow_s=1.0)
    assert alone == Silent(silent_s, past_limit=True)
    assert found == alone if late else isinstance(found, Healthy)


@pytest.mark.parametrize(("rose_s", "late"), [(CUT_OFF_S_MAX, False), (CUT_OFF_S_MAX + 1, True)])
def test_a_step_that_rose_there_speaks_for_a_run_as_long(rose_s: int, late: bool) -> None:
    of = a_run(attempts=(b.new_attempt(tracked=TrackedStep(55, NOW_S - rose_s)),))
    stands, rises = (
        after(50_000, run=of, tracker=TrackerObserved(step, NOW_S - 5), step_slow_s=1.0) for step in (55, 56)
    )
    assert isinstance(stands, Silent) == late
    assert isinstance(rises, Healthy)


def test_slow_steps_are_given_their_own_time_where_only_the_tracker_is_heard() -> None:
    reported = {"tracker": TrackerObserved(55, NOW_S - 5), "step_slow_s": 1000.0}
    assert isinstance(after(5000 + 1800 + LAG_S_MAX, **reported), Healthy)
    assert isinstance(after(5000 + 1800 + LAG_S_MAX + 1, **reported), Silent)


@pytest.mark.parametrize(
    ("waited_s", "verdict"), [(3600 + 1800 + LAG_S_MAX, Healthy), (3600 + 1800 + LAG_S_MAX + 1, Stalled)]
)
def test_a_machine_that_was_never_heard_is_given_as_long_by_a_tracker_whose_step_does_not_rise(
    waited_s: int, verdict: type[Verdict]
) -> None:
    assert isinstance(waiting(waited_s, tracker=TrackerObserved(7, b.T0_S + waited_s - 5)), verdict)


def test_that_a_tracker_no_longer_speaks_for_a_run_convicts_nobody_while_the_watcher_is_blind() -> None:
    assert after(50_000, tracker=TrackerObserved(55, NOW_S - 5), blind="deaf") == Unknown(
        "deaf", breaker=True
    )


def test_a_tracker_that_fell_silent_together_with_the_heartbeats_is_no_sign_of_life() -> None:
    assert after(120, tracker=TrackerObserved(10, NOW_S - 120)) == Silent(120, past_limit=False)


@pytest.mark.parametrize(("received_s", "verdict"), [(10, Healthy), (1201, Stalled), (None, Stalled)])
def test_a_machine_that_was_never_heard_but_is_seen_by_the_tracker_is_cut_off_and_not_late(
    received_s: int | None, verdict: type[Verdict]
) -> None:
    found = waiting(
        1201, tracker=TrackerObserved(7, b.T0_S + 1201 - received_s) if received_s is not None else None
    )
    assert isinstance(found, verdict)
    assert not isinstance(found, Healthy) or found.cut_off


def test_a_tracker_that_lags_does_not_take_the_step_back() -> None:
    assert after(100, step=60, tracker=TrackerObserved(55, NOW_S)) == Healthy(Phase.TRAIN, 60, cut_off=True)


EARLY: dict[str, Any] = {"step": 3, "step_slow_s": None}


def limited(limit_s: int, of: Run | None = None, **message: Any) -> bool:
    """Return whether an early step is late after `limit_s`, and not before."""
    changes = {} if of is None else {"run": of}
    before, late = (
        after(10, **EARLY, **changes, **message, step_age_s=limit_s - 10 + more) for more in (0, 1)
    )
    return isinstance(before, Healthy) and isinstance(late, Stalled)


def test_a_trainer_that_hangs_after_its_first_step_is_found_long_before_an_hour() -> None:
    assert limited(900)
    assert isinstance(after(10, step=9, step_slow_s=400.0, step_age_s=1990), Healthy)


def test_before_step_times_are_known_the_first_step_and_the_estimate_say_how_long_a_step_may_take() -> None:
    slow_start = b.new_attempt(first_heartbeat_s=b.T0_S + 20, first_step_s=b.T0_S + 1020)
    assert limited(2000, a_run(attempts=(slow_start,)))
    assert limited(2000, timed_steps=2, timed_s=400.0)
    estimated = Forecast(steps=(StepEstimate("", 0, 100.0, 150.0), StepEstimate("H100", 8, 1.0, 300.0)))
    assert limited(1500, a_run(forecast=estimated))


def test_an_early_step_never_has_longer_than_the_first_one_may_take() -> None:
    assert limited(3600, timed_steps=1, timed_s=1000.0)
    unseen = b.new_attempt(first_step_s=None)
    assert limited(3600, a_run(attempts=(unseen,)))


def test_time_in_which_nobody_could_be_heard_does_not_count_as_silence() -> None:
    assert after(1000, seen_since_s=NOW_S - 91) == Silent(91, past_limit=False)
    assert after(1000, seen_since_s=NOW_S - 301) == Silent(301, past_limit=True)


def test_seconds_of_which_it_is_not_known_whether_anybody_could_be_heard_do_not_count_as_silence() -> None:
    assert after(301, unheard_s=1) == Silent(300, past_limit=False)
    assert after(301) == Silent(301, past_limit=True)


def test_until_a_run_had_time_to_be_heard_again_its_silence_proves_nothing() -> None:
    assert isinstance(after(1000, seen_since_s=NOW_S - 90), Unknown)


# ------------------------------------------------------------------------------------------------------------
# unknown


@pytest.mark.parametrize("silent_s", [91, 301, 5000])
def test_silence_while_the_provider_cannot_be_queried_is_unknown(silent_s: int) -> None:
    assert after(silent_s, pods=DOWN) == Unknown("HTTP 503")
    assert after(silent_s, pods=DOWN, tracker=TrackerObserved(55, NOW_S)) == Unknown("HTTP 503")


@pytest.mark.parametrize("silent_s", [91, 301, 5000])
def test_silence_while_most_runs_are_silent_is_unknown(silent_s: int) -> None:
    assert after(silent_s, blind="3 of 4") == Unknown("3 of 4", breaker=True)


def test_fresh_heartbeats_are_healthy_also_while_the_provider_cannot_be_queried() -> None:
    assert after(0, pods=DOWN, blind="3 of 4") == Healthy(Phase.TRAIN, 10)


def test_a_stall_while_the_provider_cannot_be_queried_is_unknown() -> None:
    assert isinstance(after(0, step_age_s=5000, pods=DOWN), Unknown)


def test_a_late_boot_is_unknown_while_the_provider_cannot_be_queried_or_nobody_can_be_heard() -> None:
    assert waiting(5000, pods=DOWN) == Unknown("HTTP 503")
    assert waiting(5000, blind="deaf") == Unknown("deaf", breaker=True)


# ------------------------------------------------------------------------------------------------------------
# deadlines


@pytest.mark.parametrize("waited_s", [0, 1199, 1200])
def test_a_machine_that_has_sent_no_heartbeat_yet_still_has_time_to(waited_s: int) -> None:
    assert waiting(waited_s) == Healthy(None, 0)


def test_a_machine_that_has_sent_no_heartbeat_in_time_is_late() -> None:
    assert waiting(1201) == Stalled(Cause.BOOT_TIMEOUT, 1201, 1200)


def test_time_in_which_a_first_heartbeat_could_not_arrive_does_not_count() -> None:
    assert waiting(2000, seen_since_s=b.T0_S + 801) == Healthy(None, 0)


@pytest.mark.parametrize(("waited_s", "late"), [(3600, False), (3601, True)])
def test_the_first_step_has_a_deadline_of_its_own_from_the_first_heartbeat(waited_s: int, late: bool) -> None:
    of = a_run(RunState.STARTING)
    now_s = (of.attempts[-1].first_heartbeat_s or 0) + waited_s
    verdict = judge(
        of, evidence(of, heartbeat=b.heartbeat(7, step=0, phase=Phase.SETUP), heartbeat_s=now_s), now_s
    )
    assert verdict == (Stalled(Cause.START_TIMEOUT, 3601, 3600) if late else Healthy(Phase.SETUP, 0))


@pytest.mark.parametrize(("age_s", "late"), [(300, False), (301, True)])
def test_heartbeats_fine_but_no_step_within_its_deadline_is_stalled(age_s: int, late: bool) -> None:
    assert after(0, step_age_s=age_s) == (
        Stalled(Cause.STALLED, 301, 300) if late else Healthy(Phase.TRAIN, 10)
    )


def test_the_time_since_the_last_heartbeat_counts_towards_the_step_deadline() -> None:
    assert after(30, step_age_s=271) == Stalled(Cause.STALLED, 301, 300)


PATIENT = {"overdue_s": 600, "silence_s": 900}


@pytest.mark.parametrize("silent_s", [60, 400, 600])
def test_a_step_is_not_late_for_what_may_have_happened_after_a_missed_heartbeat(silent_s: int) -> None:
    assert after(silent_s, run=a_run(health=PATIENT), step_age_s=270) == Healthy(Phase.TRAIN, 10)


def test_a_step_that_was_late_when_it_was_last_heard_of_stays_late() -> None:
    assert after(400, run=a_run(health=PATIENT), step_age_s=271) == Stalled(Cause.STALLED, 301, 300)


def test_a_first_step_is_not_late_for_what_may_have_happened_after_a_missed_heartbeat() -> None:
    of = a_run(RunState.STARTING, health=PATIENT)
    received_s = (newest(of).first_heartbeat_s or 0) + 3500
    setting_up = evidence(of, heartbeat=b.heartbeat(7, step=0, phase=Phase.SETUP), heartbeat_s=received_s)
    assert judge(of, setting_up, received_s + 500) == Healthy(Phase.SETUP, 0)


@pytest.mark.parametrize(("age_s", "late"), [(1000, False), (1001, True)])
def test_the_step_deadline_is_five_times_the_slow_end_of_the_runs_own_steps(age_s: int, late: bool) -> None:
    assert isinstance(after(0, step_age_s=age_s, step_slow_s=200.0), Stalled) == late


def test_what_earlier_attempts_learned_of_slow_steps_still_counts() -> None:
    assert after(0, run=a_run(step_slow_s=200.0), step_age_s=1000) == Healthy(Phase.TRAIN, 10)


@pytest.mark.parametrize("message", [{"saving": True}, {"phase": Phase.FLUSH}])
@pytest.mark.parametrize(("age_s", "late"), [(2100, False), (2101, True)])
def test_while_a_checkpoint_is_being_made_the_step_deadline_has_an_allowance(
    message: dict[str, Any], age_s: int, late: bool
) -> None:
    assert isinstance(after(0, step_age_s=age_s, **message), Stalled) == late


@PROPERTY
@given(
    slow_s=st.one_of(st.none(), st.floats(0, 1e7)),
    factor=st.floats(1.5, 100),
    stall_s=st.integers(1, 10_000),
    saving=st.booleans(),
)
def test_the_step_deadline_is_never_below_its_floor(
    slow_s: float | None, factor: float, stall_s: int, saving: bool
) -> None:
    health = b.spec(health={"stall_factor": factor, "stall_s": stall_s}).health
    limit_s = step_limit_s(health, slow_s, saving=saving)
    assert limit_s >= stall_s + (health.saving_s if saving else 0)
    assert limit_s >= factor * (slow_s or 0.0) - 1


@pytest.mark.parametrize(
    ("requested_s", "counts"), [(None, False), (NOW_S + 1, False), (NOW_S, True), (NOW_S - 1, True)]
)
def test_evidence_counts_when_the_agent_says_that_it_is_there_after_it_was_requested(
    requested_s: int | None, counts: bool
) -> None:
    of = a_run(attempts=(b.new_attempt(evidence_requested_s=requested_s),))
    assert after(0, run=of, step_age_s=301, evidence=True) == Stalled(
        Cause.STALLED, 301, 300, evidence=counts
    )


# ------------------------------------------------------------------------------------------------------------
# always


ACTIVE_STATES = st.sampled_from(
    [RunState.LAUNCHING, RunState.BOOTING, RunState.STARTING, RunState.TRAINING, RunState.DRAINING]
)
HEARTBEATS = st.one_of(
    st.none(),
    st.builds(
        b.heartbeat,
        seq=st.just(7),
        phase=st.sampled_from(list(Phase)),
        step=st.sampled_from([0, 10]),
        step_age_s=st.integers(0, 4000),
        saving=st.booleans(),
        sick=st.sampled_from([None, Cause.GPU_IDLE]),
        exit=st.sampled_from([None, JobExit(cause=Cause.FINISHED), JobExit(cause=Cause.GPU_OOM)]),
    ),
)
TRACKERS = st.one_of(
    st.none(), st.builds(TrackerObserved, step=st.just(20), received_s=st.integers(NOW_S - 500, NOW_S + 500))
)


@PROPERTY
@given(
    state=ACTIVE_STATES,
    heartbeat=HEARTBEATS,
    age_s=st.integers(-400, 6000),
    pods=PODS_VIEWS,
    tracker=TRACKERS,
    blind=st.sampled_from([None, "deaf"]),
    since_s=st.integers(0, NOW_S + 100),
)
def test_any_evidence_gives_a_verdict_and_no_destructive_one_without_proof(
    state: RunState,
    heartbeat: Any,
    age_s: int,
    pods: PodsView,
    tracker: TrackerObserved | None,
    blind: str | None,
    since_s: int,
) -> None:
    of = a_run(state)
    facts = evidence(
        of,
        heartbeat=heartbeat,
        heartbeat_s=NOW_S - age_s if heartbeat else None,
        pods=pods,
        tracker=tracker,
        blind=blind,
        seen_since_s=since_s,
    )
    verdict = judge(of, facts, NOW_S)
    if isinstance(verdict, Gone):
        assert isinstance(pods, PodsObserved)
        assert of.attempts[-1].pod_id in pods.gone
    if isinstance(verdict, Silent | Stalled):
        assert isinstance(pods, PodsObserved)
    if isinstance(verdict, Silent):
        assert blind is None
        assert 90 < verdict.silent_s <= age_s
    if isinstance(verdict, Finished):
        assert heartbeat is not None
    if isinstance(verdict, Sick) and heartbeat is None:
        assert isinstance(pods, PodsObserved)
        assert [pod.status for pod in pods.pods if pod.pod_id == of.attempts[-1].pod_id] == [PodStatus.BROKEN]


@PROPERTY
@given(
    state=ACTIVE_STATES,
    heartbeat=HEARTBEATS,
    age_s=st.integers(0, 6000),
    pods=PODS_VIEWS,
    step=st.sampled_from([0, 20]),
    late_s=st.one_of(st.integers(-300, 600), st.integers(1200, 1800), st.just(NOW_S)),
    blind=st.sampled_from([None, "deaf"]),
)
def test_a_tracker_may_save_a_run_and_never_convicts_one_whose_agent_sends_heartbeats(
    state: RunState, heartbeat: Any, age_s: int, pods: PodsView, step: int, late_s: int, blind: str | None
) -> None:
    of = a_run(state)
    facts = evidence(
        of, heartbeat=heartbeat, heartbeat_s=NOW_S - age_s if heartbeat else None, pods=pods, blind=blind
    )
    alone, received = (
        judge(of, facts, NOW_S),
        judge(of, replace(facts, tracker=TrackerObserved(step, NOW_S - late_s)), NOW_S),
    )
    if received != alone:
        assert isinstance(received, Healthy)
        assert received.cut_off
        assert late_s <= 300
        assert isinstance(alone, Silent | Unknown) or alone == Stalled(
            Cause.BOOT_TIMEOUT, NOW_S - of.attempts[-1].launched_s, 1200
        )


@pytest.mark.parametrize("late_s", [301, 1200, 1800, NOW_S])
def test_the_lag_of_a_tracker_neither_saves_nor_convicts(late_s: int) -> None:
    late = TrackerObserved(55, NOW_S - late_s)
    assert after(400, tracker=late) == after(400) == Silent(400, past_limit=True)
    assert after(10, tracker=late) == Healthy(Phase.TRAIN, 10)
    assert waiting(1201, tracker=late) == waiting(1201)


def test_a_run_without_an_attempt_cannot_be_judged() -> None:
    of = a_run(RunState.QUEUED)
    with pytest.raises(ValueError, match="no attempt"):
        judge(of, evidence(of), NOW_S)


CRASH = JobExit(cause=Cause.TRAINER_ERROR, detail="ray.exceptions.RayActorError: died", code=1)


def test_finished_work_is_finished_whatever_the_exit_code_and_the_crash_is_a_note() -> None:
    of = a_run(spec=b.spec(trainer={"steps": 60}))
    assert after(0, run=of, step=60, committed_step=60, exit=CRASH) == Finished(60, note=CRASH.detail)
    assert after(0, run=of, step=55, committed_step=60, exit=CRASH) == Finished(60, note=CRASH.detail)
    told = JobExit(cause=Cause.FINISHED, detail=CRASH.detail, code=139, saved_step=60)
    assert after(0, run=of, step=60, committed_step=60, exit=told) == Finished(60, note=CRASH.detail)


@pytest.mark.parametrize(
    ("step", "committed", "cause"),
    [
        (60, 50, Cause.TRAINER_ERROR),
        (55, 59, Cause.TRAINER_ERROR),
        (3, 6400, Cause.TRAINER_ERROR),  # a number that counts samples
        *[(60, 60, cause) for cause in (Cause.UPLOAD_FAILED, *sorted(REFUSED))],
    ],
)
def test_a_crash_before_all_is_done_and_durable_is_no_end(step: int, committed: int, cause: Cause) -> None:
    of = a_run(spec=b.spec(trainer={"steps": 60}))
    assert isinstance(
        after(0, run=of, step=step, committed_step=committed, exit=CRASH.model_copy(update={"cause": cause})),
        Sick,
    )
