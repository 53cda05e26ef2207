"""The command line of a trainer."""

import shlex
from typing import Any

import pytest

from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import trainer_for
from prime_train.trainers.registry import TRAINERS
from tests.builders import spec
from tests.trainers.prime_rl.prime_rl_spec import prime_rl_spec


def line(
    trainer: dict[str, Any], *, checkpoints: str = "/disk/tree/checkpoints", step: int | None = None
) -> str:
    made = spec(trainer=trainer)
    folder = None if step is None else f"{checkpoints}/step_{step}"
    return trainer_for(made).command(made, checkpoints=checkpoints, resume_step=step, resume_folder=folder)


def test_every_kind_of_the_spec_has_its_trainer() -> None:
    for kind, row in TRAINERS.items():
        made = spec()
        trainer = trainer_for(
            made.model_copy(update={"trainer": made.trainer.model_copy(update={"kind": kind})})
        )
        assert f"{type(trainer).__module__}:{type(trainer).__name__}" == row.implementation


def test_a_first_start_runs_the_command_as_it_is() -> None:
    assert (
        line({"command": "python train.py --out {checkpoints}"})
        == "python train.py --out /disk/tree/checkpoints"
    )


def test_a_resume_appends_its_arguments() -> None:
    requested = {"command": "python train.py", "resume": "--from {checkpoint} --at {step}"}
    assert line(requested, step=30) == "python train.py --from /disk/tree/checkpoints/step_30 --at 30"


def test_resume_arguments_stay_on_the_line_of_a_command_written_as_a_block() -> None:
    requested = {"command": "python train.py \\\n  --fast\n", "resume": "--resume-step {step}"}
    assert line(requested, step=3).endswith("--fast --resume-step 3")


def test_no_resume_argument_is_invented_for_a_script_whose_config_names_none() -> None:
    assert line({"command": "python train.py"}, step=3) == "python train.py"
    assert line({"kind": "torchrun", "command": "train.py"}, step=3) == "python3 train.py"


def test_folders_with_unusual_names_stay_one_word() -> None:
    unusual = "/disk/my runs/$(rm -rf)/it's"
    requested = {"command": "run {checkpoints}", "resume": "--from {checkpoint}"}
    assert shlex.split(line(requested, checkpoints=unusual, step=1)) == [
        "run",
        unusual,
        "--from",
        f"{unusual}/step_1",
    ]


def test_doubled_braces_are_plain_ones() -> None:
    assert line({"command": "run --set '{{\"a\": 1}}'"}) == "run --set '{\"a\": 1}'"


def test_one_torchrun_worker_is_plain_python() -> None:
    requested = {"kind": "torchrun", "command": "train.py --lr 1", "resume": "--resume-step {step}"}
    assert line(requested, step=5) == "python3 train.py --lr 1 --resume-step 5"


def test_one_torchrun_worker_gets_the_variables_torchrun_would_set() -> None:
    made = spec(trainer={"kind": "torchrun", "command": "train.py"})
    first = trainer_for(made).environment(made, attempt=1, run_id="tiny-1")
    assert (first["RANK"], first["LOCAL_RANK"], first["WORLD_SIZE"], first["MASTER_ADDR"]) == (
        "0",
        "0",
        "1",
        "127.0.0.1",
    )
    second = trainer_for(made).environment(made, attempt=1, run_id="tiny-2")
    assert 1024 < int(first["MASTER_PORT"]) < 32768
    assert first["MASTER_PORT"] != second["MASTER_PORT"]


def test_more_workers_are_started_by_torchrun_which_never_restarts_them() -> None:
    requested = {
        "kind": "torchrun",
        "command": "-m pkg.train",
        "workers": 4,
        "resume": "--resume-step {step}",
    }
    assert (
        line(requested, step=5)
        == "torchrun --standalone --nproc-per-node 4 --max-restarts 0 -m pkg.train --resume-step 5"
    )
    made = spec(trainer=requested)
    assert "RANK" not in trainer_for(made).environment(made, attempt=1, run_id="tiny-1")


def test_the_trainer_knows_its_run_and_the_users_variables_win_over_defaults() -> None:
    made = spec(environment={"PYTHONUNBUFFERED": "0", "LR": "1", "PRIME_TRAIN_RUN": "forged"})
    found = trainer_for(made).environment(made, attempt=7, run_id="tiny-1")
    assert found["PRIME_TRAIN_RUN"] == "tiny-1"
    assert found["PRIME_TRAIN_ATTEMPT"] == "7"
    assert found["PYTHONUNBUFFERED"] == "0"
    assert found["LR"] == "1"


WANDB = {"project": "p", "entity": "e"}


@pytest.mark.parametrize(
    "made",
    [
        spec(wandb=WANDB),
        spec(trainer={"kind": "torchrun", "workers": 2}, wandb=WANDB),
        prime_rl_spec(wandb=WANDB),
    ],
)
def test_all_attempts_are_one_run_of_the_tracker(made: RunSpec) -> None:
    found = [trainer_for(made).environment(made, attempt=attempt, run_id="tiny-1") for attempt in (1, 7)]
    for message in found:
        assert [message[f"WANDB_{name}"] for name in ("PROJECT", "ENTITY", "RUN_ID", "RESUME")] == [
            "p",
            "e",
            "tiny-1",
            "allow",
        ]
    assert "WANDB_NOTES" not in found[1], "people may have written there since"


def test_the_trackers_run_leads_back_to_where_it_was_requested() -> None:
    made = spec(wandb=WANDB)
    notes = trainer_for(made).environment(
        made, attempt=1, run_id="tiny-1", link="https://github.com/acme/models/pull/7"
    )["WANDB_NOTES"]
    assert (
        notes == "tiny-1, a run of prime-train: prime-train diagnose tiny-1; requested at "
        "https://github.com/acme/models/pull/7"
    )
