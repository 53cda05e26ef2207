"""The interfaces to everything outside the process, one Protocol for each technology; every adapter passes the contract tests of its port.

An adapter raises `TemporaryError` (the outcome is unknown; retry later) or `PermanentError` (a retry will not help), with the cause, the
body cut short and secrets left out. No other exception of a library leaves an adapter.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from prime_train.api_exchange import Exchange, Witness
from prime_train.bucket_port import GET_BYTES_MAX, Bucket, Content, Data, Stat, small_object
from prime_train.core.breaker import Watch
from prime_train.core.errors import (
    ExternalError,
    LimitReached,
    NoCapacity,
    NoFunds,
    NotHere,
    ObjectTooLarge,
    PermanentError,
    TemporaryError,
)
from prime_train.core.funds import Bill, Funds
from prime_train.core.offers import Offer
from prime_train.core.run import Alert, Attempt, Change, HistoryEvent, Lease, Run
from prime_train.core.spec import HardwareSpec
from prime_train.core.text.unreadable import Unreadable, UnreadableRecord
from prime_train.core.wire import Commit, Heartbeat, Order, Outcome, Ticket

if TYPE_CHECKING:
    from prime_train.core.verdict import Pod, TrackerObserved

__all__ = [
    "GET_BYTES_MAX",
    "Account",
    "Answer",
    "BatchNotifier",
    "Bucket",
    "Canary",
    "Content",
    "Data",
    "Exchange",
    "ExternalError",
    "LeaseStatus",
    "LimitReached",
    "Marking",
    "NoCapacity",
    "NoFunds",
    "NoTracker",
    "NotHere",
    "Notifier",
    "ObjectTooLarge",
    "PartlyListed",
    "PermanentError",
    "PlacedNotifier",
    "Pods",
    "RunRecord",
    "Secrets",
    "SshAddress",
    "Stat",
    "StatusDisplay",
    "Store",
    "TemporaryError",
    "Tracker",
    "Unreadable",
    "UnreadableRecord",
    "Watched",
    "Witness",
    "small_object",
]


@dataclass(frozen=True)
class RunRecord:
    """A run and its lease, read together."""

    run: Run
    lease: Lease


@dataclass(frozen=True)
class Answer:
    """The reply to a heartbeat or commit: accepted, repeated or fenced, with the pending order if there is one. `pace_s`: the seconds
    between heartbeats in the run's spec, where the store has them at hand; None: they are read of the run."""

    outcome: Outcome
    order: Order = Order.NONE
    order_reason: str = ""
    committed_step: int = 0
    pace_s: int | None = field(default=None, compare=False)


@dataclass(frozen=True)
class LeaseStatus:
    """The last heartbeat of one open lease: `heartbeat_s` is None before the first heartbeat."""

    run_id: str
    attempt: int
    heartbeat_s: int | None
    overdue_s: int


