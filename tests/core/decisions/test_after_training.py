"""Steps after training: the state of the run, its money, and what another machine goes on with."""

from dataclasses import replace
from typing import Any

import pytest

from prime_train.runs import change as c
from prime_train.runs import decide as d
from prime_train.runs import ledger
from prime_train.runs.budget import Limit, training_s, used_up
from prime_train.runs.change.requests import Renewed
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import DrainReason, Run, RunState, Severity, with_attempt
from prime_train.runs.verdict import Finished, Gone, Healthy, Sick, judge
from prime_train.runs.wire import JobExit, Phase
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.core.given import NOW_S, a_run, as_expected, evidence, newest

S = RunState
STEPS = [{"name": "evaluate", "run": "python evaluate.py"}, {"name": "publish", "run": "python publish.py"}]
AT_STEPS = Healthy(Phase.AFTER, step=10)


def a_finishing_run(state: RunState = S.FINISHING, *, done: int = 0, **changes: Any) -> Run:
    return replace(
        a_run(state, **{"after": STEPS, "trainer": {"steps": 10}, **changes}),
        trained_step=10,
        after_done=done,
    )


def decided(run: Run, verdict: Any) -> d.Decision:
    return d.decide(run, verdict, as_expected(run), NOW_S)


@pytest.mark.parametrize("state", [S.STARTING, S.TRAINING, S.UPLOADING])
def test_a_run_whose_training_has_succeeded_is_finishing_while_steps_are_run(state: RunState) -> None:
    run = a_run(state, after=STEPS)
    verdict = replace(AT_STEPS, step=0) if state is S.STARTING else AT_STEPS
    decision = decided(run, verdict)
    assert isinstance(decision, d.SeeAfter)
    heartbeat = b.heartbeat(9, phase=Phase.AFTER, trained=True, after_done=1)
    changed = c.change(run, b.lease(run, heartbeat=heartbeat, committed_step=10), decision, NOW_S)
    after = changed.run
    assert (after.state, after.trained_step, after.after_done, newest(after).after_s) == (
        S.FINISHING,
        10,
        1,
        NOW_S,
    )
    assert [line.text for line in changed.events] == ["training has succeeded; what is left: publish"]
    assert isinstance(decided(after, AT_STEPS), d.Wait)


def test_steps_that_take_hours_are_not_taken_for_a_stall() -> None:
    run = a_finishing_run()
    for step in (0, 10):
        heartbeat = b.heartbeat(9, phase=Phase.AFTER, step=step, step_age_s=50_000, trained=True)
        assert isinstance(
            judge(run, evidence(run, heartbeat=heartbeat, heartbeat_s=NOW_S - 5), NOW_S), Healthy
        )


def test_a_machine_that_did_not_train_ends_with_success_once_its_steps_are_done() -> None:
    run = a_finishing_run(resume=ResumePoint(step=8, attempt=1, key="k"))
    message = b.heartbeat(
        9, phase=Phase.EXITED, step=0, trained=True, after_done=2, exit=JobExit(cause=Cause.FINISHED, code=0)
    )
    verdict = judge(run, evidence(run, heartbeat=message, heartbeat_s=NOW_S, committed_step=8), NOW_S)
    assert verdict == Finished(8)
    assert judge(
        run, evidence(run, heartbeat=message.model_copy(update={"trained": False}), heartbeat_s=NOW_S), NOW_S
    ) == Sick(Cause.STOPPED_EARLY, "exit code 0 at step 8 of 10", exited=True)


def test_a_step_that_failed_is_named_with_the_success_of_the_run() -> None:
    run = a_finishing_run()
    failed = "publish failed: it ended with code 3"
    message = b.heartbeat(
        9,
        phase=Phase.EXITED,
        trained=True,
        after_done=2,
        after_failed=failed,
        exit=JobExit(cause=Cause.FINISHED, code=0),
    )
    ended = decided(run, Finished(10))
    changed = c.change(run, b.lease(run, heartbeat=message, committed_step=10), ended, NOW_S)
    assert (changed.run.state, changed.run.why) == (
        S.SUCCEEDED,
        f"finished at step 10; after training, {failed}",
    )
    assert [(alert.severity, failed in alert.text) for alert in changed.alerts] == [(Severity.WARNING, True)]


