"""Published memory peaks, as estimates are asked for: a row of tests/data/memory_peaks.json is a model, a training and some GPUs."""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from prime_train.estimate.memory.phases import GIB, Method, Serving, Training, Use, kv_bytes, training_need
from prime_train.estimate.memory.software import LEARNED, Learned, software
from prime_train.estimate.memory.terms import weight_bytes
from prime_train.estimate.models.lookup import understand
from prime_train.estimate.models.table import Model
from tests.benchmarks import memory_said as said
from tests.benchmarks.memory_said import PEAKS, Row

OFFLOADS_SINCE = "2026-06"
"""prime-rl keeps its optimizer on the host by default since then."""
NATIVE = ("prime-rl", "torchtitan", "torchtune", "lit-gpt", "fsdp_qlora")
"""Have models of their own; all others are taken to train those of transformers."""
UTILIZATION = re.compile(r"util\w* (0\.\d+)")
OTHER_GIB = 79.2
"""Of a GPU whose memory is not said."""
UNSAID_VOCAB, UNSAID_SHARE = 128_256, 8
"""Of a mixture of experts, a token passes one in so many parameters."""
GENERATED = 300
"""Tokens that a run which only generates has at the end, where it is not said."""


def rows(path: Path = PEAKS) -> list[Row]:
    """Those with a peak and a model whose shape is told or known, of quality A or B."""
    return list(_usable(json.loads(path.read_text())))


def _usable(told: list[dict[str, Any]]) -> Iterable[Row]:
    for row in told:
        is_peak = row["kind"] in ("memory-train", "memory-infer") and str(row.get("quality")) in "AB" and row.get("peak_gib")
        if is_peak and (row.get("layers") or understand(str(row.get("model")))):
            yield Row(row)


def model(row: Row) -> Model:
    """As the row tells it; where it does not, as the model's name does."""
    known = understand(row.text("model"))
    if not row.said.get("layers") and known is not None:
        return known
    hidden, heads = row.whole("hidden", 1), row.whole("heads", 1)
    gemma = re.search(r"gemma-([23])", row.text("model"))
    shape = Model(
        row.text("model"),
        0,
        row.whole("layers", 1),
        hidden,
        heads,
        row.whole("kv_heads", heads),
        row.whole("head_dim", max(1, hidden // heads)),
        row.whole("ffn", 4 * hidden),
        row.whole("vocab", known.vocab if known else UNSAID_VOCAB),
        tied=bool(row.said.get("tied")),
        gated=row.said.get("gated_mlp") is not False,
        norms=4 if gemma else 2,
        capped=gemma is not None and gemma[1] == "2",
    )
    params = round(row.number("params", known.params if known else _counted(shape)))
    return _mixed(replace(shape, params=params, active=params), row.said.get("moe"))


def _counted(shape: Model) -> float:
    """Parameters of all matrices."""
    attention = 2 * shape.hidden * (shape.attention_width + shape.kv_width)
    return shape.embedding_params + shape.layers * (attention + (3 if shape.gated else 2) * shape.hidden * shape.ffn)


def _mixed(shape: Model, moe: object) -> Model:
    """With its experts, if it has any."""
    if not isinstance(moe, dict) or not moe.get("experts"):
        return shape
    used, active = moe.get("topk") or 1, moe.get("active") or shape.params / UNSAID_SHARE
    return replace(shape, active=round(active), experts=moe["experts"], experts_used=used, ffn=shape.ffn * used)


def training(row: Row, learned: Learned = LEARNED) -> Training:
    made, full, checkpointing = said.made_with(row), row.is_full, row.text("activation_checkpointing")
    state, weight, gradient = said.state_of(row), said.weight_of(row), row.text("grad_dtype")
    master = 4.0 if full and weight == 2 and state == 4 else 0.0
    wide_embedding = made.trainer not in NATIVE and "gptq" not in row.text("weights_dtype")
    return Training(
        method=Method.FULL if full else Method.LORA,
        seq_len=said.tokens_of(row, made),
        micro_batch=row.whole("micro_batch", 1),
        weight_bytes=weight,
        embedding_bytes=4.0 if wide_embedding else 2.0,
        gradient_bytes=0.0 if "none" in gradient else said.bytes_of(gradient, 2.0) + master,
        state_bytes=2 * state + master,
        recompute=said.recompute_of(checkpointing),
        activations_offloaded=bool(row.said.get("activation_offload")) or "unsloth" in checkpointing,
        eager_attention=row.text("attention").startswith("eager"),
        logits=said.logits_of(row),
        lora_rank=row.whole("lora_rank", 16),
        adapter_bytes=4.0 if state == 4 else 2.0,
        adapters=_adapters(row),
        adapter_params=_adapter_params(row),
        adapts_mlp=any(word in row.text("lora_targets") for word in ("mlp", "up", "all", "w1")),
        trains_embeddings="emb" in row.text("method"),
        foreach=full and "foreach" in row.text("optimizer"),
        sharding=said.sharding_of(row, made.trainer),
        tensor_parallel=said.degree(row, "tp"),
        pipeline_parallel=said.degree(row, "pp"),
        states_offloaded=bool(row.said.get("cpu_offload")),
        optimizer_offloaded=made.trainer == "prime-rl" and row.text("version")[:7] >= OFFLOADS_SINCE,
        compiled=bool(row.said.get("compile")),
        software=software(made, learned),
    )


def estimate(row: Row, learned: Learned = LEARNED) -> float:
    """Ours, in bytes."""
    if row.is_training:
        return training_need(model(row), training(row, learned), row.gpus).peak.total
    return serving_peak(row).total


def serving_peak(row: Row) -> Use:
    """A server takes its share of the GPU; what generates in torch holds weights, a cache and little else."""
    use = training_need(model(row), Training(), 1).peak
    found = UTILIZATION.search(row.text("peak_kind")) or UTILIZATION.search(row.text("notes"))
    if "vllm" in row.text("framework") or "sglang" in row.text("framework"):
        return Use(use.phase, rest=row.number("gpu_total_gib", OTHER_GIB) * GIB * float(found[1] if found else 0.9))
    shape, plain = model(row), Training(weight_bytes=said.weight_of(row))
    head = 2 * shape.vocab * shape.hidden if plain.quantised else 0
    cache = kv_bytes(shape, Serving()) * row.whole("seq_len", GENERATED) * row.whole("micro_batch", 1)
    return Use(use.phase, weights=weight_bytes(shape, plain) / row.gpus, kv_cache=cache, rest=0.1 * GIB + head)


def _adapters(row: Row) -> int:
    found = re.search(r"(\d+) concurrent lora adapters", row.text("notes"))
    return max(1, int(found[1])) if found else 1


def _adapter_params(row: Row) -> int:
    """Of one adapter; 0: on all matrices. Where embeddings are trained too, what is told has them in it."""
    targets, shape = row.text("lora_targets"), model(row)
    if row.is_full:
        return 0
    if row.said.get("trainable_params"):
        beside = shape.embedding_params if "emb" in row.text("method") else 0
        return int(max(0, row.number("trainable_params", 0) - beside) / _adapters(row))
    if "c_attn" in targets and "all" not in targets:
        return round(row.whole("lora_rank", 8) * shape.layers * (shape.hidden + shape.attention_width + 2 * shape.kv_width))
    return 0
