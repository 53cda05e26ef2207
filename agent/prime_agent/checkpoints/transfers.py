"""Which checkpoint is uploaded next, and which commit is requested: always the newest, because waiting for an
older one is never worthwhile.
"""

from dataclasses import dataclass, replace

from prime_agent import effects as e
from prime_train.runs.wire import Commit

SCAN_S = 1.0
SCAN_SHARE = 50
"""Limit on the time that scans of the checkpoint folder take: one part in this many."""

CLEANUP_S = 30.0
RETRY_FIRST_S, RETRY_MAX_S = 2.0, 60.0
SETTLE_S_MAX = 15.0
HELD_S_MAX = 60.0
"""Time for which a resumed attempt's first checkpoint waits for the first step, which shows whether the
trainer has resumed.
"""


@dataclass(frozen=True)
class Manifested:
    """A step whose manifest is in the bucket under `key`, and whose commit is not confirmed yet."""

    step: int
    key: str


@dataclass(frozen=True)
class Transfers:
    """State of uploads and commits. `open` is True once the trainer has been started, so that there may be
    something to upload.
    """

    open: bool = False
    scanning: bool = False
    next_scan_s: float = 0.0
    scans: int = 0
    """Number of scans started."""
    seen: int = 0
    """Number of the newest scan whose result has arrived."""
    found: tuple[int, ...] = ()
    saving: bool = False
    uploading: int | None = None
    failures: int = 0
    next_upload_s: float = 0.0
    uploaded_step: int = 0
    uncommitted: Manifested | None = None
    committing: bool = False
    next_commit_s: float = 0.0
    settling_until_s: float | None = None
    """Time until which the end of the attempt waits for the work after a commit, which moves `latest.json`
    and cleans up the bucket; None if there is no such work.
    """
    next_cleanup_s: float = 0.0
    problem: str = ""
    failures_in_a_row: int = 0
    """Failed uploads since the last successful one."""
    begun_step: int = 0
    """The newest step that the trainer has begun to save, according to the scans so far."""
    held: bool = False
    """Whether no step has shown yet that the trainer has resumed."""
    held_until_s: float | None = None
    """Time until which the first checkpoint waits for that; None before there is one."""
    owed_since: int | None = None
    """The newest scan when an upload showed that the trainer's best checkpoint, an older one, is not in the
    bucket; None once a later scan has looked for it.
    """
    removed: bool = False
    """Whether the checkpoint folder existed earlier, and was missing or empty at the last scan."""
    waits_to_look: bool = False
    """Whether the uploaded checkpoint may have changed since, which is looked at once the control plane
    answers.
    """

    @property
    def is_idle(self) -> bool:
        """Whether nothing is left to upload, according to the last scan."""
        is_looked_at = self.owed_since is None and not self.waits_to_look
        return self.uploading is None and not self.found and self.failures == 0 and is_looked_at


def begin(transfers: Transfers, now_s: float, *, resumed: bool) -> Transfers:
    """Start scanning when the trainer is started. `resumed`: it is to resume from a checkpoint."""
    return replace(transfers, open=True, held=resumed, next_scan_s=now_s, next_cleanup_s=now_s + CLEANUP_S)


def release(transfers: Transfers, now_s: float) -> Transfers:
    """Let checkpoints be uploaded, because the first step has shown that the trainer has resumed."""
    if not transfers.held:
        return transfers
    was_due_s = transfers.next_upload_s if transfers.held_until_s is None else now_s
    return replace(transfers, held=False, held_until_s=None, next_upload_s=was_due_s)


def close(transfers: Transfers) -> Transfers:
    """Upload and commit nothing more."""
    return replace(transfers, open=False, found=(), uncommitted=None, waits_to_look=False, owed_since=None)


def scan_now(transfers: Transfers, now_s: float) -> Transfers:
    """Schedule a scan as soon as possible, and cancel the upload's delay after an earlier failure."""
    return replace(transfers, next_scan_s=now_s, next_upload_s=now_s)


def scanned(
    transfers: Transfers,
    steps: tuple[int, ...],
    now_s: float,
    *,
    saving: bool,
    took_s: float,
    begun: int = 0,
    removed: bool = False,
    again: tuple[int, ...] = (),
) -> Transfers:
    """Record a scan's result. A scan that started before an upload ended may still contain that step.
    `again`: steps that were uploaded before, and have changed since.
    """
    found = tuple(
        step
        for step in steps
        if step > transfers.uploaded_step or (step in again and step != transfers.uploading)
    )
    pause_s = max(SCAN_S, SCAN_SHARE * took_s)
    after = replace(
        transfers,
        scanning=False,
        seen=transfers.scans,
        found=found,
        saving=saving,
        next_scan_s=now_s + pause_s,
    )
    after = replace(after, begun_step=max([transfers.begun_step, begun, *steps]), removed=removed)
    if transfers.owed_since is not None and transfers.scans > transfers.owed_since:
        after = replace(after, owed_since=None)
    if found and transfers.held and transfers.held_until_s is None:
        held_until_s = now_s + HELD_S_MAX
        after = replace(
            after, held_until_s=held_until_s, next_upload_s=max(after.next_upload_s, held_until_s)
        )
    return after if found else replace(after, failures=0, problem="")


