"""The plan of an AReaL config, as of August 2026: an actor, its reference model and its critic on some GPUs,
and a server on others.

FSDP and Archon keep what they train in `optimizer_dtype` (32 bits by default) and shard all of it; Megatron
keeps 16-bit weights and 32-bit gradients, and shards only the optimizer's states. A pass has
`mb_spec.max_tokens_per_mb` tokens, packed; log-probabilities are computed in chunks of the logits, which are
kept.
"""

import math
import re
from dataclasses import dataclass

from prime_train.estimate.job import GPUS_MAX, NUMBER_MAX, SHORTEST, JobDescription
from prime_train.estimate.memory.phases import Logits, Method, Recompute, Serving, Sharding, Training
from prime_train.estimate.memory.software_factors import MadeWith, software
from prime_train.estimate.models.dimensions import Model
from prime_train.spec.rule import Document, Subject
from prime_train.spec.tree import Mapping
from prime_train.trainers.areal.training import PASS_TOKENS
from prime_train.trainers.settings.view import resolved

AREAL = software(MadeWith("AReaL"))
CONTEXT = 32_768
"""The length of sequences that AReaL configures its servers for."""
UTILIZATION = 0.9
EXAMPLE_TOKENS, EXAMPLE_UTILIZATION = 10_240, 0.8
"""Of AReaL's own examples (examples/math/gsm8k_grpo.yaml at cbff54d645d), for commands whose file is not on
this machine.
"""
LORA_RANK = 32
_PART = re.compile(r"(?:(\w+):)?(?:\(?(?:attn:)?)?((?:[dtpce]\d{1,4})+)(?:\|ffn:((?:[dtpce]\d{1,4})+)\))?")
"""A layout such as fsdp:d4t2, or one for attention and one for experts: megatron:(attn:d4p2t2|ffn:d2p2e4)."""
_SIZE = re.compile(r"([dtpce])(\d{1,4})")


@dataclass(frozen=True)
class _Layout:
    """The GPUs of one part: `engine` such as fsdp or sglang, and its degrees of parallelism."""

    engine: str
    data: int = 1
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1

    @property
    def gpus(self) -> int:
        return self.data * self.tensor * self.pipeline * self.context


def plan_of_areal(subject: Subject, model: Model) -> JobDescription | None:
    """Return the plan; None if the config does not say on how many GPUs it trains, or its numbers make no
    sense.
    """
    config = subject.trainer
    train, serve = _layouts(config) if config is not None else (None, None)
    if config is None or train is None or max(train.gpus, serve.gpus if serve is not None else 0) > GPUS_MAX:
        return None
    assumed: list[str] = []
    is_example = subject.is_by_flags
    if is_example:
        assumed.append(
            "what the command does not set is as in AReaL's own examples, because its file is not on this "
            "machine"
        )
    training = _training(config, train, assumed, is_example=is_example)
    if training is None:
        return None
    served = (
        _integer(config, "sglang", "context_length") or _integer(config, "vllm", "max_model_len") or CONTEXT
    )
    share = _number(
        config,
        *(
            ("vllm", "gpu_memory_utilization")
            if serve and serve.engine == "vllm"
            else ("sglang", "mem_fraction_static")
        ),
    )
    return JobDescription(
        model,
        training,
        train.gpus,
        Serving(seq_len=max(1, min(served, NUMBER_MAX)), sequences=1),
        serve_gpus=serve.tensor * serve.pipeline if serve is not None else 0,
        utilization=share
        if share is not None and 0 < share <= 1
        else EXAMPLE_UTILIZATION
        if is_example
        else UTILIZATION,
        together=serve is not None
        and resolved(config, "rollout", "scheduling_strategy", "type") == "colocation",
        batch_tokens=_batch_tokens(config),
        shortest=SHORTEST,
        assumed=tuple(assumed),
    )


def _layouts(config: Document) -> tuple[_Layout | None, _Layout | None]:
    """Return where the actor trains and where its server runs; None for what the config does not say, or does
    not have.
    """
    train, serve = _layout(_text(config, "actor", "backend")), _layout(_text(config, "rollout", "backend"))
    parts = _text(config, "allocation_mode").split("+")
    if train is None:  # as it was written before each part had a backend of its own
        train = _layout(parts[-1])
        serve = serve or (_layout(parts[0]) if len(parts) == 2 else None)
    return train, serve


