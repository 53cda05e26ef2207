"""A look at all runs that are due, at pods nobody owns, at bills and at alerts that wait."""

from collections.abc import Callable, Sequence
from dataclasses import replace

from prime_train.control_plane.reconcile.carrying import terminate
from prime_train.control_plane.reconcile.delivering import deliver, refresh, tell
from prime_train.control_plane.reconcile.seeing import fresh, see
from prime_train.control_plane.reconcile.stepping import settle
from prime_train.control_plane.reconcile.tracking import follow, mark
from prime_train.control_plane.reconcile.world import Failures, Sight, Swept, World
from prime_train.core import change as c
from prime_train.core import decide as d
from prime_train.core.funds import Bill
from prime_train.core.keys import parse_pod_name
from prime_train.core.run import Alert, Attempt, Run, RunState, Severity
from prime_train.core.verdict import Pod, PodStatus
from prime_train.ports import OutsideError

DUE_MAX = 200
BOOT_NAMES_MAX = 10_000


def sweep(world: World, now_s: int | None = None, *, clock: Callable[[], int] | None = None) -> Swept:
    """All runs that are due, a few steps each; pods nobody owns; alerts that wait. Safe beside any other sweep.

    Each step is made at the second that the store says it is; where it does not say, nothing is decided. `clock` is asked instead of the
    store; with `now_s` everything is as of that second.

    What fails for one run keeps nobody from the others, and nothing keeps waiting alerts from being sent; it is raised in the end.
    """
    if now_s is None:
        clock = clock or world.store.now_s
        now_s = clock()
    failures = Failures()
    swept = None
    with failures.kept():
        swept = _look_at_all(world, now_s, failures, clock)
    if world.delivers:
        with failures.kept():
            deliver(world, now_s, failures, clock=clock)
    if swept is not None:
        with failures.kept():
            refresh(world, swept.looked_at, now_s, failures)
    failures.raised()
    if swept is None:
        raise AssertionError("a look that came to nothing has raised")
    return swept


def _look_at_all(world: World, now_s: int, failures: Failures, clock: Callable[[], int] | None) -> Swept:
    sight = see(world, now_s)
    listed, hearing = sight.listed, sight.hearing
    due = world.store.due(now_s, DUE_MAX)
    due += [run_id for run_id in _reap(world, listed, now_s, failures) if run_id not in due]
    if hearing.through is not None and hearing.through not in due:
        due.append(hearing.through)
    steps = 0
    for run_id in due:
        if run_id in failures.unread:
            continue
        with failures.kept(run_id):
            if clock is not None:
                sight = fresh(world, sight, clock())
            steps += settle(world, run_id, now_s, sight, clock=clock)
            sight = _with_burn(world, sight, run_id, now_s, failures)
    with failures.kept():
        _book(world, now_s, failures)
    follow(world, due, now_s, failures)
    mark(world, now_s, failures)
    return Swept(tuple(due), steps, hearing.blind, listed if isinstance(listed, str) else None)


def _with_burn(world: World, sight: Sight, run_id: str, now_s: int, failures: Failures) -> Sight:
    """The wallet as the next run may count on it: what this one has just rented is paid from it too."""
    held = failures.load(world.store, run_id) if sight.funds is not None else None
    attempt = held.run.attempt if held is not None else None
    if sight.funds is None or attempt is None or attempt.launched_s < now_s or attempt.ended_s is not None:
        return sight
    if attempt.offer.provider != sight.funds.provider:
        return sight
    burn = sight.funds.burn_usd_per_hour + attempt.offer.usd_per_hour
    return replace(sight, funds=replace(sight.funds, burn_usd_per_hour=burn))


def _reap(world: World, listed: Sequence[Pod] | str, now_s: int, failures: Failures) -> list[str]:
    """Runs whose pods are not where they should be, to be looked at now; pods of runs nobody knows are taken back here. Of a run that can
    not be read nothing is known: its pod is left where it is."""
    suspects: list[str] = []
    for pod in [] if isinstance(listed, str) else listed[:BOOT_NAMES_MAX]:
        named = parse_pod_name(pod.name)
        if named is None or pod.status is PodStatus.GONE:
            continue
        held = failures.load(world.store, named[0])
        if held is None:
            if named[0] not in failures.unread:
                with failures.kept(named[0]):
                    _take_back(world, named[0], pod, now_s)
        elif not _belongs(held.run, pod, named[1]) and not _asked_lately(held.run, pod, now_s):
            suspects.append(held.run.run_id)
    return list(dict.fromkeys(suspects))


def _take_back(world: World, run_id: str, pod: Pod, now_s: int) -> None:
    """A pod that bears our mark, of a run that this store never had, or has no more. On an account that others may share it is only told
    of: to a watcher that looks at the wrong store, all of its team's machines are such."""
    if pod.pod_id.partition("/")[0] in world.shared:
        text = (
            f"{pod.pod_id} ({pod.name}) bears the mark of this master key, but its run is not in this store; it is left alone, and it is "
            "paid for. Is PRIME_TRAIN_STORE the one that rented it? If no control plane has its run any more: "
            f"prime-train stop --machine {pod.pod_id}"
        )
        severity = Severity.ERROR
    else:
        text, severity = f"{pod.pod_id} ({pod.name}) belongs to no run: terminated", Severity.WARNING
        terminate(world, run_id, [pod.pod_id])
    world.watched(run_id, "Orphan", text)
    tell(world, Alert(f"orphan/{pod.pod_id}", run_id, "orphan", severity, "a machine of nobody's was found", text, now_s))


def _book(world: World, now_s: int, failures: Failures) -> None:
    """What the provider has billed takes the place of what was reckoned. A save that is lost is made at the next telling."""
    if world.account is None:
        return
    try:
        bills = world.account.bills()
    except OutsideError as error:
        world.watched("", "BillsUnknown", f"{world.account.provider}: {error}")
        return
    for bill in bills:
        named = parse_pod_name(bill.name)
        held = failures.load(world.store, named[0]) if named is not None else None
        attempts = held.run.attempts if held is not None else ()
        mine = next((a for a in attempts if _is_of(bill, a, named) and a.ended_s is not None and a.billed_usd is None), None)
        if held is not None and mine is not None:
            with failures.kept(held.run.run_id):
                world.store.save(c.billed(held.run, mine.epoch, _pod_of(bill), bill.usd, now_s))


def _is_of(bill: Bill, attempt: Attempt, named: tuple[str, int] | None) -> bool:
    """A pod that was made during a crash, and was gone before anybody knew its id, is known by its name."""
    return attempt.pod_id == bill.pod_id or (attempt.pod_id is None and named is not None and named[1] == attempt.epoch)


def _pod_of(bill: Bill) -> Pod:
    return Pod(bill.pod_id, bill.name, PodStatus.GONE, bill.created_s, ended_s=bill.ended_s)


def _belongs(run: Run, pod: Pod, epoch: int) -> bool:
    if run.state is RunState.LAUNCHING:
        return pod.name == d.name_of(run, run.epoch)
    return d.current_epoch(run) == epoch and run.attempt is not None and run.attempt.pod_id == pod.pod_id


def _asked_lately(run: Run, pod: Pod, now_s: int) -> bool:
    return any(s.pod_id == pod.pod_id and s.asked_s + d.STRAY_ASK_AGAIN_S > now_s for s in run.strays)
