"""Two runs are compared, or the means of runs that differ in nothing but the seed; and from what a config
says, its seed is read.
"""

import math
from typing import Any

import pytest

from prime_train.outputs.results.comparison import compared
from prime_train.outputs.results.numbers import Number, ResultSource, RunResults, number
from prime_train.outputs.results.write import seed_of, settings_digest
from prime_train.spec.requirements import Met, parse_requirement
from tests import builders as b

BETTER = [parse_requirement("loss < base")]


def result(run: str, loss: float, seed: int | None = None, **changes: Any) -> RunResults:
    fields: dict[str, Any] = {
        "attempt": 1,
        "state": "succeeded",
        "config": "tiny",
        "config_sha256": "a" * 64,
        "ended_s": 9,
        "step": 7,
    }
    return RunResults(run=run, seed=seed, numbers=(number("loss", loss, step=7),), **(fields | changes))


def test_one_run_is_compared_with_one_run() -> None:
    found = compared([result("new", 2.0, 1), result("old", 9.0, 2)], [result("base", 3.0, 1)], BETTER)
    assert (found.seeds, found.outcome) == ((), Met.MET)
    assert [(one.name, one.base, one.this, one.difference, one.error) for one in found.numbers] == [
        ("loss", 3.0, 2.0, -1.0, None)
    ]


def test_runs_with_the_same_seeds_are_compared_by_their_means() -> None:
    ours = [result("n1", 2.0, 1), result("n2", 4.0, 2), result("n1-older", 99.0, 1), result("n4", 50.0, 4)]
    theirs = [result("b2", 3.0, 2), result("b1", 2.0, 1), result("b3", 0.1, 3)]
    found = compared(ours, theirs, BETTER)
    (loss,) = found.numbers
    assert (found.seeds, loss.this, loss.base) == ((1, 2), 3.0, 2.5)
    assert loss.error == pytest.approx(0.5)
    assert found.outcome is Met.NOT_MET


@pytest.mark.parametrize(
    ("numbers", "why"), [((number("loss", math.nan),), "is not finite"), ((), "has no result named loss")]
)
def test_means_over_other_seeds_do_not_make_up_for_a_number_that_the_newest_run_lacks(
    numbers: tuple[Number, ...], why: str
) -> None:
    newest = result("n3", 0.0, 3).model_copy(update={"numbers": numbers})
    found = compared(
        [newest, result("n2", 1.0, 2), result("n1", 1.0, 1)],
        [result("b2", 3.0, 2), result("b1", 2.0, 1)],
        BETTER,
    )
    assert (found.seeds, found.outcome) == ((1, 2), Met.NOT_MET)
    assert why in found.requirements[0].why


@pytest.mark.parametrize(("large", "error"), [(1e300, 1e300), (1.7e308, 1.7e308), (0.0, 0.0)])
def test_the_standard_error_of_numbers_of_any_size_is_known(large: float, error: float) -> None:
    found = compared(
        [result("n2", large, 2), result("n1", -large, 1)],
        [result("b2", 0.0, 2), result("b1", 0.0, 1)],
        BETTER,
    )
    assert found.numbers[0].error == pytest.approx(error)


@pytest.mark.parametrize(
    "changes",
    [{"config_sha256": "b" * 64}, {"code_sha256": "other"}, {"commit": "other"}, {"state": "failed"}],
)
def test_a_run_of_other_settings_or_code_is_no_pair(changes: dict[str, str]) -> None:
    found = compared(
        [result("n1", 2.0, 1), result("n2", 4.0, 2, **changes)],
        [result("b2", 3.0, 2), result("b1", 2.5, 1)],
        BETTER,
    )
    (loss,) = found.numbers
    assert (found.seeds, loss.this, loss.base) == ((), 2.0, 3.0)


@pytest.mark.parametrize(
    ("state", "outcome"), [("failed", Met.NOT_MET), ("stopped", Met.PENDING), ("cancelled", Met.PENDING)]
)
def test_a_run_that_has_not_succeeded_meets_nothing(state: str, outcome: Met) -> None:
    found = compared([result("new", 1.0, state=state)], [result("base", 3.0)], BETTER)
    assert found.outcome is outcome
    assert found.requirements[0].why == f"the run has not succeeded ({state})"


def test_what_is_required_comes_first_and_results_of_steps_after_training_are_shown_unasked() -> None:
    made = result("new", 1.0)
    more = made.model_copy(
        update={
            "numbers": (
                *made.numbers,
                number("lr", 1),
                number("acc", 0.5, ResultSource.AFTER, by="evaluate"),
                number("zeta", 2),
            )
        }
    )
    assert [one.name for one in compared([more], [], [parse_requirement("zeta < 3")]).numbers] == [
        "zeta",
        "loss",
        "acc",
    ]


@pytest.mark.parametrize(
    ("command", "environment", "seed"),
    [
        ("python train.py --seed 3", {}, 3),
        ("python train.py --trainer.seed=3", {}, 3),
        ("python train.py seed=3 lr=1", {}, 3),
        ("python train.py", {"SEED": "7"}, 7),
        ("python train.py", {"DATA_SEED": "7"}, 7),
        ("python train.py --seed 3", {"SEED": "4"}, None),
        ("python train.py --seed 3.5", {}, None),
        ("python train.py --reseed 3", {}, None),
        ("python seed.py", {}, None),
    ],
)
def test_the_seed_is_that_of_the_command_or_of_a_variable(
    command: str, environment: dict[str, str], seed: int | None
) -> None:
    assert seed_of(b.spec(trainer={"command": command}, environment=environment)) == seed


def test_settings_differ_by_what_changes_the_training_and_not_by_the_seed_or_the_machine() -> None:
    def digest(command: str, **changes: Any) -> str:
        return settings_digest(b.spec(trainer={"command": command}, **changes))

    same = digest("t.py --seed 1 --lr 1", environment={"SEED": "1"})
    assert same == digest(
        "t.py --seed 22 --lr 1", environment={"SEED": "2"}, name="other", budget={"usd": 99}
    )
    evaluated = digest("t.py", after=[{"name": "evaluate", "run": "e.py --limit 100 --seed 1"}])
    assert evaluated == digest(
        "t.py", after=[{"name": "evaluate", "run": "e.py --limit 100 --seed 2", "retries": 3}]
    )
    others = (digest("t.py"), digest("t.py", after=[{"name": "evaluate", "run": "e.py --limit 9 --seed 1"}]))
    assert evaluated not in others, "the results of an evaluation depend on its command"
    assert settings_digest(b.spec()) != settings_digest(b.spec(), "other-1@10")
    assert same not in (
        digest("t.py --seed 1 --lr 2", environment={"SEED": "1"}),
        digest("t.py --seed 1 --lr 1", environment={"A": "1"}),
    )
