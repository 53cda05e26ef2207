"""Kind hf: the Trainer of transformers, with those of TRL, axolotl and LLaMA-Factory."""

from typing import Any

import pytest

from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import FileInfo, classify, trainer_for
from prime_train.trainers.progress import Progress
from tests.builders import spec

NOW_S = 1_800_000_000
FOLDER = "/disk/tree/checkpoints"


def hf(command: str = "train.py --output_dir {checkpoints}", **trainer: Any) -> RunSpec:
    return spec(trainer={"kind": "hf", "command": command, **trainer}, checkpoints={})


def line(made: RunSpec, *, step: int | None = None) -> str:
    folder = None if step is None else f"{FOLDER}/checkpoint-{step}"
    return trainer_for(made).command(made, checkpoints=FOLDER, resume_step=step, resume_folder=folder)


# ------------------------------------------------------------------------------------------------------------
# its command


@pytest.mark.parametrize(
    ("command", "workers", "started"),
    [
        ("train.py --lr 1", 1, "python3 train.py --lr 1"),
        ("-m pkg.train", 1, "python3 -m pkg.train"),
        ("train.py", 4, "torchrun --standalone --nproc-per-node 4 --max-restarts 0 train.py"),
        ("accelerate launch train.py", 4, "accelerate launch train.py"),
        ("trl grpo --config c.yaml", 1, "trl grpo --config c.yaml"),
    ],
)
def test_a_script_is_started_and_a_program_starts_itself(command: str, workers: int, started: str) -> None:
    assert line(hf(command, workers=workers)) == started


@pytest.mark.parametrize(
    ("command", "resume"),
    [
        ("train.py", f"--resume_from_checkpoint {FOLDER}/checkpoint-30"),
        ("trl sft --config c.yaml", f"--resume_from_checkpoint {FOLDER}/checkpoint-30"),
        ("axolotl train c.yaml", f"--resume-from-checkpoint {FOLDER}/checkpoint-30"),
        ("uv run axolotl train c.yaml", f"--resume-from-checkpoint {FOLDER}/checkpoint-30"),
        ("llamafactory-cli train c.yaml", f"resume_from_checkpoint={FOLDER}/checkpoint-30"),
        ("/venv/bin/llamafactory-cli train c.json", f"resume_from_checkpoint={FOLDER}/checkpoint-30"),
        ("llamafactory-cli train --stage sft", f"--resume_from_checkpoint {FOLDER}/checkpoint-30"),
    ],
)
def test_each_program_is_told_in_its_own_words_what_to_resume(command: str, resume: str) -> None:
    assert line(hf(command), step=30).endswith(f" {resume}")


def test_a_script_may_resume_in_another_way_or_by_itself() -> None:
    assert line(hf("train.py", resume="--from {step}"), step=30) == "python3 train.py --from 30"
    assert line(hf("train.py", resume=""), step=30) == "python3 train.py"


def test_a_single_process_forms_no_process_group() -> None:
    made = hf(workers=1)
    assert "RANK" not in trainer_for(made).environment(made, attempt=1, run_id="tiny-1")


def test_its_checkpoints_are_found_by_the_trainers_own_names() -> None:
    made = hf()
    assert (made.checkpoints.folder, made.checkpoints.pattern, made.checkpoints.sentinel) == (
        "checkpoints",
        "checkpoint-{step}",
        None,
    )
    assert trainer_for(made).step_of(made, "checkpoint-500") == 500
    assert trainer_for(made).step_of(made, "checkpoint-500.bak") is None


def test_another_name_or_a_sentinel_is_refused() -> None:
    with pytest.raises(
        ValueError,
        match=r"checkpoints.pattern: kind hf requires checkpoint-\{step\}, not step_\{step\}; delete this "
        r"key",
    ):
        spec(trainer={"kind": "hf", "command": "train.py"}, checkpoints={"pattern": "step_{step}"})
    with pytest.raises(
        ValueError, match=r"checkpoints.sentinel: kind hf has no sentinel file, not DONE; delete this key"
    ):
        spec(trainer={"kind": "hf", "command": "train.py"}, checkpoints={"sentinel": "DONE"})


# ----------------------------------------------------------------------------------------------------
# complete checkpoints

