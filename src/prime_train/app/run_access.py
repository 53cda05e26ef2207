"""What operations on runs are given of a control plane beside its store, to read what else is known of a
run.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from prime_train.app.machines import Machines
from prime_train.buckets.port import Bucket
from prime_train.runs.store import Store

if TYPE_CHECKING:
    from prime_train.watch.context import Context


@dataclass(frozen=True)
class RunFiles:
    """Where the files of runs are: on their machines, and in the bucket, which is opened when something is
    read from it.
    """

    bucket: Callable[[], Bucket]
    machines: Machines

    def without_logins(self) -> "RunFiles":
        """Return the same, for a process that logs in to no rented machine."""
        return replace(self, machines=replace(self.machines, logs_in=False))


@dataclass(frozen=True)
class Observer:
    """What shows a run beside its record and its files. `context`: what a watcher sees, for reading only;
    `is_served`: asks whether a control plane serves now; `environment`: the variables with the key and the
    entity of W&B.
    """

    context: "Callable[[], Context]"
    is_served: Callable[[], bool]
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True)
class StoredRuns:
    """The runs of a bucket, and the store that may have them; None if there is none."""

    url: str
    bucket: Bucket
    store: Store | None
