"""Load, gather evidence, judge, decide, save, then touch the outside: one step a call, the same for every watcher.

A watcher that crashes between save and effect leaves a state from which the next one goes on: a launch is settled by the pod's name, a
terminate is asked again until the provider says "gone", an alert waits in the outbox. Two watchers at once are told apart by the
compare-and-set; the one that loses returns.
"""

import json
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass, field, replace

from prime_train.core import change as c
from prime_train.core import decide as d
from prime_train.core.breaker import Hearing, listen
from prime_train.core.causes import Cause
from prime_train.core.funds import Funds
from prime_train.core.keys import blob_prefix, manifest_prefix, parse_manifest_key, parse_pod_name, spec_key
from prime_train.core.manifest import Manifest, choose_resume
from prime_train.core.offers import Offer, rank
from prime_train.core.run import ATTENDED, Alert, Change, Run, RunState, Severity
from prime_train.core.verdict import Evidence, Pod, PodsSeen, PodStatus, PodsUnknown, PodsView, Verdict, judge
from prime_train.core.wire import Ticket, attempt_key
from prime_train.ports import (
    Account,
    Bucket,
    Canary,
    Held,
    NoCapacity,
    NoFunds,
    Notifier,
    NoTracker,
    OutsideError,
    PermanentError,
    Pods,
    Store,
    TemporaryError,
    Tracker,
    Watched,
)

STEPS_A_RUN_MAX = 12
DUE_MAX = 200
OUTBOX_MAX = 200
ALERT_S_MAX = 86_400
MANIFESTS_READ_MAX = 1000
BOOT_NAMES_MAX = 10_000


def _quiet(run_id: str, what: str, text: str) -> None:
    return None


@dataclass(frozen=True)
class World:
    """Everything a watcher needs: the ports, and the settings of this control plane."""

    store: Store
    bucket: Bucket
    pods: Pods
    master: bytes = field(repr=False)
    webhook_url: str
    notifiers: tuple[Notifier, ...] = ()
    tracker: Tracker = field(default_factory=NoTracker)
    canary: Canary | None = None
    watched: Watched = _quiet
    secrets: Container[str] | None = None
    """Names of the secrets this control plane can hand out; None: not known here."""
    providers: Container[str] | None = None
    """Whose pods this control plane can see; None: everybody's."""
    account: Account | None = None
    told: set[tuple[str, int]] = field(default_factory=set, repr=False, compare=False)
    """Alerts (by key and notifier) this process has sent, as long as another notifier has not taken them."""


@dataclass(frozen=True)
class Step:
    """What one call did. `saved` False: another watcher was first. `decision` None: there is no such run."""

    decision: d.Decision | None
    saved: bool

    @property
    def is_rest(self) -> bool:
        return self.decision is None or not self.saved or isinstance(self.decision, d.Wait)


@dataclass(frozen=True)
class Sight:
    """What a sweep saw once for all runs: the provider's list, and what silence may mean."""

    listed: Sequence[Pod] | str
    """The pods, or why the provider could not be asked."""
    hearing: Hearing = field(default_factory=Hearing)
    funds: Funds | None = None


@dataclass(frozen=True)
class Swept:
    """What a sweep did: runs looked at, steps taken, and whom it could not see."""

    looked_at: tuple[str, ...]
    steps: int
    blind: str | None
    provider_error: str | None


def look(world: World) -> Sight:
    """The provider's list and the wallet now. It says nothing of who could be heard: see `see`."""
    funds = _funds(world)
    try:
        return Sight(world.pods.list(), funds=funds)
    except OutsideError as error:
        return Sight(f"the provider's list failed: {error}", funds=funds)


def _funds(world: World) -> Funds | None:
    """None also where it can not be asked: then nothing is concluded."""
    if world.account is None:
        return None
    try:
        return world.account.funds()
    except OutsideError as error:
        world.watched("", "FundsUnknown", f"{world.account.provider}: {error}")
        return None


