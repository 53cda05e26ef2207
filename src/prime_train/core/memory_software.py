"""What trainers differ by in memory, beside what a config says: constants with the published figures that they were read off.

"Read off" means: the difference of two published peaks of that trainer that differ in one setting, or what one has above weights,
gradients, states and activations. tests/data/memory_peaks.json has the peaks, with commits.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Software:
    """Bytes of a logit at the peak are for all its copies and gradients together."""

    name: str
    source: str
    whole_logit_bytes: float = 18.0
    chunked_logit_bytes: float = 8.0
    rest_gib: float = 0.8
    """Allocator, libraries; with the CUDA context where peaks are told by nvidia-smi."""
    loss_fragments: float = 1.0
    """Times the loss's buffers: cached for batches of several lengths."""
    natural_tokens: int = 0
    """Above so many tokens the cap on lengths is met by few samples; 0: every sequence is exactly that long."""
    natural_growth: float = 1.0
    whole_at_load: bool = False
    """Each GPU has the whole model and its shard at once while it is loaded."""
    quantised_inputs: bool = False
    """4-bit layers keep a copy of their own input for the backward pass."""
    unties_head: bool = False
    """Embedding and head are two matrices, whatever the model says."""
    compiled_share: float = 1.0
    """Of what layers keep, where they are compiled."""
    border_bytes: float = 2.0
    """Of a number of the hidden state between layers."""


PRIME_RL = Software(
    "prime-rl",
    "prime-rl@559b4477 benchmarks/baselines: SFT less RL at 16k tokens gives 17.7 to 20.3 B a logit; 0.6 GiB above states at rest",
    whole_logit_bytes=18.0,
    rest_gib=0.6,
)
TORCHTITAN = Software(
    "torchtitan",
    "torchtitan@b5bcd76c benchmarks: 8B at 32k tokens, full recomputing, 68.9 GiB above states",
    whole_logit_bytes=13.0,
    chunked_logit_bytes=4.5,
    rest_gib=1.0,
    compiled_share=0.87,
)
TORCHTITAN_2025 = replace(
    TORCHTITAN,
    name="torchtitan since 2025",
    source="torchtitan@b5bcd76c benchmarks, H200: 14 to 30 GiB less than the same batch in 2024; the loss is compiled",
    whole_logit_bytes=4.5,
)
TORCHTUNE = Software(
    "torchtune",
    "torchtune@bd2a0fc7 README, optimization flags; active memory",
    whole_logit_bytes=12.0,
    chunked_logit_bytes=4.5,
    rest_gib=0.4,
    natural_tokens=512,
    natural_growth=0.0,
    compiled_share=0.62,
)
LITGPT = Software(
    "lit-gpt",
    "litgpt@26857050 tutorials/resource-tables.md, config_hub/finetune; allocated memory",
    rest_gib=0.2,
    whole_at_load=True,
    quantised_inputs=True,
    unties_head=True,
)
FSDP_QLORA = Software("fsdp_qlora", "fsdp_qlora@05ed9f2a benchmarks_03_2024.md; 7B and 34B by length and batch", rest_gib=0.9)
FSDP_LORA = replace(
    FSDP_QLORA,
    name="fsdp_qlora, LoRA",
    source="fsdp_qlora@05ed9f2a: 7B takes 1.05 MB a token, 0.25 more than with 4-bit weights, which is once more 2 x layers x hidden",
    border_bytes=4.0,
)
HF_TRAINER = Software(
    "HF Trainer",
    "Qwen@2df8e8ac README, LoRA in bf16: 256 to 8192 tokens; all device memory",
    whole_logit_bytes=13.5,
    rest_gib=1.4,
)
DEEPSPEED = Software(
    "HF Trainer with DeepSpeed",
    "Qwen@2df8e8ac README, QLoRA and full: 1.2 to 1.5 MB a token beside 151,936 logits, which stay in 16 bit",
    whole_logit_bytes=9.0,
    rest_gib=1.4,
)
UNPADDED = Software(
    "HF Trainer, batches of many lengths",
    "ms-swift@b40f31df Benchmark.md: 7.0 MB a token at 2048 and 4.5 at 8192 with a cap on lengths; reserved memory in fixed segments",
    whole_logit_bytes=18.0,
    rest_gib=1.5,
    loss_fragments=2.9,
    natural_tokens=1024,
    natural_growth=0.65,
)
PLAIN = Software("a plain loop", "peft@5d602fdb method_comparison/MetaMathQA: LoRA of rank 64; HF's loss on whole logits", rest_gib=1.0)
"""A training loop of one's own on transformers; also what is taken where nothing is known of the trainer."""
BUCKETED = replace(
    PLAIN,
    name="a plain loop, batches of like lengths",
    source="peft@5d602fdb method_comparison/MetaMathQA: cut at 768 tokens, which most samples do not reach",
    natural_tokens=512,
    natural_growth=0.6,
)
SOFTWARE = (
    PRIME_RL,
    TORCHTITAN,
    TORCHTITAN_2025,
    TORCHTUNE,
    LITGPT,
    FSDP_QLORA,
    FSDP_LORA,
    HF_TRAINER,
    DEEPSPEED,
    UNPADDED,
    PLAIN,
    BUCKETED,
)
