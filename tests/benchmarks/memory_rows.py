"""Published memory peaks, as estimates are asked for: a row of tests/data/memory_peaks.json is a model, a training and some GPUs."""

import json
import math
import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from prime_train.core import memory_software as software
from prime_train.core.memory import GIB, Logits, Method, Recompute, Serving, Sharding, Training, Use, kv_bytes, training_need
from prime_train.core.memory_software import Software
from prime_train.core.memory_terms import weight_bytes
from prime_train.core.model_table import Model

PEAKS = Path(__file__).parent.parent / "data" / "memory_peaks.json"
WORDS = {"paged": 0.0, "dq": 0.516, "gptq": 0.53, "awq": 0.53, "mxfp4": 0.53, "4": 0.5625, "8": 1.0, "32": 4.0, "16": 2.0}
"""Bytes of a number, by what is in the name of its kind."""
UTILIZATION = re.compile(r"util (0\.\d+)")
UPCASTING = (software.UNPADDED, software.BUCKETED, software.PLAIN, software.HF_TRAINER)
OFFLOADS_SINCE = "2026-06"
"""prime-rl keeps its optimizer on the host by default since then."""


@dataclass(frozen=True)
class Row:
    """`peak`: bytes."""

    said: dict[str, Any]

    @property
    def name(self) -> str:
        return str(self.said["id"])

    @property
    def source(self) -> str:
        return str(self.said["source"]).split("@")[0].split(" ")[0].split("/pull")[0]

    @property
    def peak(self) -> float:
        return float(self.said["peak_gib"]) * GIB

    @property
    def gpus(self) -> int:
        return int(self.said["n_gpus"])

    @property
    def is_training(self) -> bool:
        return bool(self.said["kind"] == "memory-train")

    def text(self, key: str) -> str:
        return str(self.said.get(key) or "").lower()


def rows(path: Path = PEAKS) -> list[Row]:
    """Those with a peak and the model's shape, of quality A or B."""
    told = [row for row in json.loads(path.read_text()) if row["kind"] in ("memory-train", "memory-infer") and row.get("layers")]
    return [Row(row) for row in told if row["quality"] in "AB" and row.get("peak_gib")]


def model(row: Row) -> Model:
    said, moe = row.said, row.said.get("moe")
    head = said.get("head_dim") or said["hidden"] // said["heads"]
    ffn = said.get("ffn") or 4 * said["hidden"]
    shape = Model(
        said["model"],
        round(said["params"]),
        said["layers"],
        said["hidden"],
        said["heads"],
        said["kv_heads"],
        head,
        ffn,
        said["vocab"],
        tied=bool(said.get("tied")),
        gated=said.get("gated_mlp") is not False,
        norms=4 if "gemma-2" in row.text("model") or "gemma-3" in row.text("model") else 2,
    )
    if not moe:
        return shape
    return replace(shape, active=round(moe["active"]), experts=moe["experts"], experts_used=moe["topk"], ffn=ffn * moe["topk"])


def training(row: Row) -> Training:
    said, made_with = row.said, software_of(row)
    full = "full" in row.text("method")
    state = _bytes(row.text("optimizer_state_dtype"), 4.0)
    gradient = row.text("grad_dtype")
    weight = _bytes(row.text("weights_dtype"), 2.0)
    master = 4.0 if full and weight == 2 and state == 4 else 0.0
    degree = 8 if "TP" in str(said.get("sharding")) and row.gpus >= 8 else 1
    later = made_with is software.PRIME_RL and row.text("version")[:7] >= OFFLOADS_SINCE
    return Training(
        method=Method.FULL if full else Method.LORA,
        seq_len=math.ceil((said.get("seq_len") or 512) / _context_parallel(row)),
        micro_batch=said.get("micro_batch") or 1,
        weight_bytes=weight,
        embedding_bytes=4.0 if made_with in UPCASTING and "gptq" not in row.text("weights_dtype") else 2.0,
        gradient_bytes=0.0 if "none" in gradient else _bytes(gradient, 2.0) + master,
        state_bytes=2 * state + master,
        recompute=recompute_of(row.text("activation_checkpointing")),
        activations_offloaded=bool(said.get("activation_offload")),
        eager_attention=row.text("attention").startswith("eager"),
        logits=_logits(row.text("cross_entropy")),
        lora_rank=said.get("lora_rank") or 16,
        adapter_bytes=4.0 if state == 4 else 2.0,
        adapters=_adapters(row),
        adapter_params=_adapter_params(row),
        adapts_mlp=any(word in row.text("lora_targets") for word in ("mlp", "up", "all")),
        trains_embeddings="emb" in row.text("method"),
        foreach=full and "foreach" in row.text("optimizer"),
        sharding=_sharding(row.text("sharding"), made_with),
        tensor_parallel=degree,
        pipeline_parallel=8 if "PP" in str(said.get("sharding")) else 1,
        states_offloaded=bool(said.get("cpu_offload")),
        optimizer_offloaded=later,
        compiled=bool(said.get("compile")),
        software=made_with,
    )


