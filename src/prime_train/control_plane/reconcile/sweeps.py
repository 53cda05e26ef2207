"""A sweep over all runs that are due, orphan pods, bills and waiting alerts."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from prime_train.control_plane.reconcile.context import Context, Failures, Snapshot, SweepResult
from prime_train.control_plane.reconcile.execute import terminate
from prime_train.control_plane.reconcile.observe import fresh, see
from prime_train.control_plane.reconcile.outbox import deliver, refresh, tell
from prime_train.control_plane.reconcile.steps import settle
from prime_train.control_plane.reconcile.tracker_sync import follow, mark
from prime_train.core import change as c
from prime_train.core import decide as d
from prime_train.core.funds import Bill
from prime_train.core.keys import parse_pod_name
from prime_train.core.run import Alert, Attempt, Run, RunState, Severity
from prime_train.core.verdict import Pod, PodStatus
from prime_train.ports import OutsideError

DUE_MAX = 200
BOOT_NAMES_MAX = 10_000


def sweep(context: Context, now_s: int | None = None, *, clock: Callable[[], int] | None = None) -> SweepResult:
    """Check all runs that are due, with a few steps each; terminate orphan pods; send waiting alerts. Safe beside any other sweep.

    Each step uses the store's current second; if the store cannot tell the time, nothing is decided. `clock` replaces the store's time;
    with `now_s` everything is as of that second.

    A failure for one run does not stop the others, and nothing stops waiting alerts from being sent; failures are raised at the end.
    """
    if now_s is None:
        clock = clock or context.store.now_s
        now_s = clock()
    failures = Failures()
    swept = None
    with failures.kept():
        swept = _look_at_all(context, now_s, failures, clock)
    if context.delivers:
        with failures.kept():
            deliver(context, now_s, failures, clock=clock)
    if swept is not None:
        with failures.kept():
            refresh(context, swept.looked_at, now_s, failures)
    failures.raised()
    if swept is None:
        raise AssertionError("a look that came to nothing has raised")
    return swept


def _look_at_all(context: Context, now_s: int, failures: Failures, clock: Callable[[], int] | None) -> SweepResult:
    snapshot = see(context, now_s)
    listed, hearing = snapshot.listed, snapshot.hearing
    # Orphans first: they cost money, and this process may be suspended while it takes the steps of other runs.
    due = _reap(context, listed, now_s, failures)
    due += [run_id for run_id in context.store.due(now_s, DUE_MAX) if run_id not in due]
    if hearing.through is not None and hearing.through not in due:
        due.append(hearing.through)
    steps = 0
    for run_id in due:
        if run_id in failures.unread:
            continue
        with failures.kept(run_id):
            if clock is not None:
                snapshot = fresh(context, snapshot, clock())
            steps += settle(context, run_id, now_s, snapshot, clock=clock)
            snapshot = _with_burn(context, snapshot, run_id, now_s, failures)
    with failures.kept():
        _book(context, now_s, failures)
    follow(context, due, now_s, failures)
    mark(context, now_s, failures)
    return SweepResult(tuple(due), steps, hearing.blind, listed if isinstance(listed, str) else None)


def _with_burn(context: Context, snapshot: Snapshot, run_id: str, now_s: int, failures: Failures) -> Snapshot:
    """Return the snapshot with the wallet as the next run may use it: including the cost of the machine that this run has just rented."""
    held = failures.load(context.store, run_id) if snapshot.funds is not None else None
    attempt = held.run.current_attempt if held is not None else None
    if snapshot.funds is None or attempt is None or attempt.launched_s < now_s or attempt.ended_s is not None:
        return snapshot
    if attempt.offer.provider != snapshot.funds.provider:
        return snapshot
    burn = snapshot.funds.burn_usd_per_hour + attempt.offer.usd_per_hour
    return replace(snapshot, funds=replace(snapshot.funds, burn_usd_per_hour=burn))


def _reap(context: Context, listed: Sequence[Pod] | str, now_s: int, failures: Failures) -> list[str]:
    """Return the runs with misplaced pods, which are checked now; pods of unknown runs are terminated here. If a run cannot be read, its
    pod is left alone."""
    suspects: list[str] = []
    for pod in [] if isinstance(listed, str) else listed[:BOOT_NAMES_MAX]:
        named = parse_pod_name(pod.name)
        if named is None or pod.status is PodStatus.GONE:
            continue
        held = failures.load(context.store, named[0])
        if held is None:
            if named[0] not in failures.unread:
                with failures.kept(named[0]):
                    _take_back(context, named[0], pod, now_s)
        elif not _belongs(held.run, pod, named[1]) and not _asked_lately(held.run, pod, now_s):
            suspects.append(held.run.run_id)
    return list(dict.fromkeys(suspects))


def _take_back(context: Context, run_id: str, pod: Pod, now_s: int) -> None:
    """Terminate a pod with our mark whose run is not, or no longer, in this store. On an account that control planes may share it is only
    reported: to a watcher with the wrong store, all machines of its team look like this."""
    if pod.pod_id.partition("/")[0] in context.shared:
        text = (
            f"{pod.pod_id} ({pod.name}) bears the mark of this master key, but its run is not in this store; it is left alone, and it is "
            "paid for. Is PRIME_TRAIN_STORE the one that rented it? If no control plane has its run any more: "
            f"prime-train stop --machine {pod.pod_id}"
        )
        severity = Severity.ERROR
    else:
        text, severity = f"{pod.pod_id} ({pod.name}) belongs to no run: terminated", Severity.WARNING
        terminate(context, run_id, [pod.pod_id])
    context.watched(run_id, "Orphan", text)
    tell(context, Alert(f"orphan/{pod.pod_id}", run_id, "orphan", severity, "a machine of nobody's was found", text, now_s))


def _book(context: Context, now_s: int, failures: Failures) -> None:
    """Replace estimated costs by the provider's bills. A save that fails is repeated when the bill is listed again."""
    if context.account is None:
        return
    try:
        bills = context.account.bills()
    except OutsideError as error:
        context.watched("", "BillsUnknown", f"{context.account.provider}: {error}")
        return
    for bill in bills:
        named = parse_pod_name(bill.name)
        held = failures.load(context.store, named[0]) if named is not None else None
        attempts = held.run.attempts if held is not None else ()
        mine = next((a for a in attempts if _is_of(bill, a, named) and a.ended_s is not None and a.billed_usd is None), None)
        if held is not None and mine is not None:
            with failures.kept(held.run.run_id):
                context.store.save(c.billed(held.run, mine.number, _pod_of(bill), bill.usd, now_s))


def _is_of(bill: Bill, attempt: Attempt, named: tuple[str, int] | None) -> bool:
    """Return whether the bill is for this attempt. A pod that was created during a crash, and was gone before its id was saved, is matched
    by its name."""
    return attempt.pod_id == bill.pod_id or (attempt.pod_id is None and named is not None and named[1] == attempt.number)


def _pod_of(bill: Bill) -> Pod:
    return Pod(bill.pod_id, bill.name, PodStatus.GONE, bill.created_s, ended_s=bill.ended_s)


def _belongs(run: Run, pod: Pod, attempt: int) -> bool:
    if run.state is RunState.LAUNCHING:
        return pod.name == d.name_of(run, run.attempt)
    return d.current_attempt(run) == attempt and run.current_attempt is not None and run.current_attempt.pod_id == pod.pod_id


def _asked_lately(run: Run, pod: Pod, now_s: int) -> bool:
    return any(s.pod_id == pod.pod_id and s.asked_s + d.STRAY_ASK_AGAIN_S > now_s for s in run.orphans)
