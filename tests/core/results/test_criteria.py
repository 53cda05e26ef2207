"""A criterion is met only by a value on the right side of its limit; without a value it is unknown."""

import pytest

from prime_train.outputs.results.criteria import LOSS, REWARD, TOKENS_PER_S, CriterionResult, Reported, judged
from prime_train.spec.spec import SuccessSpec


@pytest.mark.parametrize(
    ("figure", "limit", "value", "outcome"),
    [
        (LOSS, "loss_below", 3.1, CriterionResult.MET),
        (LOSS, "loss_below", 3.2, CriterionResult.NOT_MET),
        (LOSS, "loss_below", 3.3, CriterionResult.NOT_MET),
        (REWARD, "reward_above", 3.3, CriterionResult.MET),
        (REWARD, "reward_above", 3.2, CriterionResult.NOT_MET),
        (REWARD, "reward_above", 3.1, CriterionResult.NOT_MET),
        (TOKENS_PER_S, "tokens_per_s_min", 3.3, CriterionResult.MET),
        (TOKENS_PER_S, "tokens_per_s_min", 3.2, CriterionResult.MET),
        (TOKENS_PER_S, "tokens_per_s_min", 3.1, CriterionResult.NOT_MET),
    ],
)
def test_a_value_is_compared_with_its_limit(
    figure: str, limit: str, value: float, outcome: CriterionResult
) -> None:
    wanted = SuccessSpec.model_validate({limit: 3.2})
    (found,) = judged(wanted, {figure: Reported(value, 7)})
    assert (found.name, found.wanted, found.seen, found.step, found.outcome, found.why) == (
        limit,
        3.2,
        value,
        7,
        outcome,
        "",
    )


def test_without_its_value_a_criterion_is_unknown_and_says_why() -> None:
    wanted = SuccessSpec(loss_below=3.2, tokens_per_s_min=10)
    assert [
        (one.name, one.outcome, one.seen, one.why)
        for one in judged(wanted, {REWARD: Reported(1, 1)}, "it is away")
    ] == [
        ("loss_below", CriterionResult.UNKNOWN, None, "it is away"),
        ("tokens_per_s_min", CriterionResult.UNKNOWN, None, "it is away"),
    ]
