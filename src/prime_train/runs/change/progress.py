"""Changes during an attempt: its first heartbeat and step, notices to people, and orders to the agent."""

from collections.abc import Iterator
from dataclasses import replace

from prime_train.runs import decide as d
from prime_train.runs.alert_kinds import AlertKind, Lasts, policy_of
from prime_train.runs.change.parts import alert_for, happened, mirrored, noted, saved
from prime_train.runs.resuming.trust import proven_places, with_restored
from prime_train.runs.run import (
    Alert,
    Change,
    DrainReason,
    Event,
    Figures,
    Lease,
    Run,
    Severity,
    move,
    with_attempt,
    with_heartbeat,
)
from prime_train.runs.verdict import step_rose_s
from prime_train.runs.wire import Order
from prime_train.spec.causes import POLICY


def put_agent(run: Run, now_s: int) -> Change:
    assert run.current_attempt is not None
    after = with_attempt(run, replace(run.current_attempt, agent_put_s=now_s))
    return saved(
        replace(after, next_check_s=now_s + d.check_s(run)),
        happened(run, now_s, "agent", "installing the agent on the machine"),
    )


def see_heartbeat(run: Run, lease: Lease, now_s: int) -> Change:
    assert run.current_attempt is not None
    after = with_attempt(
        move(run, Event.FIRST_HEARTBEAT), replace(run.current_attempt, first_heartbeat_s=now_s)
    )
    line = happened(after, now_s, "starting", "the agent is installed")
    return saved(replace(after, next_check_s=now_s), line, alerts=mirrored(after, AlertKind.STARTING, now_s))


def see_step(run: Run, lease: Lease, step: int, now_s: int) -> Change:
    assert run.current_attempt is not None
    seen_s = min(now_s, step_rose_s(lease) or now_s)
    attempt = replace(
        run.current_attempt,
        first_step_s=max(seen_s, run.current_attempt.first_heartbeat_s or seen_s),
        last_step=step,
    )
    heartbeat = lease.heartbeat if lease.attempt == attempt.number else None
    attempt = with_restored(attempt, heartbeat)
    after = replace(with_attempt(move(run, Event.FIRST_STEP), attempt), backoffs=0, next_check_s=now_s)
    if run.began == Figures() and run.resume is None and heartbeat is not None:
        after = replace(after, began=Figures(heartbeat.loss, heartbeat.learning_rate))
    after = replace(
        after, distrusted=tuple(one for one in run.distrusted if one.place not in proven_places((attempt,)))
    )
    after = replace(after, notices=tuple(n for n in run.notices if policy_of(n.kind).lasts is Lasts.RUN))
    text = f"training at step {step}" + (
        f", resumed from {attempt.resumed_step}" if attempt.resumed_step else ""
    )
    kind = AlertKind.TRAINING if run.attempt == 1 else AlertKind.RECOVERED
    alert = alert_for(after, now_s, kind, Severity.INFO, text, f"attempt {run.attempt}")
    return saved(after, happened(after, now_s, "training", text, step), alerts=(alert,))


def see_upload(run: Run, step: int, now_s: int) -> Change:
    assert run.current_attempt is not None
    after = with_attempt(move(run, Event.UPLOAD), replace(run.current_attempt, uploading_s=now_s))
    line = happened(after, now_s, "uploading", "the trainer has ended; what it left is being uploaded", step)
    return saved(replace(after, next_check_s=now_s), line, alerts=mirrored(after, AlertKind.UPLOADING, now_s))


def see_after(run: Run, lease: Lease, step: int, now_s: int) -> Change:
    assert run.current_attempt is not None
    after = with_heartbeat(
        with_attempt(move(run, Event.FINISH), replace(run.current_attempt, after_s=now_s)), lease
    )
    steps, done = run.spec.after, after.after_done
    text = f"training has succeeded; what is left: {', '.join(one.name for one in steps[done:]) or 'nothing'}"
    line = happened(after, now_s, "finishing", text, step)
    return saved(
        replace(after, backoffs=0, next_check_s=now_s),
        line,
        alerts=mirrored(after, AlertKind.FINISHING, now_s),
    )


def note(run: Run, note: d.Notify, now_s: int) -> Change:
    after = replace(noted(run, note.kind, f"{note.title}: {note.text}", now_s), next_check_s=now_s)
    alerts = mirrored(after, note.kind, now_s)
    if note.severity is not Severity.QUIET:
        alerts = (alert_for(after, now_s, note.kind, note.severity, note.title, note.text),)
    return saved(after, happened(run, now_s, note.kind, f"{note.title}: {note.text}"), alerts=alerts)


def all_clear(run: Run, lease: Lease, kinds: tuple[AlertKind, ...], now_s: int) -> Change:
    """Clear notices whose reason has passed. For a stall, also withdraw the order for evidence, so that the
    next is examined again.
    """
    after = replace(
        run, notices=tuple(notice for notice in run.notices if notice.kind not in kinds), next_check_s=now_s
    )
    line = happened(
        run, now_s, "all_clear", ", ".join(dict.fromkeys(policy_of(kind).all_clear for kind in kinds))
    )
    alerts = tuple(_all_clear_alerts(after, lease, kinds, now_s))
    if run.current_attempt is None or AlertKind.STALLED not in kinds:
        return saved(after, line, alerts=alerts)
    after = with_attempt(after, replace(run.current_attempt, evidence_requested_s=None))
    if lease.order is not Order.EVIDENCE:
        return saved(after, line, alerts=alerts)
    quiet = replace(lease, order=Order.NONE, order_reason="", version=lease.version + 1)
    return saved(after, line, lease=quiet, lease_version=lease.version, alerts=alerts)


def _all_clear_alerts(run: Run, lease: Lease, kinds: tuple[AlertKind, ...], now_s: int) -> Iterator[Alert]:
    for policy in map(policy_of, kinds):
        if policy.cleared_by is not None:
            text = f"newest committed step: {lease.committed_step or 'none'}"
            yield alert_for(run, now_s, policy.cleared_by, Severity.INFO, policy.all_clear, text)


def request_evidence(run: Run, lease: Lease, decision: d.RequestEvidence, now_s: int) -> Change:
    assert run.current_attempt is not None
    title = POLICY[decision.cause].title
    after = with_attempt(run, replace(run.current_attempt, evidence_requested_s=now_s))
    after = noted(after, AlertKind.STALLED, f"{title}: {decision.text}", now_s)
    alert = alert_for(after, now_s, AlertKind.STALLED, Severity.WARNING, title, decision.text)
    requested = replace(lease, order=Order.EVIDENCE, order_reason=decision.text, version=lease.version + 1)
    after = replace(after, next_check_s=now_s + d.check_s(run))
    return saved(
        after,
        happened(run, now_s, "stalled", decision.text),
        lease=requested,
        lease_version=lease.version,
        alerts=(alert,),
    )


def drain(run: Run, lease: Lease, decision: d.Drain, now_s: int) -> Change:
    after = replace(
        move(run, Event.DRAIN), drain=decision.reason, drain_s=now_s, next_check_s=now_s + d.check_s(run)
    )
    ordered = replace(lease, order=Order.DRAIN, order_reason=decision.reason.value, version=lease.version + 1)
    severity = Severity.INFO if decision.reason in (DrainReason.USER, DrainReason.MOVE) else Severity.WARNING
    alert = alert_for(
        after, now_s, AlertKind.DRAINING, severity, "saving and uploading, then stopping", decision.text
    )
    return saved(
        after,
        happened(after, now_s, "draining", decision.text),
        lease=ordered,
        lease_version=lease.version,
        alerts=(alert,),
    )
