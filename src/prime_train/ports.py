"""What the shell needs of the outside, one Protocol a technology; every adapter passes the contract tests of its port.

An adapter raises `TemporaryError` (try again later: nothing is known) or `PermanentError` (asking again will not help), with the cause,
the body cut short and secrets left out. No other exception of a library leaves an adapter.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from prime_train.core.breaker import Watch
from prime_train.core.errors import LimitReached, NoCapacity, NoFunds, OutsideError, PermanentError, TemporaryError
from prime_train.core.funds import Bill, Funds
from prime_train.core.offers import Offer
from prime_train.core.run import Alert, Attempt, Change, HistoryEvent, Lease, Run
from prime_train.core.spec import HardwareSpec
from prime_train.core.wire import Commit, Heartbeat, Order, Ticket, Verdict

if TYPE_CHECKING:
    from prime_train.core.verdict import Pod, TrackerSeen

__all__ = [
    "GET_BYTES_MAX",
    "Account",
    "Answer",
    "Bucket",
    "Canary",
    "Content",
    "Data",
    "Foreseeing",
    "LeaseStatus",
    "LimitReached",
    "Marking",
    "NoCapacity",
    "NoFunds",
    "NoTracker",
    "Notifier",
    "OutsideError",
    "PermanentError",
    "Pods",
    "RunRecord",
    "Secrets",
    "Showing",
    "Stat",
    "Store",
    "TemporaryError",
    "Tracker",
    "Watched",
]


@dataclass(frozen=True)
class RunRecord:
    """A run and its lease, read together."""

    run: Run
    lease: Lease


@dataclass(frozen=True)
class Answer:
    """What a heartbeat or commit is told: accepted, said before, or fenced; and the order that waits."""

    verdict: Verdict
    order: Order = Order.NONE
    order_reason: str = ""
    committed_step: int = 0


@dataclass(frozen=True)
class LeaseStatus:
    """Life sign of one open lease: `heartbeat_s` is None before the first heartbeat."""

    run_id: str
    attempt: int
    heartbeat_s: int | None
    overdue_s: int


class Store(Protocol):
    """Runs, leases, history and the outbox of alerts. Every method is one atomic step; a lost race is a return value, not an error.

    The store says what time it is. Whoever decides about runs does so by that time, never by a clock of their own: what was written by
    one process is compared with what another one reads.
    """

    def now_s(self) -> int:
        """The store's time in whole seconds, close to UTC. It never steps, and goes on while everything here sleeps. TemporaryError where
        it cannot be had: then nothing is to be decided."""

    def create(self, run: Run) -> bool:
        """Stores a new run with a closed lease. False if there is one with that id: then nothing is changed."""

    def load(self, run_id: str) -> RunRecord | None: ...

    def list_runs(self) -> list[Run]:
        """All runs, newest first."""

    def save(self, change: Change) -> bool:
        """Compare-and-set: writes run, lease, history and alerts if the stored run has version `change.run.version - 1` and, where a
        lease is given, the stored lease has `change.lease_version`. False: somebody else was first, nothing is changed."""

    def wake(self, run_id: str, now_s: int) -> None:
        """Something happened: the run is due now. Raises the run's version, so that a save under way is lost and decided anew."""

    def due(self, now_s: int, limit: int) -> list[str]:
        """Ids of runs with `next_check_s` <= now, most overdue first; then those whose `next_check_s` is more than `CHECK_S_MAX` away, as
        nobody who knew the time can have written it."""

    def lease_statuses(self) -> list[LeaseStatus]:
        """The life signs of all open leases."""

    def heartbeat(self, heartbeat: Heartbeat, now_s: int) -> Answer:
        """One conditional write: accepted if the lease is open, of that attempt, and `seq` is higher than any before. An accepted heartbeat
        with `news` also wakes the run, in the same write. `fenced` also for a run that does not exist."""

    def heartbeats(self, heartbeats: Sequence[Heartbeat], now_s: int) -> list[Answer]:
        """Each as `heartbeat` would be, in order, all of them durable together when this returns: one commit for many."""

    def commit(self, commit: Commit, now_s: int) -> Answer:
        """One conditional write: accepted if the lease is open and of that attempt. A lower or equal step is `repeated`."""

    def history(self, run_id: str) -> list[HistoryEvent]:
        """In the order it was written."""

    def tell(self, alert: Alert) -> None:
        """Puts an alert that comes with no change of a run into the outbox; nothing where one with its key has been there."""

    def outbox(self, limit: int, *, lacking: str | None = None) -> list[Alert]:
        """Alerts that wait, oldest first; with `lacking` those that the notifier of that name is not marked to be done with."""

    def mark_sent(self, key: str, notifier: str | None = None, *, among: Sequence[str] = ()) -> bool:
        """The notifier of that name is done with the alert; once all `among` are, it waits no longer. Without names it waits no longer at
        all. Whether it still waits: False also of one that nobody has heard of."""

    def claim(self, key: str, notifier: str, owner: str, *, now_s: int, until_s: int) -> bool:
        """One conditional write: whether `owner` alone may send that alert by the notifier of that name, until `until_s`. False where
        another owner's claim lasts beyond `now_s`, and where the alert does not wait for that notifier. An owner renews its own claim by
        claiming again, and gives it up with an `until_s` of `now_s`."""

    def watch(self) -> Watch: ...

    def save_watch(self, watch: Watch, *, version: int) -> bool:
        """Compare-and-set on the version read."""


