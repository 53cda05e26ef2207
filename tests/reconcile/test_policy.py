"""Runs that ask for more than the operator's policy allows: the watcher ends them before it rents."""

from dataclasses import replace

from prime_train.errors import UsageError
from prime_train.runs.change import requested
from prime_train.runs.run import DesiredState, Run, RunState
from prime_train.spec.causes import Cause
from tests.reconcile.ports import Outside

WHY = "hardware.provider: local is not allowed; by this line in policy.yaml: providers: [local]"


def test_a_run_beyond_the_policy_ends_without_a_machine() -> None:
    w = Outside()
    w.world = replace(w.world, not_allowed=lambda run: WHY)
    w.settle()
    run = w.run()
    assert (run.state, run.cause, run.attempts) == (RunState.FAILED, Cause.NOT_ALLOWED, ())
    assert run.why == f"no machine was rented: {WHY}"
    assert list(w.pods.list()) == []


def test_a_run_that_trains_goes_on_and_ends_when_it_needs_another_machine() -> None:
    w = Outside()
    w.trains()
    w.world = replace(w.world, not_allowed=lambda run: WHY)
    w.after(20).heartbeat(step=11)
    w.sweep()
    assert w.run().state is RunState.TRAINING

    for pod in w.pods.list():
        w.pods.terminate(pod.pod_id)
    w.sweeps(600)
    assert (w.run().state, w.run().cause, w.run().attempt) == (RunState.FAILED, Cause.NOT_ALLOWED, 1)


def test_nothing_is_rented_while_the_policy_cannot_be_read() -> None:
    def broken(run: Run) -> str:
        raise UsageError("the policy of this control plane cannot be used")

    w = Outside()
    w.world = replace(w.world, not_allowed=broken)
    w.sweep()
    assert (w.run().state, w.run().attempts) == (RunState.QUEUED, ())

    w.world = replace(w.world, not_allowed=lambda run: "")
    w.sweeps(120)
    assert w.run().attempt == 1


def test_while_the_policy_cannot_be_read_old_machines_are_ended_and_stops_are_heard() -> None:
    def broken(run: Run) -> str:
        raise UsageError("the policy of this control plane cannot be used")

    w = Outside()
    w.trains()
    w.world = replace(w.world, not_allowed=broken)
    w.after(5).exit(Cause.TRAINER_ERROR, step=11)
    w.sweeps(600)
    assert (w.run().state, w.run().attempt, list(w.pods.list())) == (RunState.QUEUED, 1, []), (
        "its machine is not paid for any more"
    )
    (alert,) = [alert for alert in w.reported.alerts if alert.kind == "policy"]
    assert "cannot be used" in alert.text

    record = w.store.load(w.run().run_id)
    assert record is not None
    assert w.store.save(requested(record.run, DesiredState.STOP, w.now_s))
    w.after(20).sweep()
    assert w.run().state is RunState.STOPPED
