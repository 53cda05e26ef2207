"""Gathers facts for a watcher: the provider's list, the wallet, what may be concluded from missing
heartbeats, and the evidence on one run.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from prime_train.errors import ExternalError, TemporaryError
from prime_train.providers.port import PartlyListed
from prime_train.runs import decide as d
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.breaker import Hearing, listen
from prime_train.runs.funds import Funds
from prime_train.runs.run import Alert, Run, Severity
from prime_train.runs.store import RunRecord, Store
from prime_train.runs.verdict import Evidence, Pod, PodsObserved, PodStatus, PodsUnknown, PodsView
from prime_train.watch.context import Context, Snapshot
from prime_train.watch.means import own_means, say_means, tracker_elsewhere, with_means
from prime_train.watch.outbox import enqueue

SNAPSHOT_S_MAX = 120
"""Seconds for which gathered facts may be used for decisions; after that they must be gathered again."""
UNKNOWN_ID_S = 90
"""Seconds after the creation of a pod for which its provider may not know its id yet."""
SAVES_MAX = 20
RUNS_SHOWN_MAX = 20


def look(context: Context, now_s: int | None = None) -> Snapshot:
    """Return the providers' lists and the wallets. `now_s`: the time at which they were read, by the clock
    that also times decisions; None: they are used at once, so that their age does not matter. What may be
    concluded from missing heartbeats is not included: see `see`.
    """
    unlisted: Mapping[str, str] = {}
    try:
        listed: Sequence[Pod] | str = context.pods.list()
    except PartlyListed as error:
        listed, unlisted = error.listed, error.failed
    except ExternalError as error:
        listed = f"the provider's list failed: {error}"
        unlisted = dict.fromkeys(context.providers or (), str(error))
    # The wallets after the list, which tells what the pods cost.
    return Snapshot(listed, unlisted=unlisted, funds=_funds(context), listed_s=now_s)


def _funds(context: Context) -> dict[str, Funds]:
    """Return the wallets by provider, without those that cannot be read, about which nothing is concluded."""
    found: dict[str, Funds] = {}
    for account in context.accounts:
        try:
            funds = account.funds()
        except ExternalError as error:
            context.watched("", "FundsUnknown", f"{account.provider}: {error}")
            continue
        if funds is not None:
            found[funds.provider] = funds
    return found


def see(context: Context, now_s: int) -> Snapshot:
    """Return the facts for a single step outside a sweep. They include what may be concluded from missing
    heartbeats; a snapshot without that allows no conclusion from them.
    """
    snapshot = look(context, now_s)
    hearing = _listen(
        context, now_s, provider=not isinstance(snapshot.listed, str), unlisted=snapshot.unlisted
    )
    return replace(snapshot, hearing=hearing, listened_s=now_s)


def _listen(context: Context, now_s: int, *, provider: bool, unlisted: Collection[str]) -> Hearing:
    """Return what may be concluded from silence now, and save the state that all watchers share. A failed
    save is harmless, because another watcher has saved the state then; only what this watcher has is saved
    again.
    """
    watch = context.store.watch()
    lease_statuses = context.store.lease_statuses()
    active = {
        lease_status.run_id: lease_status.heartbeat_s
        for lease_status in lease_statuses
        if lease_status.heartbeat_s is not None
    }
    silent = {
        v.run_id: now_s - v.heartbeat_s
        for v in lease_statuses
        if v.heartbeat_s is not None and now_s - v.heartbeat_s > v.overdue_s
    }
    is_answering = context.canary.is_answering(now_s) if context.canary is not None else True
    after, hearing = listen(
        watch,
        canary=is_answering,
        silent_s=silent,
        active=active,
        now_s=now_s,
        provider=provider,
        unlisted=unlisted,
    )
    after = with_means(after, own_means(context), now_s)
    context.elsewhere.means, context.elsewhere.unmarked = after.means, after.unmarked
    if not context.store.save_watch(replace(after, version=watch.version + 1), version=watch.version):
        say_means(context, now_s)
    if hearing.overruled_since_s is not None:
        enqueue(context, _closed_way(hearing.overruled_since_s, now_s))
    unjudged = sorted(run_id for run_id in silent if hearing.blind_for(run_id) is not None)
    if unjudged and hearing.blind is not None:
        enqueue(context, _unjudged(unjudged, hearing.blind, hearing.blind_since_s, now_s))
    return hearing


def hears_since(store: Store, now_s: int) -> None:
    """Record that heartbeats can be received from now on, and could not before: the webhook has just started,
    or continues after a standstill. Call this from the process that serves the webhook, before anything is
    concluded from silence. Does nothing if no sweep has ever run.
    """
    for _ in range(SAVES_MAX):
        watch = store.watch()
        if watch.last_sweep_s is None:
            return
        inbound = replace(watch.inbound, works_since_s=now_s)
        if store.save_watch(
            replace(watch, version=watch.version + 1, inbound=inbound), version=watch.version
        ):
            return
    raise TemporaryError(f"other watchers changed the shared watcher state in all {SAVES_MAX} tries")


def fresh(context: Context, snapshot: Snapshot, now_s: int) -> Snapshot:
    """Return the snapshot, or a new one if it is old: this process may have stood still since, and received
    no heartbeats.
    """
    if snapshot.listened_s is None or abs(now_s - snapshot.listened_s) <= SNAPSHOT_S_MAX:
        return snapshot
    return see(context, now_s)


def _closed_way(since_s: int, now_s: int) -> Alert:
    text = (
        f"the canary heartbeat has failed for {now_s - since_s} s, but heartbeats arrive and runs are judged "
        "by them; check that a "
        f"watcher can reach the "
        "webhook's public address"
    )
    return Alert(
        f"canary/{since_s}/blind",
        "",
        AlertKind.BLIND,
        Severity.WARNING,
        "the canary fails although heartbeats arrive",
        text,
        now_s,
    )


def _unjudged(run_ids: Sequence[str], why: str, since_s: int | None, now_s: int) -> Alert:
    """Return the one alert about an event that keeps several runs from being judged; each of them only shows
    it.
    """
    shown, more = run_ids[:RUNS_SHOWN_MAX], len(run_ids) - RUNS_SHOWN_MAX
    text = (
        f"{why}; no machine is terminated. "
        "Silent: "
        f"{', '.join(shown)}{f' and {more} more' if more > 0 else ''}"
    )
    key = f"fleet/{since_s if since_s is not None else now_s}/blind"
    return Alert(
        key, "", AlertKind.BLIND, Severity.WARNING, "the control plane cannot judge the runs", text, now_s
    )


def gather(context: Context, record: RunRecord, snapshot: Snapshot, now_s: int) -> Evidence:
    """Return what is known of one run now. Single pods are requested from the provider only if its list is
    not sufficient.
    """
    run = record.run
    overdue = (
        record.lease.heartbeat_s is None or now_s - record.lease.heartbeat_s > run.spec.health.heartbeat_s
    )
    blind, seen_since_s = _receiving(record, snapshot.hearing, now_s)
    if overdue and run.spec.wandb is not None:
        blind = blind or tracker_elsewhere(context, now_s) or None
    return Evidence(
        lease=record.lease,
        pods=_pods_of(context, record, snapshot, now_s),
        tracker=context.tracker.look(run) if overdue and run.spec.wandb is not None else None,
        blind=blind,
        seen_since_s=seen_since_s,
        unheard_s=snapshot.hearing.unheard_s(record.lease.heartbeat_s, now_s)
        if record.lease.heartbeat_s is not None
        else 0,
    )


def _receiving(record: RunRecord, hearing: Hearing, now_s: int) -> tuple[str | None, int]:
    """Return why silence proves nothing for this run, and since when its heartbeats could have been received.
    Before its first heartbeat, a machine depends on more paths than later.
    """
    run, attempt = record.run, record.run.current_attempt
    if attempt is None or (record.lease.attempt == attempt.number and record.lease.heartbeat_s is not None):
        return hearing.blind_for(run.run_id), hearing.receiving_since_s
    late_s = now_s - attempt.launched_s - run.spec.health.first_heartbeat_s
    return hearing.blind_for_boot(late_s), hearing.boot_since_s(attempt.launched_s, attempt.offer.provider)


def _pods_of(context: Context, record: RunRecord, snapshot: Snapshot, now_s: int) -> PodsView:
    if isinstance(snapshot.listed, str):
        return PodsUnknown(snapshot.listed)
    why, unlisted = _unseen(context, record.run, snapshot), _unlisted(context, record.run, snapshot)
    known = {pod.pod_id: pod for pod in snapshot.pods_by_run.get(record.run.run_id, ())}
    gone = {pod_id for pod_id, pod in known.items() if pod.status is PodStatus.GONE}
    mine = _mine(record.run)
    for pod_id in _doubtful(record, known, now_s):
        # it may take minutes not to answer, and would hold up what does not depend on it
        if pod_id.partition("/")[0] in unlisted:
            continue
        try:
            pod = context.pods.get(pod_id)
        except ExternalError as error:
            if pod_id == mine:
                why = f"the provider could not be queried about {pod_id}: {error}"
            # For an old pod this proves nothing, and must not prevent a verdict on the current one. A pod
            # once reported gone stays gone until it is seen.
            elif any(a.pod_id == pod_id and a.ended_s is not None for a in record.run.attempts):
                known.pop(pod_id, None)
            continue
        if pod is None and pod_id == mine and _may_be_unknown_yet(record, now_s):
            continue
        if pod is None or pod.status is PodStatus.GONE:
            gone.add(pod_id)
        if pod is not None:
            known[pod_id] = pod
    observed = PodsObserved(tuple(known.values()), frozenset(gone), snapshot.listed_s, unlisted)
    return PodsUnknown(why, observed) if why else observed


def _may_be_unknown_yet(record: RunRecord, now_s: int) -> bool:
    """Return whether the current pod was created so recently that its provider may not know its id yet,
    because providers answer from copies that lag. A pod that is believed gone is not terminated, and would be
    paid for until a list has it.
    """
    attempt = record.run.current_attempt
    if attempt is None or record.lease.heartbeat_s is not None:
        return False
    return now_s < max(attempt.launched_s, min(attempt.created_s or 0, now_s)) + UNKNOWN_ID_S


def _unseen(context: Context, run: Run, snapshot: Snapshot) -> str:
    """Return why the list proves nothing about the current pod; empty if it may be used. The provider of an
    old machine may fail for hours, and must not prevent a verdict on the current one, nor the next launch
    elsewhere.
    """
    for attempt in (a for a in run.attempts if a.ended_s is None):
        name = attempt.offer.provider
        if context.providers is not None and name not in context.providers:
            return f"this control plane has no access to provider {name}"
        if name in snapshot.unlisted and attempt.number == d.current_attempt(run):
            return f"the provider's list failed: {name}: {snapshot.unlisted[name]}"
    return ""


def _unlisted(context: Context, run: Run, snapshot: Snapshot) -> frozenset[str]:
    """Return the providers whose pods the list lacks: it could not be read, or this control plane has no
    access to them.
    """
    names = {attempt.offer.provider for attempt in run.attempts if attempt.ended_s is None}
    return frozenset(snapshot.unlisted).union(
        names.difference(context.providers) if context.providers is not None else ()
    )


def _mine(run: Run) -> str | None:
    """Return the id of the pod of the attempt that holds the lease."""
    return (
        run.current_attempt.pod_id
        if run.current_attempt is not None and d.current_attempt(run) is not None
        else None
    )


def _doubtful(record: RunRecord, known: dict[str, Pod], now_s: int) -> list[str]:
    """Return the pods to request one by one: those of past attempts not proven gone, orphans (a list may show
    a dead pod for minutes), and the current one if a heartbeat is missing.
    """
    run, lease = record.run, record.lease
    pod_ids = [
        a.pod_id
        for a in run.attempts
        if a.pod_id and a.ended_s is None and a.number != d.current_attempt(run)
    ]
    pod_ids += [orphan.pod_id for orphan in run.orphans]
    pod_ids += [pod.pod_id for pod in d.orphan_pods(run, PodsObserved(tuple(known.values())))]
    mine = _mine(run)
    if mine is not None:
        quiet = lease.heartbeat_s is None or now_s - lease.heartbeat_s > run.spec.health.heartbeat_s
        listed = known.get(mine)
        if quiet and (listed is None or listed.status is not PodStatus.PENDING):
            pod_ids.append(mine)
    return [
        pod_id
        for pod_id in dict.fromkeys(pod_ids)
        if pod_id not in known or known[pod_id].status is not PodStatus.GONE
    ]
