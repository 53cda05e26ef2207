"""What configs of AReaL, TRL, axolotl and LLaMA-Factory put on a GPU: the model, how it is trained, and on
how many GPUs.
"""

from pathlib import Path

import pytest

from prime_train.checks.memory_plan import model_name, plan_of, steps_of
from prime_train.configs.loader import load_configs
from prime_train.estimate.job import JobDescription
from prime_train.estimate.memory.phases import GIB, Logits, Method, Recompute, Sharding, training_need
from prime_train.spec.rule import Subject

AREAL = """\
experiment_name: e
trial_name: t
enable_offload: false
rollout: {backend: "sglang:d4p1t2", use_lora: false}
gconfig: {n_samples: 4, max_new_tokens: 1024}
actor:
  backend: "fsdp:d4p1t1"
  path: Qwen/Qwen2.5-1.5B-Instruct
  gradient_checkpointing: true
  kl_ctl: 0.0
  mb_spec: {max_tokens_per_mb: 10240}
  optimizer: {type: adam}
ref: {path: "${actor.path}"}
sglang: {context_length: 32768, mem_fraction_static: 0.8}
train_dataset: {batch_size: 256, max_length: 1024}
"""
LLAMA_FACTORY = """\
model_name_or_path: Qwen/Qwen3-4B-Instruct-2507
stage: sft
do_train: true
finetuning_type: lora
lora_rank: 8
lora_target: all
cutoff_len: 2048
output_dir: saves/qwen3-4b
per_device_train_batch_size: 1
gradient_accumulation_steps: 8
bf16: true
"""
AXOLOTL = """\
base_model: NousResearch/Llama-3.2-1B
adapter: lora
lora_r: 16
lora_target_linear: true
datasets: [{path: teknium/GPT4-LLM-Cleaned}]
sequence_len: 2048
sample_packing: true
micro_batch_size: 2
gradient_accumulation_steps: 2
gradient_checkpointing: true
optimizer: adamw_8bit
output_dir: ./outputs/lora
bf16: auto
"""
GRPO = """\
model_name_or_path: Qwen/Qwen2.5-1.5B-Instruct
torch_dtype: bfloat16
output_dir: out
learning_rate: 1.0e-06
num_generations: 8
use_vllm: true
max_prompt_length: 512
max_completion_length: 1024
per_device_train_batch_size: 8
gradient_checkpointing: true
bf16: true
max_steps: 300
"""


def subject_of(folder: Path, text: str, name: str = "given.yml") -> Subject:
    (folder / name).write_text(text)
    subject = load_configs([folder / name])[0].subject
    assert subject is not None
    return subject


def plan(folder: Path, text: str) -> JobDescription:
    found = plan_of(subject_of(folder, text))
    assert found is not None
    return found


def peak_gib(found: JobDescription) -> float:
    return training_need(found.model, found.training, found.train_gpus).peak.total / GIB


def test_an_areal_config_names_its_model_and_its_gpus_by_the_actor(tmp_path: Path) -> None:
    found = plan(tmp_path, AREAL)
    training = found.training
    assert (found.model.name, found.train_gpus, found.serve_gpus, found.together) == (
        "Qwen2.5-1.5B",
        4,
        2,
        False,
    )
    assert (training.sharding, training.weight_bytes, training.state_bytes, training.seq_len) == (
        Sharding.FSDP2,
        4,
        8,
        10_240,
    )
    assert (found.utilization, found.serving.seq_len, found.batch_tokens) == (0.8, 32_768, 256 * 4 * 2048)
    assert (training.frozen_bytes, training.models, training.recompute) == (0, 1, Recompute.FULL)


@pytest.mark.parametrize(
    ("old", "new", "seen"),
    [
        ("kl_ctl: 0.0", "kl_ctl: 0.1", lambda found: found.training.frozen_bytes == 4),
        ("ref: {", "critic: {path: x}\nref: {", lambda found: found.training.models == 2),
        (
            '"fsdp:d4p1t1"',
            '"megatron:d2t2"',
            lambda found: (found.training.sharding, found.training.tensor_parallel) == (Sharding.ZERO1, 2),
        ),
        (
            '"fsdp:d4p1t1"',
            '"megatron:(attn:d2p1t4|ffn:d1p1e8)"',
            lambda found: (found.train_gpus, found.training.shards(8)) == (8, 8),
        ),
        (
            "  path: Qwen/Qwen2.5-1.5B-Instruct",
            "  path: /models/Qwen3-8B",
            lambda found: found.model.name == "Qwen3-8B",
        ),
        (
            "  kl_ctl",
            "  use_lora: ${actor.is_lora}\n  is_lora: true\n  kl_ctl",
            lambda found: found.training.method is Method.LORA,
        ),
        (
            "  mb_spec: {max_tokens_per_mb: 10240}\n",
            "",
            lambda found: found.training.seq_len == 2048 and len(found.assumed) == 1,
        ),
        ('  backend: "fsdp:d4p1t1"\n', "", lambda found: False),
    ],
)
def test_what_an_areal_config_says_of_its_actor_counts(
    tmp_path: Path, old: str, new: str, seen: object
) -> None:
    assert old in AREAL
    found = plan_of(subject_of(tmp_path, AREAL.replace(old, new)))
    assert callable(seen)
    assert found is None or seen(found)
    assert (found is None) == (new == "" and "backend" in old)


