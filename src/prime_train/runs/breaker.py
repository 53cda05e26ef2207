"""Circuit breakers with one transition table that decide when silence proves nothing.

Four breakers represent the paths that a heartbeat takes, and that a machine needs before its first one:

- `inbound`: heartbeats reach the webhook and its store. It fails while the canary fails and no heartbeat
  arrives. Heartbeats that arrive outweigh the canary: then only the watcher's own way to the webhook is
  closed, or the responses are lost. They prove that the path worked until the newest of them arrived, and no
  longer.
- `answers`: responses of the webhook reach the sender. Only the canary measures this. Without responses no
  new machine gets what it needs to start.
- `provider`: a list of pods can be read. Without it no agent is put on a machine. Each of several providers
  has a breaker of its own, in `providers`, which is about its own machines only.
- `store`: watchers can read and write the store. During a failure of the store nothing can be recorded, so
  the failure is inferred from a gap between two sweeps in which no heartbeat was stored.

While one of them is open, silence of what depends on it proves nothing; afterwards only silence since the
recovery counts.

Two breakers represent the machines. Machines fail one by one; an outage that cuts several off silences them
together, and the canary, which takes another way, may not notice it:

- `fleet`: most of the active runs are silent.
- `cohort`: two or more runs fell silent within `TOGETHER_S` of each other. A run stays in its cohort until it
  is heard again or replaced, even if the others have left.

These two are bounded in time, because all of the machines may really be lost: after `HOLD_S` the breaker is
half-open and lets one run a sweep through, a different one in each sweep: the longest silent one may be a run
that is rightly left alone, such as one whose machine is cut off from the webhook while its tracker advances.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import pairwise

from prime_train.runs.dashboard_token import Link
from prime_train.runs.launch_key import LaunchKey

SILENT_SHARE_MAX = 0.5
"""Share of the active runs that must be silent for the breaker `fleet` to open."""
ACTIVE_MIN = 3
"""Minimum number of active runs that count as a fleet."""
TOGETHER_S = 300
"""Seconds within which several last heartbeats count as stopped by the same reason. A machine that falls
silent while the provider reports it as active is so rare that two of them within minutes are no coincidence,
in any fleet that one control plane watches.
"""
QUIET_S = 90
"""Seconds of silence after which a run counts towards a cohort of others, even if its own silence limit is
longer.
"""
FELL_KEPT_S = 900
"""Seconds for which a run that was replaced or has ended is still remembered as fallen silent, because other
runs may follow it.
"""
FELL_KEPT_MAX = 1000
"""Number of runs that are remembered as fallen silent, the newest first; bounds the size of the state that
watchers share.
"""
PAST = "/past"
"""Suffix of ids of replaced attempts; unambiguous, because no run id contains a slash."""
HOLD_S = 2100
"""Seconds after which an open breaker becomes half-open; longer than nearly all outages last. The wait costs
money only if several machines really hang at the same time: machines that the provider reports as lost are
replaced at once.
"""
BRIEF_S = 30
"""Seconds for which the canary may fail without making earlier heartbeats worthless as evidence; a single
failed canary is shorter.
"""
PROOF_S = 120
"""Seconds that a path must work without a failure to count as repaired."""
FAILURES_APART_S = 900
"""Seconds within which two failures of the canary count as one, even if another watcher's canary succeeds in
between.
"""
ARRIVING_RUNS = 2
"""Number of runs whose heartbeats outweigh a failed canary, because a single heartbeat may have slipped
through. If fewer runs are live, all of them are enough.
"""
ARRIVING_S = 120
"""Age in seconds up to which a heartbeat counts as still arriving: four intervals of the default pace."""
ON_THE_WAY_S = 10
"""A heartbeat that is stored up to this many seconds after the newest one that was known when the canary
failed counts as sent before the failure.
"""
OVERRULED_S = 300
"""Seconds that the canary fails while heartbeats arrive before people are notified."""
GAP_S = 180
GAP_FACTOR = 3
"""Factor on the previous gap between two sweeps. The store may have been unavailable during a gap that is
longer than this and than `GAP_S`. During such a gap no watcher installed agents on machines either.
"""


class State(StrEnum):
    CLOSED = "closed"
    """The path works: its signals are evidence."""
    OPEN = "open"
    """The path fails: nothing is concluded from it."""
    HALF_OPEN = "half_open"
    """The path works again, or has failed too long to wait further. If it works again, evidence since then
    counts; otherwise evidence counts for one run at a time.
    """


class Sign(StrEnum):
    """The result of a sweep's observation of one breaker."""

    WORKS = "works"
    PROVEN = "proven"
    """The path has worked for long enough, or failed so briefly that the failure does not count."""
    FAILS = "fails"
    PERSISTS = "persists"
    """The path still fails, and the longest wait for it is over."""


