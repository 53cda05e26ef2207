"""Kind areal: AReaL's programs, with their single state that each save overwrites in place."""

import json
from pathlib import PurePosixPath
from typing import Any

import pytest

from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import FileInfo, Scattered, trainer_for
from prime_train.trainers.progress import Progress
from prime_train.trainers.registry import TRAINERS
from prime_train.trainers.stale_outputs import Move
from tests.builders import spec

NOW_S = 1_800_000_000
FOLDER = "/disk/tree/checkpoints"
GRPO = "python3 examples/math/gsm8k_rl.py --config gsm8k_grpo.yaml scheduler.type=local recover.freq_steps=10"
STATE = f"{FOLDER}/areal/checkpoints/areal/tiny/run"
MADE = f"mkdir -p {FOLDER}/areal/names {STATE}"
OWN = (
    "experiment_name=tiny trial_name=run "
    f"cluster.fileroot={FOLDER}/areal cluster.name_resolve.nfs_record_root={FOLDER}/areal/names"
)


def areal(command: str = GRPO, **trainer: Any) -> RunSpec:
    return spec(name="tiny", trainer={"kind": "areal", "command": command, **trainer}, checkpoints={})


def line(made: RunSpec, *, step: int | None = None) -> str:
    folder = None if step is None else f"{FOLDER}/step_{step}"
    return trainer_for(made).command(made, checkpoints=FOLDER, resume_step=step, resume_folder=folder)


# ------------------------------------------------------------------------------------------------------------
# its command


def test_each_launch_sets_where_the_state_is_and_that_it_is_recovered() -> None:
    assert line(areal()) == f"{MADE} && {GRPO} {OWN} recover.mode=on"
    assert trainer_for(areal()).shown_command(areal()) == GRPO


def test_the_restored_state_is_put_back_before_areal_starts() -> None:
    assert (
        line(areal(), step=30)
        == f"{MADE} && cp -a {FOLDER}/step_30/. {STATE}/ && {GRPO} {OWN} recover.mode=on"
    )


def test_the_path_of_the_state_does_not_depend_on_the_machines_user() -> None:
    made = areal()
    environment = trainer_for(made).environment(made, attempt=1, run_id="tiny-1")
    assert environment["LOGNAME"] == "areal"


def test_a_state_of_an_earlier_launch_is_moved_aside() -> None:
    made = areal()
    stale = trainer_for(made).stale_outputs(made)
    assert stale is not None
    assert stale.folder == "checkpoints/areal"
    assert stale.to_move(["checkpoints", "logs"], 30, attempt=2) == [
        Move("checkpoints", "earlier/checkpoints")
    ]
    assert stale.to_move(["logs"], None, attempt=2) == []


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ("recover.mode=disabled", "recover.mode itself"),
        ("recover.mode=off", "recover.mode itself"),
        ("experiment_name=other", "experiment_name itself"),
        ("+trial_name=t", "trial_name itself"),
        ("cluster.fileroot=/tmp/x", "cluster.fileroot itself"),
        ("actor.megatron.async_save=true", "reports a state as saved before it is"),
    ],
)
def test_a_setting_with_which_it_starts_over_is_an_error_before_the_launch(setting: str, said: str) -> None:
    made = areal(f"{GRPO} {setting}")
    (conflict,) = TRAINERS["areal"].conflicts(made)
    assert said in conflict


def test_resume_arguments_are_an_error_because_areal_has_none() -> None:
    made = areal(resume="--resume {step}")
    (conflict,) = TRAINERS["areal"].conflicts(made)
    assert "has no effect" in conflict


@pytest.mark.parametrize(
    "setting", ["recover.mode=auto", "recover.mode=on", "actor.megatron.async_save=false"]
)
def test_other_settings_are_no_contradiction(setting: str) -> None:
    made = areal(f"{GRPO} {setting}")
    assert not TRAINERS["areal"].conflicts(made)


# ------------------------------------------------------------------------------------------------------------
# its state

