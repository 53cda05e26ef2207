"""Judge a run that is over by the criteria of its config, from its metrics."""

from collections.abc import Iterable

from prime_train.control_plane.wiring.home import Home
from prime_train.core.errors import UsageError
from prime_train.core.results.criteria import Criterion, judged
from prime_train.core.run import Run
from prime_train.operations.metrics import of_run, progress_in
from prime_train.ports import ExternalError, RunRecord
from prime_train.reports.success import last_reported
from prime_train.trainers import Progress


def criteria_of(home: Home, record: RunRecord) -> tuple[Criterion, ...] | None:
    """Return the criteria, judged; None if the config names none or the run is not over. If the metrics cannot be read, the criteria are
    unknown, with the reason."""
    run = record.run
    if run.spec.success is None or not run.is_over:
        return None
    notes: list[str] = []
    try:
        source = of_run(home, record, notes.append)
        progress = progress_in(run, source) if source is not None else []
    except (ExternalError, UsageError) as error:
        return judged(run.spec.success, {}, f"the metrics cannot be read: {error}")
    if source is None and notes:
        return judged(run.spec.success, {}, f"the metrics cannot be read: {notes[0]}")
    return criteria_in(run, progress)


def criteria_in(run: Run, progress: Iterable[Progress]) -> tuple[Criterion, ...] | None:
    """Return the criteria, judged by this progress; None as in `criteria_of`."""
    if run.spec.success is None or not run.is_over:
        return None
    return judged(run.spec.success, last_reported(run.spec, progress))
