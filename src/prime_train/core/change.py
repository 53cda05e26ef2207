"""Turns a decision into one atomic write: the next run, the next lease, a history line, and the alerts.

Pure, like the decision. Calls to the outside (create, terminate, send) happen only after the write has succeeded.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from prime_train.core import decide as d
from prime_train.core import ledger
from prime_train.core.budget import Exhausted, Limit, used_up
from prime_train.core.causes import POLICY, Cause, Retry
from prime_train.core.manifest import BLOB_GRACE_S, ResumePoint
from prime_train.core.offers import Offer
from prime_train.core.run import (
    ATTENDED,
    CHECK_S_MAX,
    Alert,
    Attempt,
    Change,
    DesiredState,
    DrainReason,
    Event,
    HistoryEvent,
    Lease,
    Notice,
    Orphan,
    Run,
    RunState,
    Severity,
    move,
    with_attempt,
)
from prime_train.core.spec import BudgetSpec, RunSpec
from prime_train.core.text.formatting import usd as dollars
from prime_train.core.verdict import Pod, is_saving, step_limit_s, step_rose_s
from prime_train.core.wire import Order

CLEANUP_AFTER_S = BLOB_GRACE_S + 300
"""Seconds after the end of a run until its clean-up: by then its last uploads are older than the grace period for chunks, by any clock."""
EXCLUDED_MAX = 4
PREEMPTIONS_KEPT_MAX = 16
NOTICES_THAT_OUTLIVE_AN_ATTEMPT = ("budget", "no_capacity", "unknown", "blind", "untracked")
NOTICES_THAT_OUTLIVE_A_FIRST_STEP = ("budget", "untracked")

_END_EVENTS = {
    RunState.SUCCEEDED: Event.SUCCEED,
    RunState.FAILED: Event.FAIL,
    RunState.STOPPED: Event.STOP,
    RunState.CANCELLED: Event.CANCEL,
}
_CLEARED: dict[tuple[str, ...], str] = {
    ("stalled",): "steps again",
    ("funds",): "the wallet has been filled up",
    (d.UPLOADS,): "checkpoints become durable again",
}
_END_SEVERITY = {
    RunState.SUCCEEDED: Severity.INFO,
    RunState.FAILED: Severity.ERROR,
    RunState.STOPPED: Severity.WARNING,
    RunState.CANCELLED: Severity.INFO,
}


def change(run: Run, lease: Lease, decision: d.Decision, now_s: int) -> Change:
    """Return the change for `decision`. Launch, ChooseResume and CleanUp need more facts: see `launch`, `resume_chosen`, `cleaned_up`."""
    match decision:
        case d.Wait():
            until_s = next_check_s(run, lease, decision, now_s)
            return Change(replace(_with_sign(run, decision), next_check_s=until_s, version=run.version + 1))
        case d.Adopt(pod_id, usd_per_hour, created_s):
            return adopted(run, pod_id, now_s, usd_per_hour=usd_per_hour, created_s=created_s)
        case d.PutAgent():
            return _put_agent(run, now_s)
        case d.SeeHeartbeat():
            return _see_heartbeat(run, lease, now_s)
        case d.SeeStep(step):
            return _see_step(run, lease, step, now_s)
        case d.SeeUpload(step):
            return _see_upload(run, step, now_s)
        case d.Hold(kind, title, why):
            return no_offer(run, why, now_s, kind=kind, title=title)
        case d.Note():
            return _note(_with_sign(run, decision), decision, now_s)
        case d.AllClear(kinds):
            return _all_clear(run, lease, kinds, now_s)
        case d.AskEvidence():
            return _ask_evidence(run, lease, decision, now_s)
        case d.Drain():
            return _drain(run, lease, decision, now_s)
        case d.Recover():
            return _recover(run, lease, decision, now_s)
        case d.Finish():
            return _finish(run, lease, decision, now_s)
        case d.Terminate(pods):
            return _terminate(run, pods, now_s)
        case d.Settle():
            return _settle(run, decision, now_s)
        case d.Launch() | d.ChooseResume() | d.CleanUp():
            raise ValueError(f"{type(decision).__name__} needs facts from outside: use launch(), resume_chosen() or cleaned_up()")


def next_check_s(run: Run, lease: Lease, decision: d.Wait, now_s: int) -> int | None:
    """Return the second of the next check: the decision's own, or for a healthy attempt the next moment that can change anything; at the
    latest `CHECK_S_MAX` from now."""
    wanted_s = _wanted_check_s(run, lease, decision, now_s)
    return min(wanted_s, now_s + CHECK_S_MAX) if wanted_s is not None else None


def _wanted_check_s(run: Run, lease: Lease, decision: d.Wait, now_s: int) -> int | None:
    if run.is_over:
        return decision.until_s
    if decision.until_s is not None:
        money_s = d.budget_moment_s(run, now_s)
        return decision.until_s if money_s is None else min(decision.until_s, money_s)
    heartbeat = lease.heartbeat
    rose_s = step_rose_s(lease)
    deadline_s = None
    if heartbeat is not None and rose_s is not None and heartbeat.step > 0:
        slow_s = max(heartbeat.step_slow_s or 0.0, run.step_slow_s or 0.0)
        deadline_s = rose_s + step_limit_s(run.spec.health, slow_s, saving=is_saving(heartbeat)) + 1
    return d.healthy_until_s(run, lease.heartbeat_s, deadline_s, now_s)


# ------------------------------------------------------------------------------------------------------- launch and resume


def launch(run: Run, lease: Lease, offer: Offer, now_s: int, *, identity: str = "") -> Change:
    """Return the intent to launch, saved before the create call: attempt + 1, a fresh open lease, and the offer that will be requested.
    `identity`: the random identity of the attempt."""
    after = _turned(move(run, Event.LAUNCH))
    number = run.attempt + 1
    resumed = run.resume.step if run.resume else 0
    attempt = Attempt(
        number=number,
        offer=offer,
        launched_s=now_s,
        resumed_step=resumed,
        last_step=resumed,
        durable_step=resumed,
        best_step_before=run.best_step,
        identity=identity,
    )
    after = replace(after, attempt=number, attempts=(*run.attempts, attempt), next_check_s=now_s + d.check_s(run), cause=None)
    fresh = Lease(run_id=run.run_id, attempt=number, open=True, version=lease.version + 1, committed_step=resumed, identity=identity)
    text = f"asking {offer.provider} for {_in_words(offer)}"
    line = happened(after, now_s, "launching", text, resumed)
    return _saved(ledger.fold(after), line, lease=fresh, lease_version=lease.version, alerts=_mirrored(after, "launching", now_s))


def caught_up(run: Run, lease: Lease, newer: Run, newer_lease: Lease, now_s: int) -> Change:
    """Adopt the newer record after the store was restored from an older copy. A stop or cancel requested since then still counts."""
    want = run.want if run.want is not DesiredState.RUN else newer.want
    after = replace(newer, version=run.version, want=want, next_check_s=now_s)
    taken = replace(newer_lease, version=lease.version + 1)
    text = (
        f"the store knew the run as {run.state.value} after attempt {run.attempt or 'none'}, the bucket as {newer.state.value} after "
        f"attempt {newer.attempt}; it goes on from there, and what was written between the two is lost from its history"
    )
    alert = told(after, now_s, "restored", Severity.WARNING, "the store was restored from an older copy", text)
    return _saved(after, happened(after, now_s, "restored", text), lease=taken, lease_version=lease.version, alerts=(alert,))


def _turned(run: Run) -> Run:
    return replace(run, turn=run.turn + 1)


def _in_words(offer: Offer) -> str:
    return f"{offer.offer_id} ({'spot' if offer.spot else 'on-demand'}, ${offer.usd_per_hour:.2f}/h)"


def adopted(run: Run, pod_id: str, now_s: int, *, usd_per_hour: float = 0.0, created_s: int = 0) -> Change:
    """Record the pod of the current attempt by its id and notify people of the machine. `usd_per_hour`: its final price, which may
    differ from the offer's; `created_s`: the second of its creation. 0: not reported."""
    if run.current_attempt is None:
        raise ValueError(f"run {run.run_id} has no attempt that could have the pod {pod_id}")
    offer = replace(run.current_attempt.offer, usd_per_hour=usd_per_hour) if usd_per_hour > 0 else run.current_attempt.offer
    attempt = replace(run.current_attempt, pod_id=pod_id, offer=offer, created_s=created_s or None)
    after = with_attempt(_turned(move(run, Event.POD_CREATED)), attempt)
    after = replace(after, notices=tuple(n for n in run.notices if n.kind not in ("no_capacity", "funds")), next_check_s=now_s)
    kind = "launched" if run.attempt == 1 else "relaunched"
    text = f"{_in_words(offer)}, machine {pod_id}"
    alert = told(after, now_s, kind, Severity.INFO, f"attempt {run.attempt} has a machine", text)
    return _saved(after, happened(after, now_s, "booting", f"machine {pod_id} exists"), alerts=(alert,))