def _layout(text: str) -> _Layout | None:
    found = _PART.fullmatch(text.strip())
    if found is None:
        return None
    sizes = {letter: max(1, int(size)) for letter, size in _SIZE.findall(found[2])}
    experts = {letter: max(1, int(size)) for letter, size in _SIZE.findall(found[3] or found[2])}.get("e", 1)
    return _Layout(
        found[1] or "fsdp",
        sizes.get("d", 1),
        sizes.get("t", 1),
        sizes.get("p", 1),
        sizes.get("c", 1),
        experts,
    )


def _training(config: Document, on: _Layout, assumed: list[str], *, is_example: bool) -> Training | None:
    tokens = _integer(config, "actor", "mb_spec", "max_tokens_per_mb") or (
        EXAMPLE_TOKENS if is_example else None
    )
    if tokens is None:
        tokens = _longest(config) or PASS_TOKENS
        assumed.append(f"{tokens:,} tokens in one pass: actor.mb_spec.max_tokens_per_mb is not set")
    if not 1 <= tokens <= NUMBER_MAX:
        return None
    is_lora, is_megatron = resolved(config, "actor", "use_lora") is True, on.engine == "megatron"
    width = 2.0 if _text(config, "actor", "optimizer_dtype") in ("bfloat16", "bf16") else 4.0
    # a third state compensates rounding
    states = {"sgd": 0.0, "adam_bf16": 6.0}.get(_text(config, "actor", "optimizer", "type"), 2 * width)
    weights, gradients, states = (2.0, 4.0, 4 + 2 * 4.0) if is_megatron else (width, width, states)
    return Training(
        method=Method.LORA if is_lora else Method.FULL,
        seq_len=max(1, math.ceil(tokens / on.context)),
        weight_bytes=weights,
        gradient_bytes=gradients,
        state_bytes=states,
        recompute=_recompute(config, on, is_example=is_example),
        logits=Logits.FUSED
        if (_integer(config, "actor", "megatron", "lm_head_loss_chunk_size") or 0) > 0
        else Logits.CHUNKED,
        lora_rank=max(1, min(_integer(config, "actor", "lora_rank") or LORA_RANK, NUMBER_MAX)),
        sharding=Sharding.ZERO1 if is_megatron else Sharding.FSDP2,
        tensor_parallel=on.tensor,
        pipeline_parallel=on.pipeline,
        expert_parallel=max(
            1, on.expert // on.tensor
        ),  # experts are not divided by tensor parallelism, but by e
        states_offloaded=any(
            resolved(config, "actor", engine, "offload_params") is True for engine in ("fsdp", "archon")
        ),
        models=2 if _has(config, "critic") else 1,
        frozen_bytes=(2.0 if is_megatron else width) if _has_reference(config) and not is_lora else 0.0,
        software=AREAL,
    )


def _recompute(config: Document, on: _Layout, *, is_example: bool) -> Recompute:
    chosen = resolved(config, "actor", "gradient_checkpointing")
    if chosen is not True and not (chosen is None and is_example):
        return Recompute.NONE
    if on.engine == "archon" and _text(config, "actor", "archon", "ac_mode") in ("", "selective"):
        return Recompute.SELECTIVE
    return Recompute.FULL


def _has(config: Document, part: str) -> bool:
    return isinstance(config.at(part), Mapping)


def _has_reference(config: Document) -> bool:
    """Return whether another copy of the model is kept to compare with: for RL only if the divergence from it
    counts.
    """
    is_rl = _has(config, "rollout") or _has(config, "gconfig")
    return _has(config, "ref") and (not is_rl or (_number(config, "actor", "kl_ctl") or 0) > 0)


def _longest(config: Document) -> int | None:
    """Return the tokens of the longest sequence that is trained on; None if the config does not say."""
    prompt, new = (
        _integer(config, "train_dataset", "max_length"),
        _integer(config, "gconfig", "max_new_tokens"),
    )
    return (prompt or 0) + (new or 0) or None


def _batch_tokens(config: Document) -> int:
    """Return the tokens of one step; 0 if the config does not say."""
    batch, longest = _integer(config, "train_dataset", "batch_size"), _longest(config)
    answers = max(1, _integer(config, "gconfig", "n_samples") or 1) if _has(config, "gconfig") else 1
    if (
        batch is None
        or longest is None
        or not all(0 < one <= NUMBER_MAX for one in (batch, longest, answers))
    ):
        return 0
    return batch * answers * longest


def _text(config: Document, *path: str) -> str:
    value = resolved(config, *path)
    return value if isinstance(value, str) else ""


def _number(config: Document, *path: str) -> float | None:
    value = resolved(config, *path)
    return (
        float(value)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        else None
    )


def _integer(config: Document, *path: str) -> int | None:
    value = _number(config, *path)
    return int(value) if value is not None and value == int(value) else None
