"""Rules about GPU memory (ME2xx): what a prime-rl config needs on each allowed kind of GPU, compared with the memory of that kind.

An error means that not even the lower end of the estimate's band fits; a warning that the lower end fits and the estimate does not, so that
the run probably fails. If only the upper end does not fit, nine in ten of such runs work: that is a note.
"""

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING

from prime_train.core.finding import Severity
from prime_train.rules.rule import Rule, Subject, Violation

if TYPE_CHECKING:
    from prime_train.rules.hardware.memory_fits import Fitting

GIB = 2**30
FAMILY = "memory"
_UTILIZATION = ("inference", "vllm", "gpu_memory_utilization")
_LENGTH = ("inference", "vllm", "max_model_len")


def _fittings(subject: Subject) -> "Iterator[Fitting]":
    # Imported here because the memory estimate is slow to import and most configs do not need it.
    from prime_train.rules.hardware.memory_fits import fittings

    return fittings(subject)


def _trainer(subject: Subject, is_over: "Callable[[Fitting], bool]", verb: str) -> Iterator[Violation]:
    for fitting in _fittings(subject):
        if is_over(fitting) and not _server_is_too_large(fitting):
            need = fitting.need
            message = (
                f"the trainer {verb} {need.low / GIB:.0f} to {need.high / GIB:.0f} GiB of each GPU (phase: {need.peak.phase}); "
                f"{fitting.kind} has {fitting.usable / GIB:.0f} GiB"
            )
            yield Violation(("hardware", "gpus", fitting.place), message, _remedy(fitting))


def _remedy(fitting: "Fitting") -> str:
    use = fitting.need.peak
    largest = max(use.parts, key=lambda part: use.parts[part])
    helps = {
        "activations": "a shorter seq_len, trainer.model.cp, or trainer.model.ac_offloading",
        "logits": "a shorter seq_len, or the fused head (trainer.model.fused_lm_head_token_chunk_size)",
        "optimizer": "more GPUs for the trainer, trainer.model.optim_cpu_offload, or LoRA",
    }
    others = "more GPUs for the trainer, a larger kind, or LoRA"
    return f"{helps.get(largest, others)}; `prime-train memory` shows what takes it ({largest}: {use.parts[largest] / GIB:.0f} GiB)"


def _trainer_too_large(subject: Subject) -> Iterable[Violation]:
    return _trainer(subject, lambda fitting: fitting.need.low > fitting.usable, "needs")


def _trainer_tight(subject: Subject) -> Iterable[Violation]:
    return _trainer(subject, lambda fitting: fitting.need.low <= fitting.usable < fitting.need.peak.total, "may need")


def _trainer_close(subject: Subject) -> Iterable[Violation]:
    return _trainer(subject, lambda fitting: fitting.need.peak.total <= fitting.usable < fitting.need.high, "needs")


def _server_is_too_large(fitting: "Fitting") -> bool:
    return fitting.plan.serve_gpus > 0 and fitting.room_for_cache <= 0


def _server_too_large(subject: Subject) -> Iterator[Violation]:
    for fitting in _fittings(subject):
        if _server_is_too_large(fitting):
            found, plan = fitting.share, fitting.plan
            message = (
                f"the server has {found.budget / GIB:.1f} GiB of a {fitting.kind} ({plan.utilization:g} of it), and needs about "
                f"{found.parts.fixed / GIB:.1f} before any cache ({found.parts.weights / GIB:.1f} of weights)"
            )
            fix = "raise inference.vllm.gpu_memory_utilization or tensor_parallel_size, or take a larger kind"
            yield Violation(_UTILIZATION, message, fix, document="trainer")


def _cache_too_small(subject: Subject) -> Iterator[Violation]:
    for fitting in _fittings(subject):
        plan = fitting.plan
        if not plan.serve_gpus or _server_is_too_large(fitting):
            continue
        parts = fitting.share.parts
        if fitting.room_for_cache < parts.kv_cache:
            length = plan.serving.seq_len
            message = (
                f"one sequence of {length:,} tokens takes {parts.kv_cache / GIB:.1f} GiB of cache; "
                f"{fitting.room_for_cache / GIB:.1f} are left for it on a {fitting.kind}, so vLLM will not start"
            )
            yield Violation(_LENGTH, message, "a smaller max_model_len, more tensor_parallel_size, or a larger kind", document="trainer")


RULES = (
    Rule(
        "ME201",
        Severity.ERROR,
        "the trainer does not fit its GPUs",
        "The run dies of a lack of GPU memory in its first step, after machine, set-up and download were paid for.",
        "more GPUs, a larger kind, a shorter seq_len, or LoRA",
        FAMILY,
        _trainer_too_large,
        "prime_rl",
    ),
    Rule(
        "ME202",
        Severity.WARNING,
        "the trainer may not fit its GPUs",
        "What it is estimated to need is more than there is; estimates of published runs were within 20 % for nine in ten.",
        "more GPUs, a larger kind, a shorter seq_len, or LoRA",
        FAMILY,
        _trainer_tight,
        "prime_rl",
    ),
    Rule(
        "ME205",
        Severity.NOTE,
        "the trainer fits its GPUs with little to spare",
        "The estimate fits, and the upper end of its band does not: one in ten of such runs may die of it. A smoke test tells.",
        "try it with a smoke test of a few steps of full length",
        FAMILY,
        _trainer_close,
        "prime_rl",
    ),
    Rule(
        "ME203",
        Severity.ERROR,
        "the inference server does not fit its GPUs",
        "vLLM dies when it loads the model; the orchestrator waits half an hour for it.",
        "a larger share of the GPU, more tensor parallelism, or a larger kind",
        FAMILY,
        _server_too_large,
        "prime_rl",
    ),
    Rule(
        "ME204",
        Severity.ERROR,
        "not one sequence fits the server's cache",
        "vLLM refuses to start when its cache holds less than one sequence of max_model_len.",
        "a smaller max_model_len, more tensor parallelism, or a larger kind",
        FAMILY,
        _cache_too_small,
        "prime_rl",
    ),
)