@dataclass(frozen=True)
class Stat:
    """An object: `size` in bytes, `written_s` the second it was last written."""

    key: str
    size: int
    written_s: int


@dataclass(frozen=True)
class Content:
    """A small object with the tag a conditional write is made against."""

    data: bytes
    tag: str


Data = bytes | bytearray | memoryview

GET_BYTES_MAX = 16 * 2**20


class Bucket(Protocol):
    """Objects by key. A reader sees an object whole or not at all. Keys are relative, with / between parts.

    Every method may be called by many threads at once; what they hold in memory is what they are given or give back.
    """

    def put(self, key: str, data: Data) -> None:
        """Durable when it returns, and as it was given: the bucket has checked it on arrival. `data` is not kept."""

    def put_if(self, key: str, data: bytes, *, tag: str | None) -> bool:
        """Writes only if the object's tag is still `tag` (None: if there is no object). False: it is not."""

    def put_file(self, key: str, path: Path) -> None: ...

    def get(self, key: str) -> Content | None:
        """The whole object with its tag; only for small ones (`GET_BYTES_MAX`, else PermanentError). None: there is none."""

    def read(self, key: str) -> Data | None:
        """As `get`, for content that is checked by its hash: no tag, and no copy that can be spared."""

    def get_file(self, key: str, path: Path) -> bool:
        """Writes the object to `path`. False: there is none, and nothing was written."""

    def stat(self, key: str) -> Stat | None: ...

    def list(self, prefix: str) -> Iterator[Stat]:
        """In the order of keys."""

    def delete(self, key: str) -> None:
        """Deleting what is not there is no error."""


class Pods(Protocol):
    """A provider of machines. Names are ours (`pt-<run>-e<attempt>`), ids the provider's."""

    def offers(self, hardware: HardwareSpec) -> Sequence[Offer]: ...

    def create(self, name: str, offer: Offer, hardware: HardwareSpec) -> "Pod":
        """Rents one. NoCapacity, NoFunds or PermanentError: certainly nothing was created. TemporaryError: it is not known."""

    def list(self) -> "Sequence[Pod]":
        """Every pod of ours. It may lag: absence proves nothing."""

    def get(self, pod_id: str) -> "Pod | None":
        """None: the provider no longer knows an id it once gave. One that it still knows as ended is GONE, with the time if it tells it."""

    def put_agent(self, pod: "Pod", ticket: Ticket) -> None:
        """Starts the agent with this ticket; where it runs already, nothing happens. May return before it is there: its heartbeat tells."""

    def terminate(self, pod_id: str) -> None:
        """Asks for the end of the pod; asking for one that is gone is no error."""


class Account(Protocol):
    """Who pays at one provider. Both may be asked in every sweep: an adapter asks the provider as seldom as will do."""

    @property
    def provider(self) -> str:
        """As in `Offer.provider`."""

    def funds(self) -> Funds | None:
        """The wallet now; None: there is none."""

    def bills(self) -> Sequence[Bill]:
        """Pods that ended lately, with what they cost; empty also where there is nothing new to tell."""


class Tracker(Protocol):
    def look(self, run: Run) -> "TrackerSeen | None":
        """What the experiment tracker last heard of this run; None where there is none or it cannot be asked."""


@runtime_checkable
class Marking(Protocol):
    """A tracker that can be told what became of a run."""

    def mark_lost(self, run: Run, attempt: Attempt) -> bool:
        """Has it say of a run whose newest attempt was fenced that it has failed, so that nobody takes it for one that trains; the next
        attempt goes on with it all the same. False: not now, ask again. Never raises; asking twice is asking once."""


class Canary(Protocol):
    def sings(self, now_s: int) -> bool:
        """Whether a heartbeat sent to the public webhook arrives."""


class Notifier(Protocol):
    def send(self, alert: Alert, run: Run | None) -> None:
        """Tells people. The same key may come twice; it is the same alert."""


@runtime_checkable
class Foreseeing(Protocol):
    """A notifier that can tell of many alerts at once."""

    def foresee(self, alerts: Sequence[Alert]) -> None:
        """What waits, oldest first; each of them is then sent, and what was told with another is no longer sent anew."""


@runtime_checkable
class Showing(Protocol):
    """A notifier that shows how runs stand, wherever they came from."""

    def shows(self, run_id: str) -> bool:
        """Whether it would show that run anew now and then, though nothing has happened."""


class Watched(Protocol):
    """Told what each step of reconcile did, for logs and live views."""

    def __call__(self, run_id: str, what: str, text: str) -> None: ...


@dataclass(frozen=True)
class NoTracker:
    def look(self, run: Run) -> "TrackerSeen | None":
        return None


Secrets = Mapping[str, str]
"""Values by name, from wherever the control plane keeps them; never stored."""
