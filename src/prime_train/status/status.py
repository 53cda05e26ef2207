"""Read the current state of runs."""

import logging
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from prime_train.app.run_access import RunFiles
from prime_train.outputs.results.of_run import results_now
from prime_train.runs.filter import RunFilter, matching
from prime_train.runs.lookup import find
from prime_train.runs.store import RunRecord, Store
from prime_train.runs.unreadable import Unreadable, UnreadableRecord
from prime_train.status.run_status import RunFacts, RunStatus, status_of

RUNS_MAX = 100

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class RunList:
    """A list of runs. `runs`: newest first; `left_out`: the number of older runs that match as well but are
    not listed; `archived`: the number of archived runs that match otherwise and are not listed either.
    """

    runs: tuple[RunStatus, ...]
    left_out: int = 0
    archived: int = 0
    unreadable: tuple[Unreadable, ...] = ()
    """What is stored and cannot be read; such runs match no filter, and are missing in `runs`."""

    @property
    def goes_on(self) -> bool:
        """Whether one of the listed runs is not over."""
        return any(one.ended_s is None for one in self.runs)


def run_now(store: Store, files: RunFiles, name: str) -> RunStatus:
    """Return the status of one run now, with the results of evaluations and steps after training, and if it
    is over the values by which it is judged, for which its metrics are read. Raises UsageError if there is no
    such run.
    """
    record = find(store, name)
    return status_of(RunFacts(record, store.now_s(), *results_now(files, record.run)))


def is_settled(store: Store, run_id: str) -> bool:
    """Return whether the run is over and none of its machines is paid for any more."""
    record = store.load(run_id)
    return record is not None and record.run.is_settled


def statuses(
    store: Store,
    wanted: RunFilter | None = None,
    *,
    runs_max: int = RUNS_MAX,
    load: Callable[[str], RunRecord | None] | None = None,
    now_s: int | None = None,
) -> RunList:
    """Return the current state of the newest `runs_max` runs that match `wanted`; without `wanted`, of all
    runs. `load` and `now_s`: the runs and the time as they were read for other pages, by default the store's.
    Raises UsageError if a state in `wanted` is unknown.
    """
    at_s, wanted = store.now_s() if now_s is None else now_s, wanted or RunFilter()
    every = matching(store.list_runs(), replace(wanted, archived=True), at_s)
    selected = matching(every, wanted, at_s)
    shown, failed = each_status([run.run_id for run in selected[:runs_max]], load or store.load, at_s)
    unreadable = tuple(dict.fromkeys((*store.unreadable(), *failed)))
    return RunList(tuple(shown), len(selected[runs_max:]), len(every) - len(selected), unreadable)


def each_status(
    run_ids: Iterable[str], load: Callable[[str], RunRecord | None], now_s: int
) -> tuple[list[RunStatus], list[Unreadable]]:
    """Return the state of each of these runs that there is, and why that of some cannot be told: one run
    hides no others. Raises the store's errors.
    """
    shown, failed = [], []
    for run_id in run_ids:
        try:
            record = load(run_id)
            if record is not None:
                shown.append(status_of(RunFacts(record, now_s)))
        except UnreadableRecord as error:
            failed.append(error.unreadable)
        except (
            ArithmeticError,
            ValueError,
            TypeError,
            AttributeError,
            LookupError,
        ) as error:  # a value that nothing expects
            log.exception("the state of run %s cannot be told", run_id)
            failed.append(
                Unreadable(
                    run_id,
                    "the state",
                    f"{type(error).__name__}; it is a bug of prime-train, and the log tells more",
                )
            )
    return shown, failed