def refused(run: Run, lease: Lease, cause: Cause, detail: str, now_s: int) -> Change:
    """End the attempt at no cost, because the provider confirmed that no pod was created. Notify people once as long as this lasts."""
    change = _recover(run, lease, d.Recover(cause, detail), now_s)
    attempt = change.run.current_attempt
    if attempt is None:
        raise ValueError(f"run {run.run_id} has no attempt that could be refused")
    after = with_attempt(change.run, replace(attempt, ended_s=attempt.launched_s))
    kind = "funds" if cause is Cause.NO_FUNDS else "no_capacity"
    if run.noted_s(kind) is not None:
        return replace(change, run=replace(after, notices=run.notices), alerts=_mirrored(run, kind, now_s))
    note = told(run, now_s, kind, Severity.WARNING, POLICY[cause].title, f"{detail}; asked again until there is one")
    return replace(change, run=replace(after, notices=(*after.notices, Notice(kind, now_s))), alerts=(note,))


def no_offer(run: Run, why: str, now_s: int, *, kind: str = "no_capacity", title: str = "no machine that fits") -> Change:
    """Wait, longer each time, because nothing can be rented now, and notify people once as long as this lasts."""
    not_before_s = now_s + d.backoff_s(run.backoffs + 1)
    next_check_s = d.back_off_until_s(run, not_before_s, now_s)
    after = replace(run, backoffs=run.backoffs + 1, not_before_s=not_before_s, next_check_s=next_check_s)
    if run.noted_s(kind) is not None:
        return _saved(after)
    noted = _note(run, d.Note(kind, Severity.WARNING, title, why), now_s)
    return replace(noted, run=replace(after, version=noted.run.version, notices=noted.run.notices))


