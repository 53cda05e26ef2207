"""What a run trains and how it saves is seen through whatever carries it: flags, files, files named by files,
shell scripts, and variables.
"""

from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType

import pytest

from prime_train.checks import carriers
from prime_train.checks.memory_plan import plan_of
from prime_train.checks.validate import validate
from prime_train.configs.loader import load_configs
from prime_train.spec.finding import Finding
from prime_train.spec.rule import Subject
from prime_train.trainers.hf import programs
from prime_train.trainers.prime_rl import sft_rules
from prime_train.trainers.settings.of_subject import training_of
from prime_train.trainers.settings.view import TrainingSettings
from prime_train.trainers.torchtitan import rules as torchtitan_rules
from prime_train.trainers.verl import rules as verl_rules

VERL = (
    "python3 -m verl.trainer.main_ppo algorithm.adv_estimator=grpo actor_rollout_ref.model.path=Qwen/Qwen3-4B "
    "data.train_batch_size=64 actor_rollout_ref.actor.ppo_mini_batch_size=32 trainer.n_gpus_per_node=4 "
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu=2 actor_rollout_ref.rollout.tensor_model_parallel_size=2"
)
HYDRA = """\
defaults: [ppo_trainer, _self_]
data: {max_prompt_length: 512, max_response_length: 200}
actor_rollout_ref: {model: {path: Qwen/Qwen3-4B}, actor: {ppo_micro_batch_size_per_gpu: 2}}
"""
TITAN = """\
[model]
name = "llama3"
flavor = "8B"
[training]
local_batch_size = 2
seq_len = 4096
steps = 1000
[parallelism]
tensor_parallel_degree = 2
[checkpoint]
enable = true
interval = 100
"""
SFT = """\
max_steps = 200
[ckpt]
interval = 50
[model]
name = "Qwen/Qwen3-0.6B"
[model.lora]
rank = 8
[data]
seq_len = 1024
batch_size = 16
micro_batch_size = 2
"""
AXOLOTL = """\
base_model: Qwen/Qwen3-1.7B
datasets: [{path: a/b, type: alpaca}]
sequence_len: 2048
micro_batch_size: 2
gradient_accumulation_steps: 4
num_epochs: 1
output_dir: checkpoints
save_steps: 100
"""
FACTORY = """\
model_name_or_path: Qwen/Qwen3-1.7B
stage: sft
do_train: true
finetuning_type: lora
template: qwen
cutoff_len: 1024
output_dir: checkpoints
save_steps: 100
"""
ZERO3 = '{"zero_optimization": {"stage": 3, "offload_optimizer": {"device": "cpu"}}, "bf16": {"enabled": "auto"}}\n'
ACCELERATE = "distributed_type: FSDP\nfsdp_config: {fsdp_version: 2}\nnum_machines: 1\nnum_processes: 8\n"