REST = ("optimizer.pt", "scheduler.pt", "rng_state.pth", "trainer_state.json")
FULL = ("config.json", "model.safetensors", "training_args.bin", *REST)
ADAPTER = ("adapter_config.json", "adapter_model.safetensors", *REST)
NAMED_ADAPTER = ("default/adapter_model.safetensors", *REST)
SHARDED = (
    "model-00001-of-00002.safetensors",
    "model-00002-of-00002.safetensors",
    "model.safetensors.index.json",
    *REST,
)
FSDP = (
    "pytorch_model_fsdp_0/__0_0.distcp",
    "pytorch_model_fsdp_0/.metadata",
    "optimizer_0/__0_0.distcp",
    "optimizer_0/.metadata",
    "scheduler.pt",
    "rng_state_0.pth",
    "rng_state_1.pth",
    "trainer_state.json",
)
FSDP_FULL = ("model.safetensors", "pytorch_model_fsdp.bin", "optimizer.bin", "scheduler.pt", *FSDP[-3:])
DEEPSPEED = (
    "global_step10/mp_rank_00_model_states.pt",
    "global_step10/bf16_zero_pp_rank_0_mp_rank_00_optim_states.pt",
    "latest",
    *FSDP[-3:],
)


def files(*names: str, ages_s: dict[str, float] | None = None) -> list[FileInfo]:
    """Return these files, each a second younger than the one before, the last 100 s old."""
    ages = {name: 100.0 + later for later, name in enumerate(reversed(names))} | (ages_s or {})
    return [FileInfo(name, 10, NOW_S - age_s) for name, age_s in ages.items()]


def is_complete(seen: list[FileInfo], made: RunSpec | None = None) -> bool:
    made = made or hf()
    return trainer_for(made).is_complete(made, seen, NOW_S)


@pytest.mark.parametrize("names", [FULL, ADAPTER, NAMED_ADAPTER, SHARDED])
def test_a_checkpoint_of_one_process_is_complete_with_every_part(names: tuple[str, ...]) -> None:
    assert is_complete(files(*names))


@pytest.mark.parametrize("names", [FSDP, FSDP_FULL, DEEPSPEED])
def test_a_checkpoint_of_two_processes_is_complete_with_every_part(names: tuple[str, ...]) -> None:
    assert is_complete(files(*names), hf(workers=2))
    assert is_complete(files(*names), hf("accelerate launch --num_processes 2 train.py")), (
        "it starts its own processes"
    )


@pytest.mark.parametrize("gone", ["model.safetensors", *REST])
def test_a_checkpoint_that_lacks_a_part_is_not_uploaded(gone: str) -> None:
    """The Trainer skips a missing optimizer or scheduler without a message, and trains on with wrong
    moments.
    """
    assert not is_complete(files(*(name for name in FULL if name != gone)))


@pytest.mark.parametrize(
    "gone", ["optimizer_0/.metadata", "pytorch_model_fsdp_0/.metadata", "rng_state_0.pth", "rng_state_1.pth"]
)
def test_a_checkpoint_that_lacks_a_part_of_one_process_is_not_uploaded(gone: str) -> None:
    left = files(*(name for name in FSDP if name != gone))
    assert not is_complete(left, hf(workers=2))


def test_fewer_random_states_than_processes_are_not_enough() -> None:
    assert not is_complete(files(*FSDP), hf(workers=4))
    assert not is_complete(
        files(*(name for name in FSDP if name != "rng_state_0.pth")), hf("accelerate launch train.py")
    )


def test_a_checkpoint_on_sigterm_is_not_complete_while_it_is_written() -> None:
    assert not is_complete(files(*FULL, "checkpoint-is-incomplete.txt"))


def test_a_checkpoint_that_is_being_written_again_is_not_complete() -> None:
    assert not is_complete(files(*FULL, ages_s={"model.safetensors": 40}))
    assert not is_complete(files(*SHARDED, ages_s={"model-00002-of-00002.safetensors": 40}))


def test_files_that_the_users_callbacks_add_later_are_waited_for() -> None:
    assert not is_complete(files(*FULL, ages_s={"entropy_ctrl_state.json": 5}))
    assert is_complete(files(*FULL, ages_s={"entropy_ctrl_state.json": 40}))


# ------------------------------------------------------------------------------------------------------------
# progress

NEW = "{'loss': '2.105', 'grad_norm': '2.135', 'learning_rate': '4.994e-05', 'epoch': '0.01'}"
OLD = "{'loss': 2.105, 'grad_norm': 2.135, 'learning_rate': 4.994e-05, 'epoch': 0.01}"
GRPO = (
    "{'loss': '0.0002', 'reward': '0.25', 'reward_std': '0.5', 'rewards/exact/mean': '0.25', 'kl': '0.001'}"
)


def bar(step: int, total: int = 500, about: str = "") -> str:
    return f"\r{about}{100 * step // total:3d}%|\u2588\u258f        | {step}/{total} [00:03<02:05,  3.88it/s]"


