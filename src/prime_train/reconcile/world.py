"""What a watcher works with: the ports, what it saw, and what it did."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from prime_train.core import decide as d
from prime_train.core.breaker import Hearing
from prime_train.core.funds import Funds
from prime_train.core.keys import parse_pod_name
from prime_train.core.verdict import Pod
from prime_train.ports import Account, Bucket, Canary, Notifier, NoTracker, Pods, Store, Tracker, Watched


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
    shared: Container[str] = frozenset()
    """Of these, other control planes may have machines that bear our mark."""
    account: Account | None = None
    is_guest: bool = False
    """The control plane is elsewhere and others watch it too: what can not be seen from here is left to them."""
    delivers: bool = True
    """Whether this watcher sends what waits in the outbox: one that lacks the notifiers of others must not."""
    told: set[tuple[str, int]] = field(default_factory=set, repr=False, compare=False)
    """Alerts (by key and notifier) this process has sent, as long as another notifier has not taken them."""
    shown: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """When this process last showed a run's state, where it is shown."""
    followed: dict[str, int] = field(default_factory=dict, repr=False, compare=False)
    """When this process last asked the tracker about a run that is well."""
    unmarked: dict[tuple[str, int], int] = field(default_factory=dict, repr=False, compare=False)
    """When this process fenced an attempt, by run and epoch, as long as the tracker has not been told."""


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
class Swept:
    """What a sweep did: runs looked at, steps taken, and whom it could not see."""

    looked_at: tuple[str, ...]
    steps: int
    blind: str | None
    provider_error: str | None
