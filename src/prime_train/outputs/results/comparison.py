"""Compares the results of a run with those of a base run, by which the lines under `require` are judged."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, stdev

from prime_train.outputs.results.numbers import ResultSource, RunResults
from prime_train.spec.requirements import JudgedRequirement, Met, Requirement, judged_requirement

PAIRS_MIN = 2
"""Number of pairs of runs with the same seed from which on their means are compared."""
SHOWN_MAX = 20
SUCCEEDED, FAILED = "succeeded", "failed"
_ALWAYS = ("loss", "reward")
Values = Mapping[str, float | None]


@dataclass(frozen=True)
class ComparedNumber:
    """A number of both sides. `base` and `this`: None if it is not finite or, as `in_base` and `in_this`
    tell, not reported. `error`: the standard error of the difference; None for one run against one run.
    """

    name: str
    base: float | None
    this: float | None
    in_base: bool = True
    in_this: bool = True
    error: float | None = None

    @property
    def difference(self) -> float | None:
        if self.base is None or self.this is None:
            return None
        return self.this - self.base


@dataclass(frozen=True)
class Comparison:
    """The results of a run beside those of a base run. `base`: None if there is none. `seeds`: the seeds of
    the pairs of runs whose means are compared; empty if one run is compared with one run.
    """

    this: RunResults
    base: RunResults | None
    numbers: tuple[ComparedNumber, ...]
    requirements: tuple[JudgedRequirement, ...]
    seeds: tuple[int, ...] = ()

    @property
    def outcome(self) -> Met | None:
        """Return the worst outcome of the requirements; None if there are none."""
        outcomes = {one.outcome for one in self.requirements}
        return next((worst for worst in (Met.NOT_MET, Met.PENDING, Met.MET) if worst in outcomes), None)


@dataclass(frozen=True)
class PullResults:
    """What the pull request that started a run is shown of its results. `results`: None while the run goes
    on, or if it had no machine; `comparison`: None without results, or if the run was not launched from a
    pull request's branch; `is_newest`: whether no newer run has the same config and commit, so that this one
    decides whether the requirements are met; `unread`: why there are no results if they cannot be read.
    """

    results: RunResults | None = None
    comparison: Comparison | None = None
    is_newest: bool = True
    unread: str = ""


def compared(
    this: Sequence[RunResults], base: Sequence[RunResults], requirements: Sequence[Requirement]
) -> Comparison:
    """Return the newest of `this` compared with the newest of `base`. Both are sorted newest first, and
    `this` is not empty. If there are enough pairs of runs that differ from these two in nothing but the seed,
    each pair with one seed, their means are compared.
    """
    newest, newest_base = this[0], base[0] if base else None
    pairs = _pairs(this, base)
    if len(pairs) < PAIRS_MIN:
        pairs = {}
    ours = _means([one for one, _ in pairs.values()] or [newest])
    theirs = _means([one for _, one in pairs.values()] or [newest_base]) if newest_base is not None else None
    judged = tuple(_judged(newest, requirement, ours, theirs) for requirement in requirements)
    shown = _shown(newest, newest_base, requirements)
    numbers = tuple(_number(name, ours, theirs or {}, list(pairs.values())) for name in shown)
    return Comparison(newest, newest_base, numbers, judged, tuple(sorted(pairs)))


def _judged(
    run: RunResults, requirement: Requirement, ours: Values, theirs: Values | None
) -> JudgedRequirement:
    if run.state == SUCCEEDED:
        # The means may be of other runs; they do not make up for a number that this one lacks.
        own = run.final.get(requirement.name)
        return judged_requirement(
            requirement, ours if own is not None and own.value is not None else _means([run]), theirs
        )
    outcome = Met.NOT_MET if run.state == FAILED else Met.PENDING
    return JudgedRequirement(requirement, outcome, why=f"the run has not succeeded ({run.state})")


def _pairs(
    this: Sequence[RunResults], base: Sequence[RunResults]
) -> dict[int, tuple[RunResults, RunResults]]:
    """Return the runs of both sides by seed, of those with the same settings and code as the newest of their
    side.
    """
    ours, theirs = _by_seed(this), _by_seed(base)
    return {seed: (ours[seed], theirs[seed]) for seed in sorted(ours.keys() & theirs.keys())}


def _by_seed(runs: Sequence[RunResults]) -> dict[int, RunResults]:
    """Return the newest run of each seed, of those that succeeded with the same settings and code as the
    newest.
    """
    found: dict[int, RunResults] = {}
    for run in runs:
        if run.seed is not None and run.state == SUCCEEDED and _settings(run) == _settings(runs[0]):
            found.setdefault(run.seed, run)
    return found


def _settings(run: RunResults) -> tuple[str, str]:
    return run.config_sha256, run.code_sha256 or run.commit


def _means(runs: Sequence[RunResults]) -> dict[str, float | None]:
    """Return the mean of each number that all the runs have; None if one of them is not finite."""
    values = [{name: number.value for name, number in run.final.items()} for run in runs]
    names = [name for name in values[0] if all(name in others for others in values)]
    return {name: _mean([others[name] for others in values]) for name in names}


def _mean(values: Sequence[float | None]) -> float | None:
    finite = [value for value in values if value is not None]
    found = mean(finite) if len(finite) == len(values) else math.nan
    return found if math.isfinite(found) else None


def _number(
    name: str, ours: Values, theirs: Values, pairs: Sequence[tuple[RunResults, RunResults]]
) -> ComparedNumber:
    differences = [_value(one, name) - _value(other, name) for one, other in pairs]
    return ComparedNumber(
        name, theirs.get(name), ours.get(name), name in theirs, name in ours, _standard_error(differences)
    )


def _standard_error(values: Sequence[float]) -> float | None:
    """Return the standard error of the mean; None if there are too few values, or one is not finite."""
    if len(values) < PAIRS_MIN or not all(map(math.isfinite, values)):
        return None
    largest = max(map(abs, values))
    # Of shares of the largest one, because the squares of large values are not finite.
    error = (
        largest * (stdev([value / largest for value in values]) / math.sqrt(len(values))) if largest else 0.0
    )
    return error if math.isfinite(error) else None


def _value(run: RunResults, name: str) -> float:
    number = run.final.get(name)
    return number.value if number is not None and number.value is not None else math.nan


def _shown(this: RunResults, base: RunResults | None, requirements: Sequence[Requirement]) -> list[str]:
    """Return the names of the numbers that are shown: those that are required, the loss and the reward, and
    results of evaluations and of steps after training.
    """
    found = {**(base.final if base is not None else {}), **this.final}
    measured = [name for name, number in found.items() if number.source is not ResultSource.TRAINING]
    names = [*(one.name for one in requirements), *(name for name in _ALWAYS if name in found), *measured]
    return list(dict.fromkeys(names))[:SHOWN_MAX]
