"""What a script is told at a resume, and what is read of its output, where the config says little."""

from pathlib import Path

import pytest

from prime_agent.trainer.process import resume_of
from prime_agent.trainer.reached_steps import ReachedSteps
from prime_train.trainers.log_lines import unglued
from prime_train.trainers.of_spec import trainer_for
from tests.builders import spec


@pytest.mark.parametrize(
    ("source", "command", "resume"),
    [
        ("p.add_argument('--resume-step', type=int)", "python train.py --lr 1", "--resume-step {step}"),
        ("p.add_argument('--resume')", "python train.py", ""),
        ("p.add_argument('--resume-step', type=int)", "python other.py", ""),
        ("p.add_argument('--resume-step', type=int)", "python 'train.py", ""),
    ],
)
def test_only_a_script_with_the_option_is_told_to_resume(
    tmp_path: Path, source: str, command: str, resume: str
) -> None:
    (tmp_path / "train.py").write_text(source)
    assert resume_of(spec(trainer={"command": command}), tmp_path).trainer.resume == resume


def test_a_config_that_names_arguments_has_them(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("--resume-step")
    made = spec(trainer={"command": "python train.py", "resume": "--from {checkpoint}"})
    assert resume_of(made, tmp_path) is made


def test_a_line_that_follows_a_bar_is_a_line_of_its_own() -> None:
    bar = " 10%|#         | 20/200 [00:01<00:05,  6.57it/s, loss=0.217]"
    assert unglued(f"{bar}step 20 loss 0.2") == [bar, "step 20 loss 0.2"]
    assert unglued(bar) == [bar]
    assert unglued("step 20 of 3/4 [a]b") == ["step 20 of 3/4 [a]b"]


@pytest.mark.parametrize(
    ("pattern", "line", "step"),
    [
        ("ckpt-{step}.pt", "Epoch: [3]  [ 4/10]", 35),
        ("ckpt-{epoch}.pt", "Epoch: [3]  [ 4/10]", 4),
        ("last.pt", "Epoch: [0]  [ 0/10]", 1),
    ],
)
def test_the_batch_of_an_epoch_counts_over_all_epochs_unless_checkpoints_count_epochs(
    pattern: str, line: str, step: int
) -> None:
    regex = r"^Epoch: \[(?P<epoch>\d+)\]\s+\[\s*(?P<batch>\d+)/(?P<batches>\d+)\]"
    made = spec(
        trainer={"progress": {"kind": "regex", "pattern": regex, "first": 0}},
        checkpoints={"pattern": pattern},
    )
    row = trainer_for(made).reader(made).read(line)
    assert row is not None
    assert row.step == step


def test_the_last_of_20_epochs_from_0_is_the_20th() -> None:
    made = spec(trainer={"progress": {"kind": "csv", "step": "epoch", "loss": "train/loss", "first": 0}})
    reader = trainer_for(made).reader(made)
    rows = [reader.read(line) for line in ("epoch, train/loss", "0, 1.5", "19, 0.5")]
    assert [row and (row.step, row.loss) for row in rows] == [None, (1, 1.5), (20, 0.5)]


@pytest.mark.parametrize(
    ("closed_s", "every", "step"),
    [
        (100.0, None, 19),
        (101.0, None, 20),
        (101.4, None, 20),
        (100.9, None, 20),
        (100.0, 20, 20),
        (98.0, 20, 17),
    ],
)
def test_a_file_belongs_to_the_step_whose_line_was_printed_before_it_was_closed(
    closed_s: float, every: int | None, step: int
) -> None:
    now = [81.0]
    reached = ReachedSteps(lambda: now[0], every_steps=every)
    for number in range(31):
        now[0] = 81.0 + number
        reached.add([number])
    assert reached.at(closed_s) == step
