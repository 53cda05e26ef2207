"""Stored values that this version of prime-train cannot read: they are kept as they are, reported, and left
out of everything else.
"""

from collections.abc import Container, Iterable
from dataclasses import dataclass
from hashlib import sha256

from prime_train.errors import PermanentError
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.run import Alert, Severity

STATE = "unreadable"
"""Stands in the place of a run's state."""
RECORD = "the record"
LEASE = "the lease"
HISTORY = "history"
FIX = (
    "use the version of prime-train that wrote it, or a newer one; it is kept as it is, and its machine, if "
    "it has one, is left alone"
)


@dataclass(frozen=True)
class Unreadable:
    """A stored value that cannot be read. `run_id`: the run it belongs to, empty if only `what` tells;
    `what`: the kind of value, such as "the record"; `reason`: the field, and what is wrong with it, without
    its value.
    """

    run_id: str
    what: str
    reason: str

    @property
    def is_run(self) -> bool:
        """Whether nothing can be decided about the run, because its record or lease is what cannot be
        read.
        """
        return self.what in (RECORD, LEASE)

    def __str__(self) -> str:
        return f"{self.what}{f' of run {self.run_id}' if self.run_id else ''} cannot be read: {self.reason}"


class UnreadableRecord(PermanentError):
    """A run whose record or lease cannot be read. `place`: the store."""

    def __init__(self, unreadable: Unreadable, place: str = "") -> None:
        super().__init__(f"{place}: {unreadable}" if place else str(unreadable), fix=FIX)
        self.unreadable = unreadable


def may_have_machine(unreadable: Iterable[Unreadable], open_leases: Container[str]) -> list[str]:
    """Return the runs that cannot be read and may have a machine. `open_leases`: the runs whose lease is
    open.
    """
    return [one.run_id for one in unreadable if one.is_run and one.run_id in open_leases]


def unreadable_alert(unreadable: Unreadable, now_s: int) -> Alert:
    """Return the alert about it. Its key holds the reason, so that the same one is reported once, and another
    one again.
    """
    name = sha256(str(unreadable).encode()).hexdigest()[:16]
    title = "a stored value cannot be read"
    return Alert(
        f"unreadable/{name}",
        unreadable.run_id,
        AlertKind.UNREADABLE,
        Severity.ERROR,
        title,
        f"{unreadable}; {FIX}",
        now_s,
    )