TRANSITIONS: Mapping[tuple[State, Sign], State] = {
    (State.CLOSED, Sign.WORKS): State.CLOSED,
    (State.CLOSED, Sign.PROVEN): State.CLOSED,
    (State.CLOSED, Sign.FAILS): State.OPEN,
    (State.CLOSED, Sign.PERSISTS): State.OPEN,
    (State.OPEN, Sign.WORKS): State.HALF_OPEN,
    (State.OPEN, Sign.PROVEN): State.CLOSED,
    (State.OPEN, Sign.FAILS): State.OPEN,
    (State.OPEN, Sign.PERSISTS): State.HALF_OPEN,
    (State.HALF_OPEN, Sign.WORKS): State.HALF_OPEN,
    (State.HALF_OPEN, Sign.PROVEN): State.CLOSED,
    (State.HALF_OPEN, Sign.FAILS): State.OPEN,
    (State.HALF_OPEN, Sign.PERSISTS): State.HALF_OPEN,
}


@dataclass(frozen=True)
class Breaker:
    """The state of one breaker. All times are those of the sweep that observed the change, in seconds."""

    state: State = State.CLOSED
    since_s: int | None = None
    """When the breaker entered this state; None: it has always been closed."""
    failing_s: int | None = None
    """When the breaker last left the closed state; None while it is closed."""
    failed_s: int | None = None
    """When the path last failed."""
    works_since_s: int | None = None
    """When the path started to work again; earlier silence proves nothing. None: no failure is known."""


@dataclass(frozen=True)
class Limits:
    """Time limits of a breaker, in seconds. `brief_s`: a failure no longer than this does not count;
    `proof_s`: see `PROOF_S`; `hold_s`: the longest wait during a failure, None: no limit.
    """

    brief_s: int = 0
    proof_s: int = PROOF_S
    hold_s: int | None = HOLD_S


INBOUND = Limits(brief_s=BRIEF_S, hold_s=None)
ANSWERS = Limits(proof_s=FAILURES_APART_S)
PROVIDER = Limits(brief_s=BRIEF_S)
STORE = Limits()
MASS_SILENCE = Limits(proof_s=0)
"""Limits of the breakers `fleet` and `cohort`. `proof_s` is 0 because runs that are heard again need no
further proof.
"""


def moved(
    breaker: Breaker, *, works: bool, now_s: int, limits: Limits, persists: bool | None = None
) -> Breaker:
    """Return the breaker after a sweep that observed whether the path works. `held`: whether the longest wait
    for the path is over, if something other than `limits.hold_s` decides that.
    """
    sign = _sign(breaker, works=works, now_s=now_s, limits=limits, persists=persists)
    state = TRANSITIONS[breaker.state, sign]
    breaker = breaker if works else replace(breaker, failed_s=now_s)
    if state is breaker.state:
        return breaker
    failing_s = now_s if breaker.failing_s is None else breaker.failing_s
    return replace(
        breaker,
        state=state,
        since_s=now_s,
        failing_s=None if state is State.CLOSED else failing_s,
        works_since_s=now_s if works and state is State.HALF_OPEN else breaker.works_since_s,
    )


def _sign(breaker: Breaker, *, works: bool, now_s: int, limits: Limits, persists: bool | None) -> Sign:
    in_state_s = now_s - breaker.since_s if breaker.since_s is not None else 0
    failing_s = now_s - breaker.failing_s if breaker.failing_s is not None else 0
    if works:
        is_first = breaker.state is State.OPEN and breaker.since_s == breaker.failing_s
        brief = is_first and in_state_s <= limits.brief_s and limits.brief_s > 0
        unfailing_s = now_s - breaker.failed_s if breaker.failed_s is not None else now_s
        proven = limits.proof_s == 0 or (
            breaker.state is State.HALF_OPEN and min(in_state_s, unfailing_s) >= limits.proof_s
        )
        return Sign.PROVEN if brief or proven else Sign.WORKS
    if persists is None:
        persists = limits.hold_s is not None and failing_s >= limits.hold_s
    return Sign.PERSISTS if persists else Sign.FAILS


