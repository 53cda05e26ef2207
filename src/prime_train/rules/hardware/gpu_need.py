"""The memory that each GPU must have for a config's plan: that of its trainer and that of its server, in one figure with a band.

`validate`, `memory`, `find` and every ranking of offers judge by it.
"""

from prime_train.core.market.forecast import GpuNeed
from prime_train.estimate.memory.phases import training_need
from prime_train.estimate.memory.serving import ServerParts, server_parts
from prime_train.rules.hardware.plan import Plan

SERVER_LOW = (0.97, 0.72)
"""Lower ends of the error bands: of the weights, and of the rest of a server."""

LEFT_SHARE_MIN = 0.001
"""The share of a GPU that a server is assumed to leave to its trainer at least, so that no need is infinite."""


def gpu_need(plan: Plan, gpu_count: int) -> GpuNeed:
    """Return the usable bytes that each GPU of a machine with `gpu_count` GPUs must have: the trainer's peak, in what the server leaves it
    if both share their GPUs, and what the server takes at least before it starts, in the share that it may use."""
    trainer = training_need(plan.model, plan.training, plan.train_gpus)
    left = max(LEFT_SHARE_MIN, 1.0 - plan.utilization) if plan.together else 1.0
    ends = [end / left for end in (trainer.low, trainer.peak.total, trainer.high)]
    if plan.serve_gpus:
        parts = server_parts(plan.model, plan.serving, plan.serve_gpus)
        least, expected = server_low_bytes(parts) + parts.kv_cache, parts.fixed + parts.kv_cache
        ends = [max(one, server / plan.utilization) for one, server in zip(ends, (least, expected, expected), strict=True)]
    return GpuNeed(gpu_count, *ends)


def server_low_bytes(parts: ServerParts) -> float:
    """Return the bytes of a server without its cache, at the lower end of the band."""
    return parts.weights * SERVER_LOW[0] + (parts.fixed - parts.weights) * SERVER_LOW[1]
