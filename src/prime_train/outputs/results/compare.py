"""Compare the results of a run with those of another run, by default of the newest run on the base branch."""

from collections.abc import Callable

from prime_train.advice import Advice, Call, Operation
from prime_train.buckets.port import Bucket
from prime_train.errors import UsageError
from prime_train.outputs.results.comparison import Comparison, compared
from prime_train.outputs.results.numbers import RunResults
from prime_train.outputs.results.write import base_runs, pull_results, read_results
from prime_train.runs.lookup import find
from prime_train.runs.run import Run
from prime_train.runs.store import Store
from prime_train.spec.requirements import Requirement, parse_requirement


def compare(store: Store, bucket: Callable[[], Bucket], name: str, base: str = "") -> Comparison:
    """Return the results of the run that `name` stands for, compared with those of the run `base`, and its
    requirements judged. Without `base`, the run is compared as on its pull request, or else with the newest
    other run of its config from the same branch that succeeded.

    Raises UsageError if there is no such run, or it has no results, and the errors of store and bucket.
    """
    run = find(store, name).run
    results = _results(bucket, run)
    if base:
        return compared([results], [_results(bucket, find(store, base).run)], _requirements(run))
    return pull_results(store, bucket, run).comparison or compared(
        [results], _of_branch(store, bucket, run), _requirements(run)
    )


def _of_branch(store: Store, bucket: Callable[[], Bucket], run: Run) -> list[RunResults]:
    origin = run.origin
    if origin is None or not (origin.base or origin.branch):
        why = f"{run.run_id} was not launched from a branch on GitHub, so it has no base"
        raise UsageError(why, fix="name the run to compare it with")
    runs = base_runs(store.list_runs(), origin, but=run.run_id)
    return [_results(bucket, runs[0])] if runs else []


def _results(bucket: Callable[[], Bucket], run: Run) -> RunResults:
    results = read_results(bucket(), run)
    if results is None:
        why = "it never had a machine" if run.is_over else "it has not ended"
        raise UsageError(
            f"{run.run_id} has no results: {why}",
            fix=Advice(Call(Operation.STATUS, run.run_id), " shows its state"),
        )
    return results


def _requirements(run: Run) -> list[Requirement]:
    return [parse_requirement(line) for line in run.spec.require]