def see(world: World, now_s: int) -> Sight:
    """What a single step outside a sweep needs to know of the world: one that did not listen must not conclude from silence either."""
    return replace(look(world), hearing=_listen(world, now_s))


def reconcile(world: World, run_id: str, now_s: int, sight: Sight | None = None) -> Step:
    """One step for one run."""
    held = world.store.load(run_id)
    if held is None:
        return Step(None, False)
    sight = sight if sight is not None else see(world, now_s)
    evidence = gather(world, held, sight, now_s)
    verdict: Verdict | None = judge(held.run, evidence, now_s) if held.run.state in ATTENDED else None
    lacking = [name for name in held.run.spec.secrets if world.secrets is not None and name not in world.secrets]
    decision = d.decide(held.run, verdict, evidence.pods, now_s, lacking=lacking, funds=_paying(held.run, sight.funds))
    saved = carry_out(world, held, decision, now_s)
    if saved and not isinstance(decision, d.Wait):
        world.watched(run_id, type(decision).__name__, describe(decision))
    return Step(decision, saved)


def _paying(run: Run, funds: Funds | None) -> Funds | None:
    """The wallet, if it is the one that pays for this run."""
    attended = run.attempt if run.state in ATTENDED else None
    provider = attended.offer.provider if attended is not None else run.spec.hardware.provider
    return funds if funds is not None and funds.provider == provider else None


def describe(decision: d.Decision) -> str:
    """The decision in a line."""
    match decision:
        case d.Recover(cause, detail):
            return f"{cause.value}: {detail}"
        case d.Finish(state, _, why):
            return f"{state.value}: {why}"
        case d.Terminate(pods):
            return ", ".join(p.pod_id for p in pods)
        case d.Note(title=title, text=text):
            return f"{title}: {text}"
        case d.Hold(_, title, why):
            return f"{title}: {why}"
        case d.Drain(reason, text):
            return f"{reason.value}: {text}"
        case _:
            return ""


# -------------------------------------------------------------------------------------------------------------------- evidence


def gather(world: World, held: Held, sight: Sight, now_s: int) -> Evidence:
    """What is known of one run now. The provider is asked about single pods only where its list is not enough."""
    run = held.run
    overdue = held.lease.beat_s is None or now_s - held.lease.beat_s > run.spec.health.beat_s
    return Evidence(
        lease=held.lease,
        pods=_pods_of(world, held, sight, now_s),
        tracker=world.tracker.look(run) if overdue and run.spec.wandb is not None else None,
        blind=sight.hearing.blind_for(run.run_id),
        seen_since_s=sight.hearing.heard_since_s,
    )


def _pods_of(world: World, held: Held, sight: Sight, now_s: int) -> PodsView:
    if isinstance(sight.listed, str):
        return PodsUnknown(sight.listed)
    unseen = _unseen(world, held.run)
    if unseen:
        return PodsUnknown(f"this control plane has no access to provider {unseen}")
    known = {pod.pod_id: pod for pod in sight.listed if (parse_pod_name(pod.name) or ("", 0))[0] == held.run.run_id}
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
    return PodsSeen(tuple(known.values()), frozenset(gone))


def _unseen(world: World, run: Run) -> str:
    """A provider that has pods of the run, perhaps, and that can not be asked here: that its list shows none proves nothing."""
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


# ----------------------------------------------------------------------------------------------------------------- carrying out


def carry_out(world: World, held: Held, decision: d.Decision, now_s: int) -> bool:
    """Saves the decision, then does what it says outside. False: the save was lost, and nothing was done."""
    match decision:
        case d.ChooseResume():
            return _choose_resume(world, held, now_s)
        case d.Launch(on_demand):
            return _launch(world, held, on_demand=on_demand, now_s=now_s)
        case _:
            pass
    saved = c.change(held.run, held.lease, decision, now_s)
    if not world.store.save(saved):
        return False
    match decision:
        case d.PutAgent(pod_id):
            _put_agent(world, Held(saved.run, held.lease), pod_id, now_s)
        case d.Terminate(pods):
            _terminate(world, held.run.run_id, [pod.pod_id for pod in pods])
        case d.Recover() | d.Finish():
            _terminate(world, held.run.run_id, [a.pod_id for a in held.run.attempts[-1:] if a.pod_id and a.ended_s is None])
        case _:
            pass
    return True


