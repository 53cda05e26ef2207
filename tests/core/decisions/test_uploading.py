"""A trainer that has exited while its last checkpoint is not durable: the machine is kept for it, and people
are notified.
"""

from dataclasses import replace
from typing import Any

import pytest

from prime_train.runs import change as c
from prime_train.runs import decide as d
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.run import (
    DesiredState,
    DrainReason,
    NotificationRecord,
    Run,
    RunState,
    Severity,
    with_attempt,
)
from prime_train.runs.verdict import Finished, Gone, Sick, judge
from prime_train.runs.wire import JobExit, Phase
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.core.given import NOW_S, a_run, as_expected, evidence, healthy, newest

S = RunState
TROUBLE = "3 uploads in a row have failed; step 10 was not uploaded: 403"
UNSAVED = "6 entries in out/, none matches ckpt-{step}; the newest is ckpt-000600"
PENDING = healthy(Phase.FLUSH, upload_pending=True)
FAILING = healthy(Phase.FLUSH, upload_pending=True, upload_problem=TROUBLE)


def uploading(*, kept_s: int = 10, usd_per_hour: float = 3.6, **changes: Any) -> Run:
    """Return a run whose machine has been kept for this long."""
    run = a_run(S.UPLOADING, **changes)
    return with_attempt(
        run, replace(newest(run), uploading_s=NOW_S - kept_s, offer=b.offer(usd_per_hour=usd_per_hour))
    )


def after(run: Run, verdict: Any = PENDING, now_s: int = NOW_S) -> d.Decision:
    return d.decide(run, verdict, as_expected(run), now_s)


def noted(run: Run, *kinds: AlertKind) -> Run:
    return replace(run, notices=tuple(NotificationRecord(kind, NOW_S - 100) for kind in kinds))


@pytest.mark.parametrize("state", [S.STARTING, S.TRAINING])
def test_a_run_whose_trainer_has_ended_before_its_last_checkpoint_is_durable_is_uploading(
    state: RunState,
) -> None:
    run = a_run(state)
    decision = after(run, healthy(Phase.FLUSH, 0, upload_pending=True) if state is S.STARTING else PENDING)
    assert isinstance(decision, d.SeeUpload)
    changed = c.change(run, b.lease(run), decision, NOW_S)
    assert (changed.run.state, newest(changed.run).uploading_s) == (S.UPLOADING, NOW_S)
    assert isinstance(after(changed.run), d.Wait)


def test_a_run_that_uploads_for_hours_is_not_taken_for_stalled() -> None:
    run = uploading(kept_s=5000, usd_per_hour=0.0)
    heartbeat = b.heartbeat(9, phase=Phase.FLUSH, upload_pending=True, step_age_s=50_000)
    assert judge(run, evidence(run, heartbeat=heartbeat, heartbeat_s=NOW_S - 5), NOW_S) == PENDING


def test_it_has_succeeded_once_the_agent_says_so_and_the_commit_is_there() -> None:
    run = uploading(trainer={"steps": 10})
    message = b.heartbeat(9, phase=Phase.EXITED, exit=JobExit(cause=Cause.FINISHED, code=0, saved_step=10))
    assert judge(
        run, evidence(run, heartbeat=message, heartbeat_s=NOW_S, committed_step=10), NOW_S
    ) == Finished(10)
    assert after(run, Finished(10)) == d.Finish(S.SUCCEEDED, Cause.FINISHED, "finished at step 10")


def test_an_end_without_a_commit_of_what_the_trainer_saved_last_is_no_success() -> None:
    run = a_run(trainer={"steps": 10})
    message = b.heartbeat(9, phase=Phase.EXITED, exit=JobExit(cause=Cause.FINISHED, code=0, saved_step=10))
    verdict = judge(run, evidence(run, heartbeat=message, heartbeat_s=NOW_S, committed_step=8), NOW_S)
    assert verdict == Sick(Cause.UPLOAD_FAILED, "the checkpoint of step 10 was never committed", exited=True)
    ended = after(run, verdict)
    changed = c.change(run, b.lease(run, heartbeat=message, committed_step=8), ended, NOW_S)
    (alert,) = changed.alerts
    assert (changed.run.state, changed.run.cause, alert.severity) == (
        S.FAILED,
        Cause.UPLOAD_FAILED,
        Severity.ERROR,
    )
    assert "steps 9 to 10 are lost: trained up to step 10, durable up to step 8" in alert.text
    assert "steps 9 to 10 are lost" in changed.run.why


