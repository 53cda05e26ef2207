"""Which files and folders belong to a checkpoint, by their names."""

import pytest
from pydantic import ValidationError

from prime_train.spec.checkpoint_names import CheckpointNames, fixed_part, is_place
from tests.builders import spec


@pytest.mark.parametrize(
    ("pattern", "name", "step"),
    [
        ("ckpt-{step}.pt", "ckpt-000100.pt", 100),
        ("ckpt-{step}.pt", "ckpt-100.pt", 100),
        ("ckpt-{step}.pt", "ckpt-100.pt.part", None),
        ("ckpt-{step:06d}.pt", "ckpt-100.pt", None),
        ("epoch={epoch}-step={step}.ckpt", "epoch=3-step=400.ckpt", 400),
        ("model_*_{step}.pt", "model_ema_0.99_200.pt", 200),
        ("model_*_{step}", "model_a_200.tmp", None),
        ("last.pt", "last.pt", None),
    ],
)
def test_the_number_in_a_name_is_found_whether_padded_or_not(
    pattern: str, name: str, step: int | None
) -> None:
    assert CheckpointNames(pattern).step_of(name) == step


def test_names_of_epochs_count_from_0_as_the_progress_does_and_the_last_of_20_is_19() -> None:
    made = spec(trainer={"progress": {"first": 0}}, checkpoints={"pattern": "checkpoint-{epoch}.pth"})
    names = CheckpointNames.of(made)
    assert (names.step_of("checkpoint-19.pth"), names.name(20), names.number(20)) == (
        20,
        "checkpoint-19.pth",
        19,
    )
    by_step = spec(trainer={"progress": {"first": 0}}, checkpoints={"pattern": "ckpt-{step}.pt"})
    assert CheckpointNames.of(by_step).step_of("ckpt-20.pt") == 20


def test_files_of_one_number_are_one_checkpoint_and_no_others() -> None:
    names = CheckpointNames("model_{step}.pt", ("optim_{step}_rank*.pt",))
    assert names.belongs("optim_000100_rank3.pt", "model_000100.pt")
    assert not names.belongs("optim_000200_rank3.pt", "model_000100.pt")
    assert names.wrong_part("model_100.pt", ["model_100.pt", "optim_100_rank0.pt", "train.py"]) == "train.py"


def test_a_folder_with_wildcards_stands_for_what_matches_it_and_nothing_above() -> None:
    assert is_place("runs/exp*/weights", "runs/exp2/weights")
    assert not any(
        is_place("runs/exp*/weights", place)
        for place in ("runs/exp2", "runs/../weights", "/runs/exp/weights", "runs/.exp/weights")
    )
    assert (fixed_part("runs/exp*/weights"), fixed_part("*/x")) == ("runs", ".")


@pytest.mark.parametrize(
    ("checkpoints", "said"),
    [
        ({"pattern": "a/{step}"}, "must be one name"),
        ({"pattern": "ckpt-{n}"}, "must be one name"),
        ({"pattern": "last.pt", "also": ["optim_{step}.pt"]}, "has a number"),
        ({"pattern": "last.pt", "first": 0}, "have no number"),
        ({"pattern": "{step}.pt", "also": ["../{step}.pt"]}, "must be one name"),
    ],
)
def test_a_pattern_that_names_no_checkpoint_is_refused(checkpoints: dict[str, object], said: str) -> None:
    with pytest.raises(ValidationError, match=said):
        spec(checkpoints=checkpoints)
