"""Rules about GPU memory (ME2xx): what a prime-rl config needs on each allowed kind of GPU, compared with the
memory of that kind.

An error means that not even the lower end of the estimate's band fits; a warning that the lower end fits and
the estimate does not, so that the run probably fails. If only the upper end does not fit, nine in ten of such
runs work: that is a note.
"""

from collections.abc import Iterator
from dataclasses import replace
from functools import partial

from prime_train.checks.memory_fits import Fitting, fittings
from prime_train.checks.memory_plan import plan_of
from prime_train.estimate import gpus
from prime_train.estimate.memory.phases import Logits, Method, Recompute, training_need
from prime_train.runs.forecast import Fit, usable_bytes
from prime_train.spec.rule import Rules, Subject, Violation

GIB = 2**30
TOPIC = "memory"
_UTILIZATION = ("inference", "vllm", "gpu_memory_utilization")
_LENGTH = ("inference", "vllm", "max_model_len")


_MEASURED = frozenset(("prime_rl_sft", "torchtitan", "verl"))
"""Formats whose memory no other rule judges."""
SHORT = 256
"""Tokens of a sequence where the data may have no longer ones."""


RULES = Rules(TOPIC, requires="prime_rl")


def _trainer(subject: Subject, fit: Fit, verb: str) -> Iterator[Violation]:
    for fitting in fittings(subject):
        if fitting.fit is fit and not _server_is_too_large(fitting):
            need, together = fitting.need, fitting.plan.together
            server = (
                f", of which the server's share of {fitting.plan.utilization:g} leaves "
                f"{fitting.left / GIB:.0f} GiB"
                if together
                else ""
            )
            message = (
                f"the trainer {verb} {need.low / GIB:.0f} to {need.high / GIB:.0f} GiB of each GPU (phase: "
                f"{need.peak.phase}); {fitting.kind} has {fitting.usable / GIB:.0f} GiB{server}"
            )
            if together:
                yield Violation(_UTILIZATION, message, _smaller_share(fitting), document="trainer")
            else:
                yield Violation(("hardware", "gpus", fitting.place), message, _remedy(fitting))


def _smaller_share(fitting: Fitting) -> str:
    share = fitting.share_beside
    if share is None:
        return f"use two GPUs, or a larger kind; {_remedy(fitting)}"
    return f"write gpu_memory_utilization = {share:g}, or use two GPUs"


def _remedy(fitting: Fitting) -> str:
    use = fitting.need.peak
    largest = max(use.parts, key=lambda part: use.parts[part])
    helps = {
        "activations": "use a shorter seq_len, trainer.model.cp, or trainer.model.ac_offloading",
        "logits": "use a shorter seq_len, or the fused head (trainer.model.fused_lm_head_token_chunk_size)",
        "optimizer": "use more GPUs for the trainer, trainer.model.optim_cpu_offload, or LoRA",
    }
    others = "use more GPUs for the trainer, a larger kind, or LoRA"
    use_gib = use.parts[largest] / GIB
    return f"{helps.get(largest, others)}; most of the memory is for {largest} ({use_gib:.0f} GiB)"


def _server_is_too_large(fitting: Fitting) -> bool:
    return fitting.plan.serve_gpus > 0 and fitting.cache_bytes <= 0


@RULES.error(
    "ME203",
    "the inference server does not fit its GPUs",
    why="vLLM crashes when it loads the model, and the orchestrator waits half an hour for it.",
    fix="use a larger share of the GPU, more tensor parallelism, or a larger GPU",
)
def server_too_large(subject: Subject) -> Iterator[Violation]:
    for fitting in fittings(subject):
        if _server_is_too_large(fitting):
            found, plan = fitting.share, fitting.plan
            message = (
                f"the inference server may use {found.budget / GIB:.1f} GiB of a {fitting.kind} (a share of "
                f"{plan.utilization:g}), but needs about {found.parts.fixed / GIB:.1f} GiB before any KV "
                f"cache ({found.parts.weights / GIB:.1f} GiB of it weights)"
            )
            fix = "raise inference.vllm.gpu_memory_utilization or tensor_parallel_size, or take a larger kind"
            yield Violation(_UTILIZATION, message, fix, document="trainer")


@RULES.error(
    "ME204",
    "the server's KV cache cannot hold one sequence",
    why="vLLM refuses to start when its cache holds less than one sequence of max_model_len.",
    fix="use a smaller max_model_len, more tensor parallelism, or a larger GPU",
)
def cache_too_small(subject: Subject) -> Iterator[Violation]:
    for fitting in fittings(subject):
        plan = fitting.plan
        if not plan.serve_gpus or _server_is_too_large(fitting):
            continue
        parts = fitting.share.parts
        if fitting.cache_bytes < parts.kv_cache:
            length = plan.serving.seq_len
            message = (
                f"one sequence of {length:,} tokens takes {parts.kv_cache / GIB:.1f} GiB of KV cache, but "
                f"only {fitting.cache_bytes / GIB:.1f} GiB are free for it on a {fitting.kind}, so vLLM will "
                "not start"
            )
            yield Violation(
                _LENGTH,
                message,
                "use a smaller max_model_len, a larger tensor_parallel_size, or a larger GPU",
                document="trainer",
            )


RULES.error(
    "ME201",
    "the trainer does not fit its GPUs",
    why="The run fails with an out-of-memory error in its first step, after the machine, its setup and the "
    "download were paid for.",
    fix="use more GPUs, a larger kind, a shorter seq_len, or LoRA",
)(partial(_trainer, fit=Fit.NO, verb="needs"))
RULES.warning(
    "ME202",
    "the trainer may not fit its GPUs",
    why="The estimated need exceeds the available memory. Estimates for nine in ten published runs were "
    "within 20 %.",
    fix="use more GPUs, a larger kind, a shorter seq_len, or LoRA",
)(partial(_trainer, fit=Fit.UNLIKELY, verb="may need"))
RULES.note(
    "ME205",
    "the trainer barely fits its GPUs",
    why="The estimate fits, but the upper end of its range does not: one in ten such runs may run out of "
    "memory. A smoke test shows whether it fits.",
    fix="add a smoke test with a few steps of full sequence length",
)(partial(_trainer, fit=Fit.TIGHT, verb="needs"))


@RULES.error(
    "ME209",
    "a model whose weights, gradients and optimizer do not fit their GPUs",
    why="The run fails with an out-of-memory error in its first step, after the machine, its setup and the "
    "download were paid for.",
    fix="use more GPUs, a larger kind, or LoRA",
    requires="trainer",
)
def too_large(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or not spec.hardware.gpus or subject.format not in _MEASURED:
        return
    plan = plan_of(subject)
    if plan is None:
        return
    # All that a run can still change, without changing what is trained, is decided in its favour.
    least = replace(
        plan.training,
        seq_len=min(plan.training.seq_len, SHORT),
        micro_batch=1,
        recompute=Recompute.FULL,
        logits=Logits.FUSED,
        frozen_bytes=0.0,
        models=1,
        gradient_bytes=min(plan.training.gradient_bytes, 2.0),
        adapter_params=1 if plan.training.method is Method.LORA else 0,
    )
    need = training_need(plan.model, least, plan.train_gpus)
    for place, kind in enumerate(spec.hardware.gpus):
        usable = usable_bytes(gpus.named_gb(kind))
        if usable and need.low > usable:
            message = (
                f"the training of {plan.model.name} takes at least {need.low / GIB:.0f} GiB of each of "
                f"{plan.train_gpus} GPUs, even with short sequences; {kind} has {usable / GIB:.0f} GiB"
            )
            yield Violation(("hardware", "gpus", place), message)
