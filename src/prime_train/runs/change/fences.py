"""Changes that end an attempt: the fence, another attempt or the end of the run, and the later clean-up."""

from dataclasses import replace

from prime_train.checkpoints.manifest import checkpoint_title
from prime_train.runs import decide as d
from prime_train.runs import ledger
from prime_train.runs.alert_kinds import AlertKind, Lasts, policy_of
from prime_train.runs.change.deletions import with_deletions
from prime_train.runs.change.parts import alert_for, happened, saved, turned
from prime_train.runs.deletions import plus
from prime_train.runs.resume_point import BLOB_GRACE_S
from prime_train.runs.resuming.trust import CHECKPOINTS_TRIED_MAX, distrust, failed_to_resume, with_restored
from prime_train.runs.run import (
    ACTIVE_STATES,
    Attempt,
    Change,
    Event,
    HistoryEvent,
    Lease,
    Run,
    RunState,
    Severity,
    move,
    with_attempt,
    with_heartbeat,
)
from prime_train.runs.verdict import step_rose_s
from prime_train.runs.wire import Deletions, Heartbeat, Order
from prime_train.spec.causes import POLICY, Action, Cause, Retry
from prime_train.text.formatting import size
from prime_train.text.formatting import usd as dollars

CLEANUP_AFTER_S = BLOB_GRACE_S + 300
"""Seconds after the end of a run until its clean-up: by then its last uploads are older than the grace period
for chunks, by any clock.
"""
EXCLUDED_MAX = 4
"""Number of recently failed offers that a run remembers."""
PREEMPTIONS_KEPT_MAX = 16
"""Number of preemptions whose times a run remembers."""
_END_EVENTS = {
    RunState.SUCCEEDED: Event.SUCCEED,
    RunState.FAILED: Event.FAIL,
    RunState.STOPPED: Event.STOP,
    RunState.CANCELLED: Event.CANCEL,
}
_END_SEVERITY = {
    RunState.SUCCEEDED: Severity.INFO,
    RunState.FAILED: Severity.ERROR,
    RunState.STOPPED: Severity.WARNING,
    RunState.CANCELLED: Severity.INFO,
}


def _fenced(run: Run, lease: Lease, cause: Cause | None, detail: str, now_s: int) -> tuple[Run, Lease]:
    """Return the run with its attempt closed and updated from its last heartbeat, and the closed lease."""
    closed = replace(lease, open=False, order=Order.NONE, order_reason="", version=lease.version + 1)
    run = with_heartbeat(run, lease)
    attempt = run.current_attempt
    if attempt is None or attempt.fenced_s is not None:
        return run, closed
    mine = lease.attempt == attempt.number
    heartbeat = lease.heartbeat if mine else None
    sign_s = max(
        (at_s for at_s in (lease.heartbeat_s if mine else None, attempt.last_sign_s) if at_s is not None),
        default=None,
    )
    if cause is Cause.STALLED:
        sign_s = step_rose_s(lease) or sign_s
    first_step_s = (
        attempt.first_step_s if attempt.first_step_s is not None else _late_first_step_s(attempt, lease)
    )
    since = heartbeat.not_finite_since if heartbeat else None
    attempt = replace(
        with_restored(attempt, heartbeat),
        not_finite_since=since,
        first_step_s=first_step_s,
        last_sign_s=sign_s,
        fenced_s=now_s,
        cause=cause,
        detail=detail[:500],
    )
    after = replace(
        with_attempt(run, attempt),
        step_slow_s=(heartbeat.step_slow_s if heartbeat else None) or run.step_slow_s,
        resume_chosen=False,
        drain=None,
        drain_s=None,
        cause=cause,
        finite_limit=run.finite_limit
        if heartbeat is None or since is None
        else _finite_limit(attempt, heartbeat, since),
        notices=tuple(n for n in run.notices if policy_of(n.kind).lasts is not Lasts.ATTEMPT),
    )
    return after, closed


def _finite_limit(attempt: Attempt, heartbeat: Heartbeat, since: int) -> int:
    """Return the step after which checkpoints may hold what made the figures infinite. If the first ones
    after a resume were, the checkpoint that was restored may hold it, too.
    """
    if heartbeat.finite_step:
        return min(heartbeat.finite_step, since - 1)
    return max(0, attempt.resumed_step - 1)