@dataclass(frozen=True)
class Watch:
    """State of the watchers between sweeps."""

    version: int = 0
    last_sweep_s: int | None = None
    gap_s: int | None = None
    """Seconds between the last two sweeps."""
    sweeps_since_s: int = 0
    """Sweeps have followed each other without an unusually long gap since this second."""
    received_s: int | None = None
    """The last second at which heartbeats are known to have reached the webhook."""
    unheard: tuple[int, int] | None = None
    """The last failure of the inbound path that was too brief to open its breaker for long, or at all because
    heartbeats outweighed the canary: from the last second at which the path is known to have worked, to the
    second at which it worked again. Silence in between proves nothing.
    """
    inbound: Breaker = Breaker()
    answers: Breaker = Breaker()
    provider: Breaker = Breaker()
    providers: Mapping[str, Breaker] = field(default_factory=dict)
    """The breakers of the providers whose list has failed at least once, by provider."""
    store: Breaker = Breaker()
    fleet: Breaker = Breaker()
    cohort: Breaker = Breaker()
    failing_heartbeat_s: int | None = None
    """Time of the newest heartbeat, by the server's clock, when the canary began to fail."""
    fell_s: Mapping[str, int] = field(default_factory=dict)
    """Runs that fell silent and have sent no heartbeat since, with the second of it; replaced ones have
    `PAST` after their id.
    """
    members: frozenset[str] = frozenset()
    """Silent runs that belong to a cohort."""
    let_through: int = 0
    """Number of sweeps that have let one run through; decides which run is next."""
    accounts: Mapping[str, str] = field(default_factory=dict)
    """The accounts that own the machines, as the providers name them, by provider; those that are stored
    elsewhere are left out.
    """
    buckets: dict[str, str] = field(default_factory=dict)
    """Identities of the buckets that were created or used, by URL."""
    means: Mapping[str, int] = field(default_factory=dict)
    """What the watchers of this control plane have, such as notifiers, by name, with the second of the last
    sweep of one that has it.
    """
    unmarked: Mapping[str, int] = field(default_factory=dict)
    """Attempts that were fenced by a watcher that cannot mark them in the tracker, as RUN/NUMBER, with the
    second of the fence.
    """
    launch_keys: dict[str, LaunchKey] = field(default_factory=dict)
    """What each launch key permits, by its name; a key without a row permits nothing."""
    revoked_links: dict[str, int] = field(default_factory=dict)
    """Links to the dashboard that were revoked, by id, with the second at which they would have expired at
    the latest.
    """
    links_generation: int = 0
    """The generation of the links that count: links of earlier ones were all revoked."""

    def is_revoked(self, link: Link) -> bool:
        """Return whether the link to the dashboard was revoked."""
        return link.generation < self.links_generation or link.link_id in self.revoked_links

    @property
    def down_since_s(self) -> Mapping[str, int]:
        """Return the providers whose list cannot be read, each with the second since which it has failed."""
        return {
            name: each.failing_s or 0
            for name, each in sorted(self.providers.items())
            if each.state is State.OPEN
        }


