"""Judge a run that is over by the criteria of its config, from its results."""

from collections.abc import Callable, Iterable

from prime_train.control_plane.results import read_results
from prime_train.control_plane.wiring.home import Home
from prime_train.core.errors import UsageError
from prime_train.core.results.criteria import Criterion, Reported, in_results, judged
from prime_train.core.run import Run
from prime_train.operations.metrics import of_run, progress_in
from prime_train.ports import ExternalError, RunRecord
from prime_train.reports.success import last_reported
from prime_train.trainers import Progress


def criteria_of(home: Home, record: RunRecord) -> tuple[Criterion, ...] | None:
    """Return the criteria, judged; None if the config names none or the run is not over. If the results cannot be read, the criteria are
    unknown, with the reason."""
    run = record.run
    if run.spec.success is None or not run.is_over:
        return None
    notes: list[str] = []

    def progress() -> Iterable[Progress]:
        source = of_run(home, record, notes.append)
        return progress_in(run, source) if source is not None else ()

    try:
        last = _last_reported(home, run, progress)
    except (ExternalError, UsageError) as error:
        return judged(run.spec.success, {}, f"the metrics cannot be read: {error}")
    if not last and notes:
        return judged(run.spec.success, {}, f"the metrics cannot be read: {notes[0]}")
    return judged(run.spec.success, last)


def criteria_with(home: Home, run: Run, progress: Iterable[Progress]) -> tuple[Criterion, ...] | None:
    """Return the criteria, judged; None as in `criteria_of`. `progress`: what was read of the trainer's metrics. Raises ExternalError if
    the bucket does not answer."""
    if run.spec.success is None or not run.is_over:
        return None
    return judged(run.spec.success, _last_reported(home, run, lambda: progress))


def _last_reported(home: Home, run: Run, progress: Callable[[], Iterable[Progress]]) -> dict[str, Reported]:
    """Return the last values: those of the run's results, by which it is judged everywhere, or if there are none, as for a run whose agent
    streamed no metrics, those of `progress`."""
    results = read_results(home.bucket(), run)
    if results is not None and results.numbers:
        return in_results(run.spec.trainer.kind, results.final)
    return last_reported(run.spec, progress())
