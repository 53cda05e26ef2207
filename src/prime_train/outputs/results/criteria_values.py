"""The criteria under `success` in a config: the values that they are judged by, and the result in words."""

from collections.abc import Iterable

from prime_train.outputs.results.criteria import (
    LOSS,
    REWARD,
    TOKENS_PER_S,
    Criterion,
    CriterionResult,
    Reported,
    tokens_names,
)
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import Progress

_WORDS = {
    "loss_below": "loss below",
    "reward_above": "reward above",
    "tokens_per_s_min": "tokens per second at least",
}


def last_reported(spec: RunSpec, progress: Iterable[Progress]) -> dict[str, Reported]:
    """Return the last value of each figure, in the order in which the trainer reported them."""
    names = tokens_names(spec.trainer.kind)
    last: dict[str, Reported] = {}
    for made in progress:
        tokens = next((name for name in names if name in made.others or name in made.not_finite), "")
        for figure, name, value in (
            (LOSS, LOSS, made.loss),
            (REWARD, REWARD, made.reward),
            (TOKENS_PER_S, tokens, made.others.get(tokens)),
        ):
            if value is not None or name in made.not_finite:
                last[figure] = Reported(value, made.step)
    return last


def title(one: Criterion) -> str:
    """Return the criterion in words, such as "loss below 3.2"."""
    return f"{_WORDS[one.name]} {one.wanted:.6g}"


def result(one: Criterion) -> str:
    """Return how it was judged, such as "met: 2.1 at step 500"."""
    if one.outcome is CriterionResult.UNKNOWN:
        return f"{one.outcome}: {one.why}"
    if one.seen is None:
        return f"{one.outcome}: {one.why} (step {one.step:,})"
    return f"{one.outcome}: {one.seen:.6g} at step {one.step:,}"


def facts(criteria: Iterable[Criterion]) -> list[tuple[str, str]]:
    """Return criterion and result as pairs of texts."""
    return [(title(one), result(one)) for one in criteria]