@dataclass(frozen=True)
class Hearing:
    """What a sweep may conclude from missing heartbeats. `blind`: the reason why nothing may be concluded,
    except for the run in `through`; it applies to the runs in `cohort`, or to all if `cohort` is None.
    """

    blind: str | None = None
    receiving_since_s: int = 0
    blind_since_s: int | None = None
    """When the breaker opened that gives this reason: the second by which the event is known; None without a
    reason.
    """
    through: str | None = None
    cohort: frozenset[str] | None = None
    overruled_since_s: int | None = None
    """If set, heartbeats arrive but the canary has failed since this second; people are notified once for
    each such second.
    """
    deaf: bool = False
    """Whether no heartbeat arrives at all."""
    boots: str | None = None
    """The reason why a machine that has not been heard yet may be healthy."""
    boots_since_s: int = 0
    """The second since which a machine could get everything it needs for its first heartbeat."""
    provider_since_s: Mapping[str, int] = field(default_factory=dict)
    """The same for the machines of single providers whose list has failed, by provider."""
    received_until_s: int | None = None
    """The last second at which heartbeats are known to have reached the webhook; None: now."""
    unheard: tuple[int, int] | None = None
    """See `Watch.unheard`."""

    def blind_for(self, run_id: str) -> str | None:
        return (
            None
            if run_id == self.through or (self.cohort is not None and run_id not in self.cohort)
            else self.blind
        )

    def blind_for_boot(self, late_s: int) -> str | None:
        """Return why this machine may be healthy although its first heartbeat is `late_s` seconds late; None
        if silence is evidence against it. It is the counterpart of `blind_for` for machines without a
        heartbeat.
        """
        if self.deaf:
            return self.blind
        return self.boots if late_s <= HOLD_S else None

    def unheard_s(self, heartbeat_s: int, now_s: int) -> int:
        """Return the seconds of silence that prove nothing, because it is not known that heartbeats could be
        received in them. Silence begins with the last heartbeat, or at `receiving_since_s` if that is later.
        """
        since_s = max(heartbeat_s, self.receiving_since_s)
        until_s = now_s if self.received_until_s is None else max(since_s, min(now_s, self.received_until_s))
        from_s, to_s = self.unheard if self.unheard is not None else (0, 0)
        return now_s - until_s + max(0, min(until_s, to_s) - max(since_s, from_s))

    def boot_since_s(self, launched_s: int, provider: str = "") -> int:
        """Return the second since which a machine of that provider launched at `launched_s` could have sent a
        heartbeat.
        """
        since_s = max(self.boots_since_s, self.provider_since_s.get(provider, 0))
        return max(self.receiving_since_s, min(since_s, launched_s + HOLD_S))


def listen(
    watch: Watch,
    *,
    canary: bool,
    silent_s: Mapping[str, int],
    active: Mapping[str, int],
    now_s: int,
    provider: bool = True,
    unlisted: Collection[str] = (),
) -> tuple[Watch, Hearing]:
    """Return the next state of the watchers and what this sweep may conclude.

    `silent_s`: runs whose heartbeats are overdue, with the seconds since their last heartbeat; `active`: all
    runs that should send heartbeats, with the second of their last heartbeat by the server's clock. Both as
    of before the canary was sent. `provider`: whether any list of pods could be read; `unlisted`: the names
    of the providers whose list could not.
    """
    watch = replace(watch, providers=_after_providers(watch.providers, unlisted, now_s))
    watch = _after_paths(
        watch, canary=canary, provider=provider, silent=silent_s.keys(), active=active, now_s=now_s
    )
    inbound = watch.inbound
    if inbound.state is State.OPEN:
        deaf_s = now_s - (inbound.since_s if inbound.since_s is not None else now_s)
        return watch, Hearing(
            f"the webhook has not answered its canary heartbeat for {deaf_s} s",
            now_s,
            _blind_since_s(watch),
            deaf=True,
        )
    receiving_since_s = _works_since_s(inbound, watch.store)
    fell_s = {run_id: max(active[run_id], receiving_since_s) for run_id in silent_s}
    watch, ignored = _after_cohorts(watch, fell_s, active, now_s)
    through = _let_through(watch, ignored, fell_s, silent_s, now_s)
    blind = _why(watch, len(ignored), len(active)) if ignored else None
    hearing = Hearing(
        blind,
        receiving_since_s,
        _blind_since_s(watch) if blind is not None else None,
        through,
        cohort=ignored if ignored and watch.fleet.state is State.CLOSED else None,
        overruled_since_s=None if canary else _overruled_since_s(watch, now_s),
        boots=blind or _unanswered(watch),
        boots_since_s=max(
            watch.sweeps_since_s, _works_since_s(inbound, watch.answers, watch.provider, watch.store)
        ),
        received_until_s=watch.received_s,
        unheard=watch.unheard,
        provider_since_s={name: _works_since_s(each) for name, each in watch.providers.items()},
    )
    return (watch if through is None else replace(watch, let_through=watch.let_through + 1)), hearing


# ------------------------------------------------------------------------------------------------------------
# paths


