"""How runs stand."""

from dataclasses import dataclass

from prime_train.operations.run_filter import RunFilter, matching
from prime_train.operations.run_lookup import find
from prime_train.ports import Store
from prime_train.reports.run_status import Standing, standing

RUNS_MAX = 100


@dataclass(frozen=True)
class RunList:
    """`runs`: newest first; `left_out`: how many older ones are meant as well."""

    runs: tuple[Standing, ...]
    left_out: int = 0


def status(store: Store, name: str) -> Standing:
    """How one run stands now, by the store's time. Raises UsageError where there is no such run."""
    return standing(find(store, name), store.now_s())


def statuses(store: Store, wanted: RunFilter | None = None, *, runs_max: int = RUNS_MAX) -> RunList:
    """How the newest `runs_max` of the `wanted` runs stand now; without `wanted`, of all. Raises UsageError where a state is none."""
    now_s = store.now_s()
    meant = matching(store.list_runs(), wanted or RunFilter(), now_s)
    held = [store.load(run.run_id) for run in meant[:runs_max]]
    return RunList(tuple(standing(one, now_s) for one in held if one is not None), len(meant[runs_max:]))
