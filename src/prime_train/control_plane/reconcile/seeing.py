"""What a watcher sees: the provider, the wallet, who can be heard, and of one run the evidence."""

from collections.abc import Sequence
from dataclasses import replace

from prime_train.control_plane.reconcile.delivering import tell
from prime_train.control_plane.reconcile.world import Sight, World
from prime_train.core import decide as d
from prime_train.core.breaker import Hearing, listen
from prime_train.core.funds import Funds
from prime_train.core.run import Alert, Run, Severity
from prime_train.core.verdict import Evidence, Pod, PodsSeen, PodStatus, PodsUnknown, PodsView
from prime_train.ports import Held, OutsideError, Store, TemporaryError

SIGHT_S_MAX = 120
"""What was seen longer ago, in seconds, is looked at anew before anything is decided by it."""
SAVES_MAX = 20


def look(world: World, now_s: int | None = None) -> Sight:
    """The provider's list and the wallet as of `now_s`, by the clock that also tells when to decide; None: they are used at once. It says
    nothing of who could be heard: see `see`."""
    try:
        listed: Sequence[Pod] | str = world.pods.list()
    except OutsideError as error:
        listed = f"the provider's list failed: {error}"
    return Sight(listed, funds=_funds(world), listed_s=now_s)  # after the list: what the pods cost is told by it


def _funds(world: World) -> Funds | None:
    """None also where it cannot be asked: then nothing is concluded."""
    if world.account is None:
        return None
    try:
        return world.account.funds()
    except OutsideError as error:
        world.watched("", "FundsUnknown", f"{world.account.provider}: {error}")
        return None


def see(world: World, now_s: int) -> Sight:
    """What a single step outside a sweep needs to know of the world: one that did not listen must not conclude from silence either."""
    sight = look(world, now_s)
    hearing = _listen(world, now_s, provider=not isinstance(sight.listed, str))
    return replace(sight, hearing=hearing, listened_s=now_s)


def _listen(world: World, now_s: int, *, provider: bool) -> Hearing:
    """What silence may mean now. The memory is shared by all watchers; losing its write is harmless, it says what others saw."""
    watch = world.store.watch()
    vitals = world.store.vitals()
    active = {vital.run_id: vital.beat_s for vital in vitals if vital.beat_s is not None}
    silent = {v.run_id: now_s - v.beat_s for v in vitals if v.beat_s is not None and now_s - v.beat_s > v.overdue_s}
    sings = world.canary.sings(now_s) if world.canary is not None else True
    after, hearing = listen(watch, canary=sings, silent_s=silent, active=active, now_s=now_s, provider=provider)
    world.store.save_watch(replace(after, version=watch.version + 1), version=watch.version)
    if hearing.overruled_since_s is not None:
        tell(world, _closed_way(hearing.overruled_since_s, now_s))
    return hearing


def hears_since(store: Store, now_s: int) -> None:
    """Beats can be heard from now on, and could not before: the webhook has only just started, or goes on after it stood still. For whoever
    serves it; to be called before anybody concludes anything from silence. Where nobody has ever looked, there is nothing to correct."""
    for _ in range(SAVES_MAX):
        watch = store.watch()
        if watch.swept_s is None:
            return
        inbound = replace(watch.inbound, works_since_s=now_s)
        if store.save_watch(replace(watch, version=watch.version + 1, inbound=inbound), version=watch.version):
            return
    raise TemporaryError(f"others have been writing the memory of the watchers for {SAVES_MAX} tries")


def fresh(world: World, sight: Sight, now_s: int) -> Sight:
    """What was seen, or what is to be seen now, if that was long ago: this process may have stood still since, and nobody was heard."""
    if sight.listened_s is None or abs(now_s - sight.listened_s) <= SIGHT_S_MAX:
        return sight
    return see(world, now_s)


def _closed_way(since_s: int, now_s: int) -> Alert:
    text = (
        f"the canary has failed for {now_s - since_s} s, yet beats arrive, and runs are judged by those; see that a watcher reaches the "
        "webhook's public address from where it runs"
    )
    return Alert(f"canary/{since_s}/blind", "", "blind", Severity.WARNING, "the canary fails though beats arrive", text, now_s)


