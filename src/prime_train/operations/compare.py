"""Compare the results of a run with those of another run, by default of the newest run on the base branch."""

from prime_train.control_plane.results import base_runs, pull_results, read_results
from prime_train.control_plane.wiring.home import Home
from prime_train.core.advice import Advice, Call, Operation
from prime_train.core.errors import UsageError
from prime_train.core.results.comparison import Comparison, compared
from prime_train.core.results.numbers import RunResults
from prime_train.core.results.requirements import Requirement, parse_requirement
from prime_train.core.run import Run
from prime_train.operations.run_lookup import find
from prime_train.ports import Store


def compare(home: Home, name: str, base: str = "") -> Comparison:
    """Return the results of the run that `name` stands for, compared with those of the run `base`, and its requirements judged. Without
    `base`, the run is compared as on its pull request, or else with the newest other run of its config from the same branch that succeeded.

    Raises UsageError if there is no such run, or it has no results, and the errors of store and bucket.
    """
    store = home.store()
    run = find(store, name).run
    results = _results(home, run)
    if base:
        return compared([results], [_results(home, find(store, base).run)], _requirements(run))
    return pull_results(store, home.bucket, run).comparison or compared([results], _of_branch(home, store, run), _requirements(run))


def _of_branch(home: Home, store: Store, run: Run) -> list[RunResults]:
    origin = run.origin
    if origin is None or not (origin.base or origin.branch):
        why = f"{run.run_id} was not launched from a branch on GitHub, so it has no base"
        raise UsageError(why, fix="name the run to compare it with")
    runs = base_runs(store.list_runs(), origin, but=run.run_id)
    return [_results(home, runs[0])] if runs else []


def _results(home: Home, run: Run) -> RunResults:
    results = read_results(home.bucket(), run)
    if results is None:
        why = "it never had a machine" if run.is_over else "it has not ended"
        raise UsageError(f"{run.run_id} has no results: {why}", fix=Advice(Call(Operation.STATUS, run.run_id), " shows its state"))
    return results


def _requirements(run: Run) -> list[Requirement]:
    return [parse_requirement(line) for line in run.spec.require]