def resume_chosen(run: Run, point: ResumePoint | None, now_s: int, *, instead_of: int | None = None) -> Change:
    """Record what the next attempt restores, chosen once after the fence. A checkpoint discovered only now counts as progress.
    `instead_of`: the committed step, if its files are no longer complete and people have to be notified."""
    step = point.step if point else 0
    gained = step > run.durable_step
    after = replace(
        run,
        resume=point,
        resume_chosen=True,
        durable_step=max(run.durable_step, step),
        strikes=() if gained else run.strikes,
        next_check_s=now_s,
    )
    text = f"resumes from step {step} of attempt {point.attempt}" if point else "starts from the beginning: there is no checkpoint"
    alerts: tuple[Alert, ...] = ()
    if instead_of is not None:
        text += f", for files of step {instead_of}, which was committed, are missing in the bucket"
        alerts = (told(after, now_s, "older", Severity.WARNING, "an older checkpoint has to do", text),)
    return _saved(after, happened(run, now_s, "resume_chosen", text, step), alerts=alerts)


# ---------------------------------------------------------------------------------------------------- an attempt's good days


def _put_agent(run: Run, now_s: int) -> Change:
    assert run.current_attempt is not None
    after = with_attempt(run, replace(run.current_attempt, agent_put_s=now_s))
    return _saved(
        replace(after, next_check_s=now_s + d.check_s(run)),
        happened(run, now_s, "agent", "putting the agent on the machine"),
    )


def _see_heartbeat(run: Run, lease: Lease, now_s: int) -> Change:
    assert run.current_attempt is not None
    after = with_attempt(move(run, Event.FIRST_HEARTBEAT), replace(run.current_attempt, first_heartbeat_s=now_s))
    line = happened(after, now_s, "starting", "the agent is there")
    return _saved(replace(after, next_check_s=now_s), line, alerts=_mirrored(after, "starting", now_s))


