"""How long a step takes on each kind of machine."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from prime_train.market.left_of_run import work_of
from prime_train.market.observations import observations
from prime_train.market.step_times import Measurement, StepTime, TimeSource, step_times
from prime_train.runs.forecast import Forecast, StepEstimate
from prime_train.runs.offer import Offer
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import Attempt, Probe, Run, RunState
from tests import builders as b

H100, A100 = (
    Offer("prime", "h", 2.0, spot=True, gpu="H100", gpu_count=1),
    Offer("prime", "a", 1.0, spot=True, gpu="A100", gpu_count=1),
)
ESTIMATES = (StepEstimate("H100", 1, 4.0, 16.0), StepEstimate("A100", 1, 10.0, 40.0))


def trained(offer: Offer, step_s: int, *, steps: int = 101) -> Run:
    attempt = Attempt(
        1, offer, 0, pod_id="p", first_step_s=100, last_sign_s=100 + (steps - 1) * step_s, last_step=steps
    )
    return replace(b.run(RunState.QUEUED), attempts=(attempt,))


SPEC = trained(H100, 1).spec


OTHER = b.spec(trainer={**SPEC.trainer.model_dump(), "command": "python other.py"})


def measured(*runs: Run) -> dict[tuple[str, int], Measurement]:
    return dict(observations(runs, 10_000).steps_of(SPEC))


def seconds(found: Mapping[tuple[str, int], Measurement | StepTime]) -> dict[tuple[str, int], float]:
    return {kind: one.seconds for kind, one in found.items()}


def test_nothing_is_known_without_runs_and_estimates() -> None:
    assert step_times(measured()) == {}


def test_the_newest_run_of_the_same_training_counts() -> None:
    other = replace(trained(H100, 30), spec=OTHER)
    assert seconds(measured(other, trained(H100, 12), trained(H100, 20))) == {("H100", 1): 12.0}


def test_a_longer_training_makes_the_same_steps() -> None:
    longer = replace(trained(H100, 12), spec=b.spec(trainer={**SPEC.trainer.model_dump(), "steps": 7}))
    assert seconds(measured(longer)) == {("H100", 1): 12.0}


def test_a_probe_that_resumes_has_its_steps_before_it_and_not_only_those_since_step_0() -> None:
    probe = replace(
        trained(H100, 12), probe=Probe("tiny", 10, 60.0), resume=ResumePoint(step=200, attempt=1, key="k")
    )
    assert work_of(probe, observations([probe], 10_000), 10_000).steps == 11
    last = replace(probe, spec=b.spec(trainer={**SPEC.trainer.model_dump(), "steps": 203}))
    assert work_of(last, observations([last], 10_000), 10_000).steps == 3


def test_a_few_steps_are_no_measurement() -> None:
    assert measured(trained(H100, 12, steps=5)) == {}


def test_estimates_are_used_until_a_step_was_measured() -> None:
    assert step_times({}, ESTIMATES) == {
        ("H100", 1): StepTime(8.0, TimeSource.ESTIMATED),
        ("A100", 1): StepTime(20.0, TimeSource.ESTIMATED),
    }


def test_the_estimate_of_another_kind_is_corrected_by_what_was_measured() -> None:
    found = step_times(measured(trained(H100, 12)), ESTIMATES)
    assert (found["H100", 1].seconds, found["H100", 1].source) == (12.0, TimeSource.MEASURED)
    assert found["A100", 1].seconds == pytest.approx(30.0)
    assert found["A100", 1].source is TimeSource.SCALED


def test_a_measured_kind_and_a_mere_estimate_are_not_mixed() -> None:
    assert set(step_times(measured(trained(H100, 12)), ESTIMATES[1:])) == {("H100", 1)}


# ------------------------------------------------------------------------------------------------- other
# settings, other configs


def assert_time(found: StepTime, seconds: float, source: TimeSource) -> None:
    assert found.seconds == pytest.approx(seconds)
    assert found.source is source


def forecast(step_s: float, family: str = "") -> Forecast:
    return Forecast(
        (StepEstimate("H100", 1, step_s / 2, step_s * 2), StepEstimate("A100", 1, step_s, step_s * 4)),
        family=family,
    )


def test_a_changed_trainers_file_scales_what_was_measured_by_the_estimates() -> None:
    before = replace(trained(H100, 12), forecast=forecast(8.0))
    found = step_times(measured(before), forecast(24.0).steps)
    assert_time(found["H100", 1], 36.0, TimeSource.SIMILAR)
    same = step_times(measured(before), forecast(8.0).steps)
    assert (same["H100", 1].seconds, same["H100", 1].source) == (12.0, TimeSource.MEASURED)


def test_runs_of_the_same_model_and_trainer_correct_the_estimates_of_another_config() -> None:
    other = replace(trained(H100, 12), forecast=forecast(8.0, "qwen"), spec=OTHER)
    seen, ours = observations([other], 10_000), forecast(16.0, "qwen")
    found = step_times(seen.steps_of(SPEC), ours.steps, seen.similar_to(ours))
    assert_time(found["H100", 1], 24.0, TimeSource.SIMILAR)
    assert_time(found["A100", 1], 48.0, TimeSource.SCALED)
    assert not seen.similar_to(forecast(16.0, "llama"))
    assert not seen.similar_to(forecast(16.0))


def test_the_machines_own_timing_counts_where_its_agent_reported_it() -> None:
    run = trained(H100, 12)
    (attempt,) = run.attempts
    timed = replace(
        run,
        attempts=(replace(attempt, timed_steps=8, timed_s=20.0, gpu_peak_mib=62_000.0, gpu_mib=81_559.0),),
    )
    found = measured(timed)["H100", 1]
    assert (found.seconds, found.steps, found.gpu_peak_mib, found.gpu_mib) == (2.5, 8, 62_000.0, 81_559.0)


def test_a_kind_that_the_config_does_not_allow_corrects_the_estimates_of_those_that_it_does() -> None:
    elsewhere = replace(trained(H100, 12), forecast=forecast(8.0))
    (allowed,) = [one for one in forecast(8.0).steps if one.gpu == "A100"]
    assert_time(step_times(measured(elsewhere), [allowed])["A100", 1], 24.0, TimeSource.SCALED)
    similar = step_times({}, [allowed], measured(elsewhere))
    assert_time(similar["A100", 1], 24.0, TimeSource.SCALED)
    assert ("H100", 1) not in similar, "of other settings, a time without an estimate says nothing"


@pytest.mark.parametrize(("steps", "timed_s"), [(2**53, 5e-324), (10**9, 1.0), (5, 1e9)])
def test_times_that_no_step_can_take_are_ignored_whoever_reports_them(steps: int, timed_s: float) -> None:
    run = trained(H100, 12)
    (attempt,) = run.attempts
    assert measured(replace(run, attempts=(replace(attempt, timed_steps=steps, timed_s=timed_s),))) == {}
    absurd = {("H100", 1): Measurement(timed_s / steps, steps, estimate_s=8.0)}
    assert {time.source for time in step_times(absurd, ESTIMATES, absurd).values()} == {TimeSource.ESTIMATED}
    tiny = {("H100", 1): Measurement(12.0, 9, estimate_s=5e-324)}
    assert all(time.seconds < 1e7 for time in step_times({}, ESTIMATES, tiny).values())
