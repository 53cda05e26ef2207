"""What a watcher works with: the ports, what it saw, and what it did."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from secrets import token_hex

from prime_train.core import decide as d
from prime_train.core.breaker import Hearing
from prime_train.core.funds import Funds
from prime_train.core.keys import parse_pod_name
from prime_train.core.verdict import Pod
from prime_train.ports import Account, Bucket, Canary, Notifier, NoTracker, OutsideError, Pods, RunRecord, Store, Tracker, Watched

NAMED_MAX = 10
"""So many runs are named in an error."""


def _quiet(run_id: str, what: str, text: str) -> None:
    return None


@dataclass(frozen=True)
class Context:
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
    shared: Container[str] = frozenset()
    """Of these, other control planes may have machines that bear our mark."""
    account: Account | None = None
    is_guest: bool = False
    """The control plane is elsewhere and others watch it too: what cannot be seen from here is left to them."""
    delivers: bool = True
    """Whether this watcher sends what waits in the outbox: one that lacks the notifiers of others must not."""
    new_identity: Callable[[], str] = field(default=lambda: token_hex(8), repr=False, compare=False)
    """Of an attempt: sixteen hex digits that nobody has had."""
    owner: str = field(default_factory=lambda: token_hex(8), compare=False)
    """This watcher among all: it claims an alert before it sends it."""
    told: set[tuple[str, str]] = field(default_factory=set, repr=False, compare=False)
    """Alerts (by key and notifier) this process has sent, as long as the store does not know it; and, for no notifier, those it has put
    into the outbox without a change of a run."""
    shown: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """When this process last showed a run's state, where it is shown."""
    followed: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """When this process last asked the tracker about a run that is well."""
    unmarked: dict[tuple[str, int], int] = field(default_factory=dict, repr=False, compare=False)
    """When this process fenced an attempt, by run and attempt, as long as the tracker has not been told."""


@dataclass
class Failures:
    """What failed in a sweep: kept, so that it keeps nobody from what comes after it, and raised in the end."""

    of_runs: dict[str, list[Exception]] = field(default_factory=dict)
    others: list[Exception] = field(default_factory=list)
    unread: dict[str, Exception] = field(default_factory=dict)
    """Runs whose record could not be read, and why."""

    def load(self, store: Store, run_id: str) -> RunRecord | None:
        """As the store's, and None also where the record cannot be read: the run is one of `unread` then, and not asked for again. No
        run has no id."""
        if not run_id or run_id in self.unread:
            return None
        try:
            return store.load(run_id)
        except Exception as error:
            self.unread[run_id] = error
            self.keep(error, run_id)
            return None

    @contextmanager
    def kept(self, run_id: str = "") -> Iterator[None]:
        """What fails in this block ends the block, and nothing else."""
        try:
            yield
        except Exception as error:
            self.keep(error, run_id)

    def keep(self, error: Exception, run_id: str = "") -> None:
        """Of a run, or of none. The same failure is kept once."""
        known = self.of_runs.setdefault(run_id, []) if run_id else self.others
        if repr(error) not in map(repr, known):
            if run_id:
                error.add_note(f"while looking at run {run_id}")
            known.append(error)

    def raised(self) -> None:
        """Raises what was kept: the first failure of no run as it is, with what followed from it as notes, if the outside alone failed."""
        first = self.others[:1]
        if first and not self.of_runs and (len(self.others) == 1 or all(isinstance(error, OutsideError) for error in self.others)):
            for error in self.others[1:]:
                first[0].add_note(f"and then: {error}")
            raise first[0]
        every = [*self.others, *(error for errors in self.of_runs.values() for error in errors)]
        if every:
            more = len(self.of_runs) - NAMED_MAX
            names = ", ".join(list(self.of_runs)[:NAMED_MAX]) + (f" and {more} more" if more > 0 else "")
            raise ExceptionGroup(f"could not be looked at: {names}" if names else "the sweep failed", every)


@dataclass(frozen=True)
class Step:
    """What one call did. `saved` False: another watcher was first. `decision` None: there is no such run."""

    decision: d.Decision | None
    saved: bool

    @property
    def is_rest(self) -> bool:
        return self.decision is None or not self.saved or isinstance(self.decision, d.Wait)


@dataclass(frozen=True)
class Snapshot:
    """What a sweep saw once for all runs: the provider's list, and what silence may mean."""

    listed: Sequence[Pod] | str
    """The pods, or why the provider could not be asked."""
    hearing: Hearing = field(default_factory=Hearing)
    funds: Funds | None = None
    listed_s: int | None = None
    """When the list was asked for; None: now."""
    listened_s: int | None = None
    """When it was found out what silence may mean; None: now."""

    @cached_property
    def pods_by_run(self) -> Mapping[str, Sequence[Pod]]:
        """The listed pods by the run whose name they bear: sorted once, for all runs."""
        pods: dict[str, list[Pod]] = {}
        for pod in () if isinstance(self.listed, str) else self.listed:
            named = parse_pod_name(pod.name)
            if named is not None:
                pods.setdefault(named[0], []).append(pod)
        return pods


@dataclass(frozen=True)
class SweepResult:
    """What a sweep did: runs looked at, steps taken, and whom it could not see."""

    looked_at: tuple[str, ...]
    steps: int
    blind: str | None
    provider_error: str | None
