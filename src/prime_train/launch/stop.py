"""Stop runs, and terminate orphaned machines."""

from prime_train.advice import Advice, Call, Operation
from prime_train.buckets.keys import parse_pod_name
from prime_train.errors import UsageError
from prime_train.providers.port import Pods
from prime_train.runs.change import requested
from prime_train.runs.lookup import find
from prime_train.runs.requests import ask
from prime_train.runs.run import DesiredState, IllegalMove
from prime_train.runs.store import RunRecord, Store
from prime_train.runs.unreadable import may_have_machine
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.status.run_status import RunStatus
from prime_train.status.status import each_status


def stop(store: Store, name: str, *, now: bool = False) -> RunRecord:
    """Request that the run saves, uploads and ends; with `now`, that it ends at once. The control plane
    carries the request out.

    Returns the run as saved. Raises UsageError if there is no such run, or it has ended.
    """
    desired = DesiredState.CANCEL if now else DesiredState.STOP
    return ask(store, name, lambda run, now_s: requested(run, desired, now_s))


def active_runs(store: Store) -> list[RunStatus]:
    """Return the state of all active runs, newest first: those that a request to stop every run would
    stop.
    """
    now_s = store.now_s()
    shown, _ = each_status([run.run_id for run in store.list_runs() if not run.is_over], store.load, now_s)
    return [one for one in shown if one.ended_s is None]


def unreadable_with_machine(store: Store) -> list[str]:
    """Return the runs that may have a machine and cannot be stopped, because their records cannot be read."""
    return may_have_machine(store.unreadable(), {lease.run_id for lease in store.lease_statuses()})


def stop_if_active(store: Store, name: str, *, now: bool = False) -> RunRecord:
    """Stop a run as `stop` does; one that is over by now is returned as it is."""
    try:
        return stop(store, name, now=now)
    except UsageError as error:
        if not isinstance(error.__cause__, IllegalMove):
            raise
        return find(store, name)


def give_back(store: Store, pods: Pods, pod_id: str) -> Pod:
    """Terminate a machine that belongs to no run in the store, and return its pod. Raises UsageError if there
    is no such machine, or it belongs to a run: then that run's watcher decides about it.
    """
    pod = pods.get(pod_id)
    named = parse_pod_name(pod.name) if pod is not None else None
    if pod is None or named is None or pod.status is PodStatus.GONE:
        raise UsageError(f"no control plane with this master key has rented a machine {pod_id!r}")
    if store.load(named[0]) is not None:
        raise UsageError(
            f"{pod_id} is a machine of run {named[0]}", fix=Advice(Call(Operation.STOP, named[0]))
        )
    pods.terminate(pod_id)
    return pod