def _see_step(run: Run, lease: Lease, step: int, now_s: int) -> Change:
    assert run.current_attempt is not None
    seen_s = min(now_s, step_rose_s(lease) or now_s)
    attempt = replace(run.current_attempt, first_step_s=max(seen_s, run.current_attempt.first_heartbeat_s or seen_s), last_step=step)
    after = replace(with_attempt(move(run, Event.FIRST_STEP), attempt), backoffs=0, next_check_s=now_s)
    after = replace(after, notices=tuple(n for n in run.notices if n.kind in NOTICES_THAT_OUTLIVE_A_FIRST_STEP))
    text = f"training at step {step}" + (f", resumed from {attempt.resumed_step}" if attempt.resumed_step else "")
    alert = told(after, now_s, "training" if run.attempt == 1 else "recovered", Severity.INFO, text, f"attempt {run.attempt}")
    return _saved(after, happened(after, now_s, "training", text, step), alerts=(alert,))


def _see_upload(run: Run, step: int, now_s: int) -> Change:
    assert run.current_attempt is not None
    after = with_attempt(move(run, Event.UPLOAD), replace(run.current_attempt, uploading_s=now_s))
    line = happened(after, now_s, "uploading", "the trainer has ended; its last checkpoint is being uploaded", step)
    return _saved(replace(after, next_check_s=now_s), line, alerts=_mirrored(after, "uploading", now_s))


def _note(run: Run, note: d.Note, now_s: int) -> Change:
    after = replace(run, notices=(*run.notices, Notice(note.kind, now_s)), next_check_s=now_s)
    alert = told(after, now_s, note.kind, note.severity, note.title, note.text)
    return _saved(after, happened(run, now_s, note.kind, f"{note.title}: {note.text}"), alerts=(alert,))


def _with_sign(run: Run, decision: d.Wait | d.Note) -> Run:
    """Return the run with a sign of life that came from another source than a heartbeat."""
    if decision.sign_s is None or run.current_attempt is None:
        return run
    tracked = decision.tracked if decision.tracked is not None else run.current_attempt.tracked
    return with_attempt(run, replace(run.current_attempt, last_sign_s=decision.sign_s, tracked=tracked))


def _all_clear(run: Run, lease: Lease, kinds: tuple[str, ...], now_s: int) -> Change:
    """Clear notices whose reason has passed. For a stall, also withdraw the order for evidence, so that the next is examined again."""
    after = replace(run, notices=tuple(notice for notice in run.notices if notice.kind not in kinds), next_check_s=now_s)
    line = happened(run, now_s, "all_clear", _CLEARED.get(kinds, "heard again"))
    if run.current_attempt is None or "stalled" not in kinds:
        return _saved(after, line, alerts=_durable_again(run, lease, now_s) if kinds == (d.UPLOADS,) else ())
    after = with_attempt(after, replace(run.current_attempt, evidence_asked_s=None))
    if lease.order is not Order.EVIDENCE:
        return _saved(after, line)
    quiet = replace(lease, order=Order.NONE, order_reason="", version=lease.version + 1)
    return _saved(after, line, lease=quiet, lease_version=lease.version)


def _durable_again(run: Run, lease: Lease, now_s: int) -> tuple[Alert, ...]:
    text = f"newest committed step: {lease.committed_step or 'none'}"
    return (told(run, now_s, "uploads_again", Severity.INFO, "checkpoints become durable again", text),)


def _ask_evidence(run: Run, lease: Lease, decision: d.AskEvidence, now_s: int) -> Change:
    assert run.current_attempt is not None
    after = with_attempt(run, replace(run.current_attempt, evidence_asked_s=now_s))
    alert = told(after, now_s, "stalled", Severity.WARNING, POLICY[decision.cause].title, decision.text)
    asking = replace(lease, order=Order.EVIDENCE, order_reason=decision.text, version=lease.version + 1)
    after = replace(after, next_check_s=now_s + d.check_s(run))
    return _saved(
        after,
        happened(run, now_s, "stalled", decision.text),
        lease=asking,
        lease_version=lease.version,
        alerts=(alert,),
    )


def _drain(run: Run, lease: Lease, decision: d.Drain, now_s: int) -> Change:
    after = replace(move(run, Event.DRAIN), drain=decision.reason, drain_s=now_s, next_check_s=now_s + d.check_s(run))
    ordered = replace(lease, order=Order.DRAIN, order_reason=decision.reason.value, version=lease.version + 1)
    severity = Severity.INFO if decision.reason is DrainReason.USER else Severity.WARNING
    alert = told(after, now_s, "draining", severity, "flushing, then stopping", decision.text)
    return _saved(
        after,
        happened(after, now_s, "draining", decision.text),
        lease=ordered,
        lease_version=lease.version,
        alerts=(alert,),
    )


