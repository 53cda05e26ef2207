"""What runs have reported and measured: the values that the criteria of their configs are judged by, and the
numbers of steps after training and of evaluations.
"""

from collections.abc import Callable, Iterable

from prime_train.app.run_access import RunFiles
from prime_train.buckets.port import Bucket
from prime_train.errors import ExternalError, UsageError
from prime_train.outputs.metrics import left_by, progress_in
from prime_train.outputs.results.criteria import LastValues, in_results
from prime_train.outputs.results.criteria_values import last_reported
from prime_train.outputs.results.numbers import Number, final_numbers
from prime_train.outputs.results.write import measured_numbers, read_results
from prime_train.runs.run import Run
from prime_train.trainers.of_spec import Progress


def results_now(files: RunFiles, run: Run) -> tuple[LastValues | None, tuple[Number, ...] | None]:
    """Return what `last_values` and `step_results` return of the run; None for numbers that cannot be read
    now, as the state of the run does not depend on them.
    """
    try:
        numbers = step_results(files.bucket, run)
    except (ExternalError, UsageError):
        return last_values(files, run), None
    return last_values(files, run), numbers


def step_results(bucket: Callable[[], Bucket], run: Run) -> tuple[Number, ...]:
    """Return the newest number of each name; none if the config has no steps after training, or no attempt
    could run one. Raises ExternalError if the bucket does not answer.
    """
    if not run.spec.after or not run.attempts:
        return ()
    final = final_numbers(measured_numbers(bucket(), run))
    return tuple(final[name] for name in sorted(final))


def last_values(files: RunFiles, run: Run) -> LastValues | None:
    """Return the last values of the figures that criteria are about; None if the config names none or the run
    is not over. If the results cannot be read, no value is known, with the reason.
    """

    def progress() -> Iterable[Progress]:
        source = left_by(files, run)
        return progress_in(run, source) if source is not None else ()

    try:
        return last_values_with(files.bucket, run, progress)
    except (ExternalError, UsageError) as error:
        assert run.spec.success is not None
        return LastValues(run.spec.success, {}, f"the metrics cannot be read: {error}")


def last_values_with(
    bucket: Callable[[], Bucket], run: Run, progress: Callable[[], Iterable[Progress]]
) -> LastValues | None:
    """Return the values of the run's results, by which it is judged everywhere, or if there are none, as for
    a run whose agent streamed no metrics, those of `progress`; None as `last_values`. Raises ExternalError if
    the bucket does not answer.
    """
    wanted = run.spec.success
    if wanted is None or not run.is_over:
        return None
    results = read_results(bucket(), run)
    if results is not None and results.numbers:
        return LastValues(wanted, in_results(run.spec.trainer.kind, results.final))
    return LastValues(wanted, last_reported(run.spec, progress()))
