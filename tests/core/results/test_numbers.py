"""Results are numbers that a machine reported, so only what is complete, bounded and finite is read; and of
several numbers of a name, the one that was measured last counts.
"""

import json
import math

import pytest
from pydantic import ValidationError

from prime_train.buckets.keys import parse_output_key
from prime_train.outputs.results.numbers import (
    NUMBERS_MAX,
    RESULTS_BYTES_MAX,
    AttemptResults,
    Number,
    ResultSource,
    RunResults,
    number,
    parse_attempt_results,
    parse_run_results,
)

IDENTITY = "0123456789abcdef"
RUN = RunResults(
    run="tiny-1",
    attempt=2,
    identity=IDENTITY,
    state="succeeded",
    config="tiny",
    config_sha256="a" * 64,
    commit="c" * 40,
    ended_s=9,
    step=7,
)


def attempt(*numbers: Number) -> AttemptResults:
    return AttemptResults(run="tiny-1", attempt=2, identity=IDENTITY, numbers=numbers)


def read(data: bytes) -> AttemptResults | None:
    return parse_attempt_results(data, "tiny-1", 2, IDENTITY)


def test_what_is_written_is_read_again() -> None:
    made = attempt(
        number("loss", 2.5, step=40),
        number("eval/accuracy", 0.8, ResultSource.EVALUATION, step=20),
        number("export/size", 3, ResultSource.AFTER, by="export"),
        number("reward", math.nan, step=40),
    )
    assert read(made.data) == made
    assert made.key == f"runs/tiny-1/outputs/e2-{IDENTITY}/results.json"
    assert parse_output_key("tiny-1", made.key) is None
    run = RUN.model_copy(update={"numbers": made.numbers})
    assert parse_run_results(run.data, "tiny-1") == run
    assert run.key == "runs/tiny-1/results.json"


def test_a_step_after_training_counts_before_the_newest_evaluation_and_that_before_the_training() -> None:
    made = attempt(
        number("acc", 0.9, ResultSource.AFTER, by="final"),
        number("acc", 0.7, ResultSource.EVALUATION, step=20),
        number("acc", 0.1, step=40),
        number("eval", 0.6, ResultSource.EVALUATION, step=30),
        number("eval", 0.5, ResultSource.EVALUATION, step=4),
        number("eval", 0.2, step=40),
        number("loss", math.inf, step=40),
    )
    assert {name: one.value for name, one in made.final.items()} == {"acc": 0.9, "eval": 0.6, "loss": None}


def test_a_newer_number_replaces_an_older_one_and_the_oldest_evaluations_make_room() -> None:
    made = attempt(number("loss", 3, step=1), number("acc", 0.5, ResultSource.EVALUATION, step=1))
    newer = made.with_numbers(
        [number("loss", 2, step=2), number("acc", 0.6, ResultSource.EVALUATION, step=2)]
    )
    assert [(one.name, one.value) for one in newer.numbers] == [("loss", 2), ("acc", 0.5), ("acc", 0.6)]
    many = made.with_numbers(
        number("acc", 0.5, ResultSource.EVALUATION, step=step) for step in range(NUMBERS_MAX + 5)
    )
    assert len(many.numbers) == NUMBERS_MAX
    assert min(one.step or 0 for one in many.numbers if one.name == "acc") == 6
    assert "loss" in many.final
    assert read(many.data) == many


def _damaged(**changes: object) -> bytes:
    good = json.loads(attempt(number("loss", 2.5, step=40)).data)
    return json.dumps(good | changes).encode()


def _number(**changes: object) -> bytes:
    return _damaged(numbers=[{"name": "loss", "value": 2.5, "step": 40} | changes])


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b'{"run": "tiny-1"',
        _damaged(version=2),
        _damaged(run="other"),
        _damaged(attempt=3),
        _damaged(identity="f" * 16),
        _damaged(surprise=1),
        _damaged(numbers=[{"name": "loss", "value": 1}] * 2),
        _damaged(numbers=[{"name": f"n{index}", "value": 1} for index in range(NUMBERS_MAX + 1)]),
        _number(value=math.nan),
        _number(value=-math.inf),
        _number(value="2.5"),
        _number(value=True),
        _number(name=""),
        _number(name="x" * 101),
        _number(name="loss\u202e"),
        _number(name="two\nlines"),
        _number(step=-1),
        _number(step=1.5),
        _number(source="guess"),
        _number(source="after"),
        _number(source="evaluation", step=None),
        _number(by="export"),
        b" " * RESULTS_BYTES_MAX + attempt().data,
    ],
)
def test_anything_else_is_no_result(data: bytes) -> None:
    assert read(data) is None


def test_a_name_that_no_reader_accepts_is_not_written() -> None:
    with pytest.raises(ValidationError, match="no control characters"):
        number("loss\x1b[2J", 1)
