"""How many steps a run makes whose config does not say it: as finished runs of the same training did, or else
unknown.
"""

from dataclasses import replace
from typing import Any

import pytest

from prime_train.estimate.cost.bill import bill_of
from prime_train.market.left_of_run import market_of, work_of
from prime_train.market.observations import NOTHING_SEEN, observations
from prime_train.market.quotes import Market
from prime_train.market.run_lengths import RUNS_MAX, guessed_tokens
from prime_train.market.shared import packed, unpacked
from prime_train.market.step_times import TimeSource
from prime_train.runs.forecast import Forecast, StepEstimate
from prime_train.runs.offer import Offer
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import Probe, Run, RunState
from tests import builders as b

NOW_S = b.T0_S
FAMILY = "prime_rl: Qwen/Qwen3-8B full with rollouts"
OFFER = Offer("prime", "x", 2.0, spot=False, gpu="H100_80GB", gpu_count=1)
MATH = Forecast(
    (StepEstimate("H100_80GB", 1, 3.0, 3.0),), family=FAMILY, environment="math-python", batch_tokens=1000.0
)


def finished(
    run_id: str, steps: int, *, command: str = "python train.py", forecast: Forecast = MATH, **changes: Any
) -> Run:
    spec = b.spec(trainer={"command": command, "steps": steps})
    return replace(
        b.run(RunState.SUCCEEDED, run_id=run_id, spec=spec, best_step=steps),
        attempts=(),
        forecast=forecast,
        **changes,
    )


def asked(*runs: Run, command: str = "python train.py", forecast: Forecast = MATH, **changes: Any) -> Market:
    """Return the market of a run whose config does not say how many steps it makes."""
    spec = b.spec(trainer={"command": command, "steps": None})
    run = replace(
        b.run(RunState.QUEUED, spec=spec, run_id="asked"), forecast=forecast, attempts=(), **changes
    )
    return market_of(run, observations(runs, NOW_S), NOW_S)


def test_the_median_of_finished_runs_of_the_same_config_is_taken_and_they_are_named() -> None:
    market = asked(finished("a", 800), finished("b", 1500), finished("c", 1200))
    assert market.work.steps == 1200
    assert (
        market.length
        == "1,200 steps: the median of 3 finished runs of the same training (800 to 1,500): a, b, c"
    )


def test_a_single_finished_run_is_called_one() -> None:
    market = asked(finished("a", 800))
    assert market.length == "800 steps, as one finished run of the same training took: a"


def test_where_the_config_never_ran_those_of_the_same_trainer_model_and_environment_count() -> None:
    other = finished("other", 9000, command="c", forecast=replace(MATH, environment="wordle"))
    market = asked(finished("a", 800, command="a"), finished("b", 1000, command="b"), other, command="new")
    assert market.work.steps == 900
    assert "2 finished runs of the same trainer, model and environment (800 to 1,000)" in market.length


def test_another_model_or_another_unit_is_not_alike() -> None:
    other = finished(
        "a", 800, command="a", forecast=replace(MATH, family="prime_rl: Qwen/Qwen3-4B full with rollouts")
    )
    epochs = replace(
        finished("b", 3, command="b"),
        spec=b.spec(trainer={"command": "b"}, checkpoints={"pattern": "epoch_{epoch}"}),
    )
    assert asked(other, epochs, command="new").work.steps is None


@pytest.mark.parametrize(
    "changes",
    [
        {"state": RunState.FAILED},
        {"state": RunState.STOPPED},
        {"probe": Probe("tiny", 10, 60.0)},
        {"best_step": 0},
    ],
    ids=["failed", "stopped", "probe", "no step"],
)
def test_a_run_that_did_not_finish_tells_nothing(changes: dict[str, Any]) -> None:
    market = asked(replace(finished("a", 800), **changes))
    assert market.work.steps is None
    assert "no finished run is like it" in market.length
    assert "hours of training are assumed" in market.length


def test_a_number_in_the_config_or_in_the_trainers_settings_is_never_guessed_over() -> None:
    assert (
        work_of(
            replace(b.run(RunState.QUEUED, spec=b.spec(trainer={"steps": 70})), attempts=()),
            NOTHING_SEEN,
            NOW_S,
        ).steps
        == 70
    )
    market = asked(finished("a", 800), forecast=replace(MATH, last_step=50))
    assert (market.work.steps, market.work.guess, market.length) == (50, None, "")


def test_a_run_that_resumes_has_the_rest_left_and_one_beyond_all_others_an_unknown_one() -> None:
    runs = (finished("a", 800), finished("b", 1500), finished("c", 1200))

    def resumed(step: int) -> Market:
        return asked(*runs, resume=ResumePoint(step=step, attempt=1, key=""))

    assert resumed(1000).work.steps == 200
    assert resumed(1300).work.steps == 200
    beyond = resumed(1500)
    assert (beyond.work.steps, beyond.work.guess) == (None, None)


def test_the_quote_and_the_bill_say_that_the_steps_are_guessed_and_carry_their_range() -> None:
    given = asked(forecast=replace(MATH, last_step=1200))
    market = asked(finished("a", 600), finished("b", 2400), finished("c", 1200))
    quote = market.quote(OFFER)
    assert "1.0 h of training (estimated, steps as in finished runs)" in quote.why
    assert quote.source is TimeSource.ESTIMATED
    assert quote.usd == pytest.approx(given.quote(OFFER).usd)
    bill, sure = bill_of(market, quote), bill_of(given, given.quote(OFFER))
    assert bill is not None
    assert sure is not None
    (line,), (known,) = ([one for one in each.lines if one.name == "training"] for each in (bill, sure))
    assert line.time.low == pytest.approx(known.time.low / 2)
    assert line.time.high == pytest.approx(known.time.high * 2)
    assert line.why.startswith("1,200 steps, as in finished runs, of ")


def test_only_the_newest_runs_are_compared() -> None:
    runs = [finished(f"r{number}", 100) for number in range(RUNS_MAX)]
    assert asked(*runs, *(finished(f"old{number}", 900) for number in range(100))).work.steps == 100


def test_a_model_alone_is_compared_by_tokens() -> None:
    seen = observations([finished("a", 800), finished("b", 1000, command="x")], NOW_S)
    guess = guessed_tokens(seen.lengths, "qwen/qwen3-8b FULL with rollouts")
    assert guess is not None
    assert (
        guess.text("tokens")
        == "900,000 tokens: the median of 2 finished runs of the same model and method (800,000 to "
        "1,000,000): a, b"
    )
    assert guessed_tokens(seen.lengths, "Qwen/Qwen3-8B lora") is None
    assert guessed_tokens(seen.lengths, "") is None


def test_whoever_may_not_read_the_store_gets_the_numbers_without_the_runs() -> None:
    seen = observations([finished("secret-a", 800), finished("secret-b", 1000)], NOW_S)
    body = packed(seen)
    assert b"secret" not in body
    spec = b.spec(trainer={"command": "python train.py", "steps": None})
    run = replace(b.run(RunState.QUEUED, spec=spec), forecast=MATH, attempts=())
    market = market_of(run, unpacked(body, [], []), NOW_S)
    assert market.length == "900 steps: the median of 2 finished runs of the same training (800 to 1,000)"
