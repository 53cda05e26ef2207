"""Statistics of the trainer's checkpoints: their interval, their cost to the training, the time until they
are durable, and what a loss would cost now.
"""

from dataclasses import dataclass, replace
from statistics import median

from prime_train.runs import wire

KEPT_MAX = 20
"""Number of saves remembered."""

INTERVALS_LATE = 2
LATE_S_MIN = 60.0
"""Minimum delay in seconds before a checkpoint counts as late, however short the interval between saves
is.
"""


@dataclass(frozen=True)
class Save:
    """A checkpoint found complete at `seen_s`. `stall_s`: seconds for which steps paused for it, judged by
    their durations.
    """

    step: int
    seen_s: float
    stall_s: float | None


@dataclass(frozen=True)
class Moved:
    """The amounts of one upload: bytes of the files, bytes sent, and seconds."""

    size_bytes: int
    sent_bytes: int
    seconds: float


@dataclass(frozen=True)
class SaveHistory:
    """Saves of this attempt, oldest first, in seconds of the machine's monotonic clock."""

    saves: tuple[Save, ...] = ()
    skipped: int = 0
    """Number of saves that were not uploaded because a newer one was complete first."""
    moved: Moved | None = None
    durable: Save | None = None
    durable_after_s: float | None = None
    """Seconds from complete to committed for the newest durable checkpoint."""


def seen(
    saves: SaveHistory, step: int, now_s: float, *, durations_s: tuple[float, ...], skipped: bool
) -> SaveHistory:
    """Record `step` as the newest complete checkpoint. `durations_s` are the durations of the newest
    steps.
    """
    if saves.saves and step <= saves.saves[-1].step:
        return saves
    since = step - saves.saves[-1].step if saves.saves else step
    save = Save(step, now_s, _stall_s(durations_s, since))
    return replace(saves, saves=(*saves.saves, save)[-KEPT_MAX:], skipped=saves.skipped + skipped)


def committed(saves: SaveHistory, step: int, now_s: float) -> SaveHistory:
    """Record `step` as the newest durable checkpoint; an unknown or older step changes nothing."""
    save = next((save for save in saves.saves if save.step == step), None)
    if save is None or (saves.durable is not None and save.step <= saves.durable.step):
        return saves
    return replace(saves, durable=save, durable_after_s=now_s - save.seen_s)


def report(saves: SaveHistory, now_s: float) -> wire.Saves | None:
    """Return the statistics for the heartbeat; None before the first save."""
    if not saves.saves:
        return None
    gaps_s = [
        later.seen_s - earlier.seen_s for earlier, later in zip(saves.saves, saves.saves[1:], strict=False)
    ]
    stalls_s = [save.stall_s for save in saves.saves if save.stall_s is not None]
    moved = saves.moved
    return wire.Saves(
        interval_s=round(median(gaps_s), 3) if gaps_s else None,
        stall_s=round(median(stalls_s), 3) if stalls_s else None,
        durable_age_s=int(now_s - saves.durable.seen_s) if saves.durable is not None else None,
        durable_after_s=round(saves.durable_after_s, 3) if saves.durable_after_s is not None else None,
        upload_s=round(moved.seconds, 3) if moved is not None else None,
        size_bytes=moved.size_bytes if moved is not None else None,
        sent_bytes=moved.sent_bytes if moved is not None else None,
        skipped=saves.skipped,
    )


def behind(saves: SaveHistory, committed_step: int, now_s: float) -> str | None:
    """Return a description of how far the bucket is behind; None unless the oldest waiting save is late.

    It is late after `INTERVALS_LATE` median intervals between saves, and at least `LATE_S_MIN` seconds.
    """
    waiting = [save for save in saves.saves if save.step > committed_step]
    gaps_s = [
        later.seen_s - earlier.seen_s for earlier, later in zip(saves.saves, saves.saves[1:], strict=False)
    ]
    if not waiting or not gaps_s:
        return None
    late_s = now_s - waiting[0].seen_s
    if late_s <= max(INTERVALS_LATE * median(gaps_s), LATE_S_MIN):
        return None
    return (
        f"the checkpoint of step {waiting[0].step} was saved {late_s:.0f} s ago, and neither it nor "
        "a newer one is durable"
    )


def too_fast(saves: SaveHistory) -> str:
    """Return a warning that checkpoints are saved faster than they can be uploaded; "" if that is not so."""
    if not saves.skipped or saves.moved is None:
        return ""
    return (
        f"checkpoints come faster than they are uploaded ({saves.moved.seconds:.0f} s "
        "each): "
        f"{saves.skipped} skipped so far"
    )


def _stall_s(durations_s: tuple[float, ...], since: int) -> float | None:
    """Return by how many seconds the slowest step since the last save exceeded the median; None if too few
    steps are known.
    """
    recent = durations_s[-since:] if since > 0 else ()
    return max(0.0, max(recent) - median(durations_s)) if len(durations_s) >= 3 and recent else None