class Store(Protocol):
    """Runs, leases, history and the outbox of alerts. Every method is one atomic step; a lost race is a return value, not an error.

    The store is the only source of time. Decisions about runs use the store's time and never a local clock, because moments written by one
    process are compared with moments read by another.
    """

    def now_s(self) -> int:
        """Return the store's time in whole seconds, close to UTC. It never jumps, and continues while all processes sleep. Raises
        TemporaryError if the time cannot be determined; the caller must then decide nothing."""

    def create(self, run: Run) -> bool:
        """Store a new run with a closed lease. Return False, with nothing changed, if a run with that id exists."""

    def load(self, run_id: str) -> RunRecord | None:
        """Return the run with its lease; None if there is none. Raises UnreadableRecord if one of them cannot be read."""

    def list_runs(self) -> list[Run]:
        """Return all runs whose record and lease can be read, newest first; `unreadable` names the others."""

    def unreadable(self) -> list[Unreadable]:
        """Return what is stored and cannot be read, for example because another version has written it: records and leases of runs, events
        of their history, waiting alerts. Reads everything."""

    def save(self, change: Change) -> bool:
        """Compare-and-set: write run, lease, history and alerts if the stored run has version `change.run.version - 1` and, if a lease is
        given, the stored lease has `change.lease_version`. Return False, with nothing changed, if another writer was first."""

    def wake(self, run_id: str, now_s: int) -> None:
        """Make the run due now, because of an event. Raises its version, so that a concurrent `save` fails and the run is decided again."""

    def due(self, now_s: int, limit: int) -> list[str]:
        """Return the ids of runs with `next_check_s` <= `now_s`, most overdue first; then those whose `next_check_s` is more than
        `CHECK_S_MAX` ahead, which only a process with a wrong time can have written."""

    def lease_statuses(self) -> list[LeaseStatus]:
        """Return the last heartbeat of every open lease."""

    def heartbeat(self, heartbeat: Heartbeat, now_s: int) -> Answer:
        """Store a heartbeat by one conditional write: accepted if the lease is open, belongs to that attempt, and `seq` is higher than any
        before. An accepted heartbeat with `news` also wakes the run, in the same write. A run that does not exist is answered `fenced`."""

    def heartbeats(self, heartbeats: Sequence[Heartbeat], now_s: int) -> list[Answer]:
        """Apply `heartbeat` to each, in order, and return the answers once all are durable: one commit for many."""

    def commit(self, commit: Commit, now_s: int) -> Answer:
        """Commit a checkpoint by one conditional write: accepted if the lease is open and belongs to that attempt. A lower or equal step is
        `repeated`."""

    def history(self, run_id: str) -> list[HistoryEvent]:
        """Return the events of the run in the order in which they were written. In the place of one that cannot be read is one that says
        so."""

    def enqueue_alert(self, alert: Alert) -> None:
        """Put an alert that belongs to no change of a run into the outbox; does nothing if an alert with its key was ever there."""

    def outbox(self, limit: int, *, lacking: str | None = None) -> list[Alert]:
        """Return waiting alerts, oldest first; with `lacking`, only those that the notifier of that name has not finished.
        Those that cannot be read are left out, and kept."""

    def mark_sent(self, key: str, notifier: str | None = None, *, among: Sequence[str] = ()) -> bool:
        """Mark the alert as finished by `notifier`; it stops waiting once all notifiers in `among` have finished it. Without names it stops
        waiting at once. Return whether it still waits: False also for an unknown key."""

    def claim(self, key: str, notifier: str, owner: str, *, now_s: int, until_s: int) -> bool:
        """Give `owner`, by one conditional write, the exclusive right to send that alert by that notifier until `until_s`. Return False if
        another owner's claim lasts beyond `now_s`, or the alert does not wait for that notifier. An owner renews its own claim by claiming
        again, and releases it with an `until_s` of `now_s`."""

    def watch(self) -> Watch: ...

    def save_watch(self, watch: Watch, *, version: int) -> bool:
        """Compare-and-set: store `watch` if the stored version is still `version`. Return False, with nothing changed, otherwise."""


class PartlyListed(TemporaryError):
    """Some of several providers could not list their pods. `listed` are the pods of the others; `failed` says why, by provider."""

    def __init__(self, listed: "Sequence[Pod]", failed: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{name}: {why}" for name, why in failed.items()))
        self.listed, self.failed = listed, failed


class Pods(Protocol):
    """A provider of machines. The control plane chooses pod names (`pt-<run>-e<attempt>-a<identity>`), the provider chooses ids."""

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]: ...

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> "Pod":
        """Rent one machine. After NoCapacity, NoFunds or PermanentError nothing was created; after TemporaryError that is unknown."""

    def list(self) -> "Sequence[Pod]":
        """Return every pod of this control plane. The list may lag behind: absence from it proves nothing."""

    def get(self, pod_id: str) -> "Pod | None":
        """Return the pod, or None if the provider no longer has an id that it once gave out. A pod that it still lists as ended is GONE,
        with the time of its end if the provider reports one."""

    def put_agent(self, pod: "Pod", ticket: Ticket) -> None:
        """Start the agent with this ticket; does nothing if it runs already. May return before the agent is up, which its heartbeat
        shows."""

    def terminate(self, pod_id: str) -> None:
        """Request the end of the pod; does nothing if the pod is already gone."""


SSH_PORT = 22


@dataclass(frozen=True)
class SshAddress:
    """The SSH address of one pod. The user is not always root. `host_keys`: those that its server may show, each as its type and the key;
    empty: the first one that it shows is pinned."""

    pod_id: str
    user: str
    host: str
    port: int = SSH_PORT
    host_keys: tuple[str, ...] = ()


class Installer(Protocol):
    """Installs the agent on a machine by SSH and starts it with the ticket; if it runs already, nothing happens.

    Raises TemporaryError if the machine could not be reached or the outcome is unknown, PermanentError if the agent cannot run there.
    """

    def __call__(self, connection: SshAddress, ticket: Ticket) -> None: ...


@dataclass(frozen=True)
class ProviderContext:
    """The part of a control plane that a provider may use. `root`: the control plane's folder; a provider writes only into a folder of its
    own below it. `master`: the key from which the marks are derived that a provider puts on its machines. `store`: set if the store
    outlives the folder."""

    root: Path
    environment: Mapping[str, str] = field(repr=False)
    master: bytes = field(repr=False)
    install: Installer
    """A function that installs agents on machines that are reached by SSH."""
    public_key: Callable[[], str]
    """A function that returns the public SSH key, in OpenSSH's format, that such machines must accept."""
    unreachable_reason: Callable[[], str]
    """A function that returns why a machine elsewhere could not reach this control plane; empty if it could."""
    store: "Callable[[], Store] | None" = None
    may_rent: bool = True
    """Whether machines may be rented; otherwise they are only queried."""
    witness: Witness | None = field(default=None, repr=False)
    """A function that is told every exchange with the provider's API."""


