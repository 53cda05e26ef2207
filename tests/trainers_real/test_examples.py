"""The examples with torch run as their pages say, lose a machine, and end with the very state of an uninterrupted
training.
"""

import os
from pathlib import Path

import pytest

from tests.e2e.examples import Example, interrupted, uninterrupted
from tests.e2e.test_examples import REAL
from tests.trainers_real.machine_taken_away import QUIET, TRAINERS, differences

HF = Example("hf", 50, r"checkpoint-100/trainer_state\.json")
LIGHTNING = Example("lightning", 100, r"step=200\.ckpt")
TORCHRUN = Example("torchrun", 50, r"step_100/COMPLETE")
LAST = {
    HF.name: "checkpoints/checkpoint-300",
    LIGHTNING.name: "checkpoints/step_600",
    TORCHRUN.name: "checkpoints/step_300",
}


@pytest.mark.parametrize("example", [HF, LIGHTNING, TORCHRUN], ids=lambda example: example.name)
def test_an_example_ends_with_the_state_of_an_uninterrupted_training(
    example: Example, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    environment = {**QUIET, "PATH": f"{TRAINERS}:{os.environ['PATH']}"}
    with interrupted(example, tmp_path, monkeypatch, environment) as done:
        expected = uninterrupted(example, tmp_path, environment) / LAST[example.name]
        assert differences(done.last_checkpoint(), expected, tmp_path) == []


def test_every_example_with_a_library_is_here() -> None:
    assert set(LAST) == REAL