def given(
    folder: Path,
    command: str,
    kind: str = "command",
    files: Mapping[str, str] = MappingProxyType({}),
    *,
    count: int = 4,
    more: str = "",
) -> Path:
    """Write a run with this command, and files by their names."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    (folder / "run.yaml").write_text(
        f"name: x\ntrainer:\n  kind: {kind}\n  command: '{command}'\n  code: {{folder: {folder}}}\n"
        f"hardware: {{provider: prime, gpus: [H100_80GB], count: {count}, spot: only}}\n"
        f"budget: {{usd: 10}}\n{more}"
    )
    return folder / "run.yaml"


def found(run: Path) -> list[Finding]:
    return list(validate([run], {"CI": "1"}).findings)


def codes(run: Path) -> set[str]:
    return {finding.code for finding in found(run)}


def subject_of(run: Path) -> Subject:
    subject = load_configs([run])[0].subject
    assert subject is not None
    return subject


def view(run: Path) -> TrainingSettings:
    training = training_of(subject_of(run))
    assert training is not None
    return training


# ------------------------------------------------------------------------------------------------------------
# one view


@pytest.mark.parametrize(
    ("command", "kind", "files", "model", "tokens", "batch"),
    [
        (
            "-m torchtitan.train --job.config_file t.toml",
            "torchtitan",
            {"t.toml": TITAN},
            "Llama-3-8B",
            4096,
            2,
        ),
        (
            "-m torchtitan.train --job.config-file=t.toml --training.seq-len 512",
            "torchtitan",
            {"t.toml": TITAN},
            "Llama-3-8B",
            512,
            2,
        ),
        ("-m torchtitan.train --module qwen3 --config qwen3_1.7b", "torchtitan", {}, "Qwen3-1.7B", 2048, 8),
        (VERL, "verl", {}, "Qwen3-4B", 1024, 2),
        (
            "bash go.sh",
            "verl",
            {"go.sh": f"MODEL=a\n{VERL} data.max_prompt_length=1024 $@\n"},
            "Qwen3-4B",
            1536,
            2,
        ),
        (
            "python3 -m verl.trainer.main_ppo --config-path $PWD/conf --config-name v data.max_prompt_length=100",
            "verl",
            {"conf/v.yaml": HYDRA},
            "Qwen3-4B",
            300,
            2,
        ),
        (
            "bash -c 'uv run sft @ sft.toml'".replace("'", '"'),
            "command",
            {"sft.toml": SFT},
            "Qwen3-0.6B",
            1024,
            2,
        ),
        ("uv run sft @ sft.toml", "command", {"sft.toml": SFT}, "Qwen3-0.6B", 1024, 2),
        ("uv run sft @sft.toml --data.seq-len 2048", "command", {"sft.toml": SFT}, "Qwen3-0.6B", 2048, 2),
        ("axolotl train ax.yml", "hf", {"ax.yml": AXOLOTL}, "Qwen3-1.7B", 2048, 2),
        ("accelerate launch -m axolotl.cli.train ax.yml", "hf", {"ax.yml": AXOLOTL}, "Qwen3-1.7B", 2048, 2),
        ("llamafactory-cli train lf.yaml cutoff_len=512", "hf", {"lf.yaml": FACTORY}, "Qwen3-1.7B", 512, 8),
        ("python src/train.py lf.yaml", "command", {"lf.yaml": FACTORY}, "Qwen3-1.7B", 1024, 8),
        ("swift sft --model Qwen/Qwen3-8B --max_length 4096", "hf", {}, "Qwen3-8B", 4096, 1),
        (
            "trl sft --model_name_or_path Qwen/Qwen3-8B --max_length 4096 --per_device_train_batch_size 3",
            "hf",
            {},
            "Qwen3-8B",
            4096,
            3,
        ),
    ],
)
def test_a_run_is_described_alike_whatever_carries_its_settings(
    tmp_path: Path, command: str, kind: str, files: dict[str, str], model: str, tokens: int, batch: int
) -> None:
    run = given(tmp_path, command, kind, files)
    training, plan = view(run), plan_of(subject_of(run))
    assert (training.seq_len.value, training.micro_batch.value) == (tokens, batch)
    assert plan is not None
    assert plan.model.name == model


def test_each_value_says_where_it_is_written(tmp_path: Path) -> None:
    run = given(tmp_path, "uv run sft @ sft.toml --data.seq-len 2048", files={"sft.toml": SFT})
    training = view(run)
    assert training.model.place is not None
    assert (Path(training.model.place.file).name, training.model.place.line) == ("sft.toml", 5)
    assert training.seq_len.place is not None
    assert (Path(training.seq_len.place.file).name, training.seq_len.place.line) == ("run.yaml", 4)
    assert training.optimizer.is_default
    assert training.optimizer.place is None


@pytest.mark.parametrize(
    ("command", "environment", "processes"),
    [
        ("torchrun --nproc_per_node 3 t.py --model_name_or_path a/b-1B --save_strategy no", "", 3),
        ("NPROC_PER_NODE=2 swift sft --model a/b-1B", "", 2),
        ("trl sft --model_name_or_path a/b-1B --num_processes 8 --accelerate_config zero2", "", 8),
        ("swift sft --model a/b-1B", "environment: {NPROC_PER_NODE: '4'}\n", 4),
        (
            "accelerate launch --config_file acc.yaml t.py --model_name_or_path a/b-1B --save_strategy no",
            "",
            8,
        ),
        (
            "accelerate launch --config_file acc.yaml --num_processes 2 t.py --model_name_or_path a/b-1B "
            "--save_strategy no",
            "",
            2,
        ),
    ],
)
def test_the_number_of_processes_comes_from_the_launcher_its_file_or_a_variable(
    tmp_path: Path, command: str, environment: str, processes: int
) -> None:
    run = given(tmp_path, command, "hf", more=environment, files={"acc.yaml": ACCELERATE})
    assert view(run).processes.value == processes
    assert ("HW103" in codes(run)) == (processes > 4)


def test_a_file_of_deepspeed_or_accelerate_says_how_a_model_is_spread_whatever_its_name(
    tmp_path: Path,
) -> None:
    by_name = given(
        tmp_path, "llamafactory-cli train lf.yaml", "hf", files={"lf.yaml": f"{FACTORY}deepspeed: a.json\n"}
    )
    assert view(by_name).sharding.value is None
    (tmp_path / "a.json").write_text(ZERO3)
    sharding = view(by_name).sharding.value
    assert sharding is not None
    assert sharding.value == "zero3"
    run = given(
        tmp_path,
        "accelerate launch --config_file b.yaml t.py --model_name_or_path a/b-1B --save_steps 5 "
        "--output_dir o --learning_rate 1",
        "command",
        files={"b.yaml": ACCELERATE},
    )
    sharding = view(run).sharding.value
    assert sharding is not None
    assert sharding.value == "fsdp2"


# ------------------------------------------------------------------------------------------------------------
# rules that see through them

VERL_SCRIPT = f'set -x\n{VERL} \\\n    trainer.save_freq=20 "$@"\n'


@pytest.mark.parametrize(
    ("code", "command", "kind", "files", "changes"),
    [
        ("TR466", "bash go.sh", "verl", {"go.sh": VERL_SCRIPT}, ("save_freq=20", "save_freq=-1")),
        ("TR466", "uv run sft @ s.toml", "command", {"s.toml": SFT}, ("interval = 50\n", "")),
        ("TR466", "uv run sft @ s.toml", "command", {"s.toml": SFT}, ("[ckpt]\ninterval = 50\n", "")),
        ("TR467", "uv run sft @ s.toml", "command", {"s.toml": SFT}, ("interval = 50", "interval = 500")),
        (
            "TR467",
            "-m torchtitan.train --job.config_file t.toml --parallelism.tensor_parallel_degree 1",
            "torchtitan",
            {"t.toml": TITAN},
            ("interval = 100", "interval = 5000"),
        ),
        ("TR469", "bash go.sh", "verl", {"go.sh": VERL_SCRIPT}, ('"$@"', "")),
        (
            "TR475",
            "bash go.sh",
            "verl",
            {"go.sh": VERL_SCRIPT},
            ("mini_batch_size=32", "mini_batch_size=128"),
        ),
        (
            "TR475",
            "bash go.sh",
            "verl",
            {"go.sh": VERL_SCRIPT},
            ("train_batch_size=64", "train_batch_size=63"),
        ),
        ("TR476", "bash go.sh", "verl", {"go.sh": VERL_SCRIPT}, ("parallel_size=2", "parallel_size=3")),
        ("HW103", "bash go.sh", "verl", {"go.sh": VERL_SCRIPT}, ("per_node=4", "per_node=8")),
        (
            "HW109",
            "bash go.sh",
            "verl",
            {"go.sh": VERL_SCRIPT},
            ("save_freq=20", "save_freq=20 trainer.nnodes=2"),
        ),
        ("ME209", "bash go.sh", "verl", {"go.sh": VERL_SCRIPT}, ("Qwen3-4B", "Qwen2.5-72B")),
        (
            "TR421",
            "axolotl train a.yml",
            "hf",
            {"a.yml": AXOLOTL},
            ("save_steps: 100", 'save_strategy: "no"'),
        ),
        ("TR471", "axolotl train a.yml", "hf", {"a.yml": AXOLOTL}, ("micro_batch_size: 2\n", "")),
        ("TR471", "axolotl train a.yml", "hf", {"a.yml": AXOLOTL}, ("num_epochs: 1", "load_in_4bit: true")),
        ("TR471", "axolotl train a.yml", "hf", {"a.yml": AXOLOTL}, ("num_epochs: 1", "adapter: qlora")),
        ("TR471", "axolotl train a.yml", "hf", {"a.yml": AXOLOTL}, ("num_epochs: 1", "saves_per_epoch: 1")),
        (
            "TR472",
            "llamafactory-cli train l.yaml",
            "hf",
            {"l.yaml": f"{FACTORY}quantization_bit: 4\n"},
            ("type: lora", "type: full"),
        ),
        (
            "TR470",
            "llamafactory-cli train l.yaml",
            "hf",
            {"l.yaml": f"{FACTORY}deepspeed: ds.json\n", "ds.json": ZERO3},
            ("deepspeed: ds.json", "deepspeed: other.json"),
        ),
        (
            "TR479",
            "uv run sft @ s.toml",
            "command",
            {"s.toml": SFT},
            ("micro_batch_size = 2", "micro_batch_size = 3"),
        ),
        (
            "HW109",
            "uv run sft @ s.toml",
            "command",
            {"s.toml": SFT},
            ("[data]", "[deployment]\ntype = 'multi_node'\n[data]"),
        ),
        (
            "HW103",
            "uv run sft @ s.toml",
            "command",
            {"s.toml": SFT},
            ("[data]", "[deployment]\nnum_train_gpus = 8\n[data]"),
        ),
    ],
)
def test_the_smallest_mistake_in_what_a_command_names_is_found(
    tmp_path: Path, code: str, command: str, kind: str, files: dict[str, str], changes: tuple[str, str]
) -> None:
    run = given(tmp_path, command, kind, files)
    (tmp_path / "src").mkdir(exist_ok=True)
    assert code not in codes(run)
    assert not [one for one in found(run) if one.severity.value == "error"]
    changed = {name: text.replace(*changes) for name, text in files.items()}
    assert changed != files
    assert code in codes(given(tmp_path, command, kind, changed))


def test_degrees_of_parallelism_must_be_those_of_the_processes(tmp_path: Path) -> None:
    command = "torchrun --nproc_per_node {} -m torchtitan.train --job.config_file t.toml"
    assert "TR478" not in codes(given(tmp_path, command.format(4), files={"t.toml": TITAN}))
    assert "TR478" in codes(given(tmp_path, command.format(3), files={"t.toml": TITAN}))
    fixed = TITAN.replace("[parallelism]", "[parallelism]\ndata_parallel_shard_degree = 4")
    assert "TR478" in codes(given(tmp_path, command.format(4), files={"t.toml": fixed}))


def test_checkpoints_outside_of_the_watched_folder_are_reported_for_each_trainer(tmp_path: Path) -> None:
    more = "checkpoints: {folder: outputs, pattern: 'step_{step}'}\n"
    run = given(
        tmp_path, "uv run sft @ s.toml", files={"s.toml": f"output_dir = 'outputs'\n{SFT}"}, more=more
    )
    assert "TR468" not in codes(run)
    run = given(
        tmp_path, "uv run sft @ s.toml", files={"s.toml": f"output_dir = '/data/me'\n{SFT}"}, more=more
    )
    assert "TR468" in codes(run)


def test_a_command_for_several_machines_is_an_error(tmp_path: Path) -> None:
    assert "HW109" in codes(given(tmp_path, "torchrun --nnodes 2 --nproc_per_node 4 t.py"))
    assert "HW109" in codes(given(tmp_path, "accelerate launch --num_machines=2 --num_processes 8 t.py"))
    assert "HW109" in codes(
        given(tmp_path, "NNODES=2 llamafactory-cli train l.yaml", "hf", {"l.yaml": FACTORY})
    )
    assert "HW109" not in codes(given(tmp_path, "torchrun --nnodes 1 --nproc_per_node 4 t.py"))
    assert "HW109" not in codes(given(tmp_path, "torchrun --nnodes 1:4 --nproc_per_node 4 t.py"))


def test_gpus_that_the_machine_does_not_have_cannot_be_visible(tmp_path: Path) -> None:
    command = "CUDA_VISIBLE_DEVICES={} swift sft --model Qwen/Qwen3-0.6B"
    assert "HW103" in codes(given(tmp_path, command.format("0,1,2,3,4,5,6,7"), "hf"))
    assert "HW103" not in codes(given(tmp_path, command.format("0,1,2,3"), "hf"))


def test_deepspeed_and_fsdp_exclude_each_other(tmp_path: Path) -> None:
    command = "accelerate launch t.py --output_dir {{checkpoints}} --save_steps 10 --save_strategy steps {}"
    both = command.format("--deepspeed ds.json --fsdp full_shard")
    assert "TR474" in codes(given(tmp_path, both, files={"ds.json": ZERO3}))
    assert "TR474" not in codes(
        given(tmp_path, command.format("--deepspeed ds.json"), files={"ds.json": ZERO3})
    )


def test_a_missing_file_is_found_whoever_takes_it(tmp_path: Path) -> None:
    for command in (
        "accelerate launch --config_file gone.yaml t.py",
        "torchrun --nproc_per_node 2 t.py --deepspeed gone.json",
        "bash gone.sh",
        "uv run sft @ gone.toml",
        "torchrun -m torchtitan.train --job.config_file gone.toml",
        "python t.py gone.yaml",
    ):
        run = given(tmp_path, command, files={"t.py": ""})
        assert {"PT034", "PT041"} & codes(run), command
        assert any("gone" in one.message for one in found(run)), command


def test_every_rule_here_is_fired_by_a_test_above() -> None:
    text = Path(__file__).read_text(encoding="utf-8")
    modules = (carriers, programs, sft_rules, torchtitan_rules, verl_rules)
    assert not [rule.code for module in modules for rule in module.RULES if f'"{rule.code}"' not in text]
