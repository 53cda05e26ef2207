"""Carries out decisions: first the save, then the actions outside."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from prime_train.advice import Call, Operation
from prime_train.buckets.keys import (
    blob_prefix,
    code_key,
    mark_prefix,
    parse_pod_name,
    results_key,
    run_prefix,
    spec_key,
)
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.descendants import spec_json
from prime_train.checkpoints.manifest import missing_blobs
from prime_train.checkpoints.read_manifests import parse_manifest, read_manifest, read_manifests
from prime_train.errors import (
    ExternalError,
    LimitReached,
    NoCapacity,
    NoFunds,
    PermanentError,
    TemporaryError,
)
from prime_train.market.quotes import Market
from prime_train.market.ranking import Ranking, rank
from prime_train.outputs.results.write import write_results
from prime_train.runs import change as c
from prime_train.runs import decide as d
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.funds import Funds
from prime_train.runs.offer import Offer
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.resuming.choice import choose, newest_of
from prime_train.runs.resuming.divergence import began_anew
from prime_train.runs.resuming.trust import proven_places
from prime_train.runs.run import Change, Figures, Run, Severity
from prime_train.runs.store import RunRecord
from prime_train.runs.wire import Ticket, attempt_key
from prime_train.spec.causes import Cause
from prime_train.text.invocations import command
from prime_train.watch.attempt_records import catch_up, write_record
from prime_train.watch.clean_up import clean_up
from prime_train.watch.context import Context
from prime_train.watch.marks import write_marks
from prime_train.watch.means import leave_run

EXCLUDED_MAX = 2
"""Number of exclusions that the history names at a launch."""


def carry_out(
    context: Context,
    record: RunRecord,
    decision: d.Decision,
    now_s: int,
    *,
    wallets: Mapping[str, Funds] | None = None,
) -> bool:
    """Save the decision, then make the calls that it requires to the provider, the bucket and people. Return
    False, with nothing done, if the save failed. `wallets`: those that could be read, by provider.
    """
    caught, unread = None, False
    if _may_be_behind(record.run, decision):
        try:
            caught = catch_up(context.store, context.bucket, context.master, record, now_s)
        except ExternalError as error:
            if isinstance(decision, d.ChooseResume | d.Launch | d.Terminate):
                return _bucket_fails(context, record, error, now_s)
            unread = True  # a fence destroys nothing durable, while a lost machine costs money
        if caught is not None:
            return caught
    match decision:
        case d.ChooseResume():
            return _choose_resume(context, record, now_s)
        case d.CleanUp():
            return clean_up(context, record, now_s)
        case d.Launch():
            return _launch(context, record, decision, now_s, wallets or {})
        case _:
            pass
    saved = c.change(record.run, record.lease, decision, now_s)
    if unread:  # no turn: the unread records stay ahead, so that they are adopted when they can be read
        saved = replace(saved, run=replace(saved.run, turn=record.run.turn))
    if not _save(context, record, saved):
        return False
    match decision:
        case d.SeeStep():
            _see_step(context, RunRecord(saved.run, record.lease), now_s)
        case d.PutAgent(pod_id):
            _put_agent(context, RunRecord(saved.run, record.lease), pod_id, now_s)
        case d.Terminate(pods):
            terminate(context, record.run.run_id, [pod.pod_id for pod in pods])
        case d.Recover() | d.Finish():
            if record.run.spec.wandb is not None:
                context.unmarked[record.run.run_id, record.run.attempt] = now_s
            terminate(
                context,
                record.run.run_id,
                [a.pod_id for a in record.run.attempts[-1:] if a.pod_id and a.ended_s is None],
            )
            _mark(context, saved.run)
            # last: it may read many objects, and the machine is paid for meanwhile
            if isinstance(decision, d.Finish):
                _keep_results(context, saved.run)
        case _:
            pass
    return True


def _may_be_behind(run: Run, decision: d.Decision) -> bool:
    """Return whether a store restored from an older copy could take this decision wrongly, so that the
    bucket's records come first.
    """
    match decision:
        case d.ChooseResume() | d.Launch() | d.Recover() | d.Finish() | d.Settle() | d.CleanUp():
            return True
        case d.Terminate(pods):  # of an attempt launched after the copy was made
            named = [parse_pod_name(pod.name) for pod in pods]
            return any(name is not None and name[1] > run.attempt for name in named)
        case _:
            return False


def _bucket_fails(context: Context, record: RunRecord, error: ExternalError, now_s: int) -> bool:
    """Let the run wait, and notify people once. A bucket that refuses this watcher may well be open to
    another one, for which the run stays due.
    """
    context.watched(record.run.run_id, "BucketFailed", str(error))
    why = f"{error}; the run waits, because its checkpoints are not known"
    note = d.Notify(AlertKind.BUCKET, Severity.WARNING, "the bucket does not answer", why)
    if not isinstance(error, PermanentError):
        return context.store.save(_waits(record, note, now_s))
    if record.run.noted_s(note.kind) is not None:
        leave_run(
            context,
            record.run,
            f"{error}; left to a watcher to which the bucket is open",
            now_s,
            for_s=d.check_s(record.run),
        )
        return False
    noted = c.change(record.run, record.lease, note, now_s)
    return context.store.save(replace(noted, run=replace(noted.run, next_check_s=now_s)))


def _save(context: Context, record: RunRecord, change: Change) -> bool:
    """Save the change, and write the run's record to the bucket if the change raised its `turn`. A record
    that cannot be written matters only after a restore of the store.
    """
    if not context.store.save(change):
        return False
    if change.run.turn > record.run.turn:
        try:
            write_record(context.bucket, change.run, change.lease or record.lease, context.master)
        except ExternalError as error:
            context.watched(change.run.run_id, "RecordFailed", str(error))
    return True


def _keep_results(context: Context, run: Run) -> None:
    """Write what the ended run resulted in to its bucket. If that fails, it is gathered anew whenever it is
    read.
    """
    try:
        write_results(context.bucket, run)
    except ExternalError as error:
        context.watched(run.run_id, "ResultsFailed", str(error))


def _mark(context: Context, run: Run) -> None:
    """Write to the bucket which checkpoints are proven, and which distrusted. If that fails, it is done at
    the next fence or choice.
    """
    if not (run.distrusted or proven_places(run.attempts) or run.renewed_attempt):
        return
    try:
        write_marks(context.bucket, run)
    except ExternalError as error:
        context.watched(run.run_id, "MarkFailed", str(error))


def _see_step(context: Context, record: RunRecord, now_s: int) -> None:
    """Mark the checkpoint that the attempt resumed from as proven, and notify people if training nevertheless
    began anew.
    """
    run, heartbeat = record.run, record.lease.heartbeat
    _mark(context, run)
    if run.resume is None or heartbeat is None or run.began == Figures():
        return
    try:
        content = context.bucket.get(run.resume.key)
    except ExternalError as error:
        context.watched(
            run.run_id, "BucketFailed", f"the figures of the checkpoint could not be compared: {error}"
        )
        return
    manifest = parse_manifest(content.data) if content is not None else None
    if manifest is None:
        return
    saved, now = (
        Figures(manifest.loss, manifest.learning_rate),
        Figures(heartbeat.loss, heartbeat.learning_rate),
    )
    if (text := began_anew(run.began, saved, now, step=heartbeat.step)) and run.noted_s(
        AlertKind.BEGAN_ANEW
    ) is None:
        note = d.Notify(AlertKind.BEGAN_ANEW, Severity.WARNING, "training seems to have begun anew", text)
        _save(context, record, c.change(run, record.lease, note, now_s))


def terminate(context: Context, run_id: str, pod_ids: list[str]) -> None:
    """Request termination once; the decisions about orphans repeat it until the provider confirms."""
    for pod_id in pod_ids:
        try:
            context.pods.terminate(pod_id)
        except ExternalError as error:
            context.watched(run_id, "TerminateFailed", f"{pod_id}: {error}; retried later")


def _put_agent(context: Context, record: RunRecord, pod_id: str, now_s: int) -> None:
    run = record.run
    identity = record.lease.identity
    key = attempt_key(context.master, run.run_id, run.attempt, identity)
    ticket = Ticket(
        run=run.run_id, attempt=run.attempt, url=context.webhook_url, key=key, now_s=now_s, identity=identity
    )
    try:
        pod = context.pods.get(pod_id)
        if pod is not None:
            context.pods.put_agent(pod, ticket)
    except PermanentError as error:
        _save(
            context, record, c.change(run, record.lease, d.Recover(Cause.PREFLIGHT_FAILED, str(error)), now_s)
        )
    except ExternalError as error:
        context.watched(run.run_id, "PutAgentFailed", f"{pod_id}: {error}; retried later")


def _choose_resume(context: Context, record: RunRecord, now_s: int) -> bool:
    """Choose what the next attempt restores. If the checkpoint that it should restore is not whole in the
    bucket, it goes on at once from the newest one before it: a machine that may be rented must not wait for a
    checkpoint that may never have been.
    """
    run = record.run
    try:
        manifests = read_manifests(context.bucket, run.run_id)
        sizes = (
            {stat.key: stat.size for stat in context.bucket.list(blob_prefix(run.run_id))}
            if manifests
            else {}
        )
        newest = newest_of(run, manifests, sizes)
        lost = _lost_step(context.bucket, record, newest) if run.step_asked is None else None
        if lost is None and newest is not None and newest == run.resume and run.step_asked is None:
            # The step of `point` if its manifest is among `manifests` and lists a blob of the run that the
            # bucket does not have; `sizes`: the bytes of those that it has, by key.
            manifest = next((m for m in manifests if m.key == newest.key and not m.blobs_of), None)
            lost = newest.step if manifest is not None and missing_blobs(manifest, sizes) else None
        if lost is not None and _is_emptied(context.bucket, run):  # decided before anything is written there
            return context.store.save(_waits(record, _other_bucket(run, lost), now_s))
        proven = write_marks(context.bucket, run)
    except ExternalError as error:
        return _bucket_fails(context, record, error, now_s)
    choice = choose(run, manifests, sizes, proven=proven, lost=lost)
    chosen = c.resume_chosen(
        run, choice.point, now_s, instead_of=lost, why=choice.why, unresumable=choice.unresumable
    )
    return context.store.save(chosen)


def _lost_step(bucket: Bucket, record: RunRecord, point: ResumePoint | None) -> int | None:
    """Return the step that the next attempt should restore, if it is not `point` or the manifest of `point`
    cannot be read any more; else None.
    """
    run, lease = record.run, record.lease
    if lease.attempt == run.attempt and lease.committed_step > (point.step if point is not None else 0):
        return lease.committed_step
    # the last: the launch checks the other run's checkpoint
    if point is None or point != run.resume or run.starts_elsewhere:
        return None
    manifest = read_manifest(bucket, point.key)
    return None if manifest is not None and point.digest in ("", manifest.digest) else point.step


def _is_emptied(bucket: Bucket, run: Run) -> bool:
    """Return whether the bucket holds nothing of the run, but for what the control plane itself, or a resume
    with other code, may have written since.
    """
    own = (
        spec_key(run.run_id),
        mark_prefix(run.run_id),
        results_key(run.run_id),
        *(code_key(run.run_id, n + 1) for n in range(run.revision)),
    )
    return all(stat.key.startswith(own) for stat in bucket.list(run_prefix(run.run_id)))


def _other_bucket(run: Run, lost: int) -> d.Notify:
    """Return the alert that the bucket holds nothing at all of the run, which is no loss of a checkpoint but
    another bucket, or one that somebody has emptied.
    """
    text = (
        f"step {lost} was committed, but nothing of the run is in the bucket; no machine is rented until it "
        "is. "
        f"Check that the bucket is the same. If it was emptied: {command(Call(Operation.STOP, run.run_id))}, "
        "and launch the config again"
    )
    return d.Notify(AlertKind.CHECKPOINT, Severity.ERROR, "a committed checkpoint cannot be found", text)


def _waits(record: RunRecord, note: d.Notify, now_s: int) -> Change:
    """Return the change that records this notice and alerts people, if they have not been alerted yet;
    otherwise one that only sets the next check.
    """
    if record.run.noted_s(note.kind) is None:
        return c.change(record.run, record.lease, note, now_s)
    return Change(
        replace(record.run, version=record.run.version + 1, next_check_s=now_s + d.check_s(record.run))
    )


def _launch(
    context: Context, record: RunRecord, decision: d.Launch, now_s: int, wallets: Mapping[str, Funds]
) -> bool:
    """Choose an offer, save the intent, record it, create the pod, save the result. After a crash between
    these steps, the pod is found by its name and never created again; and no machine ever runs whose attempt
    has no record.
    """
    run = record.run
    try:
        context.bucket.put(spec_key(run.run_id), spec_json(run))
        offers = context.pods.offers(run.spec.hardware)
        market = context.seen.market(context.store, run, now_s, context.watched)
        ranking = _ranked(run, d.affordable(run, offers, wallets), decision, now_s, market)
        why_not = _why_no_start(context.bucket, run) if ranking.best and run.starts_elsewhere else ""
    except ExternalError as error:
        return context.store.save(c.no_offer(run, f"bucket or offers could not be reached: {error}", now_s))
    if not ranking.best and (unpaid := _ranked(run, offers, decision, now_s, market).best):
        money = "; ".join(
            d.in_wallet(wallets[name]) for name in dict.fromkeys(offer.provider for offer in unpaid)
        )
        why = f"{money}; no machine is rented until there is credit for an hour"
        return context.store.save(
            c.no_offer(run, why, now_s, kind=AlertKind.FUNDS, title="the wallet is nearly empty")
        )
    if not ranking.best:
        why = (
            "; ".join(f"{row.offer.offer_id} {row.why}" for row in ranking.left_out[:5])
            or "no provider has a machine for rent"
        )
        return context.store.save(c.no_offer(run, why, now_s))
    if why_not:
        note = d.Notify(
            AlertKind.CHECKPOINT,
            Severity.ERROR,
            "the checkpoint that the run starts from is incomplete",
            why_not,
        )
        return context.store.save(_waits(record, note, now_s))
    intent = c.launch(
        run, record.lease, ranking.best[0], now_s, identity=context.new_identity(), why=_why(ranking)
    )
    if not context.store.save(intent):
        return False
    assert intent.lease is not None
    launched = RunRecord(intent.run, intent.lease)
    try:
        write_record(context.bucket, launched.run, launched.lease, context.master)
    except ExternalError as error:
        why = f"the record of the attempt could not be written to the bucket: {error}"
        return _save(
            context, launched, c.refused(launched.run, launched.lease, Cause.LAUNCH_LOST, why, now_s)
        )
    _create(context, launched, ranking.best[0], now_s)
    return True


def _ranked(run: Run, offers: Sequence[Offer], decision: d.Launch, now_s: int, market: Market) -> Ranking:
    return rank(
        offers,
        run.spec.hardware,
        excluded=run.excluded,
        avoided=d.avoided_offers(run, now_s),
        closed=d.closed_providers(run, now_s),
        on_demand=decision.on_demand,
        market=market,
    )


def _why(ranking: Ranking) -> str:
    """Return the reasons for the first offer, and why cheaper ones came last."""
    first, quote = ranking.best[0], ranking.quotes[0]
    if first in ranking.exclusions:
        return (
            f"{quote.why}; rented although {ranking.exclusions[first].text}, because nothing better "
            "is for rent"
        )
    cheaper = [ranking.exclusions.get(other.offer) for other in ranking.quotes if other.usd < quote.usd]
    passed_over = list(dict.fromkeys(exclusion.text for exclusion in cheaper if exclusion is not None))
    more = f" and {len(passed_over) - EXCLUDED_MAX} more" if len(passed_over) > EXCLUDED_MAX else ""
    return (
        f"{quote.why}; passed over: {'; '.join(passed_over[:EXCLUDED_MAX])}{more}"
        if passed_over
        else quote.why
    )


def _why_no_start(bucket: Bucket, run: Run) -> str:
    """Return why the checkpoint of another run, from which the run starts, cannot be restored; "" if all of
    it is in the bucket. Someone may have deleted it by hand, and a machine should not be paid to find that
    out.
    """
    assert run.lineage is not None
    assert run.resume is not None
    content = bucket.get(run.resume.key)
    manifest = parse_manifest(content.data) if content is not None else None
    if manifest is None:
        lacking = f"{run.resume.key} is not in the bucket, or cannot be read"
    else:
        missing = missing_blobs(
            manifest, {stat.key: stat.size for stat in bucket.list(blob_prefix(manifest.holder))}
        )
        if not missing:
            return ""
        lacking = f"{len(missing)} of its chunks are no longer in the bucket, the first being {missing[0]}"
    return (
        f"the run starts from {run.lineage.text}, but {lacking}; no machine is rented until it is. If it is "
        "lost: "
        f"{command(Call(Operation.STOP, run.run_id))}"
    )


def _create(context: Context, record: RunRecord, offer: Offer, now_s: int) -> None:
    run, lease = record.run, record.lease
    try:
        pod = context.pods.create(d.name_of(run, run.attempt), offer, run.spec.hardware)
    except LimitReached as error:
        _save(context, record, c.refused(run, lease, Cause.LIMIT_REACHED, str(error), now_s))
    except NoCapacity as error:
        _save(context, record, c.refused(run, lease, Cause.NO_CAPACITY, str(error), now_s))
    except NoFunds as error:
        _save(context, record, c.refused(run, lease, Cause.NO_FUNDS, str(error), now_s))
    except PermanentError as error:
        _save(context, record, c.refused(run, lease, Cause.LAUNCH_REFUSED, str(error), now_s))
    except TemporaryError as error:
        context.watched(run.run_id, "CreateUnknown", f"{error}; the pod is looked up by its name")
    else:
        _save(
            context,
            record,
            c.adopted(run, pod.pod_id, now_s, usd_per_hour=pod.usd_per_hour, created_s=pod.created_s),
        )