def test_a_required_step_that_failed_fails_the_run_which_can_be_resumed_without_training_again() -> None:
    run = a_finishing_run(done=1)
    ended = decided(run, Sick(Cause.AFTER_FAILED, "publish: it ended with code 3", exited=True))
    heartbeat = b.heartbeat(
        9, phase=Phase.EXITED, trained=True, after_done=1, exit=JobExit(cause=Cause.AFTER_FAILED)
    )
    failed = c.change(run, b.lease(run, heartbeat=heartbeat, committed_step=10), ended, NOW_S).run
    assert (failed.state, failed.cause) == (S.FAILED, Cause.AFTER_FAILED)
    assert "training had succeeded, and these steps after it are left: publish" in failed.why
    mended = b.spec(after=[STEPS[0], STEPS[1] | {"run": "python mended.py"}], trainer={"steps": 10})
    resumed = c.resumed(failed, NOW_S, renewed=Renewed(mended, "abc")).run
    assert (resumed.trained_step, resumed.after_done) == (10, 1)


@pytest.mark.parametrize(
    ("changes", "trained_step", "done"),
    [
        ({}, 10, 2),
        ({"after": [STEPS[1], STEPS[0]]}, 10, 0),
        ({"after": [STEPS[0]]}, 10, 1),
        ({"after": [STEPS[0], STEPS[1] | {"timeout_s": 5}]}, 10, 1),
        ({"trainer": {"steps": 20}}, None, 0),
    ],
)
def test_a_changed_config_repeats_what_depends_on_the_change(
    changes: dict[str, Any], trained_step: int | None, done: int
) -> None:
    run = a_finishing_run(S.STOPPED, done=2)
    spec = b.spec(**{"after": STEPS, "trainer": {"steps": 10}, **changes})
    after = c.resumed(run, NOW_S, renewed=Renewed(spec, "abc")).run
    assert (after.trained_step, after.after_done) == (trained_step, done)


def test_a_lost_machine_is_followed_by_one_that_goes_on_with_the_steps_that_are_left() -> None:
    run = a_finishing_run(strikes=(Cause.MACHINE_LOST,))
    heartbeat = b.heartbeat(
        9, phase=Phase.AFTER, trained=True, after_done=1, after_failed="evaluate failed: it ended with code 1"
    )
    decision = decided(run, Gone("404", was_alive=True))
    lost = c.change(run, b.lease(run, heartbeat=heartbeat, committed_step=10), decision, NOW_S).run
    assert (lost.state, lost.trained_step, lost.after_done) == (S.QUEUED, 10, 1)
    assert lost.strikes == ()
    chosen = c.resume_chosen(lost, ResumePoint(step=10, attempt=1, key="k"), NOW_S).run
    assert (chosen.trained_step, chosen.after_done) == (10, 1)


@pytest.mark.parametrize("point", [None, ResumePoint(step=8, attempt=1, key="k")])
def test_without_the_last_checkpoint_training_is_repeated_and_so_are_the_steps_after_it(
    point: ResumePoint | None,
) -> None:
    run = replace(a_finishing_run(S.QUEUED, done=1), resume_chosen=False, after_failed="evaluate failed")
    after = c.resume_chosen(run, point, NOW_S).run
    assert (after.trained_step, after.after_done, after.after_failed) == (None, 0, "")


def test_no_machine_is_rented_for_a_run_of_which_nothing_is_left_to_do() -> None:
    run = replace(a_finishing_run(S.QUEUED, done=2), best_step=10)
    assert d.decide(run, None, as_expected(run), NOW_S) == d.Finish(
        S.SUCCEEDED, Cause.FINISHED, "finished at step 10"
    )


def test_steps_are_paid_from_the_budget_which_stops_them_and_are_no_hours_of_training() -> None:
    run = a_finishing_run(budget={"usd": 10.0, "hours": 1.0})
    started_s = newest(run).launched_s
    attempt = replace(
        newest(run),
        first_heartbeat_s=started_s,
        first_step_s=started_s,
        after_s=started_s + 600,
        fenced_s=None,
    )
    long_s = started_s + 600 + 2 * 3600
    cheap, dear = (
        with_attempt(run, replace(attempt, offer=b.offer(usd_per_hour=price))) for price in (0.0, 4.5)
    )
    assert training_s(cheap, long_s) == 600
    totals = ledger.totals(cheap, long_s)
    assert (totals.useful_s, totals.after_s) == (600, 7200)
    assert isinstance(d.decide(cheap, AT_STEPS, as_expected(cheap), long_s), d.Wait)
    decision = d.decide(dear, AT_STEPS, as_expected(dear), long_s)
    assert isinstance(decision, d.Drain)
    assert decision.reason is DrainReason.BUDGET


def test_hours_of_training_that_are_spent_do_not_keep_the_steps_from_running() -> None:
    run = a_finishing_run(S.FINISHING, budget={"usd": 10.0, "hours": 0.01})
    run = with_attempt(run, replace(newest(run), first_heartbeat_s=NOW_S - 600, first_step_s=NOW_S - 500))
    assert used_up(replace(run, trained_step=None), NOW_S) == (Limit.HOURS,)
    assert used_up(run, NOW_S) == ()
