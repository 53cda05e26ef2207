"""Whatever happens to a run, in whatever order: every saved state is legal, and at the end nothing is left
over.
"""

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_train.errors import NoCapacity, TemporaryError
from prime_train.runs import change as c
from prime_train.runs import ledger
from prime_train.runs.budget import Exhausted
from prime_train.runs.run import ACTIVE_STATES, TERMINAL, TRANSITIONS, DesiredState, Run, RunState
from prime_train.runs.verdict import PodStatus
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.reconcile.ports import Crash, Lost, Outside

S = RunState
Act = Callable[[Outside], object]
MOVES = {(before, after) for (before, _), after in TRANSITIONS.items()} | {(state, state) for state in S}


def message(**fields: Any) -> Act:
    def act(w: Outside) -> object:
        return w.heartbeat(**fields) if w.lease().open else None

    return act


def ended(cause: Cause) -> Act:
    """Return the agent's last report, whether or not there were earlier ones."""

    def act(w: Outside) -> object:
        heartbeat = w.lease().heartbeat
        return w.exit(cause, step=heartbeat.step if heartbeat else 0) if w.lease().open else None

    return act


def wish(desired: DesiredState) -> Act:
    def act(w: Outside) -> object:
        change = (
            c.resumed
            if w.run().state in {S.FAILED, S.STOPPED, S.CANCELLED} and desired is DesiredState.RUN
            else None
        )
        if change is not None:
            with suppress(Exhausted):
                w.store.save(change(w.run(), w.now_s))
            return None
        return w.store.save(c.requested(w.run(), desired, w.now_s)) if not w.run().is_over else None

    return act


def failing(call: str, error: Exception) -> Act:
    return lambda w: w.fail.__setitem__(call, error)


def taken_away(w: Outside) -> None:
    for pod in w.pods.real.list():
        w.pods.real.preempt(pod.pod_id)


def still_listed(w: Outside) -> None:
    """Let the list continue to show the present machines, also when they have ended."""
    w.pods.ghosts = [replace(pod, status=PodStatus.ACTIVE) for pod in w.pods.real.list()]
    w.pods.hidden = {pod.pod_id for pod in w.pods.ghosts}


def not_listed(w: Outside) -> None:
    w.pods.hidden = {pod.pod_id for pod in w.pods.real.list()}


def honest(w: Outside) -> None:
    w.fail.clear()
    w.pods.hidden.clear()
    w.pods.ghosts.clear()
    w.canary.sings_now = True


def deaf(w: Outside) -> None:
    w.canary.sings_now = False


def saves(step: int, *, complete: bool) -> Act:
    def act(w: Outside) -> None:
        if w.run().attempt:
            w.save_checkpoint(step, w.run().attempt, complete=complete)
            if complete:
                w.store.commit(b.commit(step, attempt=w.run().attempt), w.now_s)

    return act


def passes(seconds: int) -> Act:
    return lambda w: w.after(seconds)


ACTS: dict[str, Act] = {
    "sweep": lambda w: w.sweep(),
    "settle": lambda w: w.settle(),
    "one step": lambda w: w.reconcile(),
    "1 s": passes(1),
    "15 s": passes(15),
    "40 s": passes(40),
    "120 s": passes(120),
    "310 s": passes(310),
    "1300 s": passes(1300),
    "heartbeat": message(),
    "heartbeat 10": message(step=10),
    "heartbeat 20": message(step=20, step_slow_s=3.0),
    "stalled": message(step=20, step_age_s=500),
    "evidence": message(step=20, step_age_s=500, evidence=True),
    "sick": message(sick=Cause.GPU_IDLE),
    "preempting": message(step=10, preempting=True),
    "finished": ended(Cause.FINISHED),
    "died": ended(Cause.TRAINER_ERROR),
    "out of memory": ended(Cause.GPU_OOM),
    "stopped_gracefully": ended(Cause.STOPPED_GRACEFULLY),
    "save 10": saves(10, complete=True),
    "save 20": saves(20, complete=True),
    "cut 30": saves(30, complete=False),
    "stop": wish(DesiredState.STOP),
    "cancel": wish(DesiredState.CANCEL),
    "go on": wish(DesiredState.RUN),
    "taken away": taken_away,
    "still listed": still_listed,
    "not listed": not_listed,
    "deaf": deaf,
    "honest": honest,
    "no answer": failing("create", Lost()),
    "no capacity": failing("create", NoCapacity("none")),
    "create dies": failing("create", Crash()),
    "list down": failing("list", TemporaryError("HTTP 503")),
    "get down": failing("get", TemporaryError("HTTP 503")),
    "bucket down": failing("bucket", TemporaryError("HTTP 503")),
    "terminate down": failing("terminate", TemporaryError("HTTP 503")),
    "terminate dies": failing("terminate", Crash()),
    "agent not put": failing("put_agent", TemporaryError("no route")),
}