# ----------------------------------------------------------------------------------------------------------------- the fence


def _fenced(run: Run, lease: Lease, cause: Cause | None, detail: str, now_s: int) -> tuple[Run, Lease]:
    """Return the run with its attempt closed and updated from its last heartbeat, and the closed lease."""
    closed = replace(lease, open=False, order=Order.NONE, order_reason="", version=lease.version + 1)
    attempt = run.current_attempt
    if attempt is None or attempt.fenced_s is not None:
        return run, closed
    mine = lease.attempt == attempt.number
    heartbeat = lease.heartbeat if mine else None
    sign_s = max((at_s for at_s in (lease.heartbeat_s if mine else None, attempt.last_sign_s) if at_s is not None), default=None)
    if cause is Cause.STALLED:
        sign_s = step_rose_s(lease) or sign_s
    last_step = max(attempt.last_step, heartbeat.step if heartbeat else 0)
    durable = max(attempt.durable_step, lease.committed_step if mine else 0)
    first_step_s = attempt.first_step_s if attempt.first_step_s is not None else _late_first_step_s(attempt, lease, last_step)
    attempt = replace(
        attempt,
        last_step=last_step,
        durable_step=durable,
        first_step_s=first_step_s,
        last_sign_s=sign_s,
        fenced_s=now_s,
        cause=cause,
        detail=detail[:500],
    )
    after = replace(
        with_attempt(run, attempt),
        best_step=max(run.best_step, last_step),
        durable_step=max(run.durable_step, durable),
        step_slow_s=(heartbeat.step_slow_s if heartbeat else None) or run.step_slow_s,
        resume_chosen=False,
        drain=None,
        drain_s=None,
        cause=cause,
        notices=tuple(n for n in run.notices if n.kind in NOTICES_THAT_OUTLIVE_AN_ATTEMPT),
    )
    return after, closed


def _late_first_step_s(attempt: Attempt, lease: Lease, last_step: int) -> int | None:
    return step_rose_s(lease) if last_step > attempt.resumed_step and lease.attempt == attempt.number else None


def _recover(run: Run, lease: Lease, decision: d.Recover, now_s: int) -> Change:
    policy = POLICY[decision.cause]
    offer = run.current_attempt.offer if run.current_attempt else None
    fenced, closed = _fenced(_turned(move(run, Event.LOST)), lease, decision.cause, decision.detail, now_s)
    if decision.cause is Cause.LAUNCH_LOST and fenced.current_attempt is not None:
        # The provider lists no such pod, so it costs nothing unless it appears later.
        fenced = with_attempt(fenced, replace(fenced.current_attempt, ended_s=fenced.current_attempt.launched_s))
    gained = fenced.durable_step > run.durable_step
    strikes = () if gained else run.strikes
    if not gained and policy.retry is Retry.COUNTED:
        strikes = (*strikes, decision.cause)
    excluded = tuple(e for e in run.excluded if not offer or e != offer.offer_id)
    if policy.exclude_offer and offer:
        excluded = (*excluded, offer.offer_id)[-EXCLUDED_MAX:]
    preempted = (*run.preempted_s, now_s)[-PREEMPTIONS_KEPT_MAX:] if decision.cause is Cause.PREEMPTED else run.preempted_s
    backoffs = run.backoffs + 1 if policy.backs_off else run.backoffs
    after = replace(
        fenced,
        strikes=strikes,
        excluded=excluded,
        preempted_s=preempted,
        backoffs=backoffs,
        not_before_s=now_s + d.backoff_s(backoffs) if policy.backs_off else now_s,
        next_check_s=now_s,
    )
    text = f"{policy.title}: {decision.detail}"
    alert = told(after, now_s, "lost", Severity.WARNING, f"attempt {run.attempt}: {policy.title}", _with_durable(after, text))
    step = after.attempts[-1].last_step if after.attempts else 0
    return _saved(
        after,
        happened(after, now_s, "lost", text, step, cause=decision.cause),
        lease=closed,
        lease_version=lease.version,
        alerts=(alert,),
    )


def _with_durable(run: Run, text: str) -> str:
    return f"{text}; newest committed step: {run.durable_step or 'none'}"


