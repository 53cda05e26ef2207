"""A sweep over all runs that are due, orphan pods, bills and waiting alerts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from prime_train.advice import Call, Operation
from prime_train.buckets.keys import parse_pod_name
from prime_train.errors import ExternalError
from prime_train.runs import change as c
from prime_train.runs import decide as d
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.decide.orphans import ORPHAN_RETRY_S, Maker, grace_s, maker_of
from prime_train.runs.funds import Bill
from prime_train.runs.run import Alert, Attempt, Run, RunState, Severity
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.text.invocations import command
from prime_train.watch.attempt_records import recorded_run
from prime_train.watch.context import Context, Failures, Snapshot, SweepResult
from prime_train.watch.execute import terminate
from prime_train.watch.means import is_left, may_deliver
from prime_train.watch.observe import fresh, see
from prime_train.watch.outbox import deliver, enqueue, refresh
from prime_train.watch.read_back import read_back
from prime_train.watch.steps import reconcile_fully
from prime_train.watch.tracker_sync import follow, mark
from prime_train.watch.unreadable_runs import look_for_unreadable, report_unread

DUE_MAX = 200
BOOT_NAMES_MAX = 10_000


def sweep(
    context: Context, now_s: int | None = None, *, clock: Callable[[], int] | None = None
) -> SweepResult:
    """Check all runs that are due, with a few steps each; terminate orphan pods; send waiting alerts. Safe
    beside any other sweep.

    Each step uses the store's current second; if the store cannot tell the time, nothing is decided. `clock`
    replaces the store's time; with `now_s` everything is as of that second.

    A failure for one run does not stop the others, and nothing stops waiting alerts from being sent; failures
    are raised at the end.
    """
    if now_s is None:
        clock = clock or context.store.now_s
        now_s = clock()
    failures = Failures()
    results = None
    with failures.collected():
        results = _look_at_all(context, now_s, failures, clock)
    with failures.collected():
        look_for_unreadable(context, now_s)
        report_unread(context, failures, now_s)
    if may_deliver(context, now_s):
        with failures.collected():
            deliver(context, now_s, failures, clock=clock)
    if results is not None:
        with failures.collected():
            refresh(context, results.looked_at, now_s, failures)
    failures.raised()
    if results is None:
        raise AssertionError("an observation that was abandoned has raised")
    return replace(results, unreadable=report_unread(context, failures, now_s))


def _look_at_all(
    context: Context, now_s: int, failures: Failures, clock: Callable[[], int] | None
) -> SweepResult:
    snapshot = see(context, now_s)
    listed, hearing = snapshot.listed, snapshot.hearing
    # Orphans first: they cost money, and this process may be suspended while it takes the steps of other
    # runs.
    due = _reap(context, listed, now_s, failures)
    set_aside = len(context.unreadable.run_ids) + len(context.elsewhere.runs)
    due += [
        run_id
        for run_id in context.store.due(now_s, DUE_MAX + set_aside)
        if run_id not in due and not is_left(context, run_id, now_s)
    ]
    if hearing.through is not None and hearing.through not in due:
        due.append(hearing.through)
    steps = 0
    for run_id in due:
        if run_id in failures.unread:
            continue
        with failures.collected(run_id):
            if clock is not None:
                snapshot = fresh(context, snapshot, clock())
            steps += reconcile_fully(context, run_id, now_s, snapshot, clock=clock)
            snapshot = _with_burn(context, snapshot, run_id, now_s, failures)
    with failures.collected():
        _book(context, now_s, failures)
    follow(context, due, now_s, failures)
    read_back(context, due, now_s, failures)
    mark(context, now_s, failures)
    unread = "; ".join(
        f"the provider's list failed: {name}: {why}" for name, why in snapshot.unlisted.items()
    )
    return SweepResult(
        tuple(due), steps, hearing.blind, listed if isinstance(listed, str) else unread or None
    )


def _with_burn(context: Context, snapshot: Snapshot, run_id: str, now_s: int, failures: Failures) -> Snapshot:
    """Return the snapshot with the wallet that the next run has to reckon with: its cost includes the machine
    that this run has just rented.
    """
    record = failures.load(context.store, run_id) if snapshot.funds else None
    attempt = record.run.current_attempt if record is not None else None
    if attempt is None or attempt.launched_s < now_s or attempt.ended_s is not None:
        return snapshot
    paying = snapshot.funds.get(attempt.offer.provider)
    if paying is None:
        return snapshot
    burning = replace(paying, burn_usd_per_hour=paying.burn_usd_per_hour + attempt.offer.usd_per_hour)
    return replace(snapshot, funds={**snapshot.funds, paying.provider: burning})


def _reap(context: Context, listed: Sequence[Pod] | str, now_s: int, failures: Failures) -> list[str]:
    """Return the runs that have orphan pods, so that they are checked now; about pods of unknown runs it is
    decided here. If a run cannot be read, its pod is left alone.
    """
    suspects: list[str] = []
    for pod in [] if isinstance(listed, str) else listed[:BOOT_NAMES_MAX]:
        named = parse_pod_name(pod.name)
        if named is None or pod.status is PodStatus.GONE:
            continue
        record = failures.load(context.store, named[0])
        if record is None:
            if named[0] not in failures.unread:
                with failures.collected(named[0]):
                    take_back(context, named[0], pod, now_s)
        elif not _belongs(record.run, pod, named[1]) and not _was_requested_recently(record.run, pod, now_s):
            suspects.append(record.run.run_id)
    return list(dict.fromkeys(suspects))


def _book(context: Context, now_s: int, failures: Failures) -> None:
    """Replace estimated costs by the providers' bills. A save that fails is repeated when the bill is listed
    again.
    """
    for account in context.accounts:
        try:
            bills = account.bills()
        except ExternalError as error:
            context.watched("", "BillsUnknown", f"{account.provider}: {error}")
            continue
        _book_all(context, bills, now_s, failures)


def _book_all(context: Context, bills: Sequence[Bill], now_s: int, failures: Failures) -> None:
    for bill in bills:
        named = parse_pod_name(bill.name)
        record = failures.load(context.store, named[0]) if named is not None else None
        attempts = record.run.attempts if record is not None else ()
        mine = next(
            (
                a
                for a in attempts
                if _is_of(bill, a, named) and a.ended_s is not None and a.billed_usd is None
            ),
            None,
        )
        if record is not None and mine is not None:
            with failures.collected(record.run.run_id):
                context.store.save(c.billed(record.run, mine.number, _pod_of(bill), bill.usd, now_s))


def _is_of(bill: Bill, attempt: Attempt, named: tuple[str, int] | None) -> bool:
    """Return whether the bill is for this attempt. A pod that was created during a crash, and was gone before
    its id was saved, is matched by its name.
    """
    return attempt.pod_id == bill.pod_id or (
        attempt.pod_id is None and named is not None and named[1] == attempt.number
    )


def _pod_of(bill: Bill) -> Pod:
    return Pod(bill.pod_id, bill.name, PodStatus.GONE, bill.created_s, ended_s=bill.ended_s)


def _belongs(run: Run, pod: Pod, attempt: int) -> bool:
    if run.state is RunState.LAUNCHING:
        return pod.name == d.name_of(run, run.attempt)
    return (
        d.current_attempt(run) == attempt
        and run.current_attempt is not None
        and run.current_attempt.pod_id == pod.pod_id
    )


def _was_requested_recently(run: Run, pod: Pod, now_s: int) -> bool:
    return any(s.pod_id == pod.pod_id and s.requested_s + d.ORPHAN_RETRY_S > now_s for s in run.orphans)


# Machines with this control plane's mark whose run is not, or no longer, in the store.
#
# To a watcher with the wrong store, or one restored from an older copy, the machines of live attempts look
# like this. Only the sealed record of the run in the bucket tells them apart: if it lists the very attempt
# for which a machine was rented, and says that it is over, then no store can hold that attempt any more,
# whatever a clock says, because an attempt that is over never goes on. Such a machine is ended. All others at
# rented providers are only reported. On this machine nobody else rents: there a machine is ended unless the
# record, or a bucket that cannot be read, leaves open whether an attempt holds it.
LOOK_S = 300
"""Seconds between two looks into the bucket for a machine that is left alone."""
ENDED = "ended"
"""How the key of the alert ends that a machine was ended, so that it follows one that it was found."""


def take_back(context: Context, run_id: str, pod: Pod, now_s: int) -> None:
    """End a machine whose run is not in this store if it surely is an orphan; otherwise report it once and
    leave it alone.
    """
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
        _report(
            context,
            run_id,
            pod,
            f"by its record in the bucket, attempt {maker.attempt} may still hold it",
            now_s,
        )
    elif pod.pod_id.partition("/")[0] in context.shared:
        _report(context, run_id, pod, "nothing in the bucket shows that it was rented here", now_s)
    else:
        looks[pod.pod_id] = now_s + ORPHAN_RETRY_S
        _end(context, run_id, pod, "belongs to no run", now_s)


def _over(recorded: Run, maker: Maker, over_s: int, now_s: int) -> str:
    ended = (
        f"the run is {recorded.state.value}"
        if recorded.is_over
        else f"the run has gone on to attempt {recorded.attempt}"
    )
    return (
        f"was rented by this control plane for attempt {maker.attempt}, which ended {max(0, now_s - over_s)} "
        "s ago by its record in the "
        f"bucket ({ended}), and no run in this store holds it"
    )


def _end(context: Context, run_id: str, pod: Pod, why: str, now_s: int) -> None:
    text = f"{pod.pod_id} ({pod.name}) {why}: terminated"
    terminate(context, run_id, [pod.pod_id])
    context.watched(run_id, "Orphan", text)
    key = f"orphan/{pod.pod_id}/{ENDED}"
    enqueue(
        context,
        Alert(key, run_id, AlertKind.ORPHAN, Severity.WARNING, "an orphaned machine was found", text, now_s),
    )


def _report(context: Context, run_id: str, pod: Pod, why: str, now_s: int) -> None:
    text = (
        f"{pod.pod_id} ({pod.name}) belongs to this master key, but its run is not in this store, and {why}; "
        "it is not terminated and is still being paid for. Check that PRIME_TRAIN_STORE is the store that "
        "rented it. If no control plane has its run any more: "
        f"{command(Call(Operation.GIVE_BACK, pod.pod_id))}"
    )
    context.watched(run_id, "Orphan", text)
    key = f"orphan/{pod.pod_id}"
    enqueue(
        context,
        Alert(key, run_id, AlertKind.ORPHAN, Severity.ERROR, "an orphaned machine was found", text, now_s),
    )