INFO = (
    "step_info.json",
    "saver_info.json",
    "evaluator_info.json",
    "stats_logger_info.json",
    "checkpoint_info.json",
    "dataloader_info.pkl",
)
ENGINE = (
    "default/recover_checkpoint/__0_0.distcp",
    "default/recover_checkpoint/__1_0.distcp",
    "default/recover_checkpoint/.metadata",
)
WRITTEN = (*ENGINE, *(f"recover_info/{name}" for name in INFO))
"""In the order in which AReaL writes them."""
CRITIC = tuple(name.replace("default", "critic") for name in ENGINE)
TOLD = {"epoch": 0, "epoch_step": 9, "global_step": 9, "steps_per_epoch": 29}


def files(*names: str, ages_s: dict[str, float] | None = None) -> list[FileInfo]:
    """Return these files, each a second younger than the one before, the last 100 s old."""
    ages = {name: 100.0 + later for later, name in enumerate(reversed(names))} | (ages_s or {})
    return [FileInfo(name, 10, NOW_S - age_s) for name, age_s in ages.items()]


def found(
    seen: list[FileInfo], step_info: bytes = json.dumps(TOLD).encode(), last: bytes = b"123456789."
) -> list[Scattered]:
    made = areal()
    gathering = trainer_for(made).gathering(made)
    assert gathering is not None
    assert gathering.in_place
    assert gathering.folder == "checkpoints/areal/checkpoints/areal/tiny/run"
    return list(gathering.checkpoints(seen, lambda path: step_info if path.endswith(".json") else last))


def test_a_state_has_the_step_that_areal_prints_which_counts_from_1() -> None:
    assert found(files(*WRITTEN)) == [Scattered(10, {name: name for name in WRITTEN})]
    (with_critic,) = found(files(*CRITIC, *WRITTEN))
    assert set(with_critic.files) == {*CRITIC, *WRITTEN}


@pytest.mark.parametrize("gone", [name for name in WRITTEN if not name.endswith(".distcp")])
def test_a_state_that_lacks_a_part_is_none(gone: str) -> None:
    assert found(files(*(name for name in WRITTEN if name != gone))) == []


@pytest.mark.parametrize("until", range(1, len(WRITTEN)))
def test_a_state_that_is_being_overwritten_is_none(until: int) -> None:
    again = {name: 50.0 - later for later, name in enumerate(WRITTEN[:until])}
    assert found(files(*WRITTEN, ages_s=again)) == []


@pytest.mark.parametrize("told", [b"", b"{", b"[]", b'{"global_step": "x"}', b'{"global_step": -5}', b"null"])
def test_a_state_whose_step_cannot_be_read_is_none(told: bytes) -> None:
    assert found(files(*WRITTEN), told) == []


@pytest.mark.parametrize("last", [b"0123456789", b"x" * 10])
def test_a_state_whose_last_file_is_half_written_is_none(last: bytes) -> None:
    assert found(files(*WRITTEN), last=last) == []


def test_exported_weights_do_not_belong_to_the_state() -> None:
    made = areal()
    gathering = trainer_for(made).gathering(made)
    assert gathering is not None
    names = (
        "recover_info",
        "default",
        "default/recover_checkpoint",
        "default/epoch0epochstep9globalstep9",
        "logs",
    )
    assert [name for name in names if gathering.is_opened(PurePosixPath(name))] == list(names[:3])


# ------------------------------------------------------------------------------------------------------------
# progress

DONE = (
    "\x1b[1m(AReaL) 20260821-10:00:00.123 StatsLogger INFO: Epoch 1/10 Step 3/29 Train step 3/290 "
    "done.\x1b[0m"
)


def test_step_and_reward_are_read_from_its_output() -> None:
    made = areal()
    reader = trainer_for(made).reader(made)
    lines = (
        "| task_reward/avg | 9.0000e-01 |",
        DONE,
        "Stats (1/1):",
        "| task_reward/avg \u2502 4.1000e-01 \u2502",
        "loss 1",
    )
    assert [row for text in lines if (row := reader.read(text)) is not None] == [
        Progress(3),
        Progress(3, reward=0.41),
    ]