def live(names: list[str]) -> Outside:
    """Let these events happen one after the other, with a sweep between any two, and return the
    environment.
    """
    w = Outside({"budget": {"usd": 3.0}})
    for name in names:
        for act in (ACTS[name], ACTS["sweep"], ACTS["1 s"]):
            _survive(act, w)
        check_now(w)
    return w


def _survive(act: Act, w: Outside) -> None:
    """Run an act; only crashes that the test itself causes are accepted."""
    try:
        act(w)
    except Crash:
        pass
    except ExceptionGroup as group:
        bugs = group.split(Crash)[1]
        if bugs is not None:
            raise bugs from None


def check_now(w: Outside) -> None:
    run, lease = w.run(), w.lease()
    assert lease.open == (run.state in ACTIVE_STATES)
    assert lease.attempt == run.attempt or not lease.attempt
    assert len(w.living()) == len(set(w.living())), "one machine for each attempt"
    if run.next_check_s is None:
        assert run.is_over
        assert not run.orphans
        assert all(a.ended_s is not None for a in run.attempts)


def check_saved(before: Run, after: Run) -> None:
    assert after.version > before.version
    assert (before.state, after.state) in MOVES
    assert after.attempt in (before.attempt, before.attempt + 1)
    assert [a.number for a in after.attempts] == sorted({a.number for a in after.attempts})
    assert after.durable_step >= before.durable_step
    assert after.best_step >= before.best_step
    assert (after.resume.step if after.resume else 0) >= (before.resume.step if before.resume else 0)
    if after.state is S.LAUNCHING and before.state is S.QUEUED:
        assert before.resume_chosen
        assert before.desired is DesiredState.RUN
    totals = ledger.totals(after, b.T0_S + 10**6)
    parts = (
        totals.provision_s,
        totals.restore_s,
        totals.useful_s,
        totals.recomputed_s,
        totals.detection_s,
        totals.teardown_s,
    )
    assert min(parts) >= 0
    assert sum(parts) == totals.paid_s


HISTORIES = st.lists(st.sampled_from(sorted(ACTS)), max_size=30)


@settings(deadline=None, max_examples=150, derandomize=True)
@given(names=HISTORIES)
def test_every_history_is_made_of_legal_moves_and_leaves_no_machine_once_the_run_is_over(
    names: list[str],
) -> None:
    w = live(names)
    for before, after in pairwise(change.run for change in w.store.saved):
        check_saved(before, after)
    for change in w.store.saved:
        if change.lease is not None and change.lease.open:
            assert change.run.state in ACTIVE_STATES
            assert change.lease.attempt == change.run.attempt
    check_alerts(w)
    honest(w)
    if not w.run().is_over:
        w.store.save(c.requested(w.run(), DesiredState.CANCEL, w.now_s))
    w.sweeps(600)
    assert w.run().is_over
    assert w.living() == []
    assert w.is_at_rest()


def check_alerts(w: Outside) -> None:
    """Check that every end is reported once, and nothing is reported twice."""
    runs = [change.run for change in w.store.saved]
    ends = sum(after.state in TERMINAL and before.state not in TERMINAL for before, after in pairwise(runs))
    reported = [alert for change in w.store.saved for alert in change.alerts]
    assert sum(alert.kind in {state.value for state in TERMINAL} for alert in reported) == ends
    assert len({alert.key for alert in reported}) == len(reported)


@settings(deadline=None, max_examples=100, derandomize=True)
@given(names=HISTORIES)
def test_a_run_that_is_not_over_is_always_looked_at_again_and_rests_within_a_bounded_number_of_steps(
    names: list[str],
) -> None:
    w = live(names)
    honest(w)
    for _ in range(4):
        _survive(ACTS["settle"], w)
    before = len(w.store.saved)
    w.settle()
    assert len(w.store.saved) - before <= 1, "at rest, one more look is one wait"
    run = w.run()
    assert run.is_over or run.next_check_s is not None
    assert run.next_check_s is None or run.next_check_s > w.now_s


PACED = [S.LAUNCHING, S.BOOTING, S.STARTING, S.TRAINING]


@pytest.mark.parametrize("state", PACED)
def test_a_run_nobody_hears_of_is_not_looked_at_more_often_than_the_pace(state: RunState) -> None:
    w = Outside(boot_s=10**6 if state is S.BOOTING else 0)
    if state is S.LAUNCHING:
        w.fail["create"] = Lost()
        w.pods.hidden.add("memory-1")
    w.settle()
    if state in (S.STARTING, S.TRAINING):
        w.after(5).heartbeat()
        w.settle()
    if state is S.TRAINING:
        w.after(5).heartbeat(step=5)
        w.settle()
    assert w.run().state is state
    before, start_s = len(w.store.saved), w.now_s
    while w.now_s < start_s + 110:
        w.now_s = max(w.run().next_check_s or 0, w.now_s + 1)
        w.settle()
    assert len(w.store.saved) - before <= 110 // 15 + 6