@dataclass(frozen=True)
class Portable:
    """Credentials that mean the same on every machine, by the names of their variables. `hosts`: the hosts that are called with them.
    `logs_in`: whether the user has to let the control plane's own SSH key in there."""

    values: Mapping[str, str] = field(repr=False)
    hosts: tuple[str, ...] = ()
    logs_in: bool = False


class Provider(Protocol):
    """A provider of machines, as its row of the registry names it. Every provider implements `pods`; the other methods have defaults."""

    def pods(self) -> Pods:
        """Return the provider's machines; the same object at each call. Raises PermanentError if the settings are invalid."""

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]:
        """Return its offers with the credentials alone: nothing is read from the control plane's folder or written to it."""
        return self.pods().offers(hardware)

    def all_pods(self) -> Sequence["Pod"]:
        """Return all pods of the account, including those of other people and tools, with the credentials alone."""
        return self.pods().list()

    def account(self) -> "Account | None":
        """Return the account that pays, or None if there is none to watch."""
        return None

    def account_name(self) -> str:
        """Return the name of the account that the credentials belong to; empty if the provider does not tell. Raises ExternalError."""
        return ""

    def missing_rights(self) -> Sequence[str]:
        """Return the rights that renting needs and the credentials lack, in words; empty if they have all, or the provider does not
        tell. Raises ExternalError."""
        return ()

    def portable(self) -> Portable | None:
        """Return the credentials with the contents of all files that they name, for a control plane on another machine; None if they name
        none. Asks nobody. Raises PermanentError if they can only be used on this machine."""
        return None

    def connection(self, pod_id: str) -> SshAddress | None:
        """Return the pod's SSH address; None: it has none, is gone, or does not report yet how to reach it."""
        return None

    def unreachable_reason(self) -> str:
        """Return why its machines could not work with this control plane; empty if they could."""
        return ""


class Account(Protocol):
    """The paying account at one provider. Both methods may be called in every sweep: an adapter limits its own requests to the provider."""

    @property
    def provider(self) -> str:
        """The provider's name, as in `Offer.provider`."""

    def funds(self) -> Funds | None:
        """Return the wallet's current state; None if the account has no wallet."""

    def bills(self) -> Sequence[Bill]:
        """Return recently ended pods with their costs; empty also if there is nothing new."""


class Tracker(Protocol):
    def look(self, run: Run) -> "TrackerObserved | None":
        """Return the last report that the experiment tracker received about this run; None if it has no such run or does not answer."""


@runtime_checkable
class Marking(Protocol):
    """A tracker on which the outcome of a run can be marked."""

    def mark_lost(self, run: Run, attempt: Attempt) -> bool:
        """Mark the run as failed in the tracker after its newest attempt was fenced, so that it does not look like a run that still trains;
        the next attempt can continue it nevertheless. Return False to be called again later. Never raises; idempotent."""


@runtime_checkable
class Summarizing(Protocol):
    """A tracker whose summary of a run can be added to."""

    def summarize(self, run: Run, values: Mapping[str, object]) -> bool:
        """Add these values to the summary of a run that is over, unless something still reports to it. Return False to be called again
        later. Never raises; idempotent."""


class Canary(Protocol):
    def is_answering(self, now_s: int) -> bool:
        """Return whether a heartbeat sent to the public webhook arrives."""


class Notifier(Protocol):
    def send(self, alert: Alert, run: Run | None) -> None:
        """Send the alert to people. The same key may be sent twice; it is the same alert. Raises NotHere if only a process with another
        environment can send it."""


@runtime_checkable
class PlacedNotifier(Protocol):
    """A notifier of which there may be several that send to different places."""

    @property
    def place(self) -> str:
        """Return what tells its place from others, the same in every process and without secrets."""


@runtime_checkable
class BatchNotifier(Protocol):
    """A notifier that can send several alerts in one message."""

    def announce(self, alerts: Sequence[Alert]) -> None:
        """Receive all waiting alerts, oldest first, before each of them is sent. If `send` puts some of them into the message of another
        one, it does nothing when it is called for them."""


@runtime_checkable
class StatusDisplay(Protocol):
    """A notifier that displays the current state of runs."""

    def shows(self, run_id: str) -> bool:
        """Return whether the display of that run needs a refresh from time to time even if nothing happens."""


class Watched(Protocol):
    """A callback that receives what each step of reconcile did, for logs and live views."""

    def __call__(self, run_id: str, what: str, text: str) -> None: ...


@dataclass(frozen=True)
class NoTracker:
    def look(self, run: Run) -> "TrackerObserved | None":
        return None


Secrets = Mapping[str, str]
"""Secret values by name, from wherever the control plane keeps them; never stored."""
