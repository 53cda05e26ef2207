"""Evaluates a prime-rl config's plan on each kind of GPU that the config allows."""

from collections.abc import Iterator
from dataclasses import dataclass

from prime_train.checks.memory_plan import plan_of
from prime_train.estimate import gpus
from prime_train.estimate.job import JobDescription, server_low_bytes
from prime_train.estimate.memory.phases import Need
from prime_train.estimate.memory.serving import Share, share
from prime_train.runs.forecast import Fit, usable_bytes
from prime_train.spec.rule import Subject


@dataclass(frozen=True)
class Fitting:
    """A plan on one kind of GPU. `usable` is the bytes of one GPU."""

    plan: JobDescription
    kind: str
    place: int
    usable: float
    need: Need

    @property
    def share(self) -> Share:
        plan = self.plan
        return share(
            plan.model, plan.serving, plan.serve_gpus, utilization=plan.utilization, gpu_bytes=self.usable
        )

    @property
    def cache_bytes(self) -> float:
        """Return the bytes left for the KV cache if the server takes as little as the band allows."""
        return self.share.budget - server_low_bytes(self.share.parts)

    @property
    def left(self) -> float:
        """Return the bytes of a GPU that the trainer may use."""
        return self.plan.trainer_bytes(self.usable)

    @property
    def fit(self) -> Fit:
        """Return whether the trainer fits."""
        return self.need.on(self.plan.train_gpus).fit_into(self.left)

    @property
    def share_beside(self) -> float | None:
        """Return the largest share of the GPU, in twentieths, for a server beside which even the upper end of
        the trainer's need fits; None if the server does not fit into it.
        """
        share = int((1 - self.need.high / self.usable) * 20) / 20
        fixed = self.share.parts.fixed + self.share.parts.kv_cache
        return share if share > 0 and share * self.usable > fixed else None


def fittings(subject: Subject, *, together: bool | None = None) -> Iterator[Fitting]:
    """Yield the plan of the config on each allowed kind of GPU whose name contains its memory. `together`:
    only if trainer and server share their GPUs, or only if each has its own.
    """
    plan, spec = plan_of(subject), subject.spec
    # If more GPUs of prime-rl are assigned than exist, another rule reports it, and the placement is not
    # known.
    if plan is None or spec is None or together not in (None, plan.together):
        return
    need = plan.trainer_need
    for place, kind in enumerate(spec.hardware.gpus):
        gb = gpus.named_gb(kind)
        if gb:
            yield Fitting(plan, kind, place, usable_bytes(gb), need)
