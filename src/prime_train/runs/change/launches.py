"""Changes that rent a machine: the intent, the answer of the provider, and what the attempt resumes from."""

from dataclasses import replace

from prime_train.runs import decide as d
from prime_train.runs import ledger
from prime_train.runs.alert_kinds import AlertKind, Lasts, policy_of
from prime_train.runs.change.fences import recover
from prime_train.runs.change.parts import alert_for, happened, mirrored, noted, saved, turned
from prime_train.runs.change.progress import note
from prime_train.runs.offer import Offer, variant_title
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import (
    Alert,
    Attempt,
    Change,
    DesiredState,
    Event,
    Lease,
    Run,
    Severity,
    move,
    with_attempt,
)
from prime_train.spec.causes import POLICY, Cause


def launch(run: Run, lease: Lease, offer: Offer, now_s: int, *, identity: str = "", why: str = "") -> Change:
    """Return the intent to launch, saved before the create call: attempt + 1, a fresh open lease, and the
    offer that will be requested. `identity`: the random identity of the attempt; `why`: what speaks for the
    offer, for people.
    """
    after = turned(move(run, Event.LAUNCH))
    number = run.attempt + 1
    resumed = run.resume.step if run.resume else 0
    attempt = Attempt(
        number=number,
        offer=offer,
        launched_s=now_s,
        resumed_step=resumed,
        resumed_attempt=run.resume.attempt if run.resume else None,
        last_step=resumed,
        durable_step=resumed,
        best_step_before=run.best_step,
        identity=identity,
        variant=variant_title(offer, run.spec.hardware),
    )
    after = replace(
        after,
        attempt=number,
        attempts=(*run.attempts, attempt),
        next_check_s=now_s + d.check_s(run),
        cause=None,
    )
    fresh = Lease(
        run_id=run.run_id,
        attempt=number,
        open=True,
        version=lease.version + 1,
        committed_step=resumed,
        identity=identity,
    )
    text = (
        f"requesting {_in_words(offer)} "
        "from "
        f"{offer.provider}{f' for {attempt.variant}' if attempt.variant else ''}"
    )
    if run.lineage is not None and run.starts_elsewhere:
        text += f", to start from {run.lineage.text}"
    text += f"; {why}" if why else ""
    line = happened(after, now_s, "launching", text, resumed)
    return saved(
        ledger.fold(after),
        line,
        lease=fresh,
        lease_version=lease.version,
        alerts=mirrored(after, AlertKind.LAUNCHING, now_s),
    )


def caught_up(run: Run, lease: Lease, newer: Run, newer_lease: Lease, now_s: int) -> Change:
    """Adopt the newer record after the store was restored from an older copy. A stop or cancel requested
    since then still counts.
    """
    desired = run.desired if run.desired is not DesiredState.RUN else newer.desired
    after = replace(newer, version=run.version, desired=desired, next_check_s=now_s)
    taken = replace(newer_lease, version=lease.version + 1)
    text = (
        f"in the store the run was {run.state.value} after attempt {run.attempt or 'none'}, in the bucket "
        f"{newer.state.value} after attempt {newer.attempt}. The run continues from the bucket's record; the "
        f"history between the two "
        "is lost"
    )
    alert = alert_for(
        after, now_s, AlertKind.RESTORED, Severity.WARNING, "the store was restored from an older copy", text
    )
    return saved(
        after,
        happened(after, now_s, "restored", text),
        lease=taken,
        lease_version=lease.version,
        alerts=(alert,),
    )


def _in_words(offer: Offer) -> str:
    return f"{offer.offer_id} ({'spot' if offer.spot else 'on-demand'}, ${offer.usd_per_hour:.2f}/h)"


def adopted(run: Run, pod_id: str, now_s: int, *, usd_per_hour: float = 0.0, created_s: int = 0) -> Change:
    """Record the pod of the current attempt by its id and notify people of the machine. `usd_per_hour`: its
    final price, which may differ from the offer's; `created_s`: the second of its creation. 0: not reported.
    """
    if run.current_attempt is None:
        raise ValueError(f"run {run.run_id} has no attempt that could have the pod {pod_id}")
    offer = (
        replace(run.current_attempt.offer, usd_per_hour=usd_per_hour)
        if usd_per_hour > 0
        else run.current_attempt.offer
    )
    attempt = replace(run.current_attempt, pod_id=pod_id, offer=offer, created_s=created_s or None)
    after = with_attempt(turned(move(run, Event.POD_CREATED)), attempt)
    notices = tuple(n for n in run.notices if policy_of(n.kind).lasts in (Lasts.NEXT_FIRST_STEP, Lasts.RUN))
    after = replace(after, notices=notices, next_check_s=now_s)
    kind = AlertKind.LAUNCHED if run.attempt == 1 else AlertKind.RELAUNCHED
    text = f"{_in_words(offer)}, machine {pod_id}"
    alert = alert_for(after, now_s, kind, Severity.INFO, f"attempt {run.attempt} has a machine", text)
    return saved(after, happened(after, now_s, "booting", f"machine {pod_id} exists"), alerts=(alert,))


