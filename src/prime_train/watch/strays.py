"""Machines with this control plane's mark whose run is not, or no longer, in the store.

To a watcher with the wrong store, or one restored from an older copy, the machines of live attempts look like this. Only the sealed record
of the run in the bucket tells them apart: if it lists the very attempt for which a machine was rented, and says that it is over, then no
store can hold that attempt any more, whatever a clock says, because an attempt that is over never goes on. Such a machine is ended. All
others at rented providers are only reported. On this machine nobody else rents: there a machine is ended unless the record, or a bucket
that cannot be read, leaves open whether an attempt holds it.
"""

from prime_train.advice import Call, Operation
from prime_train.errors import ExternalError
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.decide.orphans import ORPHAN_RETRY_S, Maker, grace_s, maker_of
from prime_train.runs.run import Alert, Run, Severity
from prime_train.runs.verdict import Pod
from prime_train.text.invocations import command
from prime_train.watch.attempt_records import recorded_run
from prime_train.watch.context import Context
from prime_train.watch.execute import terminate
from prime_train.watch.outbox import enqueue

LOOK_S = 300
"""Seconds between two looks into the bucket for a machine that is left alone."""
ENDED = "ended"
"""How the key of the alert ends that a machine was ended, so that it follows one that it was found."""


def take_back(context: Context, run_id: str, pod: Pod, now_s: int) -> None:
    """End a machine whose run is not in this store if it surely is an orphan; otherwise report it once and leave it alone."""
    looks = context.strays
    if now_s < looks.get(pod.pod_id, now_s) <= now_s + LOOK_S:
        return
    looks[pod.pod_id] = now_s + LOOK_S
    try:
        recorded = recorded_run(context.bucket, context.master, run_id)
    except ExternalError as error:
        context.watched(run_id, "BucketFailed", str(error))
        _report(context, run_id, pod, f"whether an attempt holds it is not known: {error}", now_s)
        return
    maker = maker_of(recorded, pod) if recorded is not None else None
    if recorded is not None and maker is not None and maker.over_s is not None:
        looks[pod.pod_id] = now_s + ORPHAN_RETRY_S
        if maker.over_s + grace_s(recorded) <= now_s:
            _end(context, run_id, pod, _over(recorded, maker, maker.over_s, now_s), now_s)
    elif maker is not None:
        _report(context, run_id, pod, f"by its record in the bucket, attempt {maker.attempt} may still hold it", now_s)
    elif pod.pod_id.partition("/")[0] in context.shared:
        _report(context, run_id, pod, "nothing in the bucket shows that it was rented here", now_s)
    else:
        looks[pod.pod_id] = now_s + ORPHAN_RETRY_S
        _end(context, run_id, pod, "belongs to no run", now_s)


def _over(recorded: Run, maker: Maker, over_s: int, now_s: int) -> str:
    ended = f"the run is {recorded.state.value}" if recorded.is_over else f"the run has gone on to attempt {recorded.attempt}"
    return (
        f"was rented by this control plane for attempt {maker.attempt}, which ended {max(0, now_s - over_s)} s ago by its record in the "
        f"bucket ({ended}), and no run in this store holds it"
    )


def _end(context: Context, run_id: str, pod: Pod, why: str, now_s: int) -> None:
    text = f"{pod.pod_id} ({pod.name}) {why}: terminated"
    terminate(context, run_id, [pod.pod_id])
    context.watched(run_id, "Orphan", text)
    key = f"orphan/{pod.pod_id}/{ENDED}"
    enqueue(context, Alert(key, run_id, AlertKind.ORPHAN, Severity.WARNING, "an orphaned machine was found", text, now_s))


def _report(context: Context, run_id: str, pod: Pod, why: str, now_s: int) -> None:
    text = (
        f"{pod.pod_id} ({pod.name}) belongs to this master key, but its run is not in this store, and {why}; it is not terminated and is "
        "still being paid for. Check that PRIME_TRAIN_STORE is the store that rented it. If no control plane has its run any more: "
        f"{command(Call(Operation.GIVE_BACK, pod.pod_id))}"
    )
    context.watched(run_id, "Orphan", text)
    key = f"orphan/{pod.pod_id}"
    enqueue(context, Alert(key, run_id, AlertKind.ORPHAN, Severity.ERROR, "an orphaned machine was found", text, now_s))
