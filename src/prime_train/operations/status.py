"""Report the current state of runs."""

from dataclasses import dataclass, replace

from prime_train.operations.run_filter import RunFilter, matching
from prime_train.operations.run_lookup import find
from prime_train.ports import Store
from prime_train.reports.run_status import Standing, standing

RUNS_MAX = 100


@dataclass(frozen=True)
class RunList:
    """A list of runs. `runs`: newest first; `left_out`: the number of older runs that match as well but are not listed; `archived`: the
    number of archived runs that match otherwise and are not listed either."""

    runs: tuple[Standing, ...]
    left_out: int = 0
    archived: int = 0


def status(store: Store, name: str) -> Standing:
    """Return the current state of one run, by the store's time. Raises UsageError if there is no such run."""
    return standing(find(store, name), store.now_s())


def statuses(store: Store, wanted: RunFilter | None = None, *, runs_max: int = RUNS_MAX) -> RunList:
    """Return the current state of the newest `runs_max` runs that match `wanted`; without `wanted`, of all runs. Raises UsageError if a
    state in `wanted` is unknown."""
    now_s, wanted = store.now_s(), wanted or RunFilter()
    every = matching(store.list_runs(), replace(wanted, archived=True), now_s)
    meant = matching(every, wanted, now_s)
    held = [store.load(run.run_id) for run in meant[:runs_max]]
    return RunList(tuple(standing(one, now_s) for one in held if one is not None), len(meant[runs_max:]), len(every) - len(meant))
