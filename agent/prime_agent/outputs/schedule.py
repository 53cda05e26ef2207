"""When outputs, logs and metrics are uploaded: at an interval, and once more when the trainer has ended.

So a file that changes all the time is uploaded at most once an interval, and what a machine that is taken
away had written is in the bucket up to an interval before.
"""

from dataclasses import dataclass, replace

from prime_agent import effects as e

RETRY_S = 10.0
"""Seconds until the next upload after one that failed at the end of the attempt, when nothing else is left to
do.
"""

APART_S = 2.0
"""Seconds between the beginnings of two uploads of which the second one is for a checkpoint."""


@dataclass(frozen=True)
class OutputUploads:
    """State of the uploads of outputs, which are numbered from 1. Times are seconds of the machine's
    monotonic clock.
    """

    in_flight: bool = False
    next_s: float | None = None
    started: int = 0
    """Number of the newest upload."""
    last_done: int = 0
    """Number of the newest upload that did not fail."""
    refused: str = ""
    """Why outputs cannot be uploaded however often it is tried, such as a file that is too large."""
    failed: str = ""
    """Why the last upload failed; a later one may succeed."""
    failures_in_a_row: int = 0

    @property
    def problem(self) -> str:
        return self.refused or self.failed


def schedule(uploads: OutputUploads, at_s: float) -> OutputUploads:
    """Schedule the next upload."""
    return replace(uploads, next_s=at_s)


def schedule_soon(uploads: OutputUploads, now_s: float, *, every_s: int) -> OutputUploads:
    """Schedule the next upload for now, or `APART_S` after the last one began, if it would come later."""
    if uploads.next_s is None:
        return uploads
    return schedule(uploads, min(uploads.next_s, max(now_s, uploads.next_s - every_s + APART_S)))


def ended(uploads: OutputUploads, *, refused: str, failed: str) -> OutputUploads:
    """Record the end of the upload in flight."""
    failures = uploads.failures_in_a_row + 1 if failed else 0
    after = replace(uploads, in_flight=False, refused=refused, failed=failed, failures_in_a_row=failures)
    return after if failed else replace(after, last_done=uploads.started)


def reschedule(uploads: OutputUploads, now_s: float, *, before: int) -> OutputUploads:
    """Schedule what the end of the attempt still needs: at once the first upload after number `before`, and
    soon another one if that one failed.
    """
    if uploads.started <= before:
        return schedule(uploads, now_s)
    return schedule(uploads, now_s + RETRY_S) if uploads.problem else uploads


def pace(
    uploads: OutputUploads, now_s: float, *, every_s: int, trainer_ended: bool
) -> tuple[OutputUploads, tuple[e.Effect, ...]]:
    """Return the effects that are due, and the state with them recorded as started. `every_s`: seconds
    between uploads.
    """
    if uploads.in_flight or uploads.next_s is None or now_s < uploads.next_s:
        return uploads, ()
    after = replace(uploads, in_flight=True, next_s=now_s + every_s, started=uploads.started + 1)
    return after, (e.UploadOutputs(trainer_ended),)


def due_s(uploads: OutputUploads) -> float | None:
    """Return when `pace` has something to do."""
    return None if uploads.in_flight else uploads.next_s