def test_an_areal_config_of_before_names_all_gpus_at_once(tmp_path: Path) -> None:
    text = AREAL.replace('  backend: "fsdp:d4p1t1"\n', "").replace('backend: "sglang:d4p1t2", ', "")
    found = plan(tmp_path, f"allocation_mode: sglang:d2p1t2+d2p1t1c2\n{text}")
    assert (found.train_gpus, found.serve_gpus, found.training.seq_len) == (4, 2, 5120)


def test_a_llama_factory_config_is_estimated_as_the_program_trains_it(tmp_path: Path) -> None:
    lora = plan(tmp_path, LLAMA_FACTORY)
    assert (lora.model.name, lora.training.method, lora.training.lora_rank) == ("Qwen3-4B", Method.LORA, 8)
    assert (lora.training.recompute, lora.batch_tokens) == (Recompute.FULL, 8 * 2048)
    assert 11 < peak_gib(lora) < 17
    quantised = plan(tmp_path, LLAMA_FACTORY + "quantization_bit: 4\n")
    assert 4 < peak_gib(lora) - peak_gib(quantised) < 6
    full = plan(tmp_path, LLAMA_FACTORY.replace("type: lora", "type: full"))
    assert (full.training.weight_bytes, full.training.gradient_bytes, full.training.state_bytes) == (4, 4, 8)
    pure = plan(tmp_path, LLAMA_FACTORY.replace("type: lora", "type: full") + "pure_bf16: true\n")
    assert (pure.training.weight_bytes, pure.training.gradient_bytes, pure.training.state_bytes) == (2, 2, 4)


@pytest.mark.parametrize(
    ("setting", "sharding", "widths"),
    [
        ("deepspeed: examples/deepspeed/ds_z3_config.json", Sharding.ZERO3, (2, 2, 12)),
        ("deepspeed: ds_z2_offload_config.json", Sharding.ZERO2, (2, 2, 12)),
        ("deepspeed: {zero_optimization: {stage: 3}}", Sharding.ZERO3, (2, 2, 12)),
        ("fsdp: full_shard auto_wrap", Sharding.FSDP1, (4, 4, 8)),
        ("fsdp_config: {fsdp_version: 2, reshard_after_forward: true}", Sharding.FSDP2, (4, 4, 8)),
    ],
)
def test_a_full_training_is_spread_as_its_settings_say(
    tmp_path: Path, setting: str, sharding: Sharding, widths: tuple[int, int, int]
) -> None:
    training = plan(tmp_path, LLAMA_FACTORY.replace("type: lora", "type: full") + setting + "\n").training
    assert (training.sharding, training.weight_bytes, training.gradient_bytes, training.state_bytes) == (
        sharding,
        *widths,
    )
    assert training.optimizer_offloaded == ("z2_offload" in setting)


def test_the_second_engine_of_llama_factory_has_other_names(tmp_path: Path) -> None:
    text = (
        "model: Qwen/Qwen3-4B\nmodel_class: llm\npeft_config: {name: lora, r: 32}\ndist_config: {name: "
        "fsdp2}\noutput_dir: out\n"
        "micro_batch_size: 2\ncutoff_len: 1024\nmax_steps: 10\n"
    )
    training = plan(tmp_path, text).training
    assert (training.method, training.lora_rank, training.sharding) == (Method.LORA, 32, Sharding.FSDP2)
    assert (training.micro_batch, training.seq_len) == (2, 1024)


