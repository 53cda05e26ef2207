"""What an estimate of GPU memory means, in sentences."""

from collections.abc import Iterator

from prime_train.checks.host_bytes import host_bytes
from prime_train.estimate.job import JobDescription
from prime_train.estimate.memory.phases import GIB, Method, Training
from prime_train.estimate.memory.serving import kv_bytes
from prime_train.estimate.ranges import large, size_range
from prime_train.planning.memory_report import MemoryReport, OnKind, requests_of
from prime_train.runs.forecast import Fit

_FITS = {
    Fit.YES: "fits",
    Fit.TIGHT: "barely fits: the estimate fits, but the upper end of its range does not",
    Fit.UNLIKELY: "probably does not fit: the lower end of the range fits, but the estimate does not",
    Fit.NO: "does not fit",
}


def headline(found: MemoryReport) -> str:
    """Return what is trained, and how."""
    plan = found.plan
    guessed = " (architecture estimated from its size)" if plan.model.guessed else ""
    how = "full fine-tuning" if plan.training.method is Method.FULL else _adapters(plan.training)
    return (
        f"{found.title}: {plan.model.name}, {large(plan.model.params)} parameters{guessed}; {how}, sequences "
        f"of {plan.training.seq_len:,}"
    )


def _adapters(training: Training) -> str:
    """Return what is trained beside the weights of the model."""
    what = (
        "a part of the layers"
        if training.adapter_params and training.adapts_mlp
        else f"LoRA of rank {training.lora_rank}"
    )
    return f"{what} on quantised weights" if training.quantised or training.weight_bytes == 1 else what


def needs(found: MemoryReport) -> Iterator[str]:
    """Yield what the trainer needs of each GPU, and of the host if it offloads states of at least one GiB."""
    need = found.need
    size = size_range(need.low, need.high)
    yield (
        f"The trainer's peak is the {need.peak.phase}: {size} GiB (this range covers nine in "
        "ten published measurements)."
    )
    for one in found.plan.assumed:
        yield f"Assumed: {one}."
    if host_bytes(found.plan) >= GIB:
        yield f"The host's memory holds {host_bytes(found.plan) / GIB:.0f} GiB of offloaded states."


def fits(found: MemoryReport, one: OnKind) -> str:
    """Return whether the trainer fits GPUs of this kind."""
    shared = f" beside the server's {found.plan.utilization:g}" if found.plan.together else ""
    return f"{one.kind}: {one.left / GIB:.0f} GiB for the trainer{shared}: it {_FITS[one.fit]}"


def serves(found: MemoryReport, one: OnKind) -> str:
    """Return what the server on GPUs of this kind, whose share is known, has left for its cache."""
    assert one.share is not None
    plan, left = found.plan, one.share.budget - one.share.parts.fixed
    if left <= 0:
        return (
            f"{one.kind}: the server's share of {plan.utilization:g} ({one.share.budget / GIB:.0f} "
            "GiB) is too small for the model"
        )
    each = kv_bytes(plan.model, plan.serving, plan.serve_gpus)
    return (
        f"{one.kind}: {left / GIB:.0f} GiB of cache at {each / 1024:.0f} KiB a token: "
        f"{one.share.kv_tokens:,.0f} tokens, {one.serves:.1f} sequences of "
        f"{plan.serving.seq_len:,}{_speed(plan, one)}"
    )


def _speed(plan: JobDescription, one: OnKind) -> str:
    if one.speed is None:
        return ""
    requests = requests_of(plan)
    return (
        f"; {requests.at_once} at once, {requests.prompt:,} in and {requests.new:,} out, "
        "generate "
        f"{_range(*one.speed)} tokens/s"
    )


def _range(low: float, high: float) -> str:
    return f"{low:,.0f} to {high:,.0f}"
