"""Kind verl: its programs with settings as KEY=VALUE."""

from typing import Any

import pytest

from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.trainers.exit_classifier import fired
from prime_train.trainers.of_spec import FileInfo, trainer_for
from prime_train.trainers.progress import Progress
from prime_train.trainers.registry import TRAINERS
from tests.builders import spec

NOW_S = 1_800_000_000
FOLDER = "/disk/tree/checkpoints"
PPO = "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo trainer.save_freq=20"


def verl(command: str = PPO, **trainer: Any) -> RunSpec:
    return spec(trainer={"kind": "verl", "command": command, **trainer}, checkpoints={})


def line(made: RunSpec, *, step: int | None = None) -> str:
    folder = None if step is None else f"{FOLDER}/global_step_{step}"
    return trainer_for(made).command(made, checkpoints=FOLDER, resume_step=step, resume_folder=folder)


# ------------------------------------------------------------------------------------------------------------
# its command


def test_it_saves_where_the_agent_looks_and_takes_up_nothing_that_was_not_restored() -> None:
    assert line(verl()) == f"{PPO} trainer.default_local_dir={FOLDER} trainer.resume_mode=disable"


def test_it_resumes_from_the_folder_by_its_path_which_ends_in_the_number() -> None:
    resume = f"trainer.resume_mode=resume_path trainer.resume_from_path={FOLDER}/global_step_30"
    assert line(verl(), step=30) == f"{PPO} {resume} trainer.default_local_dir={FOLDER}"


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ("trainer.save_freq=-1", "saves no checkpoint"),
        ("trainer.save_freq=0", "saves no checkpoint"),
        ("trainer.logger=console", "saves no checkpoint"),
        ("trainer.save_freq=5 trainer.resume_mode=auto", "trainer.resume_mode itself"),
        ("trainer.save_freq=5 +trainer.resume_from_path=/x/global_step_3", "trainer.resume_from_path itself"),
        ("trainer.save_freq=5 trainer.default_local_dir=out", "trainer.default_local_dir itself"),
    ],
)
def test_a_setting_with_which_it_saves_nothing_or_starts_over_is_an_error_before_the_launch(
    settings: str, said: str
) -> None:
    made = verl(f"python3 -m verl.trainer.main_ppo {settings}")
    (conflict,) = TRAINERS["verl"].conflicts(made)
    assert said in conflict


@pytest.mark.parametrize(
    "resume", ["trainer.resume_mode=auto", "trainer.resume_mode=resume_path", "--resume {step}"]
)
def test_resume_arguments_that_do_not_pass_the_folder_are_an_error_before_the_launch(resume: str) -> None:
    made = verl(resume=resume)
    (conflict,) = TRAINERS["verl"].conflicts(made)
    assert "does not pass the checkpoint" in conflict


@pytest.mark.parametrize("command", [PPO, "python3 -m verl.trainer.main_ppo --config-name mine"])
def test_other_settings_are_no_contradiction(command: str) -> None:
    made = verl(command)
    assert not TRAINERS["verl"].conflicts(made)


# ------------------------------------------------------------------------------------------------------------
# checkpoints


def shards(engine: str, of: int) -> tuple[str, ...]:
    return tuple(
        f"{engine}{part}_world_size_{of}_rank_{rank}.pt"
        for part in ("model", "optim", "extra_state")
        for rank in range(of)
    )


ACTOR = (*shards("actor/", 2), "actor/huggingface/config.json", "actor/fsdp_config.json")
MEGATRON = tuple(
    f"actor/dist_ckpt/{name}" for name in ("__0_0.distcp", ".metadata", "common.pt", "metadata.json")
)
SFT = (*shards("", 2), "data_0.pt", "data_1.pt")


def split(engine: str, *, model: str = "huggingface/model.safetensors") -> tuple[str, ...]:
    """Return the files of Megatron's engine since verl 0.9, in the order in which they are written."""
    parts = [
        f"{part}/dist_ckpt/{name}"
        for part in ("optimizer", "extra")
        for name in ("__0_0.distcp", ".metadata", "common.pt")
    ]
    return tuple(
        f"{engine}{name}"
        for name in (*parts, f"model/{model}", "transformer_config.json", "ckpt_contents.json")
    )


SPLIT = split("actor/")


def files(*names: str, ages_s: dict[str, float] | None = None) -> list[FileInfo]:
    """Return these files, each a second younger than the one before, the last 100 s old."""
    ages = {name: 100.0 + later for later, name in enumerate(reversed(names))} | (ages_s or {})
    return [FileInfo(name, 10, NOW_S - age_s) for name, age_s in ages.items()]


def is_complete(*names: str, ages_s: dict[str, float] | None = None) -> bool:
    made = verl()
    return trainer_for(made).is_complete(made, files(*names, ages_s=ages_s), NOW_S)


@pytest.mark.parametrize(
    "names",
    [
        (*ACTOR, "data.pt"),
        (*ACTOR, *shards("critic/", 2), "data.pt"),
        (*MEGATRON, "data.pt"),
        SFT,
        (*SPLIT, "data.pt"),
        (*SPLIT, *split("critic/"), "data.pt"),
        (*split(""), "data_0.pt", "data_1.pt"),
        # Megatron's FSDP saves everything in the model's part.
        (
            "actor/model/dist_ckpt/__0_0.distcp",
            "actor/model/dist_ckpt/.metadata",
            "actor/ckpt_contents.json",
            "data.pt",
        ),
    ],
)
def test_a_checkpoint_is_complete_with_the_parts_of_every_process(names: tuple[str, ...]) -> None:
    assert is_complete(*names)