def _terminate(world: World, run_id: str, pod_ids: list[str]) -> None:
    """Asks once; the strays rule asks again until the provider confirms."""
    for pod_id in pod_ids:
        try:
            world.pods.terminate(pod_id)
        except OutsideError as error:
            world.watched(run_id, "TerminateFailed", f"{pod_id}: {error}; asked again later")


def _put_agent(world: World, held: Held, pod_id: str, now_s: int) -> None:
    run = held.run
    key = attempt_key(world.master, run.run_id, run.epoch)
    ticket = Ticket(run=run.run_id, epoch=run.epoch, url=world.webhook_url, key=key, now_s=now_s)
    try:
        pod = world.pods.get(pod_id)
        if pod is not None:
            world.pods.put_agent(pod, ticket)
    except PermanentError as error:
        world.store.save(c.change(run, held.lease, d.Recover(Cause.PREFLIGHT_FAILED, str(error)), now_s))
    except OutsideError as error:
        world.watched(run.run_id, "PutAgentFailed", f"{pod_id}: {error}; tried again later")


def _choose_resume(world: World, held: Held, now_s: int) -> bool:
    run = held.run
    try:
        manifests = read_manifests(world.bucket, run.run_id, epoch=run.epoch)
        sizes = {stat.key: stat.size for stat in world.bucket.list(blob_prefix(run.run_id))} if manifests else {}
    except OutsideError as error:
        world.watched(run.run_id, "BucketFailed", str(error))
        return world.store.save(_bucket_away(held, str(error), now_s))
    point = choose_resume(manifests, sizes, epoch=run.epoch, previous=run.resume)
    return world.store.save(c.resume_chosen(run, point, now_s))


def _bucket_away(held: Held, why: str, now_s: int) -> Change:
    if held.run.noted_s("bucket") is None:
        text = f"{why}; the run waits, for nothing is known of its checkpoints"
        return c.change(held.run, held.lease, d.Note("bucket", Severity.WARNING, "the bucket does not answer", text), now_s)
    return Change(replace(held.run, version=held.run.version + 1, next_check_s=now_s + d.check_s(held.run)))


def read_manifests(bucket: Bucket, run_id: str, *, epoch: int | None = None) -> list[Manifest]:
    """The manifests of a run (of one attempt), newest step first, `MANIFESTS_READ_MAX` at most. One that can not be parsed is left out:
    it commits nothing."""
    stats = [(parse_manifest_key(run_id, stat.key), stat.key) for stat in bucket.list(manifest_prefix(run_id))]
    keys = [key for place, key in stats if place is not None and (epoch is None or place[1] == epoch)]
    found = []
    for key in sorted(keys, reverse=True)[:MANIFESTS_READ_MAX]:
        content = bucket.get(key)
        manifest = parse_manifest(content.data) if content is not None else None
        if manifest is not None and manifest.key == key:
            found.append(manifest)
    return found


def parse_manifest(data: bytes) -> Manifest | None:
    """None for anything that is not a whole manifest."""
    try:
        return Manifest.model_validate_json(data)
    except ValueError:
        return None


