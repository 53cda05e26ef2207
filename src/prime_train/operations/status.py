"""How runs stand."""

from prime_train.operations.run_lookup import find
from prime_train.ports import Store
from prime_train.reports.run_status import Standing, standing

RUNS_MAX = 100


def status(store: Store, name: str) -> Standing:
    """How one run stands now, by the store's time. Raises UsageError where there is no such run."""
    return standing(find(store, name), store.now_s())


def statuses(store: Store, *, runs_max: int = RUNS_MAX) -> list[Standing]:
    """How the newest `runs_max` runs stand now, newest first."""
    now_s = store.now_s()
    held = [store.load(run.run_id) for run in store.list_runs()[:runs_max]]
    return [standing(one, now_s) for one in held if one is not None]