def uploaded(
    transfers: Transfers, step: int, key: str, now_s: float, *, owes_best: bool = False
) -> Transfers:
    """Record the upload of `step`, whose manifest is in the bucket under `key`, and schedule its commit if it
    is the newest. `owes_best`: the trainer's best checkpoint is an older one that is not in the bucket, so
    that the next scan finds it.
    """
    newer = transfers.uncommitted is None or step > transfers.uncommitted.step
    return replace(
        transfers,
        uploading=None,
        failures=0,
        failures_in_a_row=0,
        problem="",
        uploaded_step=max(step, transfers.uploaded_step),
        uncommitted=Manifested(step, key) if newer else transfers.uncommitted,
        found=tuple(other for other in transfers.found if other > step),
        next_scan_s=min(transfers.next_scan_s, now_s),
        owed_since=transfers.scans if owes_best else transfers.owed_since,
    )


def upload_failed(transfers: Transfers, step: int, why: str, now_s: float) -> Transfers:
    """Schedule the next try after a delay that doubles each time, and a new scan first, because the
    checkpoint may have been deleted.
    """
    wait_s = min(RETRY_MAX_S, RETRY_FIRST_S * 2 ** min(transfers.failures, 10))
    problem = f"step {step} was not uploaded: {why}"
    after = replace(transfers, uploading=None, failures=transfers.failures + 1, problem=problem, found=())
    after = replace(after, failures_in_a_row=transfers.failures_in_a_row + 1)
    return replace(
        after, next_upload_s=now_s + wait_s, next_scan_s=min(transfers.next_scan_s, now_s + wait_s)
    )


def committed(transfers: Transfers, step: int, now_s: float) -> Transfers:
    """Record a confirmed commit. The end of the attempt then waits up to `SETTLE_S_MAX` seconds for the work
    that follows a commit.
    """
    pending = transfers.uncommitted
    done = pending is not None and pending.step <= step
    return replace(
        transfers,
        committing=False,
        uncommitted=None if done else pending,
        settling_until_s=now_s + SETTLE_S_MAX,
    )


def settled(transfers: Transfers) -> Transfers:
    return replace(transfers, settling_until_s=None)


def is_settling(transfers: Transfers, now_s: float) -> bool:
    """Return whether the attempt still waits for the work that follows a commit."""
    return transfers.settling_until_s is not None and now_s < transfers.settling_until_s


def commit_failed(transfers: Transfers, now_s: float, *, heartbeat_s: int) -> Transfers:
    """Schedule the next try of the commit after one heartbeat interval."""
    return replace(transfers, committing=False, next_commit_s=now_s + heartbeat_s)


def commit_now(transfers: Transfers, now_s: float) -> Transfers:
    """Schedule the commit at once, because the control plane responds again."""
    return replace(transfers, next_commit_s=now_s)


def pace(
    transfers: Transfers, now_s: float, *, run_id: str, attempt: int, settled: bool, identity: str = ""
) -> tuple[Transfers, tuple[e.Effect, ...]]:
    """Return the effects that are due, and the state with them recorded as begun."""
    effects: list[e.Effect] = []
    if not transfers.open:
        return transfers, ()
    if transfers.found and transfers.uploading is None and now_s >= transfers.next_upload_s:
        transfers = replace(transfers, uploading=transfers.found[-1], found=())
        effects.append(e.Upload(transfers.uploading or 0))
    if not transfers.scanning and now_s >= transfers.next_scan_s:
        transfers = replace(transfers, scanning=True, scans=transfers.scans + 1)
        effects.append(e.ScanCheckpoints(settled))
    if transfers.uncommitted is not None and not transfers.committing and now_s >= transfers.next_commit_s:
        pending = transfers.uncommitted
        transfers = replace(transfers, committing=True)
        effects.append(
            e.SendCommit(
                Commit(run=run_id, attempt=attempt, step=pending.step, key=pending.key, identity=identity)
            )
        )
    if now_s >= transfers.next_cleanup_s:
        transfers = replace(transfers, next_cleanup_s=now_s + CLEANUP_S)
        effects.append(e.FreeDiskSpace())
    return transfers, tuple(effects)


def due_s(transfers: Transfers) -> list[float]:
    """Return the times at which `pace` has something to do."""
    if not transfers.open:
        return []
    moments = [transfers.next_cleanup_s]
    moments += [transfers.settling_until_s] if transfers.settling_until_s is not None else []
    moments += [] if transfers.scanning else [transfers.next_scan_s]
    moments += [transfers.next_upload_s] if transfers.found and transfers.uploading is None else []
    moments += (
        [transfers.next_commit_s] if transfers.uncommitted is not None and not transfers.committing else []
    )
    return moments
