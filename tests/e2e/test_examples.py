"""The examples that need no library but numpy run as their pages say, lose a machine, and end with the bytes of an
uninterrupted training.
"""

import json
import sys
from pathlib import Path

import pytest

from prime_train.checks.validate import check_run_config
from prime_train.spec.reader import read_config
from tests.e2e import examples
from tests.e2e.examples import Example, interrupted, uninterrupted

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="processes of a run are found by Linux's means"),
]
REAL = {"hf", "lightning", "torchrun"}
"""Examples whose libraries are installed by `make trainers`: tests/trainers_real/test_examples.py."""
OWN_SCRIPT = Example("own-script", 500, r"ckpt-001000\.npz")
EVALUATION = Example("evaluation", 500, r"step_1000/COMPLETE")
RL = Example("rl", 50, r"step_100/COMPLETE")


def test_every_example_is_run_by_a_test() -> None:
    folders = {path.name for path in examples.FOLDER.iterdir() if path.is_dir()}
    assert folders == {OWN_SCRIPT.name, EVALUATION.name, RL.name, "consumer-repo"} | REAL


@pytest.mark.parametrize("name", [OWN_SCRIPT.name, EVALUATION.name, RL.name, *sorted(REAL)])
def test_nothing_is_found_in_the_config_of_an_example(name: str) -> None:
    found, _ = check_run_config(read_config(examples.FOLDER / name / f"{name}.yaml"))
    assert found == ()


def same_bytes(first: Path, second: Path) -> bool:
    names = sorted(path.name for path in first.iterdir())
    assert names
    return all((first / name).read_bytes() == (second / name).read_bytes() for name in names)


def test_a_script_that_knows_nothing_of_prime_train_goes_on_from_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with interrupted(OWN_SCRIPT, tmp_path, monkeypatch) as done:
        expected = uninterrupted(OWN_SCRIPT, tmp_path) / "runs" / "spirals"
        assert done.last_checkpoint().read_bytes() == (expected / "ckpt-004000.npz").read_bytes()
        (predictions,) = Path("results").rglob("predictions.csv")
        assert predictions.read_bytes() == (expected / "predictions.csv").read_bytes()


def test_the_evaluation_after_training_has_its_numbers_on_another_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with interrupted(EVALUATION, tmp_path, monkeypatch) as done:
        expected = uninterrupted(EVALUATION, tmp_path) / "out" / "checkpoints" / "step_2000"
        assert same_bytes(done.last_checkpoint(), expected)
        (curve,) = Path("results").rglob("curve.csv")
        assert len(curve.read_text().splitlines()) == 1001
        status = json.loads(done.output("status", done.run.run_id, "--json"))
        assert {(one["by"], one["name"]) for one in status["results"]} >= {
            ("evaluate", "error"),
            ("evaluate", "worst"),
        }
        (after,) = [
            one["value"]
            for one in status["results"]
            if (one["name"], one["source"], one["step"]) == ("error", "after", 2000)
        ]
        assert after < 1e-6
        assert [one["outcome"] for one in status["success"]] == ["met"]


def test_a_policy_goes_on_learning_with_the_same_random_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with interrupted(RL, tmp_path, monkeypatch) as done:
        expected = uninterrupted(RL, tmp_path) / "out" / "checkpoints" / "step_600"
        assert same_bytes(done.last_checkpoint(), expected)
        status = json.loads(done.output("status", done.run.run_id, "--json"))
        assert [(one["name"], one["outcome"]) for one in status["success"]] == [("reward_above", "met")]