def _after_paths(
    watch: Watch,
    *,
    canary: bool,
    provider: bool,
    silent: Collection[str],
    active: Mapping[str, int],
    now_s: int,
) -> Watch:
    failing_heartbeat_s = watch.failing_heartbeat_s
    if not canary and watch.answers.state is State.CLOSED:
        failing_heartbeat_s = max(active.values(), default=now_s)
    arrives = _arrives(
        failing_heartbeat_s,
        [heartbeat_s for run_id, heartbeat_s in active.items() if run_id not in silent],
        now_s,
    )
    inbound = moved(watch.inbound, works=canary or arrives, now_s=now_s, limits=INBOUND)
    if inbound.works_since_s is None and inbound.state is not State.OPEN:
        inbound = replace(inbound, works_since_s=now_s)
    received_s = (
        now_s
        if canary
        else max([*active.values(), watch.received_s or 0], default=0)
        if arrives
        else watch.received_s
    )
    unheard = watch.unheard
    if (
        watch.inbound.state is State.OPEN
        and inbound.state is State.CLOSED
        and watch.received_s is not None
        and received_s is not None
    ):
        unheard = (watch.received_s, received_s)
    elif canary and (overruled := _overruled(watch, active.values(), now_s)) is not None:
        unheard = overruled
    return replace(
        watch,
        last_sweep_s=now_s,
        gap_s=now_s - watch.last_sweep_s if watch.last_sweep_s is not None else None,
        sweeps_since_s=now_s
        if watch.last_sweep_s is None or _is_long_gap(watch, now_s)
        else watch.sweeps_since_s,
        received_s=received_s,
        unheard=unheard,
        failing_heartbeat_s=failing_heartbeat_s,
        inbound=inbound,
        answers=moved(watch.answers, works=canary, now_s=now_s, limits=ANSWERS),
        provider=moved(watch.provider, works=provider, now_s=now_s, limits=PROVIDER),
        store=_store(watch, active.values(), now_s),
    )


def _after_providers(
    providers: Mapping[str, Breaker], unlisted: Collection[str], now_s: int
) -> Mapping[str, Breaker]:
    before = {**dict.fromkeys(unlisted, Breaker()), **providers}
    return {
        name: moved(each, works=name not in unlisted, now_s=now_s, limits=PROVIDER)
        for name, each in before.items()
    }


def _arrives(failing_heartbeat_s: int | None, heartbeats_s: Collection[int], now_s: int) -> bool:
    """Return whether heartbeats have arrived since the canary began to fail, and still arrive.
    `heartbeats_s`: the last ones of the runs that are not silent.
    """
    since_s = max((failing_heartbeat_s or 0) + ON_THE_WAY_S, now_s - ARRIVING_S - 1)
    return sum(heartbeat_s > since_s for heartbeat_s in heartbeats_s) >= max(
        1, min(ARRIVING_RUNS, len(heartbeats_s))
    )


def _overruled(watch: Watch, heartbeats_s: Iterable[int], now_s: int) -> tuple[int, int] | None:
    """Return the time in which the path may have failed if the last canary failed and heartbeats outweighed
    it: from the newest of them to the first one that is known to have followed the canary, at the latest
    until now. None if the last canary did not fail.
    """
    if watch.received_s is None or watch.last_sweep_s is None or watch.received_s >= watch.last_sweep_s:
        return None
    last_s = watch.last_sweep_s
    return watch.received_s, min((at_s for at_s in heartbeats_s if at_s > last_s), default=now_s)


def _store(watch: Watch, heartbeats_s: Iterable[int], now_s: int) -> Breaker:
    """Return the store's breaker. The store works now, because it was just read. It counts as unavailable
    before if no sweep ran for unusually long and no heartbeat was stored.
    """
    store = watch.store
    if watch.last_sweep_s is None or watch.gap_s is None:
        return store
    if _is_long_gap(watch, now_s) and not any(
        heartbeat_s > now_s - ARRIVING_S for heartbeat_s in heartbeats_s
    ):
        store = moved(store, works=False, now_s=watch.last_sweep_s, limits=STORE)
    return moved(store, works=True, now_s=now_s, limits=STORE)


def _is_long_gap(watch: Watch, now_s: int) -> bool:
    """Return whether far more time than usual has passed since the last sweep."""
    if watch.last_sweep_s is None or watch.gap_s is None:
        return False
    return now_s - watch.last_sweep_s > max(GAP_S, GAP_FACTOR * watch.gap_s)