@pytest.mark.parametrize(
    ("committed", "severity", "words"),
    [
        (10, Severity.INFO, ""),
        (9, Severity.WARNING, "step 10 came after the last save and is in no checkpoint"),
        (8, Severity.WARNING, "steps 9 to 10 came after the last save and are in no checkpoint"),
        (0, Severity.WARNING, "the trainer saved no checkpoint"),
    ],
)
def test_steps_after_the_last_save_are_named_at_the_end(
    committed: int, severity: Severity, words: str
) -> None:
    run = a_run()
    changed = c.change(
        run,
        b.lease(run, committed_step=committed),
        d.Finish(S.SUCCEEDED, Cause.FINISHED, "finished at step 10"),
        NOW_S,
    )
    (alert,) = changed.alerts
    assert alert.severity is severity
    assert words in alert.text
    assert words in changed.run.why
    assert ("; " in changed.run.why) is bool(words)


# ----------------------------------------------------------------------------------------------------------
# what people are told


def test_uploads_that_fail_are_reported_once_with_the_reason() -> None:
    run, verdict = a_run(), healthy(upload_problem=TROUBLE)
    note = after(run, verdict)
    assert note == d.Notify(
        AlertKind.UPLOADS, Severity.WARNING, "checkpoints or outputs do not become durable", TROUBLE
    )
    changed = c.change(run, b.lease(run), note, NOW_S)
    assert [alert.kind for alert in changed.alerts] == [AlertKind.UPLOADS]
    assert isinstance(after(changed.run, verdict), d.Wait)


def test_that_the_problem_is_over_is_reported_too_and_the_next_one_is_reported_anew() -> None:
    run = noted(a_run(), AlertKind.UPLOADS)
    clear = after(run, healthy())
    assert clear == d.AllClear((AlertKind.UPLOADS,))
    changed = c.change(run, b.lease(run, committed_step=7), clear, NOW_S)
    (alert,) = changed.alerts
    assert (alert.kind, alert.severity) == ("uploads_again", Severity.INFO)
    assert "newest committed step: 7" in alert.text
    assert changed.run.noted_s(AlertKind.UPLOADS) is None


def test_people_are_notified_that_a_machine_is_kept_which_one_and_for_how_much() -> None:
    run = noted(uploading(budget={"usd": 50.0}), AlertKind.UPLOADS)
    note = after(run, FAILING)
    assert isinstance(note, d.Notify)
    assert (note.kind, note.severity) == (AlertKind.KEPT, Severity.ERROR)
    for words in (TROUBLE, "pod-1 has the only copy", "$5.00 (budget.upload_usd)"):
        assert words in note.text
    assert isinstance(after(noted(run, AlertKind.UPLOADS, AlertKind.KEPT), FAILING), d.Wait)


def test_a_machine_that_costs_nothing_is_kept_until_a_person_stops_the_run() -> None:
    run = noted(uploading(usd_per_hour=0.0, kept_s=10**6), AlertKind.UPLOADS)
    note = after(run, FAILING)
    assert isinstance(note, d.Notify)
    assert "until the upload is complete or the run is stopped" in note.text


def test_checkpoints_that_never_come_to_be_are_reported_once_with_what_lies_there_and_again_when_it_is_over() -> (
    None
):
    run, verdict = a_run(), healthy(step=40, unsaved=UNSAVED)
    note = after(run, verdict)
    assert note == d.Notify(AlertKind.UNSAVED, Severity.WARNING, "checkpoints do not come to be", UNSAVED)
    noted_run = c.change(run, b.lease(run), note, NOW_S).run
    assert isinstance(after(noted_run, verdict), d.Wait)
    clear = after(noted_run, healthy(step=50))
    assert clear == d.AllClear((AlertKind.UNSAVED,))
    (alert,) = c.change(noted_run, b.lease(run, committed_step=50), clear, NOW_S).alerts
    assert (alert.kind, alert.severity) == ("saved_again", Severity.INFO)