def read(*lines: str, steps: int | None = 500) -> list[Progress]:
    made = hf(steps=steps)
    reader = trainer_for(made).reader(made)
    return [found for text in lines if (found := reader.read(text)) is not None]


@pytest.mark.parametrize("figures", [NEW, OLD])
def test_the_figures_are_those_of_the_step_of_the_bar_below(figures: str) -> None:
    assert read(bar(0), bar(9), figures, bar(10), bar(11)) == [Progress(9), Progress(10, 2.105), Progress(11)]


def test_the_reward_of_grpo_is_read() -> None:
    assert read(GRPO, bar(3)) == [Progress(3, 0.0002, 0.25)]


def test_the_empty_bar_of_a_resumed_training_is_no_step() -> None:
    assert read(bar(0), bar(31)) == [Progress(31)]


def test_bars_of_an_evaluation_of_data_and_of_weights_are_no_steps() -> None:
    others = (
        bar(3, 17),
        bar(500, 500, "Map: "),
        bar(2, 4, "Loading checkpoint shards: "),
        "{'eval_loss': '1.5', 'epoch': '1'}",
    )
    assert read(*others) == []


def test_without_a_number_of_steps_the_bar_below_the_first_figures_is_the_trainings() -> None:
    assert read(bar(3, 17), bar(9), NEW, bar(10), bar(4, 17), bar(11), steps=None) == [
        Progress(10, 2.105),
        Progress(11),
    ]


def test_a_number_of_steps_that_is_not_the_trainers_is_corrected_by_its_bar() -> None:
    assert read(bar(9), NEW, bar(10), bar(11), steps=40) == [Progress(10, 2.105), Progress(11)]


@pytest.mark.parametrize("value", ["nan", "inf", "'nan'", "'-'", "1e999"])
def test_figures_that_are_not_finite_are_no_figures(value: str) -> None:
    assert read(f"{{'loss': {value}}}", bar(10)) == [Progress(10)]


@pytest.mark.parametrize("quoted", [True, False])
def test_a_loss_of_0_beside_a_gradient_of_nan_is_not_finite(quoted: bool) -> None:
    """As Trainer 5.23 logs weights that have become NaN."""
    figures = "{'loss': '0', 'grad_norm': 'nan', 'learning_rate': '3.5e-05', 'epoch': '0.8'}"
    (row,) = read(figures if quoted else figures.replace("'nan'", "nan").replace("'0'", "0.0"), bar(10))
    assert (row.loss, row.learning_rate) == (None, 3.5e-05)
    assert "loss" in row.not_finite


@pytest.mark.parametrize(
    ("text", "step"),
    [
        ('{"best_model_checkpoint": "out/checkpoint-20", "best_metric": 0.5}', 20),
        ('{"best_model_checkpoint": "/abs/out/checkpoint-5"}', 5),
        ('{"best_model_checkpoint": null}', None),
        ('{"best_model_checkpoint": 3}', None),
        ('{"best_model_checkpoint": "../../etc"}', None),
        ("[1]", None),
        ("{", None),
        ("", None),
    ],
)
def test_the_best_checkpoint_by_the_trainers_own_account_is_read_from_its_state(
    text: str, step: int | None
) -> None:
    made = hf()
    assert trainer_for(made).best_step(made, {"trainer_state.json": text}) == step


def test_another_way_of_reading_progress_may_be_chosen() -> None:
    made = hf(progress={"file": "out/trainer_log.jsonl", "step": "current_steps"})
    assert trainer_for(made).reader(made).read('{"current_steps": 10, "loss": 1.5}') == Progress(10, 1.5)


# ------------------------------------------------------------------------------------------------------------
# its end


@pytest.mark.parametrize(
    ("said", "code", "cause"),
    [
        ("SIGTERM received, will request JIT checkpoint after 3s", 0, Cause.STOPPED_EARLY),
        ("ValueError: No valid checkpoint found in output directory (out)", 1, Cause.RESUME_IGNORED),
        (
            "safetensors_rust.SafetensorError: Error while deserializing header: incomplete metadata",
            1,
            Cause.BAD_CHECKPOINT,
        ),
        ("OSError: Can't find a valid checkpoint at out/checkpoint-5", 1, Cause.BAD_CHECKPOINT),
    ],
)
def test_how_it_ended_is_read_from_its_output(said: str, code: int, cause: Cause) -> None:
    made = hf()
    assert classify([said], trainer_for(made).log_rules(made), code=code, resumed=True)[0] is cause
