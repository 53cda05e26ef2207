"""The inputs of a watcher (ports and snapshot) and its results."""

from collections.abc import Callable, Collection, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from secrets import token_hex

from prime_train.alerts.port import Notifier
from prime_train.buckets.keys import parse_pod_name
from prime_train.buckets.port import Bucket
from prime_train.errors import ExternalError
from prime_train.exit_codes import Exit
from prime_train.market.left_of_run import market_of
from prime_train.market.observations import Observations, observations
from prime_train.market.quotes import Market
from prime_train.providers.port import Account, Pods
from prime_train.runs import decide as d
from prime_train.runs.breaker import Hearing
from prime_train.runs.funds import Funds
from prime_train.runs.run import Run
from prime_train.runs.store import RunRecord, Store
from prime_train.runs.unreadable import UnreadableRecord
from prime_train.runs.verdict import Pod
from prime_train.tracker.port import NoTracker, Tracker
from prime_train.watch.port import Canary, Watched

KEPT_S = 60
"""Seconds for which what was seen is kept, so that many launches in a row do not read all runs again and
again.
"""


@dataclass
class SeenMachines:
    """What this account has seen of machines, as this process last read it from the store."""

    _seen: Observations = field(default_factory=Observations)
    _read_s: int | None = None

    def market(self, store: Store, run: Run, now_s: int, watched: Watched) -> Market:
        """Return what the offers for the run's next machine are compared by. If the store's runs cannot be
        read, it is this run alone that tells what was seen, because no run should wait for the others'.
        """
        if self._read_s is None or not 0 <= now_s - self._read_s < KEPT_S:
            try:
                self._seen, self._read_s = observations(store.list_runs(), now_s), now_s
            except ExternalError as error:
                watched(run.run_id, "RunsUnread", f"{error}; offers are ranked by what this run has seen")
                return market_of(run, observations([run], now_s), now_s)
        return market_of(run, self._seen, now_s)


NAMED_MAX = 10
"""Maximum number of runs named in an error."""


def _quiet(run_id: str, what: str, text: str) -> None:
    return None


def _all_allowed(run: Run) -> str:
    return ""


@dataclass(frozen=True)
class ReadBack:
    """How far the checkpoint with the manifest `key` has been read: the number of its chunks, and when the
    next look is due.
    """

    key: str
    chunks: int
    next_s: int


@dataclass
class UnreadableRuns:
    """Runs that this process could not read. `looked_s`: when it last looked at everything in the store."""

    run_ids: set[str] = field(default_factory=set)
    looked_s: int | None = None


@dataclass
class Elsewhere:
    """What this process knows of the other watchers of its control plane, and has left to them. `means`,
    `unmarked`: see `Watch`, as last read; `runs` and `alerts`: until when this process does not try again
    what it lacks the means for, by run, and by alert and notifier.
    """

    means: Mapping[str, int] = field(default_factory=dict)
    unmarked: Mapping[str, int] = field(default_factory=dict)
    runs: dict[str, int] = field(default_factory=dict)
    alerts: dict[tuple[str, str], int] = field(default_factory=dict)


@dataclass(frozen=True)
class Context:
    """Everything that a watcher needs: the ports, and the settings of this control plane."""

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
    """Names of the secrets that this control plane can provide; None: unknown here."""
    providers: Collection[str] | None = None
    """Providers whose pods this control plane can list; None: all."""
    shared: Container[str] = frozenset()
    """Providers at which pods with this control plane's mark may belong to another control plane."""
    accounts: tuple[Account, ...] = ()
    """The paying accounts to watch, at most one of each provider."""
    is_guest: bool = False
    """Whether other watchers serve the control plane; they get the runs whose provider is not visible from
    here.
    """
    delivers: bool = True
    """Whether this watcher sends the alerts in the outbox although the store knows nothing of the notifiers
    of others.
    """
    not_allowed: Callable[[Run], str] = field(default=_all_allowed, repr=False, compare=False)
    """A function that returns what a run asks beyond the operator's policy, empty if nothing. It raises
    UsageError if the policy cannot be used; then no machine is rented.
    """
    new_identity: Callable[[], str] = field(default=lambda: token_hex(8), repr=False, compare=False)
    """A function that returns a new attempt identity: sixteen random hex digits."""
    owner: str = field(default_factory=lambda: token_hex(8), compare=False)
    """Identifier of this watcher, with which it claims an alert before sending it."""
    notified: set[tuple[str, str]] = field(default_factory=set, repr=False, compare=False)
    """Keys that need not be handled again: pairs of alert and notifier, for alerts that this process has sent
    but not yet marked in the store; and, with an empty notifier, alerts that it has put into the outbox
    without a change of a run.
    """
    shown: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """The time of this process's last refresh of each run's display, by run."""
    followed: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """The time of this process's last reading of the tracker for each healthy run, by run."""
    looked: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """The time of this process's last look for a better machine for each run that trains, by run."""
    strays: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """When this process looks again at each machine whose run is not in the store, by pod."""
    reads_back: bool = False
    """Whether checkpoints of runs that are alive are read back from the bucket."""
    read_back: dict[str, ReadBack] = field(default_factory=dict, repr=False, compare=False)
    """How far this process has read the newest checkpoint of each run, by run."""
    unmarked: dict[tuple[str, int], int] = field(default_factory=dict, repr=False, compare=False)
    """The time at which this process fenced each attempt that is not marked in the tracker yet, by run and
    attempt.
    """
    marked: dict[tuple[str, int], int] = field(default_factory=dict, repr=False, compare=False)
    """The attempts that this process has lately marked in the tracker, or given up to mark, with the second
    of their fence.
    """
    unreadable: UnreadableRuns = field(default_factory=UnreadableRuns, repr=False, compare=False)
    elsewhere: Elsewhere = field(default_factory=Elsewhere, repr=False, compare=False)
    seen: SeenMachines = field(default_factory=SeenMachines, repr=False, compare=False)