def test_a_machine_with_weights_that_are_in_no_checkpoint_is_kept_and_the_end_says_what_is_true() -> None:
    run = noted(uploading(budget={"usd": 50.0, "upload_usd": 2.0}, kept_s=1999), AlertKind.UNSAVED)
    note = after(run, healthy(Phase.FLUSH, upload_pending=True, unsaved=UNSAVED))
    assert isinstance(note, d.Notify)
    assert note.kind is AlertKind.KEPT
    assert UNSAVED in note.text
    ended = after(run, healthy(Phase.FLUSH, upload_pending=True, unsaved=UNSAVED), NOW_S + 1)
    assert isinstance(ended, d.Finish)
    assert (ended.state, ended.cause, UNSAVED in ended.why) == (S.FAILED, Cause.UPLOAD_FAILED, True)


# ------------------------------------------------------------------------------------------------------------
# its limits


def test_a_machine_is_kept_for_its_checkpoint_up_to_a_limit_in_money() -> None:
    run = uploading(budget={"usd": 50.0, "upload_usd": 2.0}, kept_s=1999)
    assert not isinstance(after(run, FAILING), d.Finish)
    ended = after(run, FAILING, NOW_S + 1)
    assert ended == d.Finish(
        S.FAILED,
        Cause.UPLOAD_FAILED,
        "the last checkpoint or outputs could not be uploaded for $2.00 (budget.upload_usd)",
    )


def test_a_run_whose_last_checkpoint_is_committed_has_succeeded_though_no_answer_reaches_its_machine() -> (
    None
):
    run = uploading(kept_s=5000, usd_per_hour=36.0)
    heartbeat = b.heartbeat(9, step=10, phase=Phase.FLUSH, upload_pending=True)
    steps = run.spec.trainer.steps or heartbeat.step
    for committed, ending in ((steps - 1, S.FAILED), (steps, S.SUCCEEDED)):
        seen = evidence(run, heartbeat=heartbeat.model_copy(update={"step": steps}), heartbeat_s=NOW_S - 5)
        verdict = judge(run, replace(seen, lease=replace(seen.lease, committed_step=committed)), NOW_S)
        decision = after(run, verdict)
        assert isinstance(decision, d.Finish)
        assert decision.state is ending


def test_a_run_whose_outputs_are_not_durable_has_not_succeeded_though_its_last_checkpoint_is_committed() -> (
    None
):
    run = uploading(kept_s=5000, usd_per_hour=36.0)
    steps = run.spec.trainer.steps or 10
    for pending, ending in ((True, S.FAILED), (False, S.SUCCEEDED)):
        heartbeat = b.heartbeat(
            9, step=steps, phase=Phase.FLUSH, upload_pending=True, outputs_pending=pending
        )
        seen = evidence(run, heartbeat=heartbeat, heartbeat_s=NOW_S - 5)
        decision = after(
            run, judge(run, replace(seen, lease=replace(seen.lease, committed_step=steps)), NOW_S)
        )
        assert isinstance(decision, d.Finish)
        assert decision.state is ending


def test_that_limit_is_looked_at_the_second_it_is_reached() -> None:
    run = uploading(budget={"usd": 50.0, "upload_usd": 0.01}, kept_s=5)
    assert d.budget_moment_s(run, NOW_S) == NOW_S + 6


def test_the_runs_own_budget_holds_as_well() -> None:
    run = uploading(budget={"usd": 0.5, "upload_usd": 2.0})
    ended = after(run, FAILING)
    assert ended == d.Finish(
        S.FAILED,
        Cause.UPLOAD_FAILED,
        "the last checkpoint or outputs could not be uploaded for the budget of $0.50",
    )


def test_hours_are_for_training_and_do_not_cut_the_last_upload_off() -> None:
    assert isinstance(after(noted(uploading(budget={"usd": 50.0, "hours": 0.01}), AlertKind.BUDGET)), d.Wait)


def test_a_person_may_stop_or_cancel_it() -> None:
    assert after(uploading(desired=DesiredState.STOP)) == d.Drain(DrainReason.USER, "stopped by the user")
    assert after(uploading(desired=DesiredState.CANCEL)) == d.Finish(
        S.CANCELLED, None, "cancelled by the user"
    )


def test_a_machine_that_is_lost_meanwhile_is_replaced_and_the_steps_are_made_again() -> None:
    assert isinstance(after(uploading(), Gone("404")), d.Recover)


@pytest.mark.parametrize("reason", [DrainReason.PREEMPTION, DrainReason.FUNDS])
def test_an_upload_that_a_departure_cut_off_is_made_up_for_on_another_machine(reason: DrainReason) -> None:
    run = a_run(S.DRAINING, drain=reason)
    assert isinstance(after(run, Sick(Cause.UPLOAD_FAILED, "403", exited=True)), d.Recover)
