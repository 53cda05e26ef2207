"""What is read from the programs that start a trainer, and from the flags of its script."""

from pathlib import Path

import pytest

from prime_train.checks.validate import validate
from prime_train.spec.finding import Finding
from prime_train.spec.launchers import config_named, processes_of

LLAMA_FACTORY = (
    "model_name_or_path: Qwen/Qwen2.5-72B\nfinetuning_type: "
    "full\noutput_dir: "
    "saves/x\nsave_only_model: true\n"
)
AXOLOTL = "base_model: NousResearch/Llama-3.2-1B\noutput_dir: ./outputs/out\nsave_only_model: true\n"
GRPO = (
    "output_dir: checkpoints\nmodel_name_or_path: Qwen/Qwen2.5-1.5B-Instruct\nlearning_rate: "
    "1.0e-06\nsave_steps: 50\nnum_generations: 14\n"
    "per_device_train_batch_size: 16\ngradient_accumulation_steps: 4\n"
)
ACCELERATE = "accelerate launch --config_file zero2.yaml --num_processes={} grpo.py --config grpo.yaml"


def found(folder: Path, command: str, *, count: int = 1, kind: str = "command") -> list[Finding]:
    """Return the findings on a run on spot machines with this command; the files that the commands of this
    module name are there.
    """
    for name, text in {
        "lf.yaml": LLAMA_FACTORY,
        "ax.yml": AXOLOTL,
        "grpo.yaml": GRPO,
        "zero2.yaml": "num_processes: 8\n",
    }.items():
        (folder / name).write_text(text)
    for name in ("train.py", "grpo.py"):
        (folder / name).write_text("")
    (folder / "run.yaml").write_text(
        f"name: x\ntrainer:\n  kind: {kind}\n  command: '{command}'\n  steps: 1000\n  code: {{folder: "
        f"{folder}}}\n"
        f"hardware: {{provider: prime, gpus: [H100_80GB], count: {count}, spot: only}}\nbudget: {{usd: 10}}\n"
    )
    return list(validate([folder / "run.yaml"], {"CI": "1"}).findings)


def codes(findings: list[Finding]) -> set[str]:
    return {finding.code for finding in findings}


@pytest.mark.parametrize(
    ("flags", "code"),
    [
        ("--evaluation_strategy steps", "TR431"),
        ("--evaluation-strategy=steps", "TR431"),
        ("--save_strategy no", "TR421"),
        ("--save_strategy=no --bf16 true", "TR421"),
        ("--save_only_model", "TR422"),
        ("--save_strategy steps --save_steps 5000", "TR423"),
    ],
)
def test_flags_of_the_trainer_are_checked_like_its_settings(tmp_path: Path, flags: str, code: str) -> None:
    finding = next(
        one
        for one in found(tmp_path, f"python train.py --output_dir {{checkpoints}} {flags}")
        if one.code == code
    )
    assert (Path(finding.file).name, finding.line) == ("run.yaml", 4)
    assert code not in codes(
        found(tmp_path, "python train.py --output_dir {checkpoints} --save_strategy steps --save_steps 50")
    )


def test_a_settings_file_of_llama_factory_is_checked_with_its_run(tmp_path: Path) -> None:
    assert codes(found(tmp_path, "llamafactory-cli train lf.yaml")) >= {"TR422", "ME206"}


FULL_7B = "model_name_or_path: Qwen/Qwen2.5-7B\nfinetuning_type: full\noutput_dir: saves/x\nbf16: true\n"
QLORA_70B = "base_model: meta-llama/Llama-3.1-70B\nadapter: qlora\noutput_dir: out\n"


@pytest.mark.parametrize(
    ("text", "command", "count", "fits"),
    [
        # Without DeepSpeed or FSDP each GPU has a copy of all states: 16 bytes for a parameter.
        (FULL_7B, "llamafactory-cli train given.yaml", 8, False),
        (FULL_7B + "deepspeed: ds_z3_config.json\n", "llamafactory-cli train given.yaml", 8, True),
        (FULL_7B + "pure_bf16: true\n", "llamafactory-cli train given.yaml", 8, True),
        (FULL_7B.replace("full", "lora"), "llamafactory-cli train given.yaml", 1, True),
        (FULL_7B, "llamafactory-cli train given.yaml deepspeed=ds_z3_config.json", 8, True),
        (FULL_7B.replace("full", "lora").replace("7B", "72B"), "llamafactory-cli train given.yaml", 1, False),
        (QLORA_70B, "axolotl train given.yaml", 1, True),
        (QLORA_70B.replace("qlora", "lora"), "axolotl train given.yaml", 1, False),
        (QLORA_70B.replace("adapter: qlora", "adapter:"), "axolotl train given.yaml", 1, False),
        (
            QLORA_70B.replace("adapter: qlora", "adapter:"),
            "accelerate launch --config_file x.yaml -m axolotl.cli.train given.yaml",
            1,
            True,
        ),
    ],
)
def test_a_run_that_cannot_fit_is_an_error_whatever_it_trains(
    tmp_path: Path, text: str, command: str, count: int, fits: bool
) -> None:
    (tmp_path / "given.yaml").write_text(text)
    assert ("ME206" in codes(found(tmp_path, command, count=count))) == (not fits)


def test_a_settings_file_of_axolotl_is_checked_with_its_run(tmp_path: Path) -> None:
    assert "TR422" in codes(found(tmp_path, "axolotl train ax.yml"))
    assert "TR422" in codes(found(tmp_path, "accelerate launch -m axolotl.cli.train ax.yml"))
    assert "ME206" not in codes(found(tmp_path, "axolotl train ax.yml"))


@pytest.mark.parametrize(
    "command",
    [
        "torchrun --nproc_per_node 8 train.py",
        "python -m torch.distributed.run --nproc-per-node=8 train.py",
        "accelerate launch --num_processes 8 train.py",
        "deepspeed --num_gpus 8 train.py",
    ],
)
def test_more_processes_than_gpus_are_an_error_whoever_starts_them(tmp_path: Path, command: str) -> None:
    assert "HW103" in codes(found(tmp_path, command, count=4))
    assert "HW103" not in codes(found(tmp_path, command, count=8))


def test_groups_are_divided_by_the_processes_that_the_command_starts(tmp_path: Path) -> None:
    assert "TR430" not in codes(found(tmp_path, ACCELERATE.format(7), count=8))
    assert "TR430" in codes(found(tmp_path, ACCELERATE.format(8), count=8))
    assert "TR430" not in codes(list(validate([tmp_path / "grpo.yaml"], {}).findings))


@pytest.mark.parametrize(
    ("command", "processes", "config"),
    [
        (ACCELERATE.format(7), 7, "grpo.yaml"),
        ("torchrun --nnodes 2 --nproc_per_node 8 train.py", None, None),
        ("torchrun --nproc_per_node gpu train.py --config_file own.yaml", None, "own.yaml"),
        ("python train.py --num_processes 8", None, None),
        ("llamafactory-cli train lf.yaml save_steps=10", None, "lf.yaml"),
        ("llamafactory-cli export lf.yaml", None, None),
        ("python -m axolotl.cli.train ax.yml", None, "ax.yml"),
        ("axolotl train", None, None),
        ("axolotl train 'unclosed", None, None),
    ],
)
def test_a_command_says_how_many_processes_it_starts_and_with_which_settings(
    command: str, processes: int | None, config: str | None
) -> None:
    assert (processes_of(command), config_named(command)) == (processes, config)