def test_an_axolotl_config_is_estimated_from_its_base_model(tmp_path: Path) -> None:
    found = plan(tmp_path, AXOLOTL)
    assert (found.model.name, found.training.method, found.training.lora_rank) == (
        "Llama-3.2-1B",
        Method.LORA,
        16,
    )
    assert (found.training.micro_batch, found.training.state_bytes, found.batch_tokens) == (
        2,
        2,
        2 * 2 * 2048,
    )
    assert plan(tmp_path, AXOLOTL + "load_in_4bit: true\n").training.quantised
    full = plan(tmp_path, AXOLOTL.replace("adapter: lora", "adapter:")).training
    assert (full.method, full.weight_bytes, full.gradient_bytes) == (Method.FULL, 2, 2)
    plugin = "plugins:\n  - axolotl.integrations.cut_cross_entropy.CutCrossEntropyPlugin\n"
    assert plan(tmp_path, AXOLOTL + plugin).training.logits is Logits.FUSED
    assert peak_gib(plan(tmp_path, AXOLOTL + plugin)) < peak_gib(found) - 5


def test_a_grpo_config_has_the_lengths_of_prompt_and_answer(tmp_path: Path) -> None:
    found = plan(tmp_path, GRPO)
    assert (found.training.seq_len, found.training.micro_batch, found.serve_gpus, found.together) == (
        1536,
        8,
        1,
        False,
    )
    assert (found.training.weight_bytes, found.training.frozen_bytes) == (2, 0)
    shared = plan(tmp_path, GRPO + "vllm_mode: colocate\nbeta: 0.04\n")
    assert (shared.together, shared.utilization, shared.training.frozen_bytes) == (True, 0.3, 2)
    assert plan(tmp_path, GRPO.replace("use_vllm: true", "use_vllm: false")).batch_tokens == 0
    assert steps_of(subject_of(tmp_path, GRPO)) == 300


def test_what_the_program_chooses_itself_is_told(tmp_path: Path) -> None:
    found = plan(
        tmp_path,
        LLAMA_FACTORY.replace("cutoff_len: 2048\n", "").replace("per_device_train_batch_size: 1\n", ""),
    )
    assert (found.training.seq_len, found.training.micro_batch) == (2048, 8)
    assert [one.partition(":")[0] for one in found.assumed] == [
        "8 samples at once on each GPU",
        "sequences of 2,048 tokens",
    ]


@pytest.mark.parametrize("text", [LLAMA_FACTORY, AXOLOTL, AREAL, GRPO])
def test_a_model_of_unknown_size_has_a_name_and_no_plan(tmp_path: Path, text: str) -> None:
    for known in ("Qwen/Qwen3-4B-Instruct-2507", "NousResearch/Llama-3.2-1B", "Qwen/Qwen2.5-1.5B-Instruct"):
        text = text.replace(known, "acme/unheard-of")
    subject = subject_of(tmp_path, text)
    assert (model_name(subject), plan_of(subject)) == ("acme/unheard-of", None)


@pytest.mark.parametrize(
    "text",
    [
        "base_model: a\nmerge_method: slerp\nslices: []\n",
        "model_name_or_path: Qwen/Qwen3-4B\ntemplate: qwen3\ninfer_backend: vllm\n",
        "model: gpt\noutput_dir: x\n",
    ],
)
def test_files_that_are_about_no_training_are_of_no_trainer(tmp_path: Path, text: str) -> None:
    (tmp_path / "other.yaml").write_text(text)
    assert not [one for one in load_configs([tmp_path]) if one.subject is not None]


@pytest.mark.parametrize(
    "number",
    ["0", "-3", "1e400", "16777216", "99999999999999999999", "'x'", "null", "[1]", "{a: 1}", "true", ".nan"],
)
def test_no_number_of_a_config_is_too_strange(tmp_path: Path, number: str) -> None:
    for text, keys in (
        (
            LLAMA_FACTORY,
            (
                "lora_rank: 8",
                "cutoff_len: 2048",
                "per_device_train_batch_size: 1",
                "gradient_accumulation_steps: 8",
            ),
        ),
        (LLAMA_FACTORY + "quantization_bit: 4\n", ("quantization_bit: 4",)),
        (AXOLOTL, ("lora_r: 16", "sequence_len: 2048", "micro_batch_size: 2")),
        (
            AREAL,
            (
                "max_tokens_per_mb: 10240",
                "max_new_tokens: 1024",
                "context_length: 32768",
                "mem_fraction_static: 0.8",
                "batch_size: 256",
            ),
        ),
    ):
        for key in keys:
            found = plan_of(subject_of(tmp_path, text.replace(key, f"{key.partition(':')[0]}: {number}")))
            assert found is None or 0 < peak_gib(found) < 1e12
