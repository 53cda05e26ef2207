"""A provider's list that was requested some minutes ago, while a sweep waits for something else: what may
still be concluded from it.
"""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from prime_train.runs.change import requested
from prime_train.runs.run import DesiredState, RunState
from prime_train.runs.verdict import Pod
from prime_train.runs.wire import Ticket
from prime_train.spec.causes import Cause
from prime_train.watch.context import Context
from prime_train.watch.observe import see
from prime_train.watch.steps import reconcile_fully
from prime_train.watch.sweeps import sweep
from tests import builders as b
from tests.reconcile.ports import Lost, Outside, Provider

S = RunState
SETTLE_S = b.spec().health.settle_s
E1, E2 = f"pt-{b.RUN_ID}-e1", f"pt-{b.RUN_ID}-e2"


def unanswered() -> Outside:
    """Return a run whose create call made a machine and lost its response; the provider does not list the
    machine yet.
    """
    w = Outside()
    w.pods.hidden.add("memory-1")
    w.fail["create"] = Lost()
    w.settle()
    w.fail.clear()
    assert (w.run().state, w.living()) == (S.LAUNCHING, [E1])
    return w


@pytest.mark.parametrize("listed_after_s", [0, 1, SETTLE_S - 1])
def test_no_launch_is_given_up_by_a_list_from_before_its_machine_had_to_be_listed(
    listed_after_s: int,
) -> None:
    w = unanswered()
    snapshot = see(w.world, w.after(listed_after_s).now_s)
    w.pods.hidden.clear()
    w.after(10 * SETTLE_S)
    reconcile_fully(w.world, b.RUN_ID, w.now_s, snapshot)
    assert (w.run().state, w.done("terminate")) == (S.LAUNCHING, [])
    w.after(15).sweep()
    assert (w.run().state, w.run().attempt, w.living(), w.done("terminate")) == (S.BOOTING, 1, [E1], [])


def test_a_launch_is_given_up_by_a_list_that_is_young_enough_though_it_is_not_of_now() -> None:
    w = unanswered()
    snapshot = see(w.world, w.after(SETTLE_S).now_s)
    reconcile_fully(w.world, b.RUN_ID, w.after(60).now_s, snapshot)
    assert (w.run().state, w.run().cause) == (S.QUEUED, Cause.LAUNCH_LOST)


def test_a_machine_that_an_old_list_does_not_show_goes_on_being_paid_for() -> None:
    w = unanswered()
    assert w.store.save(requested(w.run(), DesiredState.CANCEL, w.now_s))
    w.settle()
    snapshot = see(w.world, w.after(1).now_s)
    reconcile_fully(w.world, b.RUN_ID, w.after(10 * SETTLE_S).now_s, snapshot)
    assert w.run().attempts[0].ended_s is None
    w.after(15).sweep()
    assert w.run().attempts[0].ended_s is not None


class SlowToInstall(Provider):
    """An installer that takes six minutes, in which a hidden machine becomes listed."""

    def __init__(self, w: Outside) -> None:
        super().__init__(w.pods.real, w.faults)
        self.w = w

    def list(self) -> Sequence[Pod]:
        return [pod for pod in super().list() if pod.pod_id not in self.w.pods.hidden]

    def put_agent(self, pod: Pod, ticket: Ticket) -> None:
        self.w.after(360).pods.hidden.clear()
        super().put_agent(pod, ticket)


def waiting(w: Outside) -> Context:
    return replace(w.world, pods=SlowToInstall(w))


def test_a_sweep_that_waits_for_one_runs_agent_gives_no_other_runs_machine_back() -> None:
    w = unanswered()
    w.add("first")
    w.after(20)
    assert w.store.due(w.now_s, 9) == ["first", b.RUN_ID]
    sweep(waiting(w), w.now_s, clock=lambda: w.now_s)
    assert w.living() == ["pt-first-e1", E1]
    sweep(waiting(w), w.after(15).now_s, clock=lambda: w.now_s)
    assert (w.run().state, w.run().attempt) == (S.BOOTING, 1)
    assert (w.living(), w.done("terminate")) == (["pt-first-e1", E1], [])
