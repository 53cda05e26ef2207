"""Kind torchtitan: its training module, or scripts with its checkpointer."""

from typing import Any

import pytest

from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.trainers.exit_classifier import fired
from prime_train.trainers.of_spec import FileInfo, classify, trainer_for
from prime_train.trainers.progress import Progress
from prime_train.trainers.registry import TRAINERS
from tests.builders import spec

NOW_S = 1_800_000_000
FOLDER = "/disk/tree/checkpoints"
OWN = f"--checkpoint.enable --checkpoint.folder {FOLDER}"


def titan(command: str = "-m torchtitan.train --module llama3 --config llama3_8b", **trainer: Any) -> RunSpec:
    return spec(trainer={"kind": "torchtitan", "command": command, **trainer}, checkpoints={})


def line(made: RunSpec, *, step: int | None = None) -> str:
    folder = None if step is None else f"{FOLDER}/step-{step}"
    return trainer_for(made).command(made, checkpoints=FOLDER, resume_step=step, resume_folder=folder)


# ------------------------------------------------------------------------------------------------------------
# its command


def test_it_saves_where_the_agent_looks_and_loads_the_step_that_was_restored() -> None:
    made = titan(workers=8)
    launched = (
        "torchrun --standalone --nproc-per-node 8 --max-restarts 0 -m torchtitan.train --module llama3 "
        "--config llama3_8b"
    )
    assert line(made) == f"{launched} {OWN} --checkpoint.no_last_save_model_only"
    assert (
        line(made, step=30)
        == f"{launched} --checkpoint.load_step 30 {OWN} --checkpoint.no_last_save_model_only"
    )


@pytest.mark.parametrize(
    "chosen",
    [
        "--checkpoint.last_save_model_only",
        "--checkpoint.last-save-in-hf",
        "--checkpoint.no-last-save-model-only",
    ],
)
def test_what_the_last_checkpoint_holds_may_be_chosen(chosen: str) -> None:
    assert line(titan(f"train.py {chosen}")) == f"python3 train.py {chosen} {OWN}"


def test_a_single_process_has_the_variables_of_a_process_group() -> None:
    made = titan()
    assert trainer_for(made).environment(made, attempt=1, run_id="tiny-1")["WORLD_SIZE"] == "1"


@pytest.mark.parametrize(
    ("argument", "said"),
    [
        ("--checkpoint.no-enable", "switches off checkpoints"),
        ("--checkpoint.load_only", "switches off checkpoints"),
        ("--checkpoint.load_step 40", "--checkpoint.load_step itself"),
        ("--checkpoint.folder=out", "--checkpoint.folder itself"),
        ("checkpoint:torch-checkpointing-manager.config", "neither saves nor loads"),
    ],
)
def test_an_argument_with_which_it_starts_over_is_an_error_before_the_launch(
    argument: str, said: str
) -> None:
    made = titan(f"-m torchtitan.train {argument}")
    (conflict,) = TRAINERS["torchtitan"].conflicts(made)
    assert said in conflict


def test_a_resume_argument_that_names_no_step_is_an_error_before_the_launch() -> None:
    made = titan(resume="--resume {step}")
    (conflict,) = TRAINERS["torchtitan"].conflicts(made)
    assert "does not say which step torchtitan loads" in conflict


@pytest.mark.parametrize(
    "argument", ["", "--checkpoint.interval 50", "--checkpoint.enable", "--checkpoint.no-load-only"]
)
def test_other_arguments_are_no_contradiction(argument: str) -> None:
    made = titan(f"-m torchtitan.train {argument}")
    assert not TRAINERS["torchtitan"].conflicts(made)
    assert not TRAINERS["torchtitan"].conflicts(titan(resume=""))


# ------------------------------------------------------------------------------------------------------------
# checkpoints


def is_complete(*ages_s: tuple[str, float]) -> bool:
    made = titan()
    return trainer_for(made).is_complete(
        made, [FileInfo(name, 10, NOW_S - age_s) for name, age_s in ages_s], NOW_S
    )


