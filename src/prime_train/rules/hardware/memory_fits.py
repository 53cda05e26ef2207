"""Evaluates a prime-rl config's plan on each kind of GPU that the config allows."""

from collections.abc import Iterator
from dataclasses import dataclass

from prime_train.estimate import gpus
from prime_train.estimate.memory.phases import GIB, Need, training_need
from prime_train.estimate.memory.serving import Share, share
from prime_train.rules.hardware.memory_plan import Plan, plan_of
from prime_train.rules.rule import Subject

SERVER_LOW = (0.97, 0.72)
"""Lower ends of the error bands: of the weights, and of the rest of a server."""


@dataclass(frozen=True)
class Fitting:
    """A plan on one kind of GPU. `usable` is the bytes of one GPU."""

    plan: Plan
    kind: str
    place: int
    usable: float
    need: Need

    @property
    def share(self) -> Share:
        plan = self.plan
        return share(plan.model, plan.serving, plan.serve_gpus, utilization=plan.utilization, gpu_bytes=self.usable)

    @property
    def cache_bytes(self) -> float:
        """Return the bytes left for the KV cache if the server takes as little as the band allows."""
        parts = self.share.parts
        return self.share.budget - parts.weights * SERVER_LOW[0] - (parts.fixed - parts.weights) * SERVER_LOW[1]


def fittings(subject: Subject, *, together: bool = False) -> Iterator[Fitting]:
    """Yield the plan of the config on each allowed kind of GPU whose name contains its memory. `together`: the plans of configs whose
    trainer and server share their GPUs, instead of those where each has its own."""
    plan, spec = plan_of(subject), subject.spec
    # If more GPUs of prime-rl are assigned than exist, another rule reports it, and the placement is not known.
    if plan is None or spec is None or plan.together is not together:
        return
    need = training_need(plan.model, plan.training, plan.train_gpus)
    for place, kind in enumerate(spec.hardware.gpus):
        gb = gpus.named_gb(kind)
        if gb:
            yield Fitting(plan, kind, place, gb * gpus.USABLE_SHARE * GIB, need)
