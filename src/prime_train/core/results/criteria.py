"""Judges a run by the criteria under `success` in its config, by the last values that its trainer reported."""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from prime_train.core.spec import SuccessSpec


class CriterionResult(StrEnum):
    """How a criterion was judged."""

    MET = "met"
    NOT_MET = "not met"
    UNKNOWN = "unknown"
    """No value was reported, or it cannot be read."""


@dataclass(frozen=True)
class Reported:
    """A value that the trainer reported, and the step it is of."""

    value: float
    step: int


@dataclass(frozen=True)
class Criterion:
    """A criterion and how it was judged. `seen` and `step`: the last value reported, None if there is none. `why`: why the outcome is
    unknown, otherwise empty."""

    name: str
    wanted: float
    seen: float | None
    step: int | None
    outcome: CriterionResult
    why: str = ""


LOSS, REWARD, TOKENS_PER_S = "loss", "reward", "tokens per second"
NOT_REPORTED = "there is no such value in the metrics"


def judged(wanted: SuccessSpec, last: Mapping[str, Reported], why_unknown: str = NOT_REPORTED) -> tuple[Criterion, ...]:
    """Return every criterion that the config names, judged. `last`: the last value reported of `LOSS`, `REWARD` and `TOKENS_PER_S`;
    `why_unknown`: why one may be missing there."""
    limits = (
        ("loss_below", wanted.loss_below, last.get(LOSS)),
        ("reward_above", wanted.reward_above, last.get(REWARD)),
        ("tokens_per_s_min", wanted.tokens_per_s_min, last.get(TOKENS_PER_S)),
    )
    return tuple(_judged(name, limit, seen, why_unknown) for name, limit, seen in limits if limit is not None)


def _judged(name: str, limit: float, seen: Reported | None, why_unknown: str) -> Criterion:
    if seen is None:
        return Criterion(name, limit, None, None, CriterionResult.UNKNOWN, why_unknown)
    match name:
        case "loss_below":
            is_met = seen.value < limit
        case "reward_above":
            is_met = seen.value > limit
        case _:
            is_met = seen.value >= limit
    return Criterion(name, limit, seen.value, seen.step, CriterionResult.MET if is_met else CriterionResult.NOT_MET)
