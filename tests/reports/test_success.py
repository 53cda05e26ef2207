"""Which of the values that a trainer reports criteria are judged by."""

import pytest

from prime_train.outputs.results.criteria import LOSS, REWARD, TOKENS_PER_S, Reported, judged
from prime_train.outputs.results.criteria_values import last_reported, result
from prime_train.spec.spec import ProgressSpec, SuccessSpec
from prime_train.trainers.of_spec import Progress
from prime_train.trainers.progress import JsonReader
from tests import builders as b

PRIME_RL = b.spec(
    trainer={
        "kind": "prime_rl",
        "command": "",
        "steps": 9,
        "prime_rl": {"config": "rl.toml", "ref": "a" * 40},
    }
)


def test_the_last_value_counts_even_if_its_step_was_trained_before() -> None:
    rows = [Progress(1, 5.0, 0.1), Progress(2, 4.0), Progress(1, 4.5, None, {"tokens/s": 9.0})]
    assert last_reported(b.spec(), rows) == {
        LOSS: Reported(4.5, 1),
        REWARD: Reported(0.1, 1),
        TOKENS_PER_S: Reported(9.0, 1),
    }


def test_a_loss_that_became_nan_is_not_met_whatever_it_was_before() -> None:
    reader = JsonReader(ProgressSpec())
    rows = [
        made
        for line in ('{"step": 1, "loss": 2}', '{"step": 2, "loss": NaN}')
        if (made := reader.read(line)) is not None
    ]
    (found,) = judged(SuccessSpec(loss_below=3.2), last_reported(b.spec(), rows))
    assert result(found) == "not met: the last value is not a finite number (step 2)"


@pytest.mark.parametrize("name", ["tps", "throughput(tps)", "tokens_per_second_per_gpu", "perf/throughput"])
def test_a_figure_of_each_gpu_is_not_taken_for_that_of_the_run(name: str) -> None:
    assert last_reported(b.spec(), [Progress(1, 5.0, None, {name: 1e9})]) == {LOSS: Reported(5.0, 1)}


def test_prime_rl_reports_that_of_the_run_under_a_name_of_its_own() -> None:
    assert last_reported(PRIME_RL, [Progress(3, None, None, {"perf/throughput": 1234.5})]) == {
        TOKENS_PER_S: Reported(1234.5, 3)
    }
