"""What a training needs of memory, as one value, for text and for JSON."""

from collections.abc import Sequence
from dataclasses import dataclass

from prime_train.estimate import gpus
from prime_train.estimate.cost.serving_speed import Requests, new_tokens_per_s
from prime_train.estimate.job import JobDescription
from prime_train.estimate.memory.phases import Need
from prime_train.estimate.memory.serving import Share, share
from prime_train.runs.forecast import Fit, GpuNeed, usable_bytes

REQUESTS, AT_ONCE = 1000, 256


@dataclass(frozen=True)
class OnKind:
    """The result for one kind of GPU. `left`: the bytes of a GPU that the trainer may use; `fit`: whether the
    trainer fits; `whole`: whether the trainer and the server do; `share`: the server's share of a GPU, or
    None if nothing is served.
    """

    kind: str
    usable: float
    left: float
    fit: Fit
    whole: Fit
    share: Share | None
    serves: float
    """How many sequences of the server's length its KV cache holds at once."""
    speed: tuple[float, float] | None
    """New tokens per second of the entire server for the requests of `requests_of`; None if the GPU is not
    known or nothing fits.
    """


@dataclass(frozen=True)
class MemoryReport:
    """What the training takes. `need`: of the trainer, by phase; `gpu_need`: what each GPU must have for the
    trainer and the server. `variant`: the variant of the config that this is about, in words; empty if it has
    none. `others`: the reports on the config's other variants.
    """

    title: str
    plan: JobDescription
    need: Need
    gpu_need: GpuNeed
    kinds: tuple[OnKind, ...]
    variant: str = ""
    others: tuple["MemoryReport", ...] = ()

    @property
    def fits(self) -> bool:
        """Return whether the job fits every kind of GPU, in all variants, judged by the estimate itself and
        not by its band.
        """
        mine = all(one.whole.is_expected for one in self.kinds)
        return mine and all(other.fits for other in self.others)


def memory_report(title: str, plan: JobDescription, kinds: Sequence[str], variant: str = "") -> MemoryReport:
    need, whole = plan.trainer_need, plan.gpu_need(plan.train_gpus)
    return MemoryReport(
        title,
        plan,
        need,
        whole,
        tuple(_on(plan, need, whole, kind) for kind in kinds if gpus.named_gb(kind)),
        variant,
    )


def _on(plan: JobDescription, need: Need, whole: GpuNeed, kind: str) -> OnKind:
    usable = usable_bytes(gpus.named_gb(kind))
    served = (
        share(plan.model, plan.serving, plan.serve_gpus, utilization=plan.utilization, gpu_bytes=usable)
        if plan.serve_gpus
        else None
    )
    left = plan.trainer_bytes(usable)
    serves = served.sequences(plan.serving.seq_len) if served is not None else 0.0
    trainer, speed = (
        need.on(plan.train_gpus).fit_into(left),
        _speed(plan, kind, usable) if serves >= 1 else None,
    )
    return OnKind(kind, usable, left, trainer, whole.fit_into(usable), served, serves, speed)


def requests_of(plan: JobDescription) -> Requests:
    """Return the assumed load: prompts of an eighth of the length, answers of a half, and `AT_ONCE` requests
    in parallel.
    """
    length = plan.serving.seq_len
    return Requests(REQUESTS, length // 8, max(1, length // 2), AT_ONCE)


def _speed(plan: JobDescription, kind: str, usable: float) -> tuple[float, float] | None:
    gpu = gpus.facts(kind)
    if gpu is None:
        return None
    return new_tokens_per_s(
        plan.model,
        plan.serving,
        gpu,
        plan.serve_gpus,
        requests_of(plan),
        gpu_bytes=usable,
        utilization=plan.utilization,
    )
