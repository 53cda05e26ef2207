"""Judges a run by the criteria under `success` in its config, by the last values that its trainer
reported.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from prime_train.outputs.results.numbers import Number
from prime_train.spec.spec import SuccessSpec
from prime_train.trainers.registry import TRAINERS


class CriterionResult(StrEnum):
    """How a criterion was judged."""

    MET = "met"
    NOT_MET = "not met"
    UNKNOWN = "unknown"
    """No value was reported, or it cannot be read."""


@dataclass(frozen=True)
class Reported:
    """A value that the trainer reported, and the step it is of. `value`: None if it is not finite, such as
    NaN.
    """

    value: float | None
    step: int


@dataclass(frozen=True)
class Criterion:
    """A criterion and how it was judged. `seen` and `step`: the last value reported, None if there is none.
    If the value is not finite, `seen` is None and the criterion is not met. `why`: why there is no value to
    compare, otherwise empty.
    """

    name: str
    wanted: float
    seen: float | None
    step: int | None
    outcome: CriterionResult
    why: str = ""


LOSS, REWARD, TOKENS_PER_S = "loss", "reward", "tokens per second"
NOT_REPORTED = "there is no such value in the metrics"
NOT_FINITE = "the last value is not a finite number"
_TOKENS_NAMES = ("tokens_per_s", "tokens_per_sec", "tokens_per_second", "tokens/s", "train_tokens_per_second")
"""Usual names of the whole run's tokens per second; each kind of trainer may have further ones."""


def tokens_names(kind: str) -> tuple[str, ...]:
    """Return the names by which trainers of this kind report the whole run's tokens per second. Figures of a
    single GPU, such as torchtitan's `tps` and verl's `perf/throughput`, are not among them, because they
    would have to be multiplied by a number of GPUs that the metrics do not contain.
    """
    return (*_TOKENS_NAMES, *TRAINERS[kind].tokens_per_s)


def in_results(kind: str, numbers: Mapping[str, Number]) -> dict[str, Reported]:
    """Return the figures that criteria are about among a run's results, for a trainer of this kind."""
    tokens = next((name for name in tokens_names(kind) if name in numbers), "")
    named = ((LOSS, LOSS), (REWARD, REWARD), (TOKENS_PER_S, tokens))
    found = ((figure, numbers[name]) for figure, name in named if name in numbers)
    return {figure: Reported(number.value, number.step or 0) for figure, number in found}


def judged(
    wanted: SuccessSpec, last: Mapping[str, Reported], why_unknown: str = NOT_REPORTED
) -> tuple[Criterion, ...]:
    """Return every criterion that the config names, judged. `last`: the last value reported of `LOSS`,
    `REWARD` and `TOKENS_PER_S`; `why_unknown`: why one may be missing there.
    """
    limits = (
        ("loss_below", wanted.loss_below, last.get(LOSS)),
        ("reward_above", wanted.reward_above, last.get(REWARD)),
        ("tokens_per_s_min", wanted.tokens_per_s_min, last.get(TOKENS_PER_S)),
    )
    return tuple(_judged(name, limit, seen, why_unknown) for name, limit, seen in limits if limit is not None)


@dataclass(frozen=True)
class LastValues:
    """The last value that a run reported of `LOSS`, `REWARD` and `TOKENS_PER_S`, by which the criteria
    `wanted` of its config are judged. `why_missing`: why one may be missing.
    """

    wanted: SuccessSpec
    values: Mapping[str, Reported]
    why_missing: str = NOT_REPORTED

    @property
    def criteria(self) -> tuple[Criterion, ...]:
        return judged(self.wanted, self.values, self.why_missing)


def _judged(name: str, limit: float, seen: Reported | None, why_unknown: str) -> Criterion:
    if seen is None:
        return Criterion(name, limit, None, None, CriterionResult.UNKNOWN, why_unknown)
    if seen.value is None:
        return Criterion(name, limit, None, seen.step, CriterionResult.NOT_MET, NOT_FINITE)
    match name:
        case "loss_below":
            is_met = seen.value < limit
        case "reward_above":
            is_met = seen.value > limit
        case _:
            is_met = seen.value >= limit
    return Criterion(
        name, limit, seen.value, seen.step, CriterionResult.MET if is_met else CriterionResult.NOT_MET
    )
