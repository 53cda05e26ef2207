"""Kind trm: the published code of tiny recursive models, which saves only weights and counts from 0 again."""

from typing import Any

import pytest

from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.trainers.exit_classifier import fired
from prime_train.trainers.of_spec import FileInfo, Scattered, trainer_for
from prime_train.trainers.progress import Progress
from prime_train.trainers.registry import TRAINERS
from prime_train.trainers.stale_outputs import Move
from tests.builders import spec

FOLDER = "/disk/tree/checkpoints"
PRETRAIN = "pretrain.py arch=trm data_paths='[data/arc1concept-aug-1000]' ema=True"
OWN = f"++run_name=tiny ++checkpoint_path={FOLDER} checkpoint_every_eval=True"


def trm(command: str = PRETRAIN, **trainer: Any) -> RunSpec:
    return spec(name="tiny", trainer={"kind": "trm", "command": command, **trainer}, checkpoints={})


def line(made: RunSpec, *, step: int | None = None) -> str:
    folder = None if step is None else f"{FOLDER}/weights_{step}"
    return trainer_for(made).command(made, checkpoints=FOLDER, resume_step=step, resume_folder=folder)


@pytest.mark.parametrize("workers", [1, 4])
def test_even_a_single_process_is_started_by_torchrun(workers: int) -> None:
    launched = f"torchrun --standalone --nproc-per-node {workers} --max-restarts 0 {PRETRAIN}"
    assert line(trm(workers=workers)) == f"{launched} {OWN}"
    assert (
        line(trm(workers=workers), step=30)
        == f"{launched} ++load_checkpoint={FOLDER}/weights_30/checkpoint.pt {OWN}"
    )


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("+checkpoint_path=out", "checkpoint_path itself"),
        ("++run_name=x", "run_name itself"),
        ("checkpoint_every_eval=False", "saves only at the end"),
        ("min_eval_interval=10", "below the 10 iterations"),
        ("epochs=5000 eval_interval=null min_eval_interval=1", "below the 1 iterations"),
    ],
)
def test_a_setting_with_which_no_weights_are_found_is_an_error_before_the_launch(
    setting: str, said: str
) -> None:
    made = trm(f"{PRETRAIN} {setting}")
    (conflict,) = TRAINERS["trm"].conflicts(made)
    assert said in conflict


@pytest.mark.parametrize(
    "setting",
    [
        "checkpoint_every_eval=true",
        "min_eval_interval=9",
        "epochs=5 eval_interval=10",
        "--config-name mine min_eval_interval=50",
    ],
)
def test_settings_with_which_it_saves_are_no_error(setting: str) -> None:
    assert not TRAINERS["trm"].conflicts(trm(f"{PRETRAIN} {setting}"))


def test_a_training_without_data_for_its_evaluation_is_stopped_before_it_fails_at_the_first() -> None:
    made = trm()
    found = fired(
        "NO EVAL DATA FOUND", [rule for rule in trainer_for(made).log_rules(made) if rule.stop], resumed=False
    )
    assert found is not None
    assert found.cause is Cause.BAD_CONFIG


def test_resume_arguments_without_the_weights_are_an_error_before_the_launch() -> None:
    made = trm(resume="+resume={step}")
    (conflict,) = TRAINERS["trm"].conflicts(made)
    assert "does not pass the weights" in conflict
    assert not TRAINERS["trm"].conflicts(trm())


def test_only_files_of_weights_are_checkpoints() -> None:
    made = trm()
    gathering = trainer_for(made).gathering(made)
    assert gathering is not None
    names = ("step_500", "step_500_all_preds.0", "step_500.bak", "all_config.yaml", "losses.py")
    found = gathering.checkpoints([FileInfo(name, 10, 1.0) for name in names], lambda path: b"")
    assert list(found) == [Scattered(500, {"checkpoint.pt": "step_500"})]


def test_weights_of_an_earlier_launch_are_moved_aside_because_their_names_are_used_again() -> None:
    made = trm()
    stale = trainer_for(made).stale_outputs(made)
    assert stale is not None
    moves = stale.to_move(["step_500", "weights_500", "step_500_all_preds.0"], 500, attempt=2)
    assert list(moves) == [Move("step_500", "before-attempt-2/step_500")]


def test_the_step_is_read_from_the_progress_bar() -> None:
    made = trm()
    reader = trainer_for(made).reader(made)
    assert reader.read("  3%|3         | 1234/40000 [01:03<33:20, 19.38it/s]") == Progress(1234)
    assert reader.read("[Rank 0, World Size 4]: Epoch 10000") is None
