"""Published memory peaks in the form of estimates: a row of tests/data/memory_peaks.json is a model, a
training and some GPUs.
"""

import json
import re
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

from prime_train.estimate.memory.formulas import weight_bytes
from prime_train.estimate.memory.phases import GIB, Method, Serving, Training, Use, kv_bytes, training_need
from prime_train.estimate.memory.software_factors import LEARNED, Learned, software
from prime_train.estimate.models.dimensions import Model
from prime_train.estimate.models.lookup import resolve_model
from tests.benchmarks.memory import row_parser as stated
from tests.benchmarks.memory.row_parser import PEAKS, Row

OFFLOADS_SINCE = "2026-06"
"""Month since which prime-rl keeps its optimizer in host memory by default."""
NATIVE = ("prime-rl", "torchtitan", "torchtune", "lit-gpt", "fsdp_qlora")
"""Trainers with model code of their own; all others are assumed to train the models of transformers."""
UTILIZATION = re.compile(r"util\w* (0\.\d+)")
OTHER_GIB = 79.2
"""GiB of a GPU whose memory is not given."""
UNSAID_VOCAB, UNSAID_SHARE = 128_256, 8
"""Share of a mixture of experts' parameters that a token passes is one in this many."""
GENERATED = 300
"""Tokens at the end of a run that only generates, if their number is not given."""


def rows(path: Path = PEAKS) -> list[Row]:
    """Return the rows of quality A or B with a peak and a model whose shape is given or known."""
    return list(_usable(json.loads(path.read_text())))


def _usable(reported: list[dict[str, Any]]) -> Iterable[Row]:
    for row in reported:
        is_peak = (
            row["kind"] in ("memory-train", "memory-infer")
            and str(row.get("quality")) in "AB"
            and row.get("peak_gib")
        )
        if is_peak and (row.get("layers") or resolve_model(str(row.get("model")))):
            yield Row(row)


