"""The parts of every change: the next version of the run, history lines and alerts."""

from dataclasses import replace

from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.run import Alert, Change, HistoryEvent, Lease, NotificationRecord, Run, Severity
from prime_train.spec.causes import Cause
from prime_train.text.redaction import redacted

NOTICE_CHARS_MAX = 500
"""Number of characters of an alert that a run keeps to show while the alert is open."""


def happened(
    run: Run, at_s: int, kind: str, text: str, step: int = 0, *, cause: Cause | None = None
) -> HistoryEvent:
    return HistoryEvent(
        run.run_id, at_s, run.attempt, kind, text, step, {"cause": cause.value} if cause else {}
    )


def mirrored(run: Run, kind: AlertKind, at_s: int) -> tuple[Alert, ...]:
    """Return a quiet alert that updates displays of the run's state without notifying people, for runs with
    an origin.
    """
    return (
        (alert_for(run, at_s, kind, Severity.QUIET, run.state.value, ""),) if run.origin is not None else ()
    )


def alert_for(run: Run, at_s: int, kind: AlertKind, severity: Severity, title: str, text: str) -> Alert:
    """Return an alert whose key identifies the change of state: run, attempt, kind and the version that saved
    it.
    """
    key = f"{run.run_id}/e{run.attempt}/{kind}/v{run.version + 1}"
    return Alert(key, run.run_id, kind, severity, f"{run.run_id}: {title}", text, at_s, run.attempt)


def noted(run: Run, kind: AlertKind, text: str, at_s: int) -> Run:
    """Return the run with the record that people are notified of this condition, which replaces an earlier
    record of it. The words are cut only once secrets are hidden, because a part of a secret is not
    recognised.
    """
    others = (notice for notice in run.notices if notice.kind is not kind)
    return replace(run, notices=(*others, NotificationRecord(kind, at_s, redacted(text)[:NOTICE_CHARS_MAX])))


def saved(
    run: Run,
    event: HistoryEvent | None = None,
    *,
    lease: Lease | None = None,
    lease_version: int | None = None,
    alerts: tuple[Alert, ...] = (),
) -> Change:
    lines = (event,) if event else ()
    return Change(replace(run, version=run.version + 1), lease, lease_version, lines, alerts)


def turned(run: Run) -> Run:
    return replace(run, turn=run.turn + 1)
