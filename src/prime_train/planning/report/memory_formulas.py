"""How each part of the memory was computed, as readable formulas."""

from collections.abc import Iterator

from prime_train.estimate.job import JobDescription
from prime_train.estimate.memory import formulas
from prime_train.estimate.memory.phases import Use
from prime_train.estimate.memory.serving import PREFILL_TOKENS, SAMPLED, SAMPLED_LOGIT_BYTES, ServerParts
from prime_train.estimate.memory.training_setup import Logits, Method, Recompute
from prime_train.estimate.ranges import large


def of_training(plan: JobDescription, use: Use) -> Iterator[tuple[str, str]]:
    """Yield each part with its formula; parts of 0 bytes are left out."""
    made = dict(_training_parts(plan))
    for part, size in use.parts.items():
        if size > 0 and part in made:
            yield part, made[part]


def of_serving(plan: JobDescription, parts: ServerParts) -> Iterator[tuple[str, float, str]]:
    """Yield each part with its bytes and its formula."""
    model, serving, gpus = plan.model, plan.serving, _on(plan.serve_gpus)
    yield "weights", parts.weights, f"{large(model.params)} x {serving.weight_bytes:g} B{gpus}"
    yield (
        "activations",
        parts.activations,
        f"{PREFILL_TOKENS:,} tokens x 2 B x (4 hidden + 2 ffn), whatever the number of GPUs",
    )
    yield (
        "logits",
        parts.logits,
        f"{SAMPLED} sequences x {SAMPLED_LOGIT_BYTES} B x vocabulary {model.vocab:,}",
    )
    if parts.graphs:
        yield "CUDA graphs", parts.graphs, "published: 0.3 to 1.6 GiB"
    yield "buffers", parts.buffers, "outside torch; published: 0.2 to 1.8 GiB, more with several GPUs"


def _training_parts(plan: JobDescription) -> Iterator[tuple[str, str]]:
    model, training = plan.model, plan.training
    shared = tuple(_on(count) for count in training.state_shards(plan.train_gpus))
    trained = large(formulas.trained_params(model, training))
    adapters = (
        "" if training.method is Method.FULL else f" + {trained} of adapters x {training.adapter_bytes:g} B"
    )
    tokens = f"{training.tokens:,.0f} tokens"
    frozen = f" + {training.frozen_bytes:g} B of reference model" if training.frozen_bytes else ""
    times = f"{training.models} x " if training.models > 1 else ""
    weights = f"{times}{large(model.params)} x {training.weight_bytes:g} B{adapters}{frozen}"
    yield (
        "weights",
        f"({weights}){shared[0]}" if (adapters or frozen) and shared[0] else f"{weights}{shared[0]}",
    )
    yield "gradients", f"{times}{trained} x {training.gradient_bytes:g} B{shared[1]}"
    yield "optimizer", f"{times}{trained} x {training.state_bytes:g} B{shared[2]}"
    yield "activations", f"{tokens} x {_kept(plan)}"
    yield "logits", f"{tokens} x {_logit(plan)}"
    yield "gathered", "gathered layers and embedding while in use, and the gradient of the largest"
    yield (
        "rest",
        f"{training.software.rest_gib:.1f} GiB of allocator and libraries"
        + (", 4-bit workspace" if training.quantised else ""),
    )


def _kept(plan: JobDescription) -> str:
    model, training = plan.model, plan.training
    if training.recompute is not Recompute.FULL:
        return f"{model.layers} layers x their saved activations ({training.recompute} recomputed)"
    layers = (
        "1 layer's input (others are offloaded)"
        if training.activations_offloaded
        else f"{model.layers} layers' inputs"
    )
    return f"2 B x hidden {model.hidden:,} x {layers}, and one layer being computed"


def _logit(plan: JobDescription) -> str:
    model, training = plan.model, plan.training
    if training.logits is Logits.FUSED:
        return f"{formulas.FUSED_LOGIT_BYTES} B x {formulas.FUSED_VOCAB:,} at a time (fused head)"
    return f"{formulas.one_logit_bytes(model, training):.3g} B x vocabulary {model.vocab:,}"


def _on(gpus: int) -> str:
    return f" / {gpus} GPUs" if gpus > 1 else ""
