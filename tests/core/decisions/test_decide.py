"""The next action, state by state and verdict by verdict."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from prime_train.runs import decide as d
from prime_train.runs import ledger
from prime_train.runs.alert_kinds import AlertKind, policy_of
from prime_train.runs.budget import GIVE_BACK_S, GIVE_BACK_SHARE, end_usd, save_usd, training_s
from prime_train.runs.change import change
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import (
    ACTIVE_STATES,
    TERMINAL,
    Attempt,
    DesiredState,
    Distrusted,
    DrainReason,
    NotificationRecord,
    Orphan,
    Probe,
    Run,
    RunState,
    Totals,
    with_attempt,
)
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
    Unknown,
    Verdict,
)
from prime_train.runs.wire import Phase, Traffic
from prime_train.spec.causes import POLICY, Cause, Retry
from prime_train.spec.spec import BudgetSpec
from tests import builders as b
from tests.core.given import (
    BLIND,
    DOWN,
    NOT_YET,
    NOW_S,
    OUT_OF_REACH,
    PODS_VIEWS,
    PROPERTY,
    STATES,
    TRAINS,
    VERDICTS,
    a_run,
    as_expected,
    healthy,
    newest,
    seen,
)

S = RunState
LATE = Stalled(Cause.STALLED, 400, 300)
PAST_LIMIT = Silent(400, past_limit=True)
DESTRUCTIVE = (d.Recover, d.Finish, d.Terminate)
SETTLE_S = b.spec().health.settle_s
AGENT_THERE = [S.STARTING, S.TRAINING]


def after(
    run: Run, verdict: Verdict | None = TRAINS, pods: PodsView | None = None, now_s: int = NOW_S
) -> d.Decision:
    return d.decide(run, verdict, as_expected(run) if pods is None else pods, now_s)


def noted(*kinds: AlertKind, at_s: int = NOW_S - 1000) -> tuple[NotificationRecord, ...]:
    return tuple(NotificationRecord(kind, at_s) for kind in kinds)


def wait_of(decision: d.Decision) -> d.Wait:
    assert isinstance(decision, d.Wait), decision
    return decision


def finish_of(decision: d.Decision) -> d.Finish:
    assert isinstance(decision, d.Finish), decision
    return decision


def recover_of(decision: d.Decision) -> d.Recover:
    assert isinstance(decision, d.Recover), decision
    return decision


# --------------------------------------------------------------------------------------------- pods that
# should not be there


@pytest.mark.parametrize("state", list(S))
def test_a_pod_of_any_other_attempt_goes_first(state: RunState) -> None:
    run = a_run(state, attempt=2)
    orphan = b.pod(run, attempt=1)
    for verdict in (TRAINS, PAST_LIMIT, Gone("404"), Finished(10), OUT_OF_REACH):
        pods = seen(*as_expected(run).pods, orphan)
        assert after(run, verdict, pods) == d.Terminate((orphan,))


@pytest.mark.parametrize("state", [*sorted(TERMINAL), S.QUEUED])
def test_where_no_machine_may_run_even_the_newest_attempts_goes(state: RunState) -> None:
    run = a_run(state, attempt=1)
    assert after(run, None, seen(b.pod(run))) == d.Terminate((b.pod(run),))


@pytest.mark.parametrize("state", [S.BOOTING, S.STARTING, S.TRAINING, S.DRAINING])
def test_a_second_machine_of_the_current_name_goes(state: RunState) -> None:
    run = a_run(state)
    twin = b.pod(run, pod_id="pod-x")
    assert after(run, TRAINS, seen(b.pod(run), twin)) == d.Terminate((twin,))


@pytest.mark.parametrize("status", [PodStatus.PENDING, PodStatus.ACTIVE, PodStatus.UNKNOWN])
def test_a_machine_in_any_state_but_gone_is_terminated(status: PodStatus) -> None:
    run = a_run(S.STOPPED)
    assert isinstance(after(run, None, seen(b.pod(run, status=status))), d.Terminate)


def test_a_machine_that_is_gone_is_not_terminated() -> None:
    run = a_run(S.STOPPED)
    assert after(run, None, seen(b.pod(run, status=PodStatus.GONE))) == d.Wait(
        None, wait_of(after(run, None)).why
    )
    assert isinstance(after(run, None, seen(b.pod(run), gone=("pod-1",))), d.Wait)


@pytest.mark.parametrize(("requested_s", "again"), [(29, False), (30, True), (31, True)])
def test_the_provider_is_retried_until_it_says_that_the_pod_is_gone(requested_s: int, again: bool) -> None:
    pod = b.pod(a_run(S.STOPPED))
    run = a_run(
        S.STOPPED,
        orphans=(
            Orphan(pod.pod_id, pod.name, requested_s=NOW_S - requested_s, first_requested_s=NOW_S - 300),
        ),
    )
    decision = after(run, None, seen(pod))
    assert isinstance(decision, d.Terminate) == again
    if not again:
        assert wait_of(decision).until_s == NOW_S + d.check_s(run)


def test_a_machine_terminated_a_moment_ago_does_not_hold_up_the_run() -> None:
    run = a_run(
        attempt=2, orphans=(Orphan("pod-1", f"pt-{b.RUN_ID}-e1", requested_s=NOW_S, first_requested_s=NOW_S),)
    )
    assert isinstance(after(run, Gone("404"), seen(b.pod(run, attempt=1))), d.Recover)


def test_when_the_provider_confirms_the_past_attempt_is_settled() -> None:
    lost = replace(b.new_attempt(1, S.QUEUED), ended_s=None)
    run = a_run(
        S.QUEUED,
        attempt=1,
        attempts=(lost,),
        orphans=(Orphan("pod-1", f"pt-{b.RUN_ID}-e1", requested_s=NOW_S, first_requested_s=NOW_S),),
    )
    assert after(run, None, seen(gone=("pod-1",))) == d.Settle((1,), ("pod-1",))


def test_the_current_attempt_is_never_settled_by_its_machine_being_gone() -> None:
    assert isinstance(after(a_run(), Gone("404"), seen(gone=("pod-1",))), d.Recover)


@pytest.mark.parametrize(("waited_s", "settled"), [(SETTLE_S - 1, False), (SETTLE_S, True)])
def test_a_launch_that_made_no_machine_is_settled_after_the_settle_time(waited_s: int, settled: bool) -> None:
    lost = replace(b.new_attempt(1, S.QUEUED), pod_id=None, ended_s=None, fenced_s=NOW_S - waited_s)
    run = a_run(S.STOPPED, attempts=(lost,))
    decision = after(run, None, seen())
    assert decision == d.Settle((1,)) if settled else wait_of(decision).until_s == NOW_S + d.check_s(run)


@pytest.mark.parametrize("state", sorted(TERMINAL))
def test_an_ended_run_is_looked_at_until_all_its_machines_are_gone_and_then_never_again(
    state: RunState,
) -> None:
    done = a_run(state)
    paid = a_run(state, attempts=(replace(newest(done), ended_s=None),))
    assert wait_of(after(done, None)).until_s is None
    assert wait_of(after(paid, None, seen())).until_s == NOW_S + d.check_s(paid)
    assert wait_of(after(paid, None, DOWN)).until_s == NOW_S + d.check_s(paid)


# ------------------------------------------------------------------------------------------------------------
# queued


def test_a_queued_run_is_launched() -> None:
    assert after(a_run(S.QUEUED), None) == d.Launch(on_demand=False)


def test_nothing_is_rented_while_a_secret_of_the_run_is_missing() -> None:
    run = a_run(S.QUEUED)
    held = d.decide(run, None, PodsObserved(()), NOW_S, lacking=["HF_TOKEN"])
    assert isinstance(held, d.Hold)
    assert "HF_TOKEN" in held.why
    assert isinstance(
        d.decide(replace(run, not_before_s=NOW_S + 9), None, PodsObserved(()), NOW_S, lacking=["HF_TOKEN"]),
        d.Wait,
    )


def test_what_the_next_attempt_restores_is_chosen_after_the_fence_and_before_the_launch() -> None:
    assert after(a_run(S.QUEUED, attempt=1, resume_chosen=False), None) == d.ChooseResume()


@pytest.mark.parametrize(("early_s", "waits"), [(1, True), (0, False), (-1, False)])
def test_no_machine_is_requested_before_the_back_off_is_over(early_s: int, waits: bool) -> None:
    decision = after(a_run(S.QUEUED, not_before_s=NOW_S + early_s), None)
    assert wait_of(decision).until_s == NOW_S + early_s if waits else isinstance(decision, d.Launch)


def test_the_back_off_grows_from_15_s_to_10_min() -> None:
    assert [d.backoff_s(n) for n in (1, 2, 3, 4, 5, 6, 7, 8, 1000)] == [
        15,
        30,
        60,
        120,
        240,
        480,
        600,
        600,
        600,
    ]


def test_nothing_is_launched_while_the_provider_cannot_be_queried() -> None:
    assert isinstance(after(a_run(S.QUEUED), None, DOWN), d.Notify)
    assert wait_of(after(a_run(S.QUEUED, notices=noted(AlertKind.UNKNOWN)), None, DOWN)).until_s == NOW_S + 15


@pytest.mark.parametrize(
    ("desired", "state"), [(DesiredState.STOP, S.STOPPED), (DesiredState.CANCEL, S.CANCELLED)]
)
@pytest.mark.parametrize("chosen", [True, False])
def test_a_wish_to_stop_comes_before_any_launch(desired: DesiredState, state: RunState, chosen: bool) -> None:
    for pods in (seen(), DOWN):
        assert (
            finish_of(after(a_run(S.QUEUED, desired=desired, resume_chosen=chosen), None, pods)).state
            is state
        )


def test_three_attempts_without_a_new_durable_step_stop_the_run_and_say_what_they_had_in_common() -> None:
    decision = finish_of(after(a_run(S.QUEUED, attempt=3, strikes=(Cause.CUDA_ERROR,) * 3), None))
    assert (decision.state, decision.cause) == (S.STOPPED, Cause.CUDA_ERROR)
    assert decision.why.startswith(
        "3 attempts in a row made no new checkpoint: all ended by 'CUDA error'. If the error repeats"
    )


def test_attempts_that_had_nothing_in_common_are_reported_one_by_one() -> None:
    causes = (Cause.CUDA_ERROR, Cause.STALLED, Cause.CUDA_ERROR)
    assert d.in_common(causes) == "they ended by 'CUDA error' (2), 'no step within its deadline' (1)"


@pytest.mark.parametrize(
    "cause", [Cause.PREEMPTED, Cause.MACHINE_LOST, Cause.SILENT, Cause.STALLED, Cause.STOPPED_GRACEFULLY]
)
def test_no_machine_is_rented_once_the_last_step_is_durable(cause: Cause) -> None:
    run = last_step_durable(cause)
    decision = finish_of(after(run, None))
    assert (decision.state, decision.cause) == (S.SUCCEEDED, Cause.FINISHED)
    assert (
        decision.why
        == f"finished at step 60, which was durable before attempt 1 ended: {POLICY[cause].title}"
    )
    spent = replace(run, spec=run.spec.model_copy(update={"budget": BudgetSpec(usd=0.000001)}))
    assert finish_of(after(spent, None)).state is S.SUCCEEDED


@pytest.mark.parametrize(
    ("cause", "point", "changes"),
    [
        (Cause.PREEMPTED, 55, {}),
        (Cause.PREEMPTED, 6400, {}),  # a number that counts samples
        (Cause.RESUME_IGNORED, 60, {}),
        (Cause.NOT_FINITE, 60, {}),
        (Cause.PREEMPTED, 60, {"outputs": ("results/**",)}),
        (Cause.PREEMPTED, 60, {"after": [{"name": "score", "run": "true", "required": True}]}),
        (Cause.PREEMPTED, 60, {"trainer": {"steps": 61}}),
    ],
)
def test_a_machine_is_rented_while_something_is_left_to_do(
    cause: Cause, point: int, changes: dict[str, Any]
) -> None:
    assert isinstance(after(last_step_durable(cause, point, **changes), None), d.Launch)


def test_a_last_checkpoint_from_which_an_attempt_could_not_resume_is_no_end() -> None:
    run = last_step_durable(Cause.PREEMPTED)
    assert isinstance(after(replace(run, distrusted=(Distrusted(60, 1, 2),)), None), d.Launch)


def last_step_durable(cause: Cause, point: int = 60, **changes: Any) -> Run:
    """Return a run of 60 steps that reports every 5 of them, whose machine ended; it would resume from step
    `point`.
    """
    made = b.spec(**{"trainer": {"steps": 60}, **changes})
    run = b.run(
        S.QUEUED, attempt=1, spec=made, resume=ResumePoint(step=point, attempt=1, key="k"), best_step=55
    )
    return replace(
        run,
        attempts=(
            replace(run.attempts[0], cause=cause, last_step=55, durable_step=point, ended_s=NOW_S - 100),
        ),
    )


def test_two_attempts_without_a_new_durable_step_do_not_stop_the_run() -> None:
    assert isinstance(after(a_run(S.QUEUED, attempt=2, strikes=(Cause.CUDA_ERROR,) * 2), None), d.Launch)


def test_a_checkpoint_that_is_only_found_after_the_fence_is_looked_for_before_the_strikes_are_counted() -> (
    None
):
    run = a_run(S.QUEUED, attempt=3, strikes=(Cause.SILENT,) * 3, resume_chosen=False)
    assert after(run, None) == d.ChooseResume()


def test_the_number_of_attempts_without_progress_is_the_users() -> None:
    run = a_run(S.QUEUED, attempt=1, strikes=(Cause.STALLED,), budget={"restarts_without_progress": 1})
    assert isinstance(after(run, None), d.Finish)


@pytest.mark.parametrize(
    ("ago_s", "on_demand"),
    [((10, 20, 3599), True), ((10, 20), False), ((10, 20, 3600), False), ((10, 20, 4000, 5000), False)],
)
def test_after_three_preemptions_in_an_hour_on_demand_instead_of_spot(
    ago_s: tuple[int, ...], on_demand: bool
) -> None:
    run = a_run(S.QUEUED, attempt=1, preempted_s=tuple(NOW_S - s for s in ago_s))
    assert after(run, None) == d.Launch(on_demand)


def test_well_behind_the_deadline_line_on_demand_instead_of_spot() -> None:
    """540 of 3600 s of training are spent: 15 %."""
    behind = {"trainer": {"steps": 100}, "budget": {"hours": 1.0}, "attempt": 1}
    assert after(a_run(S.QUEUED, durable_step=4, **behind), None) == d.Launch(on_demand=True)
    assert after(a_run(S.QUEUED, durable_step=6, **behind), None) == d.Launch(on_demand=False)


def test_an_offer_whose_machine_was_taken_away_is_avoided_for_an_hour() -> None:
    run = a_run(S.QUEUED, attempt=1)
    fenced_s = newest(run).fenced_s or 0
    assert d.avoided_offers(run, fenced_s + 3599) == {"local-spot"}
    assert d.avoided_offers(run, fenced_s + 3600) == frozenset()


# ------------------------------------------------------------------------------------------------------------
# launching


def test_a_create_call_whose_answer_was_lost_is_settled_by_the_pods_name() -> None:
    run = a_run(S.LAUNCHING)
    assert after(run, NOT_YET, seen(b.pod(run, status=PodStatus.PENDING))) == d.Adopt("pod-1", 0.36)


def test_of_two_machines_of_the_same_name_every_watcher_adopts_the_same_one() -> None:
    run = a_run(S.LAUNCHING)
    one, other = b.pod(run), b.pod(run, pod_id="pod-0")
    assert (
        after(run, NOT_YET, seen(one, other))
        == after(run, NOT_YET, seen(other, one))
        == d.Adopt("pod-0", 0.36)
    )


def test_a_machine_that_is_gone_already_is_adopted_as_it_was_paid_for_but_never_before_one_that_lives() -> (
    None
):
    run = a_run(S.LAUNCHING)
    dead, living = b.pod(run, pod_id="pod-0", status=PodStatus.GONE), b.pod(run)
    assert after(run, NOT_YET, seen(dead)) == d.Adopt("pod-0", 0.36)
    assert after(run, NOT_YET, seen(dead, living)) == d.Adopt("pod-1", 0.36)
    assert after(run, NOT_YET, seen(b.pod(run, pod_id="pod-0"), living, gone=("pod-0",))) == d.Adopt(
        "pod-1", 0.36
    )


@pytest.mark.parametrize(
    ("waited_s", "lost"), [(0, False), (SETTLE_S - 1, False), (SETTLE_S, True), (5000, True)]
)
def test_a_create_call_that_brought_no_machine_is_lost_after_the_settle_time(
    waited_s: int, lost: bool
) -> None:
    decision = after(a_run(S.LAUNCHING), NOT_YET, seen(), b.T0_S + waited_s)
    assert recover_of(decision).cause is Cause.LAUNCH_LOST if lost else wait_of(decision)


def test_a_launch_is_not_lost_while_the_provider_cannot_be_queried() -> None:
    run = a_run(S.LAUNCHING, notices=noted(AlertKind.UNKNOWN))
    assert wait_of(after(run, OUT_OF_REACH, DOWN, b.T0_S + 5000)).until_s == b.T0_S + 5015


def test_a_launch_whose_agent_sends_heartbeats_is_not_lost_though_the_provider_lists_no_machine() -> None:
    wait_of(after(a_run(S.LAUNCHING), TRAINS, seen(), b.T0_S + 5000))


# --------------------------------------------------------------------------------------------------- booting
# and starting


def test_the_agent_is_put_on_a_machine_that_is_up() -> None:
    assert after(a_run(S.BOOTING), NOT_YET, now_s=b.T0_S + 10) == d.PutAgent("pod-1")


@pytest.mark.parametrize("status", [PodStatus.PENDING, PodStatus.UNKNOWN])
def test_a_machine_that_is_not_up_yet_is_waited_for(status: PodStatus) -> None:
    run = a_run(S.BOOTING)
    assert wait_of(after(run, NOT_YET, seen(b.pod(run, status=status)))).until_s == NOW_S + 15


@pytest.mark.parametrize(("ago_s", "again"), [(SETTLE_S - 1, False), (SETTLE_S, True)])
def test_the_agent_is_put_again_when_it_has_sent_no_heartbeat_within_the_settle_time(
    ago_s: int, again: bool
) -> None:
    run = a_run(S.BOOTING, attempts=(replace(b.new_attempt(1, S.BOOTING), agent_put_s=NOW_S - ago_s),))
    decision = after(run, NOT_YET)
    assert decision == d.PutAgent("pod-1") if again else wait_of(decision)


def test_the_agents_first_heartbeat_is_seen() -> None:
    assert after(a_run(S.BOOTING), Healthy(Phase.SETUP, 0)) == d.SeeHeartbeat()


@pytest.mark.parametrize("spot", [True, False])
def test_a_machine_that_is_gone_before_its_agent_was_there_is_recovered_from_with_a_back_off(
    spot: bool,
) -> None:
    run = a_run(S.BOOTING)
    run = replace(run, attempts=(replace(newest(run), offer=b.offer(spot=spot)),))
    cause = recover_of(after(run, Gone("404"), seen(gone=("pod-1",)))).cause
    assert cause is Cause.BOOT_LOST
    assert POLICY[cause].backs_off


@pytest.mark.parametrize(("spot", "cause"), [(True, Cause.PREEMPTED), (False, Cause.MACHINE_LOST)])
def test_a_machine_whose_agent_sent_a_heartbeat_before_anybody_looked_was_not_lost_at_boot(
    spot: bool, cause: Cause
) -> None:
    run = a_run(S.BOOTING)
    run = replace(run, attempts=(replace(newest(run), offer=b.offer(spot=spot)),))
    assert recover_of(after(run, Gone("404", was_alive=True), seen(gone=("pod-1",)))).cause is cause


def test_the_first_step_is_seen() -> None:
    assert after(a_run(S.STARTING), Healthy(Phase.TRAIN, 1)) == d.SeeStep(1)
    assert wait_of(after(a_run(S.STARTING), Healthy(Phase.SETUP, 0))).until_s is None


def test_a_machine_that_boots_too_long_is_reported_and_replaced_one_overdue_later() -> None:
    late = Stalled(Cause.BOOT_TIMEOUT, 1300, 1200)
    assert isinstance(after(given_its_agent(100), late), d.Notify)
    reported = given_its_agent(100, notices=noted(AlertKind.BOOT_LATE, at_s=NOW_S - 89))
    assert wait_of(after(reported, late)).until_s == NOW_S + 1
    assert recover_of(after(reported, late, now_s=NOW_S + 1)).cause is Cause.BOOT_TIMEOUT


def given_its_agent(seconds_ago: int | None, **changes: Any) -> Run:
    """Return a run that boots, and whose machine was given its agent this long ago, or never."""
    run = a_run(S.BOOTING, **changes)
    return with_attempt(
        run, replace(newest(run), agent_put_s=None if seconds_ago is None else NOW_S - seconds_ago)
    )


@pytest.mark.parametrize("seconds_ago", [None, 600, 5000])
def test_a_machine_that_nobody_gave_its_agent_for_long_is_given_it_before_it_counts_as_late(
    seconds_ago: int | None,
) -> None:
    late = Stalled(Cause.BOOT_TIMEOUT, 3600, 1200)
    assert after(given_its_agent(seconds_ago), late) == d.PutAgent("pod-1")


@pytest.mark.parametrize("status", [PodStatus.PENDING, PodStatus.UNKNOWN])
def test_a_machine_that_is_not_up_is_late_whoever_was_away(status: PodStatus) -> None:
    run = given_its_agent(None)
    pods = seen(replace(b.pod(run), status=status))
    assert isinstance(after(run, Stalled(Cause.BOOT_TIMEOUT, 3600, 1200), pods), d.Notify)


def test_an_agent_that_was_put_on_a_late_machine_is_given_its_time_once() -> None:
    late = Stalled(Cause.BOOT_TIMEOUT, 3600, 1200)
    run = given_its_agent(None)
    put_s = newest(run).launched_s + 1201
    run = with_attempt(run, replace(newest(run), agent_put_s=put_s))
    assert wait_of(after(run, late, now_s=put_s + 290)).until_s == put_s + 300
    assert isinstance(after(run, late, now_s=put_s + 300), d.Notify)
    reported = replace(run, notices=noted(AlertKind.BOOT_LATE, at_s=put_s + 300))
    assert recover_of(after(reported, late, now_s=put_s + 4000)).cause is Cause.BOOT_TIMEOUT


def test_an_attempt_that_finished_before_anybody_looked_has_succeeded() -> None:
    run = a_run(S.BOOTING)
    for _ in range(3):
        decision = after(run, Finished(20))
        run = change(run, b.lease(run), decision, NOW_S).run
        if run.is_over:
            break
    assert run.state is S.SUCCEEDED


# ------------------------------------------------------------------------------------------------------- gone
# and exited


@pytest.mark.parametrize("state", AGENT_THERE)
@pytest.mark.parametrize(("spot", "cause"), [(True, Cause.PREEMPTED), (False, Cause.MACHINE_LOST)])
def test_a_machine_that_is_gone_is_recovered_from_at_once(state: RunState, spot: bool, cause: Cause) -> None:
    run = a_run(state)
    run = replace(run, attempts=(replace(newest(run), offer=b.offer(spot=spot)),))
    assert recover_of(after(run, Gone("404"), seen(gone=("pod-1",)))).cause is cause


@pytest.mark.parametrize("cause", list(Cause))
@pytest.mark.parametrize("state", AGENT_THERE)
@pytest.mark.parametrize("exited", [True, False])
def test_what_follows_from_a_cause_is_its_row_in_the_policy_table(
    cause: Cause, state: RunState, exited: bool
) -> None:
    decision = after(a_run(state), Sick(cause, "exit 1", exited))
    if POLICY[cause].retry is Retry.NEVER:
        wanted = S.STOPPED if POLICY[cause].needs_person else S.FAILED
        assert (finish_of(decision).state, finish_of(decision).cause) == (wanted, cause)
        assert POLICY[cause].title in finish_of(decision).why
    else:
        assert recover_of(decision).cause is cause


@pytest.mark.parametrize("state", [*AGENT_THERE, S.DRAINING])
def test_a_finished_run_has_succeeded_whatever_else_is_wanted(state: RunState) -> None:
    for desired in DesiredState:
        assert finish_of(after(a_run(state, desired=desired), Finished(20))).state is S.SUCCEEDED
    assert finish_of(after(spending(state, 100.0), Finished(20))).state is S.SUCCEEDED


# ------------------------------------------------------------------------------------------------------------
# silence


def test_a_silent_machine_is_reported_first() -> None:
    decision = after(a_run(), Silent(91, past_limit=False))
    assert isinstance(decision, d.Notify)
    assert decision.kind == "silent"


def test_a_silent_machine_is_reported_once_and_looked_at_again_when_the_limit_is_passed() -> None:
    run = a_run(notices=noted(AlertKind.SILENT, at_s=NOW_S - 209))
    for silent_s, next_s in ((100, 15), (285, 15), (286, 15), (287, 14), (300, 1)):
        assert wait_of(after(run, Silent(silent_s, past_limit=False))).until_s == NOW_S + next_s


def test_at_the_silence_limit_a_silent_machine_is_fenced_and_recovered_from() -> None:
    run = a_run(notices=noted(AlertKind.SILENT, at_s=NOW_S - 210))
    assert recover_of(after(run, Silent(301, past_limit=True))).cause is Cause.SILENT
    wait_of(after(run, Silent(300, past_limit=False)))


@pytest.mark.parametrize(("told_s", "acts"), [(0, False), (89, False), (90, True)])
def test_a_silence_found_only_late_is_acted_on_no_sooner_than_one_overdue_after_it_was_reported(
    told_s: int, acts: bool
) -> None:
    run = a_run(notices=noted(AlertKind.SILENT, at_s=NOW_S - told_s))
    decision = after(run, Silent(5000, past_limit=True))
    assert recover_of(decision) if acts else wait_of(decision).until_s == NOW_S + min(15, 90 - told_s)


def test_a_cut_off_run_is_waited_for_and_reported_once() -> None:
    cut_off = Healthy(Phase.TRAIN, 10, cut_off=True)
    assert isinstance(after(a_run(), cut_off), d.Notify)
    assert wait_of(after(a_run(notices=noted(AlertKind.CUT_OFF)), cut_off)).until_s == NOW_S + 15


def test_what_was_reported_is_forgotten_when_it_has_passed_so_that_the_next_time_is_reported_again() -> None:
    run = a_run(notices=noted(AlertKind.SILENT, AlertKind.BLIND, AlertKind.BUDGET))
    assert after(run, TRAINS) == d.AllClear((AlertKind.SILENT, AlertKind.BLIND))


def test_a_cut_off_run_is_no_all_clear() -> None:
    run = a_run(notices=noted(AlertKind.SILENT, AlertKind.CUT_OFF))
    assert isinstance(after(run, Healthy(Phase.TRAIN, 10, cut_off=True)), d.Wait)


# ------------------------------------------------------------------------------------------------------------
# stalls


def test_a_stalled_run_is_asked_for_evidence_first() -> None:
    assert isinstance(after(a_run(), LATE), d.RequestEvidence)


@pytest.mark.parametrize(("ago_s", "acts"), [(0, False), (59, False), (60, True), (61, True)])
def test_evidence_is_waited_for_a_minute_and_no_longer(ago_s: int, acts: bool) -> None:
    run = a_run(attempts=(replace(b.new_attempt(), evidence_requested_s=NOW_S - ago_s),))
    decision = after(run, LATE)
    assert recover_of(decision) if acts else wait_of(decision).until_s == NOW_S - ago_s + 60


def test_once_the_evidence_is_in_the_bucket_a_stalled_run_is_recovered_from() -> None:
    run = a_run(attempts=(replace(b.new_attempt(), evidence_requested_s=NOW_S - 1),))
    assert recover_of(after(run, replace(LATE, evidence=True))).cause is Cause.STALLED


def test_a_run_that_advances_again_after_evidence_was_requested_is_left_alone() -> None:
    run = a_run(attempts=(replace(b.new_attempt(), evidence_requested_s=NOW_S - 30),))
    assert after(run, TRAINS) == d.AllClear((AlertKind.STALLED,))


# ------------------------------------------------------------------------------------------------------------
# unknown


@pytest.mark.parametrize("verdict", [OUT_OF_REACH, BLIND])
@pytest.mark.parametrize("state", sorted(ACTIVE_STATES))
def test_nothing_is_destroyed_on_unknown(state: RunState, verdict: Unknown) -> None:
    for drain in DrainReason:
        run = a_run(state) if state is not S.DRAINING else a_run(state, drain=drain)
        for notices in (
            (),
            noted(AlertKind.UNKNOWN, AlertKind.BLIND, AlertKind.SILENT, AlertKind.BOOT_LATE, at_s=0),
        ):
            assert not isinstance(after(replace(run, notices=notices), verdict, DOWN), DESTRUCTIVE)


@pytest.mark.parametrize("state", list(S))
def test_no_pod_is_terminated_while_the_provider_cannot_be_queried(state: RunState) -> None:
    run = a_run(state, orphans=(Orphan("pod-x", f"pt-{b.RUN_ID}-e9", requested_s=0, first_requested_s=0),))
    assert not isinstance(after(run, OUT_OF_REACH, DOWN), d.Terminate | d.Settle)


@pytest.mark.parametrize(("verdict", "kind"), [(OUT_OF_REACH, AlertKind.UNKNOWN), (BLIND, AlertKind.BLIND)])
def test_people_are_notified_once_that_the_watcher_is_blind(verdict: Unknown, kind: AlertKind) -> None:
    decision = after(a_run(), verdict, DOWN)
    assert isinstance(decision, d.Notify)
    assert decision.kind is kind
    assert decision.text.endswith("no machine is terminated")
    assert wait_of(after(a_run(notices=noted(kind)), verdict, DOWN)).until_s == NOW_S + 15


# ------------------------------------------------------------------------------------------------------------
# money


def spending(state: RunState, usd: float, **changes: Any) -> Run:
    """Return a run with a budget of 10 $ of which this much is spent, by ended attempts and not by the
    current one.
    """
    budget = {"usd": 10.0} | changes.pop("budget", {})
    run = a_run(state, budget=budget, **changes)
    past = replace(run.folded, usd=usd)
    attempts = tuple(replace(a, offer=replace(a.offer, usd_per_hour=0.0)) for a in run.attempts)
    return replace(run, folded=past, attempts=attempts)


@pytest.mark.parametrize("state", sorted(ACTIVE_STATES))
def test_a_run_whose_money_is_spent_is_stopped_in_every_state_that_costs_money(state: RunState) -> None:
    for verdict in (TRAINS, NOT_YET, PAST_LIMIT, OUT_OF_REACH, Gone("404"), LATE):
        decision = finish_of(after(spending(state, 10.0), verdict))
        assert (decision.state, decision.cause) == (S.STOPPED, Cause.BUDGET_SPENT)


def test_the_budget_holds_across_dead_attempts() -> None:
    run = a_run(attempt=4, budget={"usd": 0.2})
    spent_s = newest(run).launched_s + 41
    assert ledger.totals(run, spent_s).usd == pytest.approx((3 * 640 + 41) * 0.0001)
    assert finish_of(after(run, now_s=spent_s)).cause is Cause.BUDGET_SPENT
    assert not isinstance(after(run, now_s=spent_s - 10), d.Finish)


@pytest.mark.parametrize(("usd", "usd_per_hour"), [(20.0, 2.0), (0.05, 1.0), (500.0, 24.0)])
def test_the_machine_is_given_back_before_the_budget_is_exceeded(usd: float, usd_per_hour: float) -> None:
    run = with_attempt(
        a_run(budget={"usd": usd}), replace(newest(a_run()), offer=b.offer(usd_per_hour=usd_per_hour))
    )
    given_back_s = next(
        s for s in range(newest(run).launched_s, b.T0_S + 10**6) if isinstance(after(run, now_s=s), d.Finish)
    )
    confirmed_s = given_back_s + min(GIVE_BACK_S, int(usd * GIVE_BACK_SHARE / usd_per_hour * 3600)) - 1
    assert ledger.spent(run, confirmed_s).usd <= usd


def test_the_hours_hold_across_dead_attempts() -> None:
    """Three attempts trained for 540 s each, from the first step to the last sign of life; the fourth's time
    counts from its first step at 60 s.
    """
    run = a_run(attempt=4, budget={"hours": 1700 / 3600}, notices=noted(AlertKind.BUDGET))
    assert isinstance(after(run, now_s=newest(run).launched_s + 60 + 79), d.Wait)
    decision = after(run, now_s=newest(run).launched_s + 60 + 80)
    assert isinstance(decision, d.Drain)
    assert decision.reason is DrainReason.HOURS


@pytest.mark.parametrize("state", [S.LAUNCHING, S.BOOTING, S.STARTING])
def test_a_set_up_that_takes_longer_than_the_hours_does_not_use_them_up(state: RunState) -> None:
    run = a_run(state, budget={"hours": 18 / 3600})
    assert not isinstance(after(run, Healthy(Phase.SETUP, 0), now_s=b.T0_S + 60), d.Drain | d.Finish)


def test_every_machine_that_is_not_proven_gone_is_paid_for() -> None:
    run = a_run(attempt=2)
    run = replace(run, attempts=(replace(run.attempts[0], ended_s=None), run.attempts[1]))
    first_s, second_s = (a.launched_s for a in run.attempts)
    assert ledger.totals(run, second_s + 100).paid_s == (second_s - first_s + 100) + 100


def until(end_s: int) -> dict[str, str]:
    return {"deadline": datetime.fromtimestamp(end_s, UTC).isoformat()}


def test_before_the_deadline_there_is_time_for_the_flush() -> None:
    run = a_run(budget=until(NOW_S + 600 + 30), created_s=0, notices=noted(AlertKind.BUDGET))
    decision = after(run)
    assert isinstance(decision, d.Drain)
    assert decision.reason is DrainReason.DEADLINE
    assert not isinstance(after(run, now_s=NOW_S - 1), d.Drain)


@pytest.mark.parametrize("state", sorted(ACTIVE_STATES))
def test_at_the_deadline_a_run_is_stopped_in_every_state_that_costs_money(state: RunState) -> None:
    decision = finish_of(after(a_run(state, budget=until(NOW_S)), PAST_LIMIT))
    assert (decision.state, decision.cause) == (S.STOPPED, Cause.DEADLINE)


@pytest.mark.parametrize(("left_s", "ends"), [(600 + 31, False), (600 + 30, True), (-5, True)])
def test_no_machine_is_rented_when_the_deadline_is_nearer_than_a_flush(left_s: int, ends: bool) -> None:
    decision = after(a_run(S.QUEUED, budget=until(NOW_S + left_s)), None)
    assert finish_of(decision).cause is Cause.DEADLINE if ends else isinstance(decision, d.Launch)


@pytest.mark.parametrize("left_s", [100_000, 1000, 100])
def test_a_healthy_run_is_looked_at_again_before_its_deadline_asks_for_something(left_s: int) -> None:
    run = a_run(budget=until(NOW_S + left_s), notices=noted(AlertKind.BUDGET))
    moment_s = d.budget_moment_s(run, NOW_S)
    assert moment_s is not None
    assert NOW_S < moment_s <= NOW_S + left_s + 1


@pytest.mark.parametrize("state", AGENT_THERE)
def test_at_the_end_of_the_budget_a_run_is_flushed_before_it_is_stopped(state: RunState) -> None:
    run = spending(state, 10.0)
    attempts = tuple(replace(a, offer=replace(a.offer, usd_per_hour=36.0)) for a in run.attempts)
    nearly = replace(run, attempts=attempts, folded=replace(run.folded, usd=2.5))
    decision = after(nearly)
    assert isinstance(decision, d.Drain)
    assert decision.reason is DrainReason.BUDGET


def test_dear_traffic_uses_up_the_budget_of_a_cheap_machine() -> None:
    run = a_run(budget={"usd": 10.0})
    sent = Traffic(up_bytes=480 * 2**30, seconds=3600)
    dear = replace(newest(run), offer=b.offer(usd_per_gib_up=0.02), traffic=sent)
    assert isinstance(after(replace(run, attempts=(replace(dear, traffic=Traffic()),))), d.Wait)
    decision = after(replace(run, attempts=(dear,), notices=noted(AlertKind.BUDGET)))
    assert isinstance(decision, d.Drain)
    assert decision.reason is DrainReason.BUDGET


@pytest.mark.parametrize("state", [S.LAUNCHING, S.BOOTING])
def test_at_the_end_of_the_hours_a_machine_that_has_nothing_to_flush_is_given_back(state: RunState) -> None:
    run = a_run(state, budget={"hours": 0.1}, folded=Totals(paid_s=400, useful_s=360))
    assert finish_of(after(run, NOT_YET)).state is S.STOPPED


@pytest.mark.parametrize("state", [S.LAUNCHING, S.BOOTING])
def test_a_run_that_hours_stopped_while_it_booted_says_that_it_was_the_hours(state: RunState) -> None:
    run = a_run(state, budget={"hours": 0.1}, folded=Totals(paid_s=400, useful_s=360))
    assert finish_of(after(run, NOT_YET)).cause is Cause.HOURS_SPENT


@pytest.mark.parametrize(("usd", "ends"), [(9.29, False), (9.31, True), (10.0, True), (50.0, True)])
def test_no_machine_is_rented_for_what_is_left_only_for_a_flush(usd: float, ends: bool) -> None:
    decision = after(spending(S.QUEUED, usd), None)
    assert finish_of(decision).cause is Cause.BUDGET_SPENT if ends else isinstance(decision, d.Launch)


@pytest.mark.parametrize(("paid_s", "ends"), [(3599, False), (3600, True)])
def test_no_machine_is_rented_when_the_hours_are_used_up(paid_s: int, ends: bool) -> None:
    run = spending(S.QUEUED, 0.0, budget={"hours": 1.0})
    decision = after(replace(run, folded=replace(run.folded, paid_s=9000, useful_s=paid_s)), None)
    assert finish_of(decision).cause is Cause.HOURS_SPENT if ends else isinstance(decision, d.Launch)


@pytest.mark.parametrize(("usd", "warned"), [(7.99, False), (8.0, True), (8.01, True)])
def test_people_are_warned_once_at_80_percent_of_the_budget(usd: float, warned: bool) -> None:
    decision = after(spending(S.TRAINING, usd))
    assert isinstance(decision, d.Notify) == warned
    assert not isinstance(after(spending(S.TRAINING, usd, notices=noted(AlertKind.BUDGET))), d.Notify)


def test_people_are_warned_at_80_percent_of_the_hours_too() -> None:
    run = spending(S.TRAINING, 0.0, budget={"hours": 640 / 0.8 / 3600})
    assert isinstance(after(run), d.Notify)
    assert not isinstance(after(run, now_s=NOW_S - 1), d.Notify)


MONEY = st.builds(
    lambda usd, hours, rates, gone, usd_past, paid_past, warned: (
        usd,
        hours,
        rates,
        gone,
        usd_past,
        paid_past,
        warned,
    ),
    usd=st.sampled_from([1.0, 5.0, 7.3]),
    hours=st.sampled_from([None, 0.5, 1.7]),
    rates=st.lists(st.sampled_from([0.0, 0.36, 1.0, 7.77, 100.0]), min_size=1, max_size=3),
    gone=st.lists(st.booleans(), min_size=2, max_size=2),
    usd_past=st.floats(0, 8),
    paid_past=st.integers(0, 7000),
    warned=st.booleans(),
)


def rich(money: Any) -> Run:
    """Return a run that trains, with some of its past machines not proven gone yet."""
    usd, hours, rates, gone, usd_past, paid_past, warned = money
    run = a_run(
        attempt=len(rates),
        budget={"usd": usd, "hours": hours},
        notices=noted(AlertKind.BUDGET) if warned else (),
    )
    marks: dict[str, Any] = {
        "launched_s": NOW_S - 100,
        "first_heartbeat_s": NOW_S - 90,
        "first_step_s": NOW_S - 80,
    }
    *past, newest_one = (
        replace(a, **marks, offer=b.offer(usd_per_hour=rate))
        for a, rate in zip(run.attempts, rates, strict=True)
    )
    lost = [
        replace(a, last_sign_s=NOW_S - 20, fenced_s=NOW_S - 10, ended_s=NOW_S if is_gone else None)
        for a, is_gone in zip(past, gone, strict=False)
    ]
    attempts = (*lost, newest_one)
    return replace(
        run, attempts=attempts, folded=replace(run.folded, usd=usd_past, paid_s=paid_past, useful_s=paid_past)
    )


def crossed(run: Run, at_s: int) -> frozenset[str]:
    """Return the limits of money and hours that are reached at that second."""
    spent, budget, trained_s = ledger.totals(run, at_s), run.spec.budget, training_s(run, at_s)
    marks = {
        "warning": not run.noted_s(AlertKind.BUDGET) and spent.usd >= budget.usd * d.WARN_SHARE - 1e-9,
        "flush": spent.usd >= save_usd(run) - 1e-9,
        "end": spent.usd >= end_usd(run) - 1e-9,
        "hours warning": budget.hours is not None and trained_s >= budget.hours * 3600 * d.WARN_SHARE - 1e-6,
        "hours": budget.hours is not None and trained_s >= budget.hours * 3600 - 1e-6,
    }
    return frozenset(name for name, reached in marks.items() if reached)


@PROPERTY
@given(money=MONEY)
def test_at_the_moment_money_asks_for_something_a_mark_is_reached_and_not_a_second_later_than_needed(
    money: Any,
) -> None:
    run = rich(money)
    before = crossed(run, NOW_S)
    moment_s = d.budget_moment_s(run, NOW_S)
    if moment_s is None:
        assert crossed(run, NOW_S + 10**6) == before
        return
    assert moment_s > NOW_S
    assert crossed(run, moment_s) > before
    assert crossed(run, max(NOW_S, moment_s - 2)) == before


def test_a_machine_that_is_in_no_attempt_costs_dollars_and_no_hours() -> None:
    orphan = Orphan("pod-x", "pt-x-e1", requested_s=NOW_S, first_requested_s=NOW_S, created_s=NOW_S)
    run = a_run(
        budget={"usd": 1000.0, "hours": 900 / 3600}, notices=noted(AlertKind.BUDGET), orphans=(orphan,)
    )
    # the warning's share of 900 s, of which 640 s are used
    assert d.budget_moment_s(run, NOW_S) in (
        NOW_S + 80,
        NOW_S + 81,
    )


@PROPERTY
@given(money=MONEY, late_s=st.integers(0, 5))
def test_a_healthy_run_that_is_looked_at_when_it_asked_to_never_spends_past_its_budget_by_more_than_the_delay(
    money: Any, late_s: int
) -> None:
    run = rich(money)
    decision, now_s = after(run, pods=as_expected(run)), NOW_S
    while isinstance(decision, d.Wait | d.Notify):
        run = replace(run, notices=noted(AlertKind.BUDGET)) if isinstance(decision, d.Notify) else run
        moment_s = d.budget_moment_s(run, now_s)
        if moment_s is None:
            return
        now_s = moment_s + late_s
        decision = after(run, now_s=now_s)
        burn = ledger.burn_usd_per_s(run)
        assert isinstance(decision, d.Drain | d.Finish) or ledger.totals(run, now_s).usd < run.spec.budget.usd
        assert ledger.totals(run, now_s).usd <= run.spec.budget.usd + burn * (late_s + 2) or now_s == NOW_S


# ---------------------------------------------------------------------------------------------------- wishes
# and draining


@pytest.mark.parametrize("state", sorted(ACTIVE_STATES))
def test_a_cancelled_run_is_ended_at_once_in_every_state(state: RunState) -> None:
    for verdict in (TRAINS, NOT_YET, OUT_OF_REACH, PAST_LIMIT, Gone("404")):
        assert finish_of(after(a_run(state, desired=DesiredState.CANCEL), verdict)).state is S.CANCELLED


@pytest.mark.parametrize("state", AGENT_THERE)
def test_a_run_asked_to_stop_is_flushed_first(state: RunState) -> None:
    decision = after(a_run(state, desired=DesiredState.STOP))
    assert isinstance(decision, d.Drain)
    assert decision.reason is DrainReason.USER


@pytest.mark.parametrize("state", [S.LAUNCHING, S.BOOTING])
def test_a_run_asked_to_stop_before_its_agent_is_there_is_stopped_at_once(state: RunState) -> None:
    assert finish_of(after(a_run(state, desired=DesiredState.STOP), NOT_YET)).state is S.STOPPED


@pytest.mark.parametrize("state", AGENT_THERE)
def test_a_machine_that_will_be_taken_away_is_flushed(state: RunState) -> None:
    decision = after(a_run(state), Healthy(Phase.TRAIN, 10, preempting=True))
    assert isinstance(decision, d.Drain)
    assert decision.reason is DrainReason.PREEMPTION


def test_a_machine_that_will_be_taken_away_in_its_first_heartbeat_is_seen_first() -> None:
    assert after(a_run(S.BOOTING), Healthy(Phase.SETUP, 0, preempting=True)) == d.SeeHeartbeat()


def draining(reason: DrainReason, ago_s: int, **changes: Any) -> Run:
    return a_run(S.DRAINING, drain=reason, drain_s=NOW_S - ago_s, **changes)


STILL_THERE = [TRAINS, LATE, Sick(Cause.GPU_IDLE, "", exited=False), replace(TRAINS, cut_off=True)]


@pytest.mark.parametrize("verdict", STILL_THERE)
@pytest.mark.parametrize(
    ("reason", "limit_s"), [(DrainReason.USER, 600), (DrainReason.BUDGET, 600), (DrainReason.PREEMPTION, 120)]
)
def test_a_flush_is_waited_for_up_to_its_limit(reason: DrainReason, limit_s: int, verdict: Verdict) -> None:
    for ago_s in (0, limit_s - 1):
        until_s = wait_of(after(draining(reason, ago_s), verdict)).until_s
        assert until_s == min(NOW_S + 15, NOW_S - ago_s + limit_s)
    assert isinstance(after(draining(reason, limit_s), verdict), d.Recover | d.Finish)


@pytest.mark.parametrize(
    ("reason", "cause"), [(DrainReason.HOURS, Cause.HOURS_SPENT), (DrainReason.DEADLINE, Cause.DEADLINE)]
)
def test_a_flush_that_the_agent_began_by_itself_at_its_limit_is_not_reported_as_missed(
    reason: DrainReason, cause: Cause
) -> None:
    run = draining(reason, 5, budget={"hours": 1.0, "deadline": "2099-01-01"})
    decision = finish_of(after(run, Sick(cause, "the limit is near", exited=True)))
    assert (decision.state, decision.cause) == (S.STOPPED, cause)
    assert decision.why.endswith("; flushed")


@pytest.mark.parametrize("verdict", [Sick(Cause.STOPPED_GRACEFULLY, "", exited=True), Gone("404")])
@pytest.mark.parametrize(
    ("reason", "cause"),
    [(DrainReason.USER, Cause.STOPPED_GRACEFULLY), (DrainReason.BUDGET, Cause.BUDGET_SPENT)],
)
def test_an_ordered_stop_ends_when_the_agent_has_left_or_its_machine_has(
    reason: DrainReason, cause: Cause, verdict: Verdict
) -> None:
    decision = finish_of(after(draining(reason, 5), verdict))
    assert (decision.state, decision.cause) == (S.STOPPED, cause)
    assert ("; flushed" in decision.why) == isinstance(verdict, Sick)


@pytest.mark.parametrize(
    "verdict", [Sick(Cause.STOPPED_GRACEFULLY, "", exited=True), Gone("404"), Silent(91, past_limit=False)]
)
def test_a_machine_taken_away_after_its_notice_is_recovered_from_as_a_preemption(verdict: Verdict) -> None:
    assert recover_of(after(draining(DrainReason.PREEMPTION, 5), verdict)).cause is Cause.PREEMPTED


@pytest.mark.parametrize("cause", [Cause.GPU_OOM, Cause.IMPORT_ERROR])
def test_what_is_never_retried_is_not_retried_either_when_its_machine_is_being_taken_away(
    cause: Cause,
) -> None:
    assert (
        finish_of(after(draining(DrainReason.PREEMPTION, 5), Sick(cause, "", exited=True))).state is S.FAILED
    )


def test_a_trainer_that_leaves_early_because_its_machine_is_being_taken_away_has_made_no_error() -> None:
    left = Sick(Cause.STOPPED_EARLY, "exit code 0 at step 10 of 100", exited=True)
    assert recover_of(after(draining(DrainReason.PREEMPTION, 5), left)).cause is Cause.PREEMPTED


@pytest.mark.parametrize("reason", [DrainReason.USER, DrainReason.BUDGET])
def test_a_machine_that_falls_silent_while_it_flushes_is_given_the_complete_time(reason: DrainReason) -> None:
    wait_of(after(draining(reason, 599), PAST_LIMIT))
    assert isinstance(after(draining(reason, 600), PAST_LIMIT), d.Finish)


def test_a_stop_requested_while_a_machine_is_being_taken_away_ends_the_run_and_not_only_the_attempt() -> None:
    run = draining(DrainReason.PREEMPTION, 5, desired=DesiredState.STOP)
    assert isinstance(after(run, Gone("404")), d.Recover)
    assert finish_of(after(replace(run, state=S.QUEUED, resume_chosen=False), None)).state is S.STOPPED


def test_a_flush_that_nothing_is_known_of_is_looked_at_at_the_usual_pace() -> None:
    run = draining(DrainReason.PREEMPTION, 500, notices=noted(AlertKind.UNKNOWN))
    assert wait_of(after(run, OUT_OF_REACH, DOWN)).until_s == NOW_S + 15


def test_a_run_stopped_between_two_machines_is_not_reported_as_one_that_never_had_any() -> None:
    assert (
        "before a machine was rented"
        not in finish_of(after(a_run(S.QUEUED, attempt=2, desired=DesiredState.STOP), None)).why
    )


# -----------------------------------------------------------------------------------------------------------
# when to look


def test_a_healthy_run_is_looked_at_again_when_a_heartbeat_would_be_missing() -> None:
    assert d.healthy_until_s(a_run(budget={"usd": 1000.0}), NOW_S, None, NOW_S) == NOW_S + 30 + 7 + 1


def test_a_step_deadline_that_has_passed_and_may_have_been_kept_unheard_is_not_looked_at_each_second() -> (
    None
):
    assert d.healthy_until_s(a_run(), NOW_S - 60, NOW_S - 5, NOW_S) == NOW_S + 15


def test_a_healthy_run_is_looked_at_again_at_its_step_deadline_if_that_is_sooner() -> None:
    assert d.healthy_until_s(a_run(), NOW_S, NOW_S + 5, NOW_S) == NOW_S + 5


def test_a_healthy_run_is_looked_at_again_when_its_money_asks_for_something_if_that_is_sooner() -> None:
    run = a_run(budget={"usd": 0.071 / d.WARN_SHARE})
    assert d.healthy_until_s(run, NOW_S, None, NOW_S) in (NOW_S + 10, NOW_S + 11)


# ------------------------------------------------------------------------------------------------------------
# always


@st.composite
def runs(draw: st.DrawFn) -> Run:
    """Draw a run in any state, with any history that change() could have produced."""
    state = draw(STATES)
    run = a_run(state, attempt=draw(st.integers(0 if state is S.QUEUED else 1, 3)))
    attempts = tuple(_odd(draw, a, run) for a in run.attempts)
    orphans = draw(st.lists(st.sampled_from(["pod-0", "pod-1", "pod-x"]), max_size=2, unique=True))
    return replace(
        run,
        attempts=attempts,
        orphans=tuple(
            Orphan(
                s,
                f"pt-{b.RUN_ID}-e1",
                requested_s=NOW_S - draw(st.integers(0, 60)),
                first_requested_s=NOW_S - 90,
            )
            for s in orphans
        ),
        desired=draw(st.sampled_from(list(DesiredState))),
        resume_chosen=draw(st.booleans()),
        drain=draw(st.sampled_from(list(DrainReason))) if state is S.DRAINING else None,
        drain_s=NOW_S - draw(st.integers(0, 900)) if state is S.DRAINING else None,
        not_before_s=NOW_S + draw(st.integers(-20, 20)),
        strikes=tuple(draw(st.lists(st.sampled_from([Cause.STALLED, Cause.SILENT]), max_size=3))),
        notices=tuple(
            NotificationRecord(kind, NOW_S - draw(st.integers(0, 400)))
            for kind in draw(st.sets(st.sampled_from(NOTICES)))
        ),
        folded=replace(run.folded, usd=draw(st.sampled_from([0.0, 3.99, 4.8, 5.0]))),
    )


NOTICES = [kind for kind in AlertKind if policy_of(kind).is_silence] + [
    AlertKind.BUDGET,
    AlertKind.NO_CAPACITY,
]


def _odd(draw: st.DrawFn, attempt: Attempt, run: Run) -> Attempt:
    is_current = attempt.number == run.attempt and run.state in ACTIVE_STATES
    if is_current:
        return replace(attempt, evidence_requested_s=draw(st.sampled_from([None, NOW_S - 10, NOW_S - 100])))
    pod_id = draw(st.sampled_from([None, attempt.pod_id]))
    return replace(attempt, pod_id=pod_id, ended_s=draw(st.sampled_from([None, attempt.ended_s])))


@PROPERTY
@given(run=runs(), verdict=VERDICTS, pods=PODS_VIEWS)
def test_there_is_always_a_next_thing_to_do(run: Run, verdict: Verdict, pods: PodsView) -> None:
    decision = d.decide(run, verdict if run.state in ACTIVE_STATES else None, pods, NOW_S)
    if isinstance(decision, d.Wait):
        if decision.until_s is None:
            assert run.is_over or isinstance(verdict, Healthy)
        else:
            assert decision.until_s > NOW_S
    if isinstance(decision, d.Terminate):
        current = newest(run).pod_id if run.state in ACTIVE_STATES else None
        assert current not in [pod.pod_id for pod in decision.pods] or current is None
    if isinstance(decision, d.Launch):
        assert run.state is S.QUEUED
        assert run.desired is DesiredState.RUN
        assert run.resume_chosen


@PROPERTY
@given(run=runs(), verdict=VERDICTS, pods=PODS_VIEWS)
def test_unless_ordered_or_out_of_money_nothing_is_destroyed_without_proof(
    run: Run, verdict: Verdict, pods: PodsView
) -> None:
    run = replace(run, desired=DesiredState.RUN, folded=replace(run.folded, usd=0.0))
    if run.state not in ACTIVE_STATES or run.drain is not None:
        return
    decision = d.decide(run, verdict, pods, NOW_S)
    if isinstance(decision, d.Recover | d.Finish) and run.state is not S.LAUNCHING:
        assert isinstance(verdict, Gone | Silent | Stalled | Sick | Finished)
        if isinstance(verdict, Silent):
            assert verdict.past_limit
            assert run.noted_s(AlertKind.SILENT) is not None


def test_a_machine_that_came_dearer_than_the_run_allows_is_given_back_and_not_adopted() -> None:
    run = a_run(S.LAUNCHING, hardware={"usd_per_hour_max": 0.5})
    dear = recover_of(after(run, NOT_YET, seen(b.pod(run, usd_per_hour=0.51))))
    assert dear.cause is Cause.LAUNCH_REFUSED
    assert "terminated" in dear.detail
    assert isinstance(after(run, NOT_YET, seen(b.pod(run, usd_per_hour=0.5))), d.Adopt)
    lost = change(run, b.lease(run), dear, NOW_S).run
    assert after(lost, None, seen(b.pod(run, usd_per_hour=0.51))) == d.Terminate(
        (b.pod(run, usd_per_hour=0.51),)
    )


# ------------------------------------------------------------------------------------------------------------
# probes


@pytest.mark.parametrize(
    ("rollbacks", "then"), [(0, "the run goes back"), (1, "the run is stopped after 10 such steps")]
)
def test_people_are_told_what_really_follows_figures_that_are_not_finite(rollbacks: int, then: str) -> None:
    made = b.spec(health={"on_divergence": "rollback", "rollback_times": 1})
    decision = after(replace(a_run(S.TRAINING, spec=made), rollbacks=rollbacks), healthy(not_finite_since=13))
    assert isinstance(decision, d.Notify)
    assert then in decision.text
    assert ("because it went back 1 time" in decision.text) is bool(rollbacks)


PROBE = Probe("tiny", steps=10, seconds=60.0)


@pytest.mark.parametrize(
    ("steps", "seconds", "ends"), [(9, 90.0, False), (10, 59.0, False), (10, 60.0, True), (400, 61.0, True)]
)
def test_a_probe_ends_once_it_has_measured_enough_steps_for_long_enough(
    steps: int, seconds: float, ends: bool
) -> None:
    probe = a_run(S.TRAINING, probe=PROBE)
    decision = after(probe, healthy(timed_steps=steps, timed_s=seconds))
    assert isinstance(decision, d.Finish) is ends
    if isinstance(decision, d.Finish):
        assert (decision.state, decision.cause, decision.why) == (
            S.SUCCEEDED,
            Cause.PROBED,
            f"measured: {steps} steps of {seconds / steps:.3g} s",
        )


def test_an_ordinary_run_never_ends_because_it_was_measured() -> None:
    assert not isinstance(after(a_run(S.TRAINING), healthy(timed_steps=10_000, timed_s=1e6)), d.Finish)


@pytest.mark.parametrize("state", [S.TRAINING, S.UPLOADING])
def test_no_machine_is_kept_for_what_a_probe_has_saved(state: RunState) -> None:
    ended = healthy(
        timed_steps=3, timed_s=6.0, upload_pending=True, unsaved="no file was written in checkpoints/"
    )
    decision = finish_of(after(a_run(state, probe=PROBE), ended))
    assert (decision.state, decision.cause, decision.why) == (
        S.SUCCEEDED,
        Cause.PROBED,
        "measured: 3 steps of 2 s",
    )
    assert after(a_run(S.TRAINING), ended) == d.SeeUpload(TRAINS.step)


def test_a_probe_that_fails_is_judged_like_any_run() -> None:
    decision = after(a_run(S.STARTING, probe=PROBE), Sick(Cause.GPU_OOM, "CUDA out of memory", exited=True))
    assert isinstance(decision, d.Finish)
    assert decision.state is S.FAILED