def gather(world: World, held: Held, sight: Sight, now_s: int) -> Evidence:
    """What is known of one run now. The provider is asked about single pods only where its list is not enough."""
    run = held.run
    overdue = held.lease.beat_s is None or now_s - held.lease.beat_s > run.spec.health.beat_s
    blind, seen_since_s = _heard(held, sight.hearing, now_s)
    return Evidence(
        lease=held.lease,
        pods=_pods_of(world, held, sight, now_s),
        tracker=world.tracker.look(run) if overdue and run.spec.wandb is not None else None,
        blind=blind,
        seen_since_s=seen_since_s,
    )


def _heard(held: Held, hearing: Hearing, now_s: int) -> tuple[str | None, int]:
    """Why silence proves nothing of this run, and since when it could have been heard. A machine that is yet to be heard for the first
    time needs more for that than one that beats."""
    run, attempt = held.run, held.run.attempt
    if attempt is None or (held.lease.epoch == attempt.epoch and held.lease.beat_s is not None):
        return hearing.blind_for(run.run_id), hearing.heard_since_s
    late_s = now_s - attempt.launched_s - run.spec.health.first_beat_s
    return hearing.blind_for_boot(late_s), hearing.boot_since_s(attempt.launched_s)


def _pods_of(world: World, held: Held, sight: Sight, now_s: int) -> PodsView:
    if isinstance(sight.listed, str):
        return PodsUnknown(sight.listed)
    unseen = _unseen(world, held.run)
    if unseen:
        return PodsUnknown(f"this control plane has no access to provider {unseen}")
    known = {pod.pod_id: pod for pod in sight.pods_by_run.get(held.run.run_id, ())}
    gone = {pod_id for pod_id, pod in known.items() if pod.status is PodStatus.GONE}
    mine = _mine(held.run)
    for pod_id in _doubtful(held, known, now_s):
        try:
            pod = world.pods.get(pod_id)
        except OutsideError as error:
            if pod_id == mine:
                return PodsUnknown(f"the provider could not be asked about {pod_id}: {error}")
            # Of an old pod this proves nothing, and it must not blind us for the current one. Once called gone, it stays gone till seen.
            if any(a.pod_id == pod_id and a.ended_s is not None for a in held.run.attempts):
                known.pop(pod_id, None)
            continue
        if pod is None or pod.status is PodStatus.GONE:
            gone.add(pod_id)
        if pod is not None:
            known[pod_id] = pod
    return PodsSeen(tuple(known.values()), frozenset(gone), sight.listed_s)


def _unseen(world: World, run: Run) -> str:
    """A provider that has pods of the run, perhaps, and that cannot be asked here: that its list shows none proves nothing."""
    if world.providers is None:
        return ""
    return next((a.offer.provider for a in run.attempts if a.ended_s is None and a.offer.provider not in world.providers), "")


def _mine(run: Run) -> str | None:
    """The pod of the attempt that holds the lease."""
    return run.attempt.pod_id if run.attempt is not None and d.current_epoch(run) is not None else None


def _doubtful(held: Held, known: dict[str, Pod], now_s: int) -> list[str]:
    """Pods to ask about one by one: past attempts not proven gone, strays (a list may show a dead pod for minutes), and the current one
    when a beat is missing."""
    run, lease = held.run, held.lease
    asked = [a.pod_id for a in run.attempts if a.pod_id and a.ended_s is None and a.epoch != d.current_epoch(run)]
    asked += [stray.pod_id for stray in run.strays]
    asked += [pod.pod_id for pod in d.stray_pods(run, PodsSeen(tuple(known.values())))]
    mine = _mine(run)
    if mine is not None:
        quiet = lease.beat_s is None or now_s - lease.beat_s > run.spec.health.beat_s
        listed = known.get(mine)
        if quiet and (listed is None or listed.status is not PodStatus.PENDING):
            asked.append(mine)
    return [pod_id for pod_id in dict.fromkeys(asked) if pod_id not in known or known[pod_id].status is not PodStatus.GONE]