def refused(run: Run, lease: Lease, cause: Cause, detail: str, now_s: int) -> Change:
    """End the attempt at no cost, because the provider confirmed that no pod was created. Notify people once
    as long as this lasts.
    """
    change = recover(run, lease, d.Recover(cause, detail), now_s)
    attempt = change.run.current_attempt
    if attempt is None:
        raise ValueError(f"run {run.run_id} has no attempt that could be refused")
    after = with_attempt(change.run, replace(attempt, ended_s=attempt.launched_s))
    kind = AlertKind.FUNDS if cause is Cause.NO_FUNDS else AlertKind.NO_CAPACITY
    if run.noted_s(kind) is not None:
        return replace(change, run=replace(after, notices=run.notices), alerts=mirrored(run, kind, now_s))
    title, text = POLICY[cause].title, f"{detail}; the search is repeated until there is one"
    alert = alert_for(run, now_s, kind, Severity.WARNING, title, text)
    return replace(change, run=noted(after, kind, f"{title}: {text}", now_s), alerts=(alert,))


def no_offer(
    run: Run,
    why: str,
    now_s: int,
    *,
    kind: AlertKind = AlertKind.NO_CAPACITY,
    title: str = "no suitable machine for rent",
) -> Change:
    """Wait, longer each time, because nothing can be rented now, and notify people once as long as this
    lasts.
    """
    not_before_s = now_s + d.backoff_s(run.backoffs + 1)
    next_check_s = d.back_off_until_s(run, not_before_s, now_s)
    after = replace(run, backoffs=run.backoffs + 1, not_before_s=not_before_s, next_check_s=next_check_s)
    if run.noted_s(kind) is not None:
        return saved(after)
    change = note(run, d.Notify(kind, Severity.WARNING, title, why), now_s)
    return replace(change, run=replace(after, version=change.run.version, notices=change.run.notices))


def resume_chosen(
    run: Run,
    point: ResumePoint | None,
    now_s: int,
    *,
    instead_of: int | None = None,
    why: str = "",
    unresumable: str = "",
) -> Change:
    """Record what the next attempt restores, chosen once after the fence. A checkpoint discovered only now
    counts as progress. `instead_of`: the committed step, if its files are no longer complete and people have
    to be notified: it does not count as durable any more. `why`: why the newest checkpoint was not chosen;
    `unresumable`: why nothing can be restored, after which no machine is rented any more.
    """
    step = point.step if point else 0
    gained = step > run.durable_step
    after = replace(
        run,
        resume=point,
        resume_chosen=True,
        durable_step=max(run.durable_step, step),
        strikes=() if gained else run.strikes,
        unresumable=unresumable,
        step_asked=None,
        finite_limit=run.finite_limit if unresumable else None,
        rolls_back=False,
        next_check_s=now_s,
    )
    if unresumable:
        return saved(after, happened(run, now_s, "resume_chosen", unresumable, step))
    if run.trained_step is not None and (point is None or point.step < run.trained_step):
        after = replace(after, trained_step=None, after_done=0, after_failed="")
    text = (
        f"resumes from step {step} of attempt {point.attempt}"
        if point
        else "starts from step 0 because there is no checkpoint"
    )
    if after.lineage is not None and after.starts_elsewhere:
        text = f"starts from {after.lineage.text} because it has no checkpoint of its own"
    text += f", {why}" if why else ""
    alerts: tuple[Alert, ...] = ()
    if why and run.step_asked is None:
        alerts = (
            alert_for(after, now_s, AlertKind.OLDER, Severity.WARNING, "an older checkpoint is used", text),
        )
    if instead_of is not None:
        text += (
            f", because files of step {instead_of}, which was committed, are missing in the bucket "
            "or cannot be read"
        )
        after = _without_lost(after, step)
        alerts = (
            alert_for(after, now_s, AlertKind.OLDER, Severity.WARNING, "an older checkpoint is used", text),
        )
    return saved(after, happened(run, now_s, "resume_chosen", text, step), alerts=alerts)


def _without_lost(run: Run, step: int) -> Run:
    """Return the run whose newest durable checkpoint is that of `step`, because what was committed later is
    lost.
    """
    attempt = run.current_attempt
    kept = (
        run
        if attempt is None
        else with_attempt(run, replace(attempt, durable_step=min(attempt.durable_step, step)))
    )
    return replace(kept, durable_step=step)