def _late_first_step_s(attempt: Attempt, lease: Lease) -> int | None:
    return (
        step_rose_s(lease)
        if attempt.last_step > attempt.resumed_step and lease.attempt == attempt.number
        else None
    )


def recover(run: Run, lease: Lease, decision: d.Recover, now_s: int) -> Change:
    policy = POLICY[decision.cause]
    run, deleted = with_deletions(run, lease, now_s)
    offer = run.current_attempt.offer if run.current_attempt else None
    fenced, closed = _fenced(turned(move(run, Event.LOST)), lease, decision.cause, decision.detail, now_s)
    if decision.cause is Cause.LAUNCH_LOST and fenced.current_attempt is not None:
        # The provider lists no such pod, so it costs nothing unless it appears later.
        fenced = with_attempt(
            fenced, replace(fenced.current_attempt, ended_s=fenced.current_attempt.launched_s)
        )
    gained = fenced.durable_step > run.durable_step or (fenced.trained_step, fenced.after_done) != (
        run.trained_step,
        run.after_done,
    )
    strikes = () if gained else run.strikes
    is_checkpoint = failed_to_resume(run, lease, decision.cause)
    action = decision.action
    is_counted = policy.retry is Retry.COUNTED if action is None else action is not Action.BACK_OFF
    if not gained and is_counted and not is_checkpoint:
        strikes = (*strikes, decision.cause)
    fenced = _with_faults(fenced, decision, is_checkpoint=is_checkpoint, gained=gained)
    excluded = tuple(e for e in run.excluded if not offer or e != offer.offer_id)
    if offer and (policy.exclude_offer if action is None else action is Action.ANOTHER_MACHINE):
        excluded = (*excluded, offer.offer_id)[-EXCLUDED_MAX:]
    preempted = (
        (*run.preempted_s, now_s)[-PREEMPTIONS_KEPT_MAX:]
        if decision.cause is Cause.PREEMPTED
        else run.preempted_s
    )
    quick = decision.cause is Cause.NO_CAPACITY and d.refusals_in_a_row(fenced) <= d.QUICK_TRIES_MAX
    backs_off = policy.backs_off if action is None else action is Action.BACK_OFF
    backoffs = run.backoffs + 1 if backs_off and not quick else run.backoffs
    longest_s = d.OUTAGE_BACKOFF_S_MAX if decision.cause is Cause.NETWORK_ERROR else d.BACKOFF_S_MAX
    pause_s = d.QUICK_RETRY_S if quick else d.backoff_s(backoffs, longest_s) if backs_off else 0
    after = replace(
        fenced,
        strikes=strikes,
        excluded=excluded,
        preempted_s=preempted,
        backoffs=backoffs,
        not_before_s=now_s + pause_s,
        next_check_s=now_s,
    )
    text = f"{policy.title}: {decision.detail}{_blamed(run) if is_checkpoint else ''}"
    severity = Severity.INFO if decision.cause is Cause.MOVED else Severity.WARNING
    alert = alert_for(
        after,
        now_s,
        AlertKind.LOST,
        severity,
        f"attempt {run.attempt}: {policy.title}",
        _with_durable(after, text),
    )
    step = after.attempts[-1].last_step if after.attempts else 0
    change = saved(
        after,
        happened(after, now_s, "lost", text, step, cause=decision.cause),
        lease=closed,
        lease_version=lease.version,
        alerts=(alert,),
    )
    return _after(change, deleted)


def _with_faults(run: Run, decision: d.Recover, *, is_checkpoint: bool, gained: bool) -> Run:
    """Return the run with what the end of its attempt says of its checkpoints."""
    failures = 0 if gained else run.resume_failures
    if is_checkpoint:
        run = replace(run, distrusted=distrust(run, decision.detail or POLICY[decision.cause].title))
    if decision.cause is Cause.NOT_FINITE:
        run = replace(run, rollbacks=run.rollbacks + 1, went_back_attempt=run.attempt, rolls_back=True)
    return replace(run, resume_failures=failures + is_checkpoint)


def _blamed(run: Run) -> str:
    assert run.resume is not None
    tried = f"{run.resume_failures + 1} of {CHECKPOINTS_TRIED_MAX}"
    return (
        "; before its first step, so it counts against "
        f"{checkpoint_title(run.resume.step, run.resume.attempt)} ({tried})"
    )


def _with_durable(run: Run, text: str) -> str:
    return f"{text}; newest committed step: {run.durable_step or 'none'}"