def _works_since_s(*paths: Breaker) -> int:
    """Return the second since which all of these paths work; 0 if no failure is known."""
    return max((path.works_since_s for path in paths if path.works_since_s is not None), default=0)


def _overruled_since_s(watch: Watch, now_s: int) -> int | None:
    since_s = watch.answers.failing_s
    return since_s if since_s is not None and now_s - since_s >= OVERRULED_S else None


def _unanswered(watch: Watch) -> str | None:
    return (
        "heartbeats arrive, but the canary heartbeat gets no answer"
        if watch.answers.state is State.OPEN
        else None
    )


# ------------------------------------------------------------------------------------------------------------
# cohorts


def _after_cohorts(
    watch: Watch, fell_s: Mapping[str, int], active: Mapping[str, int], now_s: int
) -> tuple[Watch, frozenset[str]]:
    """Return the next state, and the silent runs about which nothing is concluded."""
    most = len(active) >= ACTIVE_MIN and len(fell_s) >= SILENT_SHARE_MAX * len(active)
    recent = {
        _past(run_id): at_s
        for run_id, at_s in watch.fell_s.items()
        if run_id not in active and now_s - at_s <= FELL_KEPT_S
    }
    fallen = {**recent, **fell_s}
    members = ((watch.members & fell_s.keys()) | _together(fallen)) & fell_s.keys()
    quiet = {
        run_id: at_s for run_id, at_s in active.items() if run_id not in fallen and now_s - at_s > QUIET_S
    }
    cohort = frozenset(members | (_together({**fallen, **quiet}) & fell_s.keys()))
    ripe = any(now_s - fell_s[run_id] >= HOLD_S for run_id in cohort)
    newest = sorted(fallen, key=lambda run_id: fallen[run_id], reverse=True)[:FELL_KEPT_MAX]
    after = replace(
        watch,
        fleet=moved(watch.fleet, works=not most, now_s=now_s, limits=MASS_SILENCE),
        cohort=moved(watch.cohort, works=not cohort, now_s=now_s, limits=MASS_SILENCE, persists=ripe),
        fell_s={run_id: fallen[run_id] for run_id in newest},
        members=frozenset(members),
    )
    return after, frozenset(fell_s) if most else cohort


def _past(run_id: str) -> str:
    """Return the id for a run's replaced or ended attempt, so that heartbeats of the next attempt do not
    erase its silence.
    """
    return run_id if run_id.endswith(PAST) else run_id + PAST


def _together(fell_s: Mapping[str, int]) -> frozenset[str]:
    """Return every run that fell silent within `TOGETHER_S` of another one."""
    in_order = sorted(fell_s, key=lambda run_id: fell_s[run_id])
    pairs = pairwise(in_order)
    return frozenset(
        run_id for pair in pairs if fell_s[pair[1]] - fell_s[pair[0]] <= TOGETHER_S for run_id in pair
    )


def _let_through(
    watch: Watch, ignored: frozenset[str], fell_s: Mapping[str, int], silent_s: Mapping[str, int], now_s: int
) -> str | None:
    """Return the one run that a half-open breaker lets through in this sweep, or None. In a cohort, only runs
    that have been silent for `HOLD_S` take turns; otherwise a run that is rightly left alone for long would
    shorten the wait of the others.
    """
    breaker = watch.fleet if watch.fleet.state is not State.CLOSED else watch.cohort
    if breaker.state is not State.HALF_OPEN:
        return None
    ripe = [run_id for run_id in ignored if breaker is watch.fleet or now_s - fell_s[run_id] >= HOLD_S]
    longest_first = sorted(ripe, key=lambda run_id: (-silent_s[run_id], run_id))
    return longest_first[watch.let_through % len(longest_first)] if longest_first else None


def _blind_since_s(watch: Watch) -> int | None:
    """Return the second by which the event is known that keeps runs from being judged. Most runs fall silent
    because the path to the webhook fails, so these two breakers stand for one event.
    """
    failing_s = [each.failing_s for each in (watch.inbound, watch.fleet) if each.failing_s is not None]
    return min(failing_s, default=watch.cohort.failing_s)


def _why(watch: Watch, ignored: int, active: int) -> str:
    apart = f" within {TOGETHER_S // 60} minutes of another one" if watch.fleet.state is State.CLOSED else ""
    return f"{ignored} of {active} runs fell silent{apart}"