def _launch(world: World, held: Held, *, on_demand: bool, now_s: int) -> bool:
    """Offer, intent, create, answer. A crash after the intent is settled by the pod's name, never by creating again."""
    run = held.run
    try:
        world.bucket.put(spec_key(run.run_id), _spec_json(run))
        ranking = rank(
            world.pods.offers(run.spec.hardware),
            run.spec.hardware,
            excluded=run.excluded,
            avoided=d.avoided_offers(run, now_s),
            on_demand=on_demand,
        )
    except OutsideError as error:
        return world.store.save(c.no_offer(run, f"bucket or offers could not be reached: {error}", now_s))
    if not ranking.best:
        why = "; ".join(f"{row.offer.offer_id} {row.why}" for row in ranking.left_out[:5]) or "the provider has none for rent"
        return world.store.save(c.no_offer(run, why, now_s))
    intent = c.launch(run, held.lease, ranking.best[0], now_s)
    if not world.store.save(intent):
        return False
    _create(world, intent, ranking.best[0], now_s)
    return True


def _spec_json(run: Run) -> bytes:
    return json.dumps({"commit": run.commit, "spec": run.spec.model_dump(mode="json")}, indent=2).encode()


def _create(world: World, intent: Change, offer: Offer, now_s: int) -> None:
    run, lease = intent.run, intent.lease
    assert lease is not None
    try:
        pod = world.pods.create(d.name_of(run, run.epoch), offer, run.spec.hardware)
    except NoCapacity as error:
        world.store.save(c.refused(run, lease, Cause.NO_CAPACITY, str(error), now_s))
    except NoFunds as error:
        world.store.save(c.refused(run, lease, Cause.NO_FUNDS, str(error), now_s))
    except PermanentError as error:
        world.store.save(c.refused(run, lease, Cause.LAUNCH_REFUSED, str(error), now_s))
    except TemporaryError as error:
        world.watched(run.run_id, "CreateUnknown", f"{error}; settled by the pod's name")
    else:
        world.store.save(c.adopted(run, pod.pod_id, now_s, usd_per_hour=pod.usd_per_hour))


# ------------------------------------------------------------------------------------------------------------------------ sweep


def sweep(world: World, now_s: int, *, clock: Callable[[], int] | None = None) -> Swept:
    """All runs that are due, a few steps each; pods nobody owns; alerts that wait. Safe beside any other sweep."""
    sight = see(world, now_s)
    listed, hearing = sight.listed, sight.hearing
    due = world.store.due(now_s, DUE_MAX)
    due += [run_id for run_id in _reap(world, listed, now_s) if run_id not in due]
    if hearing.through is not None and hearing.through not in due:
        due.append(hearing.through)
    steps = 0
    failures: list[Exception] = []
    for run_id in due:
        try:
            steps += settle(world, run_id, now_s, sight, clock=clock)
        except Exception as error:  # one run's failure must not keep the watcher from all others; it is raised below
            error.add_note(f"while looking at run {run_id}")
            failures.append(error)
    _book(world, now_s)
    deliver(world, now_s)
    if failures:
        raise ExceptionGroup(f"{len(failures)} of {len(due)} runs could not be looked at", failures)
    return Swept(tuple(due), steps, hearing.blind, listed if isinstance(listed, str) else None)


def settle(world: World, run_id: str, now_s: int, sight: Sight | None = None, *, clock: Callable[[], int] | None = None) -> int:
    """Reconciles one run until it rests, `STEPS_A_RUN_MAX` steps at most; the number of steps. With a `clock`, each step has its own
    `now_s`: a create call takes minutes, and what comes after it must not be dated before it."""
    sight = sight if sight is not None else see(world, now_s)
    for step in range(1, STEPS_A_RUN_MAX + 1):
        done = reconcile(world, run_id, now_s if clock is None else clock(), sight)
        if done.is_rest:
            return step
        if isinstance(done.decision, d.Launch | d.Terminate | d.Recover | d.Finish):
            sight = replace(look(world), hearing=sight.hearing)
    return STEPS_A_RUN_MAX