def _finish(run: Run, lease: Lease, decision: d.Finish, now_s: int) -> Change:
    fenced, closed = _fenced(_turned(move(run, _END_EVENTS[decision.state])), lease, decision.cause, decision.why, now_s)
    undurable = _undurable(fenced, decision) if run.state in ATTENDED else ""
    why = f"{decision.why.rstrip('.')}; {undurable}" if undurable else decision.why
    has_uploaded = any(attempt.first_heartbeat_s is not None for attempt in fenced.attempts)
    after = replace(fenced, why=why, cause=decision.cause, ended_s=now_s, next_check_s=now_s, strikes=run.strikes)
    after = replace(after, cleanup_s=now_s + CLEANUP_AFTER_S if has_uploaded else None)
    spent = ledger.totals(after, now_s)
    attempts = f"{spent.attempts} attempt{'' if spent.attempts == 1 else 's'}"
    text = f"{why.rstrip('.')}. {attempts}, {dollars(spent.usd)} so far, newest committed step: {after.durable_step or 'none'}"
    severity = Severity.WARNING if undurable and decision.state is RunState.SUCCEEDED else _END_SEVERITY[decision.state]
    alert = told(after, now_s, decision.state.value, severity, f"run {decision.state.value}", text)
    step = after.attempts[-1].last_step if after.attempts else 0
    line = happened(after, now_s, decision.state.value, why, step, cause=decision.cause)
    return _saved(after, line, lease=closed, lease_version=lease.version, alerts=(alert,))


def _undurable(run: Run, decision: d.Finish) -> str:
    """Return which steps were trained but are in no checkpoint, if the run ends with a cause after which it should have all; else empty."""
    attempt = run.current_attempt
    if attempt is None or decision.cause not in (Cause.FINISHED, Cause.UPLOAD_FAILED):
        return ""
    step, durable = attempt.last_step, max(attempt.durable_step, attempt.resumed_step)
    if durable == 0 and decision.cause is Cause.FINISHED:
        return "the trainer saved no checkpoint in checkpoints.folder: nothing that it made is in the bucket but its logs"
    if step <= durable:
        return ""
    which = f"step {step:,}" if step == durable + 1 else f"steps {durable + 1:,} to {step:,}"
    verb = "is" if step == durable + 1 else "are"
    if decision.cause is Cause.FINISHED:
        return f"{which} came after the last save, and {verb} in no checkpoint"
    return f"{which} {verb} lost: trained up to step {step:,}, {f'durable up to step {durable:,}' if durable else 'nothing is durable'}"


def cleaned_up(run: Run, gone: int, now_s: int, *, again_s: int | None) -> Change:
    """Record that `gone` chunks were deleted from the bucket; `again_s`: the second of the next clean-up, if more is left."""
    text = f"{gone} chunks that no checkpoint lists were removed from the bucket"
    after = replace(run, cleanup_s=again_s, next_check_s=again_s)
    return _saved(after, happened(run, now_s, "cleaned_up", text) if gone else None)


# ---------------------------------------------------------------------------------------------------------------- their pods


def _terminate(run: Run, pods: tuple[Pod, ...], now_s: int) -> Change:
    orphans = {orphan.pod_id: orphan for orphan in run.orphans}
    attempts = run.attempts
    for pod in pods:
        old = orphans.get(pod.pod_id)
        orphans[pod.pod_id] = (
            replace(old, asked_s=now_s, times=old.times + 1)
            if old
            else Orphan(
                pod.pod_id,
                pod.name,
                asked_s=now_s,
                first_asked_s=now_s,
                created_s=_created_s(run, pod, now_s),
                usd_per_hour=pod.usd_per_hour,
            )
        )
        attempts = tuple(_asked_back(attempt, pod, run, now_s) for attempt in attempts)
    after = replace(run, orphans=tuple(orphans.values()), attempts=attempts, next_check_s=now_s)
    return _saved(after, happened(run, now_s, "terminate", "asked the provider to take back " + ", ".join(p.pod_id for p in pods)))


def _created_s(run: Run, pod: Pod, now_s: int) -> int:
    """Return when a surplus pod was created as the provider reports it, but not before the launch of its attempt and not in the future,
    because the provider's clock may be wrong. Return `now_s` if the provider reports nothing."""
    launched_s = next((a.launched_s for a in run.attempts if pod.name == d.name_of(run, a.number)), run.created_s)
    return min(now_s, max(pod.created_s or now_s, launched_s))