@pytest.mark.parametrize("gone", [*shards("actor/", 2), "data.pt"])
def test_a_checkpoint_that_lacks_a_part_of_one_process_is_not_uploaded(gone: str) -> None:
    assert not is_complete(*(name for name in (*ACTOR, "data.pt") if name != gone))


@pytest.mark.parametrize("gone", SFT)
def test_a_checkpoint_of_supervised_training_that_lacks_a_part_of_one_process_is_not_uploaded(
    gone: str,
) -> None:
    assert not is_complete(*(name for name in SFT if name != gone))


@pytest.mark.parametrize(
    ("settings", "data", "complete"),
    [
        ("engine.ulysses_sequence_parallel_size=2", ("data_0.pt",), True),
        ("engine.ulysses_sequence_parallel_size=2", ("data_0.pt", "data_1.pt"), False),
        # A config file may say how many processes share a part.
        ("--config-name mine", ("data_0.pt",), True),
        ("--config-name mine", ("data_1.pt",), False),
    ],
)
def test_processes_that_share_a_part_of_the_data_save_its_state_once(
    settings: str, data: tuple[str, ...], complete: bool
) -> None:
    made = verl(f"python3 -m verl.trainer.sft_trainer trainer.save_freq=20 {settings}")
    assert trainer_for(made).is_complete(made, files(*shards("", 2), *data), NOW_S) is complete


@pytest.mark.parametrize("gone", [name for name in MEGATRON if not name.endswith(".distcp")])
def test_a_checkpoint_of_megatron_that_lacks_a_part_is_not_uploaded(gone: str) -> None:
    """The agent itself compares the files with `.metadata`, which names them."""
    assert not is_complete(*(name for name in (*MEGATRON, "data.pt") if name != gone))


@pytest.mark.parametrize(
    "gone",
    [
        "actor/ckpt_contents.json",
        "actor/optimizer/dist_ckpt/.metadata",
        "actor/model/huggingface/model.safetensors",
        "data.pt",
    ],
)
def test_a_checkpoint_of_megatron_in_three_parts_that_lacks_one_is_not_uploaded(gone: str) -> None:
    assert not is_complete(*(name for name in (*SPLIT, "data.pt") if name != gone))


@pytest.mark.parametrize(
    "written", ["actor/optimizer/dist_ckpt/common.pt", "actor/model/huggingface/model.safetensors"]
)
def test_a_checkpoint_of_megatron_that_is_being_written_again_is_not_complete(written: str) -> None:
    assert not is_complete(*SPLIT, "data.pt", ages_s={written: 50})


@pytest.mark.parametrize("data", [(), ("data_1.pt",)])
def test_supervised_training_with_megatron_needs_the_state_of_its_data(data: tuple[str, ...]) -> None:
    assert not is_complete(*split(""), *data)


def test_what_verl_leaves_of_a_deleted_checkpoint_is_none() -> None:
    assert not is_complete("data.pt")
    assert not is_complete(*shards("critic/", 2), "data.pt")


def test_a_checkpoint_that_is_being_written_again_is_not_complete() -> None:
    assert not is_complete(*ACTOR, "data.pt", ages_s={"actor/optim_world_size_2_rank_1.pt": 50})


def test_parts_of_two_numbers_of_processes_are_no_checkpoint() -> None:
    assert not is_complete(*ACTOR, *shards("actor/", 4), "data.pt")


def test_only_its_own_names_are_checkpoints() -> None:
    made = verl()
    assert trainer_for(made).step_of(made, "global_step_120") == 120
    assert trainer_for(made).step_of(made, "best_global_step_120") is None


# ------------------------------------------------------------------------------------------------------------
# progress


@pytest.mark.parametrize(
    ("text", "progress"),
    [
        (
            "step:12 - actor/pg_loss:0.0123 - critic/score/mean:0.41 - critic/score/max:1.0",
            Progress(12, 0.0123, 0.41),
        ),
        (
            "(TaskRunner pid=71) step:12 - actor/pg_loss:np.float64(-0.5) - "
            "critic/rewards/mean:np.float64(0.25)",
            Progress(12, -0.5, 0.25),
        ),
        ("step:3 - train/loss:1.5 - train/lr:1e-05", Progress(3, 1.5)),
        ("step:3 - critic/score/mean:nan", Progress(3)),
        ("substep:3 - critic/score/mean:1.0", None),
        ("Training Progress:   3%|3         | 3/100", None),
    ],
)
def test_step_loss_and_reward_are_read_from_the_console(text: str, progress: Progress | None) -> None:
    made = verl()
    assert trainer_for(made).reader(made).read(text) == progress


# ------------------------------------------------------------------------------------------------------------
# its end


@pytest.mark.parametrize("said", ["Training from scratch", "Checkpoint does not exist: /x/global_step_30"])
def test_a_start_from_scratch_stops_a_resumed_training_at_once(said: str) -> None:
    made = verl()
    rules = [rule for rule in trainer_for(made).log_rules(made) if rule.stop]
    found = fired(said, rules, resumed=True)
    assert found is not None
    assert found.cause is Cause.RESUME_IGNORED
    assert fired(said, rules, resumed=False) is None