def software_of(row: Row) -> Software:
    framework, method = row.text("framework"), row.text("method")
    if "qwen finetune" in framework:
        return software.DEEPSPEED if "zero" in row.text("sharding") or "qlora" in method or "emb" in method else software.HF_TRAINER
    if framework.startswith("torchtune") and row.said.get("packed"):
        return replace(software.TORCHTUNE, natural_tokens=0)
    if "torchtitan" in framework and not re.search(r"2024", row.text("version")):
        return software.TORCHTITAN_2025
    if "fsdp_qlora" in framework and method == "lora":
        return software.FSDP_LORA
    known = {"prime-rl": software.PRIME_RL, "torchtitan": software.TORCHTITAN, "torchtune": software.TORCHTUNE, "lit-gpt": software.LITGPT}
    known |= {"fsdp_qlora": software.FSDP_QLORA, "swift": software.UNPADDED, "peft": software.BUCKETED}
    return next((found for word, found in known.items() if word in framework), software.PLAIN)


def estimate(row: Row) -> float:
    """Ours, in bytes."""
    if row.is_training:
        return training_need(model(row), training(row), row.gpus).peak.total
    return serving_peak(row).total


def serving_peak(row: Row) -> Use:
    """vLLM takes its share of the GPU; what generates in torch holds weights, a cache and little else."""
    use = training_need(model(row), Training(), 1).peak
    found = UTILIZATION.search(row.text("peak_kind")) or UTILIZATION.search(row.text("notes"))
    if row.text("framework") == "vllm" and row.said.get("gpu_total_gib"):
        return Use(use.phase, rest=row.said["gpu_total_gib"] * GIB * float(found[1] if found else 0.9))
    shape, plain = model(row), Training(weight_bytes=_bytes(row.text("weights_dtype"), 2.0))
    head = 2 * shape.vocab * shape.hidden if plain.quantised else 0
    cache = kv_bytes(shape, Serving()) * (row.said.get("seq_len") or 300)
    return Use(use.phase, weights=weight_bytes(shape, plain) / row.gpus, kv_cache=cache, rest=0.1 * GIB + head)


def _bytes(kind: str, otherwise: float) -> float:
    return next((size for word, size in WORDS.items() if word in kind), otherwise)


def weight_of(row: Row) -> float:
    """Bytes of a weight."""
    return _bytes(row.text("weights_dtype"), 2.0)


def recompute_of(text: str) -> Recompute:
    if text.startswith(("none", "false")) or not text:
        return Recompute.NONE
    return Recompute.SELECTIVE if "selective" in text else Recompute.FULL


def _logits(text: str) -> Logits:
    if "fused" in text:
        return Logits.FUSED
    return Logits.CHUNKED if "chunk" in text and "no chunk" not in text else Logits.WHOLE


def _sharding(text: str, made_with: Software) -> Sharding:
    for word, found in (("zero-3", Sharding.ZERO3), ("zero-2", Sharding.ZERO2), ("zero-1", Sharding.ZERO1)):
        if word in text:
            return found
    if text in ("none", "") or "no-shard" in text or "ddp" in text:
        return Sharding.NONE
    return Sharding.FSDP2 if made_with in (software.PRIME_RL, software.TORCHTITAN, software.TORCHTITAN_2025) else Sharding.FSDP1


def _context_parallel(row: Row) -> int:
    """prime-rl's rows tell it in their names."""
    found = re.search(r"-cp(\d+)", row.name)
    return max(1, int(found[1])) if found else 1


def _adapters(row: Row) -> int:
    found = re.search(r"(\d+) concurrent lora adapters", row.text("notes"))
    return int(found[1]) if found else 1


def _adapter_params(row: Row) -> int:
    """Of one adapter; 0: on all matrices. Where embeddings are trained too, what is told has them in it."""
    told, targets, shape = row.said.get("trainable_params"), row.text("lora_targets"), model(row)
    if "full" in row.text("method"):
        return 0
    if told:
        beside = shape.embedding_params if "emb" in row.text("method") else 0
        return int(max(0, told - beside) / _adapters(row))
    if "c_attn" in targets and "all" not in targets:
        return round((row.said.get("lora_rank") or 8) * shape.layers * (shape.hidden + shape.attention_width + 2 * shape.kv_width))
    return 0
