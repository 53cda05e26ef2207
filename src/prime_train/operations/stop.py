"""Stopping runs, and giving back machines that no run has."""

from prime_train.control_plane.wiring.home import Home
from prime_train.core.change import wished
from prime_train.core.errors import UsageError
from prime_train.core.keys import parse_pod_name
from prime_train.core.run import DesiredState
from prime_train.core.verdict import Pod, PodStatus
from prime_train.operations.run_requests import ask
from prime_train.ports import RunRecord


def stop(home: Home, name: str, *, now: bool = False) -> RunRecord:
    """Ask the run to save, upload and end; with `now`, to end at once. The control plane carries it out.

    Returns the run as it was saved. Raises UsageError where there is no such run, or it is over.
    """
    want = DesiredState.CANCEL if now else DesiredState.STOP
    return ask(home.store(), name, lambda run, now_s: wished(run, want, now_s))


def give_back(home: Home, pod_id: str) -> Pod:
    """Ask the provider to take back a machine that belongs to no run known here. Raises UsageError where there is no such machine, or
    it is a run's: about that one, whoever watches the run decides."""
    pods = home.pods()
    pod = pods.get(pod_id)
    named = parse_pod_name(pod.name) if pod is not None else None
    if pod is None or named is None or pod.status is PodStatus.GONE:
        raise UsageError(f"there is no machine {pod_id!r} that a control plane with this master key has rented")
    if home.store().load(named[0]) is not None:
        raise UsageError(f"{pod_id} is a machine of run {named[0]}", fix=f"prime-train stop {named[0]}")
    pods.terminate(pod_id)
    return pod
