"""Reports how durable a run is: what a preemption would cost now, and whether another checkpoint interval would cost less."""

from dataclasses import dataclass

from prime_train.core.causes import Cause
from prime_train.core.run_figures import RunFigures, figures
from prime_train.core.text.formatting import size, span, usd
from prime_train.core.wire import Saves
from prime_train.estimate.checkpoint_interval import RESTART_S, Pace, advise, mtbf_s
from prime_train.ports import RunRecord

SPAN_S_MIN = 1e-3
"""Seconds below which a reported span is none: no save takes so little, and what is divided by it would be infinite."""


@dataclass(frozen=True)
class SaveStatus:
    """How the newest attempt saves, from its last heartbeat. None means not known yet; sizes are those of the newest upload."""

    durable_age_s: int | None
    """The age of the newest committed checkpoint, which is the training lost if the machine is lost now."""
    durable_after_s: float | None
    interval_s: float | None
    stall_s: float | None
    upload_bytes_per_s: float | None
    size_bytes: int | None
    sent_bytes: int | None
    skipped: int
    disk_full_s: int | None
    loss_s: float | None
    """The expected loss of one preemption, restart included."""
    loss_usd: float | None
    loss_share: float | None
    advice: str | None


def save_status(record: RunRecord, now_s: int) -> SaveStatus | None:
    """Return how the newest attempt saves; None before the first save and when the run is over."""
    run, lease = record.run, record.lease
    heartbeat = lease.heartbeat if lease.attempt == run.attempt else None
    if heartbeat is None or heartbeat.saves is None or lease.heartbeat_s is None or run.is_over:
        return None
    saves = heartbeat.saves
    advised = advise(
        _pace(figures(run, lease, now_s), saves), usd_per_hour=run.current_attempt.offer.usd_per_hour if run.current_attempt else 0.0
    )
    return SaveStatus(
        durable_age_s=saves.durable_age_s + max(0, now_s - lease.heartbeat_s) if saves.durable_age_s is not None else None,
        durable_after_s=saves.durable_after_s,
        interval_s=saves.interval_s,
        stall_s=saves.stall_s,
        upload_bytes_per_s=saves.sent_bytes / upload_s if saves.sent_bytes and (upload_s := _known(saves.upload_s)) else None,
        size_bytes=saves.size_bytes,
        sent_bytes=saves.sent_bytes,
        skipped=saves.skipped,
        disk_full_s=heartbeat.disk_full_s,
        loss_s=advised.loss_s if advised else None,
        loss_usd=advised.loss_usd if advised else None,
        loss_share=advised.loss_share if advised else None,
        advice=advised.text if advised else None,
    )


def unsaved_of(record: RunRecord) -> str:
    """Return what the newest attempt has seen instead of checkpoints that are late; empty: none is late, or the run is over."""
    run, lease = record.run, record.lease
    heartbeat = lease.heartbeat if lease.attempt == run.attempt else None
    return heartbeat.unsaved if heartbeat is not None and not run.is_over else ""


def _pace(now: RunFigures, saves: Saves) -> Pace:
    """Return the pace of saves and preemptions, with this run's own mean restart time once it has restarted."""
    spent = now.totals
    lost = sum(1 for attempt in now.run.attempts if attempt.cause is Cause.PREEMPTED)
    restart_s = (spent.provision_s + spent.restore_s + spent.detection_s) / spent.attempts if now.restarts > 0 else RESTART_S
    return Pace(
        stall_s=saves.stall_s or 0.0,
        upload_s=saves.durable_after_s or 0.0,
        mtbf_s=mtbf_s(spent.paid_s, lost),
        restart_s=restart_s,
        interval_s=_known(saves.interval_s),
    )


def _known(span_s: float | None) -> float | None:
    return span_s if span_s is not None and span_s >= SPAN_S_MIN else None


def facts(found: SaveStatus) -> list[tuple[str, str]]:
    """Return the facts for people, as pairs of name and text."""
    rows = []
    if found.durable_age_s is not None:
        after = f", durable {span(round(found.durable_after_s))} after it was complete" if found.durable_after_s is not None else ""
        rows.append(("checkpoint", f"{span(found.durable_age_s)} old{after}"))
    if found.size_bytes is not None:
        rate = f" at {found.upload_bytes_per_s / 1e9:.2f} GB/s" if found.upload_bytes_per_s else ""
        rows.append(("upload", f"{size(found.size_bytes)}, of which {size(found.sent_bytes or 0)} sent{rate}"))
    if found.skipped:
        rows.append(("skipped", f"{found.skipped} checkpoints, because a newer one was complete before they could be uploaded"))
    if found.disk_full_s is not None:
        rows.append(("disk", f"full in {span(found.disk_full_s)} at the current rate"))
    if found.loss_s is not None:
        rows.append(("a preemption", f"costs about {span(round(found.loss_s))}, {usd(found.loss_usd or 0.0)}"))
    if found.advice is not None:
        rows.append(("advice", found.advice))
    return rows
