"""How long a step takes on each kind of machine."""

from dataclasses import replace

import pytest

from prime_train.core.market.observations import observations
from prime_train.core.market.step_times import Source, StepEstimate, StepTime, step_times
from prime_train.core.offers import Offer
from prime_train.core.run import Attempt, Run, RunState
from tests import builders as b

H100, A100 = Offer("prime", "h", 2.0, spot=True, gpu="H100", gpu_count=1), Offer("prime", "a", 1.0, spot=True, gpu="A100", gpu_count=1)
ESTIMATES = (StepEstimate("H100", 1, 4.0, 16.0), StepEstimate("A100", 1, 10.0, 40.0))


def trained(offer: Offer, step_s: int, *, steps: int = 101) -> Run:
    attempt = Attempt(1, offer, 0, pod_id="p", first_step_s=100, last_sign_s=100 + (steps - 1) * step_s, last_step=steps)
    return replace(b.run(RunState.QUEUED), attempts=(attempt,))


SPEC = trained(H100, 1).spec


def measured(*runs: Run) -> dict[tuple[str, int], float]:
    return dict(observations(runs, 10_000).steps_of(SPEC))


def test_nothing_is_known_without_runs_and_estimates() -> None:
    assert step_times(measured()) == {}


def test_the_newest_run_of_the_same_training_counts() -> None:
    other = replace(trained(H100, 30), spec=b.spec(trainer={**SPEC.trainer.model_dump(), "steps": 7}))
    assert measured(other, trained(H100, 12), trained(H100, 20)) == {("H100", 1): 12.0}


def test_a_few_steps_are_no_measurement() -> None:
    assert measured(trained(H100, 12, steps=5)) == {}


def test_estimates_are_used_until_a_step_was_measured() -> None:
    assert step_times({}, ESTIMATES) == {
        ("H100", 1): StepTime(8.0, Source.ESTIMATED),
        ("A100", 1): StepTime(20.0, Source.ESTIMATED),
    }


def test_the_estimate_of_another_kind_is_corrected_by_what_was_measured() -> None:
    found = step_times({("H100", 1): 12.0}, ESTIMATES)
    assert found["H100", 1] == StepTime(12.0, Source.MEASURED)
    assert found["A100", 1].seconds == pytest.approx(30.0)
    assert found["A100", 1].source is Source.SCALED


def test_a_measured_kind_and_a_mere_estimate_are_not_mixed() -> None:
    assert set(step_times({("H100", 1): 12.0}, ESTIMATES[1:])) == {("H100", 1)}
