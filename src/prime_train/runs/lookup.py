"""Look up a run by its id, by the start of its id, or by its config's name."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from prime_train.advice import Advice, Call, Operation
from prime_train.errors import UsageError
from prime_train.text.nearest import POSSIBLE, nearest

if TYPE_CHECKING:
    from prime_train.runs.run import Run
    from prime_train.runs.store import RunRecord, Store

LISTED_MAX = 6


def find(store: "Store", name: str) -> "RunRecord":
    """Return the run that `name` stands for: an id, the start of one, or a config's name. A config's name
    stands for its active run, or if none is active, for its newest. Raises UsageError, naming similar runs,
    unless exactly one run matches, and UnreadableRecord if that one cannot be read.
    """
    record = store.load(name)
    if record is not None:
        return record
    runs = store.list_runs()
    named = [run for run in runs if run.spec.name == name]
    if named:
        return _one_of(store, name, named)
    unreadable = {one.run_id for one in store.unreadable() if one.is_run}
    started = sorted(
        {
            run_id
            for run_id in (*(run.run_id for run in runs), *unreadable)
            if name and run_id.startswith(name)
        }
    )
    if len(started) == 1:
        found = store.load(started[0])
        if found is not None:
            return found
    if started:
        raise UsageError(
            f"{len(started)} runs start with {name}: {_listed(started)}", fix="write more of the name"
        )
    raise UsageError(f"there is no run {name}", fix=_nearest(name, runs))


def _one_of(store: "Store", name: str, named: "list[Run]") -> "RunRecord":
    """Return the active run among `named`, the runs of one config, newest first; the newest if none is
    active. Raises UsageError if several are active, because the choice would be arbitrary.
    """
    live = [run.run_id for run in named if not run.is_over]
    if len(live) > 1:
        raise UsageError(
            f"{len(live)} runs of {name} have not ended: {_listed(live)}", fix="write the id of one of them"
        )
    record = store.load(live[0] if live else named[0].run_id)
    if record is None:
        raise UsageError(
            f"run {name} no longer exists", fix=Advice(Call(Operation.STATUS), " lists the existing runs")
        )
    return record


def _nearest(name: str, runs: "list[Run]") -> str | Advice:
    if not runs:
        return Advice("there are no runs yet; launch one with: ", Call(Operation.LAUNCH, "CONFIG"))
    ids = [run.run_id for run in runs]
    close = nearest(name, ids, likeness=POSSIBLE, limit=LISTED_MAX)
    return f"did you mean {_listed(close)}?" if close else f"the newest runs are {_listed(ids)}"


def _listed(ids: Sequence[str]) -> str:
    return ", ".join(ids[:LISTED_MAX]) + (" ..." if len(ids) > LISTED_MAX else "")
