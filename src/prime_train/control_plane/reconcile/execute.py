"""Carries out decisions: first the save, then the actions outside."""

import json
from dataclasses import replace

from prime_train.control_plane.reconcile.cleaning import clean_up
from prime_train.control_plane.reconcile.context import Context
from prime_train.control_plane.reconcile.manifests import read_manifests
from prime_train.control_plane.reconcile.records import catch_up, record
from prime_train.core import change as c
from prime_train.core import decide as d
from prime_train.core.causes import Cause
from prime_train.core.keys import blob_prefix, parse_pod_name, spec_key
from prime_train.core.manifest import ResumePoint, choose_resume
from prime_train.core.offers import Offer, rank
from prime_train.core.run import Change, Lease, Run, Severity
from prime_train.core.wire import Ticket, attempt_key
from prime_train.ports import Bucket, LimitReached, NoCapacity, NoFunds, OutsideError, PermanentError, RunRecord, TemporaryError


def carry_out(context: Context, held: RunRecord, decision: d.Decision, now_s: int) -> bool:
    """Save the decision, then act outside. Return False, with nothing done, if the save failed."""
    caught, unread = None, False
    if _may_be_behind(held.run, decision):
        try:
            caught = catch_up(context.store, context.bucket, context.master, held, now_s)
        except OutsideError as error:
            if isinstance(decision, d.ChooseResume | d.Launch | d.Terminate):
                return _bucket_fails(context, held, error, now_s)
            unread = True  # a fence destroys nothing durable, while a lost machine costs money
        if caught is not None:
            return caught
    match decision:
        case d.ChooseResume():
            return _choose_resume(context, held, now_s)
        case d.CleanUp():
            return clean_up(context, held, now_s)
        case d.Launch(on_demand):
            return _launch(context, held, on_demand=on_demand, now_s=now_s)
        case _:
            pass
    saved = c.change(held.run, held.lease, decision, now_s)
    if unread:  # no turn: the unread records stay ahead, so that they are adopted when they can be read
        saved = replace(saved, run=replace(saved.run, turn=held.run.turn))
    if not _save(context, held, saved):
        return False
    match decision:
        case d.PutAgent(pod_id):
            _put_agent(context, RunRecord(saved.run, held.lease), pod_id, now_s)
        case d.Terminate(pods):
            terminate(context, held.run.run_id, [pod.pod_id for pod in pods])
        case d.Recover() | d.Finish():
            if held.run.spec.wandb is not None:
                context.unmarked[held.run.run_id, held.run.attempt] = now_s
            terminate(context, held.run.run_id, [a.pod_id for a in held.run.attempts[-1:] if a.pod_id and a.ended_s is None])
        case _:
            pass
    return True


def _may_be_behind(run: Run, decision: d.Decision) -> bool:
    """Return whether a store restored from an older copy could take this decision wrongly, so that the bucket's records come first."""
    match decision:
        case d.ChooseResume() | d.Launch() | d.Recover() | d.Finish() | d.Settle() | d.CleanUp():
            return True
        case d.Terminate(pods):  # of an attempt launched after the copy was made
            named = [parse_pod_name(pod.name) for pod in pods]
            return any(name is not None and name[1] > run.attempt for name in named)
        case _:
            return False


def _bucket_fails(context: Context, held: RunRecord, error: OutsideError, now_s: int) -> bool:
    context.watched(held.run.run_id, "BucketFailed", str(error))
    why = f"{error}; the run waits, for nothing is known of its checkpoints"
    return context.store.save(_waits(held, d.Note("bucket", Severity.WARNING, "the bucket does not answer", why), now_s))


def _save(context: Context, held: RunRecord, change: Change) -> bool:
    """Save the change, and record the run if the change was a turn. A record that cannot be written matters only after a restore."""
    if not context.store.save(change):
        return False
    if change.run.turn > held.run.turn:
        try:
            record(context.bucket, change.run, change.lease or held.lease, context.master)
        except OutsideError as error:
            context.watched(change.run.run_id, "RecordFailed", str(error))
    return True


def terminate(context: Context, run_id: str, pod_ids: list[str]) -> None:
    """Request termination once; the decisions about orphans repeat it until the provider confirms."""
    for pod_id in pod_ids:
        try:
            context.pods.terminate(pod_id)
        except OutsideError as error:
            context.watched(run_id, "TerminateFailed", f"{pod_id}: {error}; asked again later")


def _put_agent(context: Context, held: RunRecord, pod_id: str, now_s: int) -> None:
    run = held.run
    identity = held.lease.identity
    key = attempt_key(context.master, run.run_id, run.attempt, identity)
    ticket = Ticket(run=run.run_id, attempt=run.attempt, url=context.webhook_url, key=key, now_s=now_s, identity=identity)
    try:
        pod = context.pods.get(pod_id)
        if pod is not None:
            context.pods.put_agent(pod, ticket)
    except PermanentError as error:
        _save(context, held, c.change(run, held.lease, d.Recover(Cause.PREFLIGHT_FAILED, str(error)), now_s))
    except OutsideError as error:
        context.watched(run.run_id, "PutAgentFailed", f"{pod_id}: {error}; tried again later")


