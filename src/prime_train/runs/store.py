"""The interfaces to everything outside the process, one Protocol for each technology; every adapter passes
the contract tests of its port.

An adapter raises `TemporaryError` (the outcome is unknown; retry later) or `PermanentError` (a retry will not
help), with the cause, the body cut short and secrets left out. No other exception of a library leaves an
adapter.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from prime_train.runs.breaker import Watch
from prime_train.runs.run import Alert, Change, HistoryEvent, Lease, Run
from prime_train.runs.unreadable import Unreadable
from prime_train.runs.wire import Commit, Heartbeat, Order, Outcome

if TYPE_CHECKING:
    pass


@dataclass(frozen=True)
class RunRecord:
    """A run and its lease, read together."""

    run: Run
    lease: Lease


@dataclass(frozen=True)
class LeaseReply:
    """The reply to a heartbeat or commit: accepted, repeated or fenced, with the pending order if there is
    one. `pace_s`: the seconds between heartbeats in the run's spec, where the store has them at hand; None:
    they are read of the run.
    """

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
    """Runs, leases, history and the outbox of alerts. Every method is one atomic step; a lost race is a
    return value, not an error.

    The store is the only source of time. Decisions about runs use the store's time and never a local clock,
    because moments written by one process are compared with moments read by another.
    """

    def now_s(self) -> int:
        """Return the store's time in whole seconds, close to UTC. It never jumps, and continues while all
        processes sleep. Raises TemporaryError if the time cannot be determined; the caller must then decide
        nothing.
        """

    def create(self, run: Run) -> bool:
        """Store a new run with a closed lease. Return False, with nothing changed, if a run with that id
        exists.
        """

    def load(self, run_id: str) -> RunRecord | None:
        """Return the run with its lease; None if there is none. Raises UnreadableRecord if one of them cannot
        be read.
        """

    def list_runs(self) -> list[Run]:
        """Return all runs whose record and lease can be read, newest first; `unreadable` names the others."""

    def unreadable(self) -> list[Unreadable]:
        """Return what is stored and cannot be read, for example because another version has written it:
        records and leases of runs, events of their history, waiting alerts. Reads everything.
        """

    def save(self, change: Change) -> bool:
        """Compare-and-set: write run, lease, history and alerts if the stored run has version
        `change.run.version - 1` and, if a lease is given, the stored lease has `change.lease_version`. Return
        False, with nothing changed, if another writer was first.
        """

    def wake(self, run_id: str, now_s: int) -> None:
        """Make the run due now, because of an event. Raises its version, so that a concurrent `save` fails
        and the run is decided again.
        """

    def due(self, now_s: int, limit: int) -> list[str]:
        """Return the ids of runs with `next_check_s` <= `now_s`, most overdue first; then those whose
        `next_check_s` is more than `CHECK_S_MAX` ahead, which only a process with a wrong time can have
        written.
        """

    def lease_statuses(self) -> list[LeaseStatus]:
        """Return the last heartbeat of every open lease."""

    def heartbeat(self, heartbeat: Heartbeat, now_s: int) -> LeaseReply:
        """Store a heartbeat by one conditional write: accepted if the lease is open, belongs to that attempt,
        and `seq` is higher than any before. An accepted heartbeat with `news` also wakes the run, in the same
        write. A run that does not exist is answered `fenced`.
        """

    def heartbeats(self, heartbeats: Sequence[Heartbeat], now_s: int) -> list[LeaseReply]:
        """Apply `heartbeat` to each, in order, and return the answers once all are durable: one commit for
        many.
        """

    def commit(self, commit: Commit, now_s: int) -> LeaseReply:
        """Commit a checkpoint by one conditional write: accepted if the lease is open and belongs to that
        attempt. A lower or equal step is `repeated`.
        """

    def history(self, run_id: str) -> list[HistoryEvent]:
        """Return the events of the run in the order in which they were written. In the place of one that
        cannot be read is one that says so.
        """

    def enqueue_alert(self, alert: Alert) -> None:
        """Put an alert that belongs to no change of a run into the outbox; does nothing if an alert with its
        key was ever there.
        """

    def outbox(self, limit: int, *, lacking: str | None = None) -> list[Alert]:
        """Return waiting alerts, oldest first; with `lacking`, only those that the notifier of that name has
        not finished. Those that cannot be read are left out, and kept.
        """

    def mark_sent(self, key: str, notifier: str | None = None, *, among: Sequence[str] = ()) -> bool:
        """Mark the alert as finished by `notifier`; it stops waiting once all notifiers in `among` have
        finished it. Without names it stops waiting at once. Return whether it still waits: False also for an
        unknown key.
        """

    def claim(self, key: str, notifier: str, owner: str, *, now_s: int, until_s: int) -> bool:
        """Give `owner`, by one conditional write, the exclusive right to send that alert by that notifier
        until `until_s`. Return False if another owner's claim lasts beyond `now_s`, or the alert does not
        wait for that notifier. An owner renews its own claim by claiming again, and releases it with an
        `until_s` of `now_s`.
        """

    def watch(self) -> Watch: ...

    def save_watch(self, watch: Watch, *, version: int) -> bool:
        """Compare-and-set: store `watch` if the stored version is still `version`. Return False, with nothing
        changed, otherwise.
        """


Secrets = Mapping[str, str]
"""Secret values by name, from wherever the control plane keeps them; never stored."""