def finish(run: Run, lease: Lease, decision: d.Finish, now_s: int) -> Change:
    run, deleted = with_deletions(run, lease, now_s)
    fenced, closed = _fenced(
        turned(move(run, _END_EVENTS[decision.state])), lease, decision.cause, decision.why, now_s
    )
    undurable = _undurable(fenced, decision) if run.state in ACTIVE_STATES else ""
    more = "; ".join(filter(None, [undurable, _after_training(fenced, decision)]))
    why = f"{decision.why.rstrip('.')}; {more}" if more else decision.why
    has_uploaded = any(attempt.first_heartbeat_s is not None for attempt in fenced.attempts)
    after = replace(
        fenced, why=why, cause=decision.cause, ended_s=now_s, next_check_s=now_s, strikes=run.strikes
    )
    after = replace(after, cleanup_s=now_s + CLEANUP_AFTER_S if has_uploaded else None)
    spent = ledger.totals(after, now_s)
    attempts = f"{spent.attempts} attempt{'' if spent.attempts == 1 else 's'}"
    text = (
        f"{why.rstrip('.')}. {attempts}, {dollars(spent.usd)} so far, newest committed "
        "step: "
        f"{after.durable_step or 'none'}"
    )
    severity = (
        Severity.WARNING if more and decision.state is RunState.SUCCEEDED else _END_SEVERITY[decision.state]
    )
    alert = alert_for(
        after, now_s, AlertKind(decision.state.value), severity, f"run {decision.state.value}", text
    )
    step = after.attempts[-1].last_step if after.attempts else 0
    line = happened(after, now_s, decision.state.value, why, step, cause=decision.cause)
    return _after(saved(after, line, lease=closed, lease_version=lease.version, alerts=(alert,)), deleted)


def _after(change: Change, line: HistoryEvent | None) -> Change:
    """Return the change with a line in the history before its own."""
    return change if line is None else replace(change, events=(line, *change.events))


def _undurable(run: Run, decision: d.Finish) -> str:
    """Return a text on the steps that were trained but are in no checkpoint, if the run ends with a cause
    after which all steps should be in one; else empty.
    """
    attempt = run.current_attempt
    if attempt is None or decision.cause not in (Cause.FINISHED, Cause.UPLOAD_FAILED):
        return ""
    step, durable = attempt.last_step, max(attempt.durable_step, attempt.resumed_step)
    if durable == 0 and decision.cause is Cause.FINISHED:
        kept = "outputs and logs" if run.spec.outputs else "logs"
        return f"the trainer saved no checkpoint in checkpoints.folder: only its {kept} are in the bucket"
    if step <= durable:
        return ""
    which = f"step {step:,}" if step == durable + 1 else f"steps {durable + 1:,} to {step:,}"
    verb = "is" if step == durable + 1 else "are"
    if decision.cause is Cause.FINISHED:
        return f"{which} came after the last save and {verb} in no checkpoint"
    return (
        f"{which} {verb} lost: trained up to step {step:,}, "
        f"{f'durable up to step {durable:,}' if durable else 'nothing is durable'}"
    )


def _after_training(run: Run, decision: d.Finish) -> str:
    """Return a text on the steps under `after` that failed, and on those that were not run because the run
    was ended before; else empty.
    """
    if run.trained_step is None:
        return ""
    left = (
        [step.name for step in run.spec.after[run.after_done :]]
        if decision.state is not RunState.SUCCEEDED
        else []
    )
    not_done = f"training had succeeded, and these steps after it are left: {', '.join(left)}" if left else ""
    failed = f"after training, {run.after_failed}" if run.after_failed else ""
    return "; ".join(filter(None, [failed, not_done]))


def cleaned_up(run: Run, gone: int, now_s: int, *, again_s: int | None, gone_bytes: int = 0) -> Change:
    """Record that `gone` chunks with `gone_bytes` bytes were deleted from the bucket; `again_s`: the second
    of the next clean-up, if more is left.
    """
    text = f"{gone} chunks that no checkpoint uses were removed from the bucket, {size(gone_bytes)}"
    deleted = plus(run.deleted, Deletions(chunk_bytes=gone_bytes))
    after = replace(run, cleanup_s=again_s, next_check_s=again_s, deleted=deleted)
    return saved(after, happened(run, now_s, "cleaned_up", text) if gone else None)