def _asked_back(attempt: Attempt, pod: Pod, run: Run, now_s: int) -> Attempt:
    """Return the attempt with its termination requested if this pod is its own, even one of a lost create call that appears only now."""
    if attempt.pod_id is None and pod.name == d.name_of(run, attempt.number):
        return replace(_with_pod(attempt, pod), terminate_asked_s=now_s, ended_s=None)
    return replace(attempt, terminate_asked_s=now_s, ended_s=None) if attempt.pod_id == pod.pod_id else attempt


def _settle(run: Run, decision: d.Settle, now_s: int) -> Change:
    told = {pod.pod_id: pod for pod in decision.told}
    attempts = tuple(
        _gone(run, a, decision.told, now_s) if a.number in decision.attempts and a.ended_s is None else a for a in run.attempts
    )
    owned = {a.pod_id for a in attempts}
    paid = [
        ledger.orphan_totals(s, _ended_s(told.get(s.pod_id), s.created_s, now_s))
        for s in ledger.unowned(run)
        if s.pod_id in decision.orphans and s.pod_id not in owned
    ]
    after = replace(
        _turned(run),
        attempts=attempts,
        orphans=tuple(s for s in run.orphans if s.pod_id not in decision.orphans),
        folded=ledger.add([run.folded, *paid]),
        next_check_s=now_s,
    )
    names = [f"attempt {attempt}" for attempt in decision.attempts] or list(decision.orphans)
    line = happened(run, now_s, "settled", f"the provider confirms: gone ({', '.join(names)})")
    return _saved(after, line, alerts=_mirrored(after, "settled", now_s) if run.is_over else ())


def _gone(run: Run, attempt: Attempt, told: tuple[Pod, ...], now_s: int) -> Attempt:
    """Return the attempt with the end of its machine. A pod that was created during a crash, and was gone before its id was saved, is found
    by its name; an attempt for which no pod was created cost nothing."""
    name = d.name_of(run, attempt.number)
    pod = next((p for p in told if p.pod_id == attempt.pod_id or (attempt.pod_id is None and p.name == name)), None)
    if attempt.pod_id is None:
        if pod is None:
            return replace(attempt, ended_s=attempt.launched_s)
        attempt = _with_pod(attempt, pod)
    return replace(attempt, ended_s=_ended_s(pod, max(attempt.launched_s, attempt.last_sign_s or 0), now_s))


def _with_pod(attempt: Attempt, pod: Pod) -> Attempt:
    """Return the attempt with its pod, creation time and final price, as far as the provider reports them."""
    offer = replace(attempt.offer, usd_per_hour=pod.usd_per_hour) if pod.usd_per_hour > 0 else attempt.offer
    return replace(attempt, pod_id=pod.pod_id, created_s=pod.created_s or None, offer=offer)


def _ended_s(pod: Pod | None, least_s: int, now_s: int) -> int:
    """Return when the pod ended as the provider reports it, but not before `least_s`, its last sign of life, and not in the future. Return
    `now_s` if the provider reports nothing."""
    told_s = pod.ended_s if pod is not None and pod.ended_s is not None else now_s
    return min(now_s, max(told_s, least_s))


def billed(run: Run, number: int, pod: Pod, usd: float, now_s: int) -> Change:
    """Record the total cost of that attempt's pod from the provider's bill, and when the pod existed."""

    def booked(attempt: Attempt) -> Attempt:
        is_known = attempt.pod_id is not None
        known, latest_s = (attempt, attempt.ended_s or now_s) if is_known else (_with_pod(attempt, pod), now_s)
        return replace(known, billed_usd=usd, ended_s=_ended_s(pod, max(attempt.launched_s, attempt.last_sign_s or 0), latest_s))

    attempts = tuple(booked(a) if a.number == number else a for a in run.attempts)
    text = f"attempt {number} was billed at {dollars(usd)}"
    after = replace(run, attempts=attempts)
    return _saved(after, happened(run, now_s, "billed", text), alerts=_mirrored(after, "billed", now_s))


# --------------------------------------------------------------------------------------------------------- the user's wishes


def wished(run: Run, want: DesiredState, now_s: int) -> Change:
    """Record the user's request to stop or cancel; reconcile carries it out. Raises IllegalMove if the run is over."""
    if run.is_over:
        move(run, Event.STOP if want is DesiredState.STOP else Event.CANCEL)
    return _saved(replace(run, want=want, next_check_s=now_s), happened(run, now_s, "asked", f"the user asks to {want.value}"))