def model(row: Row) -> Model:
    """Return the shape of the model as the row gives it, or else by the model's name."""
    known = resolve_model(row.text("model"))
    if not row.stated.get("layers") and known is not None:
        return known
    hidden, heads = row.complete("hidden", 1), row.complete("heads", 1)
    gemma = re.search(r"gemma-([23])", row.text("model"))
    shape = Model(
        row.text("model"),
        0,
        row.complete("layers", 1),
        hidden,
        heads,
        row.complete("kv_heads", heads),
        row.complete("head_dim", max(1, hidden // heads)),
        row.complete("ffn", 4 * hidden),
        row.complete("vocab", known.vocab if known else UNSAID_VOCAB),
        tied=bool(row.stated.get("tied")),
        gated=row.stated.get("gated_mlp") is not False,
        norms=4 if gemma else 2,
        capped=gemma is not None and gemma[1] == "2",
    )
    params = round(row.number("params", known.params if known else _counted(shape)))
    return _mixed(replace(shape, params=params, active=params), row.stated.get("moe"))


def _counted(shape: Model) -> float:
    """Return the parameters of all matrices."""
    attention = 2 * shape.hidden * (shape.attention_width + shape.kv_width)
    return shape.embedding_params + shape.layers * (
        attention + (3 if shape.gated else 2) * shape.hidden * shape.ffn
    )


def _mixed(shape: Model, moe: object) -> Model:
    """Return the shape with its experts, if it has any."""
    if not isinstance(moe, dict) or not moe.get("experts"):
        return shape
    used, active = moe.get("topk") or 1, moe.get("active") or shape.params / UNSAID_SHARE
    return replace(
        shape, active=round(active), experts=moe["experts"], experts_used=used, ffn=shape.ffn * used
    )


def training(row: Row, learned: Learned = LEARNED) -> Training:
    made, full, checkpointing = stated.made_with(row), row.is_full, row.text("activation_checkpointing")
    state, weight, gradient = stated.state_of(row), stated.weight_of(row), row.text("grad_dtype")
    master = 4.0 if full and weight == 2 and state == 4 else 0.0
    wide_embedding = made.trainer not in NATIVE and "gptq" not in row.text("weights_dtype")
    return Training(
        method=Method.FULL if full else Method.LORA,
        seq_len=stated.tokens_of(row, made),
        micro_batch=row.complete("micro_batch", 1),
        weight_bytes=weight,
        embedding_bytes=4.0 if wide_embedding else 2.0,
        gradient_bytes=0.0 if "none" in gradient else stated.bytes_of(gradient, 2.0) + master,
        state_bytes=2 * state + master,
        recompute=stated.recompute_of(checkpointing),
        activations_offloaded=bool(row.stated.get("activation_offload")) or "unsloth" in checkpointing,
        eager_attention=row.text("attention").startswith("eager"),
        logits=stated.logits_of(row),
        lora_rank=row.complete("lora_rank", 16),
        adapter_bytes=4.0 if state == 4 else 2.0,
        adapters=_adapters(row),
        adapter_params=_adapter_params(row),
        adapts_mlp=any(word in row.text("lora_targets") for word in ("mlp", "up", "all", "w1")),
        trains_embeddings="emb" in row.text("method"),
        foreach=full and "foreach" in row.text("optimizer"),
        sharding=stated.sharding_of(row, made.trainer),
        tensor_parallel=stated.degree(row, "tp"),
        pipeline_parallel=stated.degree(row, "pp"),
        states_offloaded=bool(row.stated.get("cpu_offload")),
        optimizer_offloaded=made.trainer == "prime-rl" and row.text("version")[:7] >= OFFLOADS_SINCE,
        compiled=bool(row.stated.get("compile")),
        software=software(made, learned),
    )


def estimate(row: Row, learned: Learned = LEARNED) -> float:
    """Return prime-train's estimate in bytes."""
    if row.is_training:
        return training_need(model(row), training(row, learned), row.gpus).peak.total
    return serving_peak(row).total


def serving_peak(row: Row) -> Use:
    """Return the peak of a server, which takes its share of the GPU; generation with plain torch holds
    weights, a cache and little else.
    """
    use = training_need(model(row), Training(), 1).peak
    found = UTILIZATION.search(row.text("peak_kind")) or UTILIZATION.search(row.text("notes"))
    if "vllm" in row.text("framework") or "sglang" in row.text("framework"):
        return Use(
            use.phase, rest=row.number("gpu_total_gib", OTHER_GIB) * GIB * float(found[1] if found else 0.9)
        )
    shape, plain = model(row), Training(weight_bytes=stated.weight_of(row))
    head = 2 * shape.vocab * shape.hidden if plain.quantised else 0
    cache = kv_bytes(shape, Serving()) * row.complete("seq_len", GENERATED) * row.complete("micro_batch", 1)
    return Use(
        use.phase, weights=weight_bytes(shape, plain) / row.gpus, kv_cache=cache, rest=0.1 * GIB + head
    )


def _adapters(row: Row) -> int:
    found = re.search(r"(\d+) concurrent lora adapters", row.text("notes"))
    return max(1, int(found[1])) if found else 1


def _adapter_params(row: Row) -> int:
    """Return the parameters of one adapter; 0: adapters on all matrices. If embeddings are trained too, the
    given number includes them.
    """
    targets, shape = row.text("lora_targets"), model(row)
    if row.is_full:
        return 0
    if row.stated.get("trainable_params"):
        beside = shape.embedding_params if "emb" in row.text("method") else 0
        return int(max(0, row.number("trainable_params", 0) - beside) / _adapters(row))
    if "c_attn" in targets and "all" not in targets:
        return round(
            row.complete("lora_rank", 8)
            * shape.layers
            * (shape.hidden + shape.attention_width + 2 * shape.kv_width)
        )
    return 0