def _listen(world: World, now_s: int) -> Hearing:
    """What silence may mean now. The memory is shared by all watchers; losing its write is harmless, it says what others saw."""
    watch = world.store.watch()
    vitals = [vital for vital in world.store.vitals() if vital.beat_s is not None]
    silent = {v.run_id: now_s - v.beat_s for v in vitals if v.beat_s is not None and now_s - v.beat_s > v.overdue_s}
    sings = world.canary.sings(now_s) if world.canary is not None else True
    after, hearing = listen(watch, canary=sings, silent_s=silent, active=[v.run_id for v in vitals], now_s=now_s)
    world.store.save_watch(replace(after, version=watch.version + 1), version=watch.version)
    return hearing


def _reap(world: World, listed: Sequence[Pod] | str, now_s: int) -> list[str]:
    """Runs whose pods are not where they should be, to be looked at now; pods of runs nobody knows are taken back here."""
    suspects: list[str] = []
    for pod in [] if isinstance(listed, str) else listed[:BOOT_NAMES_MAX]:
        named = parse_pod_name(pod.name)
        if named is None or pod.status is PodStatus.GONE:
            continue
        held = world.store.load(named[0])
        if held is None:
            world.watched(named[0], "Orphan", f"{pod.pod_id} belongs to no run: terminated")
            _terminate(world, named[0], [pod.pod_id])
        elif not _belongs(held.run, pod, named[1]) and not _asked_lately(held.run, pod, now_s):
            suspects.append(held.run.run_id)
    return list(dict.fromkeys(suspects))


def _book(world: World, now_s: int) -> None:
    """What the provider has billed takes the place of what was reckoned. A save that is lost is made at the next telling."""
    if world.account is None:
        return
    try:
        bills = world.account.bills()
    except OutsideError as error:
        world.watched("", "BillsUnknown", f"{world.account.provider}: {error}")
        return
    for bill in bills:
        named = parse_pod_name(bill.name)
        held = world.store.load(named[0]) if named is not None else None
        attempts = held.run.attempts if held is not None else ()
        mine = next((a for a in attempts if a.pod_id == bill.pod_id and a.ended_s is not None and a.billed_usd is None), None)
        if held is not None and mine is not None:
            world.store.save(c.billed(held.run, mine.epoch, bill.usd, now_s))


def _belongs(run: Run, pod: Pod, epoch: int) -> bool:
    if run.state is RunState.LAUNCHING:
        return epoch == run.epoch
    return d.current_epoch(run) == epoch and run.attempt is not None and run.attempt.pod_id == pod.pod_id


def _asked_lately(run: Run, pod: Pod, now_s: int) -> bool:
    return any(s.pod_id == pod.pod_id and s.asked_s + d.STRAY_ASK_AGAIN_S > now_s for s in run.strays)


def deliver(world: World, now_s: int | None = None) -> int:
    """Sends what waits in the outbox: sent first, marked after, so that a crash repeats an alert rather than loses it.

    One notifier's failure keeps no alert from the others. What a notifier could not take for `ALERT_S_MAX` is given up, in the log.
    """
    done = 0
    for alert in world.store.outbox(OUTBOX_MAX):
        held = world.store.load(alert.run_id)
        waits = [_sent(world, alert, held.run if held else None, place) for place in range(len(world.notifiers))].count(False)
        if waits and (now_s is None or now_s < alert.at_s + ALERT_S_MAX):
            continue
        if waits:
            world.watched(alert.run_id, "AlertGivenUp", f"{alert.kind}: {waits} of {len(world.notifiers)} notifiers never took it")
        world.store.mark_sent(alert.key)
        world.told.difference_update([(alert.key, place) for place in range(len(world.notifiers))])
        done += 1
    return done


def _sent(world: World, alert: Alert, run: Run | None, place: int) -> bool:
    """Whether this notifier is done with the alert: it took it, or refused it for good."""
    if (alert.key, place) in world.told:
        return True
    try:
        world.notifiers[place].send(alert, run)
    except TemporaryError as error:
        world.watched(alert.run_id, "AlertFailed", f"{error}; sent again later")
        return False
    except PermanentError as error:
        world.watched(alert.run_id, "AlertRefused", str(error))
    world.told.add((alert.key, place))
    return True