def _choose_resume(context: Context, held: RunRecord, now_s: int) -> bool:
    run = held.run
    try:
        manifests = read_manifests(context.bucket, run.run_id, attempt=run.attempt)
        sizes = {stat.key: stat.size for stat in context.bucket.list(blob_prefix(run.run_id))} if manifests else {}
        identity = run.current_attempt.identity if run.current_attempt is not None else ""
        point = choose_resume(manifests, sizes, attempt=run.attempt, previous=run.resume, identity=identity)
        lost = _lost_of(context.bucket, held.lease if held.lease.attempt == run.attempt else None, point)
    except OutsideError as error:
        return _bucket_fails(context, held, error, now_s)
    if lost and (point is None or all(manifest.key != held.lease.committed_key for manifest in manifests)):
        note = d.Note("checkpoint", Severity.ERROR, "a committed checkpoint is not to be found", lost)
        return context.store.save(_waits(held, note, now_s))
    return context.store.save(c.resume_chosen(run, point, now_s, instead_of=held.lease.committed_step if lost else None))


def _lost_of(bucket: Bucket, lease: Lease | None, point: ResumePoint | None) -> str:
    """Return what is wrong if the attempt had committed a later step than `point`; else empty. `lease` None: nothing is known."""
    if lease is None or (point.step if point is not None else 0) >= lease.committed_step:
        return ""
    is_there = bool(lease.committed_key) and bucket.get(lease.committed_key) is not None
    what = "is there, but nothing that this version can restore" if is_there else "is not in the bucket"
    return (
        f"step {lease.committed_step} was committed, but {lease.committed_key or 'its manifest'} {what}; nothing is rented until it is. "
        "Is it the same bucket, and this prime-train no older than the one before? If it is gone for good: "
        f"prime-train stop {lease.run_id}, and launch the config anew"
    )


def _waits(held: RunRecord, note: d.Note, now_s: int) -> Change:
    """Return the change that gives this notice once, or else only waits."""
    if held.run.noted_s(note.kind) is None:
        return c.change(held.run, held.lease, note, now_s)
    return Change(replace(held.run, version=held.run.version + 1, next_check_s=now_s + d.check_s(held.run)))


def _launch(context: Context, held: RunRecord, *, on_demand: bool, now_s: int) -> bool:
    """Choose an offer, save the intent, record it, create the pod, save the result. After a crash behind the intent the pod is found by its
    name, never created again; and no machine ever runs whose attempt has no record."""
    run = held.run
    try:
        context.bucket.put(spec_key(run.run_id), _spec_json(run))
        ranking = rank(
            context.pods.offers(run.spec.hardware),
            run.spec.hardware,
            excluded=run.excluded,
            avoided=d.avoided_offers(run, now_s),
            on_demand=on_demand,
        )
    except OutsideError as error:
        return context.store.save(c.no_offer(run, f"bucket or offers could not be reached: {error}", now_s))
    if not ranking.best:
        why = "; ".join(f"{row.offer.offer_id} {row.why}" for row in ranking.left_out[:5]) or "the provider has none for rent"
        return context.store.save(c.no_offer(run, why, now_s))
    intent = c.launch(run, held.lease, ranking.best[0], now_s, identity=context.new_identity())
    if not context.store.save(intent):
        return False
    assert intent.lease is not None
    launched = RunRecord(intent.run, intent.lease)
    try:
        record(context.bucket, launched.run, launched.lease, context.master)
    except OutsideError as error:
        why = f"the bucket does not take the record of the attempt: {error}"
        return _save(context, launched, c.refused(launched.run, launched.lease, Cause.LAUNCH_LOST, why, now_s))
    _create(context, launched, ranking.best[0], now_s)
    return True


def _spec_json(run: Run) -> bytes:
    return f'{{"commit": {json.dumps(run.commit)}, "spec": {run.spec.model_dump_json(indent=2)}}}'.encode()


def _create(context: Context, held: RunRecord, offer: Offer, now_s: int) -> None:
    run, lease = held.run, held.lease
    try:
        pod = context.pods.create(d.name_of(run, run.attempt), offer, run.spec.hardware)
    except LimitReached as error:
        _save(context, held, c.refused(run, lease, Cause.LIMIT_REACHED, str(error), now_s))
    except NoCapacity as error:
        _save(context, held, c.refused(run, lease, Cause.NO_CAPACITY, str(error), now_s))
    except NoFunds as error:
        _save(context, held, c.refused(run, lease, Cause.NO_FUNDS, str(error), now_s))
    except PermanentError as error:
        _save(context, held, c.refused(run, lease, Cause.LAUNCH_REFUSED, str(error), now_s))
    except TemporaryError as error:
        context.watched(run.run_id, "CreateUnknown", f"{error}; settled by the pod's name")
    else:
        _save(context, held, c.adopted(run, pod.pod_id, now_s, usd_per_hour=pod.usd_per_hour, created_s=pod.created_s))