@dataclass(frozen=True)
class Renewed:
    """Another config and other code with which a run is resumed."""

    spec: RunSpec
    commit: str
    code_sha256: str = ""
    """SHA-256 of the packed working tree; empty if a repository is checked out."""

    def check(self, run: Run) -> None:
        """Raise ValueError if the run cannot continue with this config: its name, its kind of trainer and the pattern of checkpoint names
        must stay, because its checkpoints are found and read by them, and it must not end before the newest checkpoint."""
        old, new = run.spec, self.spec
        kept = (
            ("name", old.name, new.name),
            ("trainer.kind", old.trainer.kind, new.trainer.kind),
            ("checkpoints.pattern", old.checkpoints.pattern, new.checkpoints.pattern),
        )
        for field, before, after in kept:
            if before != after:
                raise ValueError(f"{field} is {after}, and run {run.run_id} has {before}")
        steps = new.trainer.steps
        if steps is not None and steps < run.durable_step:
            raise ValueError(f"trainer.steps is {steps}, and run {run.run_id} has a checkpoint of step {run.durable_step}")


def resumed(run: Run, now_s: int, limits: Mapping[Limit, float | str] | None = None, renewed: Renewed | None = None) -> Change:
    """Return the change that resumes an ended run, optionally with larger limits or another config. Raises IllegalMove unless the run was
    stopped, failed or cancelled, Exhausted if its budget is still used up, and ValueError if it cannot continue with that config or these
    limits."""
    moved = move(run, Event.RESUME)
    if renewed is not None:
        renewed.check(run)
        moved = replace(moved, spec=renewed.spec, commit=renewed.commit, revision=run.revision + 1, code_sha256=renewed.code_sha256)
    # Validated like any budget, because a run stored with an invalid limit could not be read again.
    budget = BudgetSpec.model_validate(moved.spec.budget.model_dump() | {limit.value: value for limit, value in (limits or {}).items()})
    after = replace(
        moved,
        spec=moved.spec.model_copy(update={"budget": budget}),
        want=DesiredState.RUN,
        strikes=(),
        backoffs=0,
        not_before_s=now_s,
        next_check_s=now_s,
        notices=(),
        why="",
        ended_s=None,
        cleanup_s=None,
        archived=False,
    )
    exhausted = used_up(after, now_s)
    if exhausted:
        raise Exhausted(after, exhausted)
    text = "the user asks to go on" + (f" with another config, at {renewed.commit or 'no commit'}" if renewed is not None else "")
    return _saved(after, happened(after, now_s, "asked", text), alerts=_mirrored(after, "resumed", now_s))


def archived(run: Run, now_s: int, *, undo: bool = False) -> Change:
    """The user puts an ended run away, or takes it back: lists leave it out, and nothing else changes. Raises ValueError unless the run is
    settled."""
    if not undo and not run.is_settled:
        raise ValueError(f"run {run.run_id} is {run.state.value}, and not settled")
    text = "the user takes it out of the archive" if undo else "the user archives it"
    return _saved(replace(run, archived=not undo), happened(run, now_s, "asked", text))


# -------------------------------------------------------------------------------------------------------------------- lines


def happened(run: Run, at_s: int, kind: str, text: str, step: int = 0, *, cause: Cause | None = None) -> HistoryEvent:
    return HistoryEvent(run.run_id, at_s, run.attempt, kind, text, step, {"cause": cause.value} if cause else {})


def _mirrored(run: Run, kind: str, at_s: int) -> tuple[Alert, ...]:
    """Return a quiet alert that updates displays of the run's state, for runs with an origin; nobody is notified."""
    return (told(run, at_s, kind, Severity.QUIET, run.state.value, ""),) if run.origin is not None else ()


def told(run: Run, at_s: int, kind: str, severity: Severity, title: str, text: str) -> Alert:
    """Return an alert whose key identifies the change of state: run, attempt, kind and the version that saved it."""
    key = f"{run.run_id}/e{run.attempt}/{kind}/v{run.version + 1}"
    return Alert(key, run.run_id, kind, severity, f"{run.run_id}: {title}", text, at_s, run.attempt)


def _saved(
    run: Run,
    happening: HistoryEvent | None = None,
    *,
    lease: Lease | None = None,
    lease_version: int | None = None,
    alerts: tuple[Alert, ...] = (),
) -> Change:
    lines = (happening,) if happening else ()
    return Change(replace(run, version=run.version + 1), lease, lease_version, lines, alerts)