@dataclass
class Failures:
    """Failures in a sweep, collected so that none stops the remaining work, and raised at the end."""

    of_runs: dict[str, list[Exception]] = field(default_factory=dict)
    others: list[Exception] = field(default_factory=list)
    unread: dict[str, Exception] = field(default_factory=dict)
    """Runs whose record could not be read, and why."""

    def load(self, store: Store, run_id: str) -> RunRecord | None:
        """Return `store.load(run_id)`; None also if the record cannot be read: the run is then in `unread`
        and not loaded again. An empty `run_id` gives None.
        """
        if not run_id or run_id in self.unread:
            return None
        try:
            return store.load(run_id)
        except Exception as error:
            self.unread[run_id] = error
            self.collect(error, run_id)
            return None

    @contextmanager
    def collected(self, run_id: str = "") -> Iterator[None]:
        """Catch and collect an exception of this block, which ends only the block."""
        try:
            yield
        except Exception as error:
            self.collect(error, run_id)

    def collect(self, error: Exception, run_id: str = "") -> None:
        """Collect a failure, of a run if `run_id` is given; the same failure is collected once. That a run's
        record cannot be read is no failure of the sweep, and only kept in `unread`: it is reported by itself,
        and no later sweep would do better.
        """
        if isinstance(error, UnreadableRecord) and run_id in ("", error.unreadable.run_id):
            self.unread[error.unreadable.run_id] = error
            return
        known = self.of_runs.setdefault(run_id, []) if run_id else self.others
        if repr(error) not in map(repr, known):
            if run_id:
                error.add_note(f"while checking run {run_id}")
            known.append(error)

    def raised(self) -> None:
        """Raise the collected failures. If only external services failed and no run is involved, the first
        failure is raised unchanged, with the later ones as notes.
        """
        first = self.others[:1]
        if (
            first
            and not self.of_runs
            and (len(self.others) == 1 or all(isinstance(error, ExternalError) for error in self.others))
        ):
            for error in self.others[1:]:
                first[0].add_note(f"and then: {error}")
            raise first[0]
        every = [*self.others, *(error for errors in self.of_runs.values() for error in errors)]
        if every:
            more = len(self.of_runs) - NAMED_MAX
            names = ", ".join(list(self.of_runs)[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
            raise ExceptionGroup(f"could not be checked: {names}" if names else "the sweep failed", every)


@dataclass(frozen=True)
class Step:
    """The result of one call. `saved` False: another watcher was first. `decision` None: there is no such
    run.
    """

    decision: d.Decision | None
    saved: bool

    @property
    def is_rest(self) -> bool:
        return self.decision is None or not self.saved or isinstance(self.decision, d.Wait)


@dataclass(frozen=True)
class Snapshot:
    """Facts gathered once in a sweep for all runs: the provider's list, and what may be concluded from
    missing heartbeats.
    """

    listed: Sequence[Pod] | str
    """The pods, or the reason why no provider could be read."""
    unlisted: Mapping[str, str] = field(default_factory=dict)
    """Providers whose pods are missing in `listed`, with the reason."""
    hearing: Hearing = field(default_factory=Hearing)
    funds: Mapping[str, Funds] = field(default_factory=dict)
    """The wallets that could be read, by provider."""
    listed_s: int | None = None
    """When the list was requested; None means that it is still current."""
    listened_s: int | None = None
    """When `hearing` was determined; None means that it is still current."""

    @cached_property
    def pods_by_run(self) -> Mapping[str, Sequence[Pod]]:
        """Return the listed pods by the run in their name, grouped once for all runs."""
        pods: dict[str, list[Pod]] = {}
        for pod in () if isinstance(self.listed, str) else self.listed:
            named = parse_pod_name(pod.name)
            if named is not None:
                pods.setdefault(named[0], []).append(pod)
        return pods


@dataclass(frozen=True)
class SweepResult:
    """The result of a sweep: runs checked, steps taken, and the reasons why silence or the provider's list
    could not be used.
    """

    looked_at: tuple[str, ...]
    steps: int
    blind: str | None
    provider_error: str | None
    unreadable: tuple[str, ...] = ()
    """Runs that were left out, because their records cannot be read."""

    @property
    def exit(self) -> Exit:
        """The exit code of a process that was started for this sweep alone."""
        return Exit.OK if self.provider_error is None else Exit.EXTERNAL_FAILED