def test_a_checkpoint_is_complete_when_its_metadata_is_newer_than_its_shards() -> None:
    assert is_complete(("__0_0.distcp", 3), ("__1_0.distcp", 2), (".metadata", 1))
    assert not is_complete(("__0_0.distcp", 3), ("__1_0.distcp", 2))


def test_a_step_that_is_saved_again_is_not_complete_by_the_old_metadata() -> None:
    assert not is_complete(("__0_0.distcp", 90), ("__1_0.distcp", 2), (".metadata", 100))


def test_only_its_own_names_are_checkpoints() -> None:
    made = titan()
    assert trainer_for(made).step_of(made, "step-500") == 500
    assert trainer_for(made).step_of(made, "step-500.bak") is None
    with pytest.raises(
        ValueError, match=r"checkpoints.sentinel: kind torchtitan requires .metadata, not DONE"
    ):
        spec(trainer={"kind": "torchtitan", "command": "train.py"}, checkpoints={"sentinel": "DONE"})


# ------------------------------------------------------------------------------------------------------------
# progress

TRAINED = (
    "[titan] 2026-11-23 10:00:00,123 - root - INFO - \x1b[31mstep: 10  \x1b[32mloss:  8.14231  "
    "\x1b[38;2;180;60;0mgrad_norm:  1.4217  \x1b[36mmemory:  0.51GiB(0.54%)  \x1b[34mtps: 12,345  tflops: "
    "1.23  mfu: 0.12%\x1b[39m"
)
PREFIX = "[rank0]:[titan] 2026-11-23 10:00:00,123 - root - INFO - "


@pytest.mark.parametrize(
    ("text", "progress"),
    [
        (TRAINED, Progress(10, 8.14231)),
        (f"[rank0]:{TRAINED}", Progress(10, 8.14231)),
        (f"{PREFIX}step:  7  loss:      nan  grad_norm: nan", Progress(7)),
        (f"{PREFIX}validate step: 10  loss:  8.14231", None),
        (f"{PREFIX}Saving a full checkpoint at last step, step 12.", Progress(12)),
        (f"{PREFIX}Saving a model only checkpoint in torch.float32 at last step, step 12.", Progress(12)),
        (f"{PREFIX}Training starts at step 1", None),
        ("step: 10  loss: 1.0", None),
    ],
)
def test_steps_are_read_from_its_log(text: str, progress: Progress | None) -> None:
    made = titan()
    assert trainer_for(made).reader(made).read(text) == progress


# ------------------------------------------------------------------------------------------------------------
# its end


def test_a_start_at_step_1_stops_a_resumed_training_before_its_first_step() -> None:
    made = titan()
    rules = [rule for rule in trainer_for(made).log_rules(made) if rule.stop]
    found = fired(f"{PREFIX}Training starts at step 1", rules, resumed=True)
    assert found is not None
    assert found.cause is Cause.RESUME_IGNORED
    assert fired(f"{PREFIX}Training starts at step 1", rules, resumed=False) is None
    assert fired(f"{PREFIX}Training starts at step 11", rules, resumed=True) is None


@pytest.mark.parametrize(
    ("said", "code", "cause"),
    [
        (
            "FileNotFoundError: --checkpoint.load_step=4 but checkpoint /c/step-4 is not found.",
            1,
            Cause.BAD_CHECKPOINT,
        ),
        ("Ran out of data; last step was canceled", 0, Cause.STOPPED_EARLY),
        (
            "Loss or gradient norm is not finite on at least one rank at step 7. Stopping training",
            1,
            Cause.NOT_FINITE,
        ),
    ],
)
def test_how_it_ended_is_read_from_its_output(said: str, code: int, cause: Cause) -> None:
    made = titan()
    assert classify([said], trainer_for(made).log_rules(made), code=code, resumed=True)[0] is cause


def test_a_checkpointer_that_cannot_load_is_a_config_that_is_refused() -> None:
    made = titan()
    said = "NotImplementedError: TorchCheckpointingManager does not implement load() yet."
    assert classify([said], trainer_for(made).log_rules(made), code=1)[0] is Cause.BAD_CONFIG
