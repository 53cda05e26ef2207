"""Estimates how fast an inference server generates: new tokens per second, as a range within a factor of two.

Prompts are processed at a share of the GPU's peak: 2 operations per active parameter and token, and attention
over half of the prompt. New tokens are generated one step at a time for as many sequences as the cache holds:
the weights (for a mixture of experts, those that the batch's tokens activate) and the cache are read from
memory at a share of its bandwidth. Each request and each step adds a constant. The shares are derived from
published speeds of vLLM and SGLang (tests/data/serving_speeds.json).
"""

import math
from dataclasses import dataclass

from prime_train.estimate.gpus import Gpu
from prime_train.estimate.memory.serving import Serving, kv_bytes, share
from prime_train.estimate.models.dimensions import Model

HALF_WIDTH = 1.4
"""The factor from the middle of the range to its slow and to its fast end; the ends are 1.96 times apart."""
STEP_S = 1.5e-3
"""Seconds that each decoding step adds, on one GPU."""
REQUEST_S = 1e-3
"""Seconds that each request adds, on one GPU."""
TOGETHER_STEP_S, TOGETHER_REQUEST_S, TOGETHER_SHARE = 4.6e-3, 5.5e-3, 0.81
"""With tensor parallelism: the seconds that each decoding step and each request add, and the factor on the
reached share of the peak.
"""
DECODING_SHARE = 0.4
"""The share of the peak that matrix multiplications reach while decoding, with one token for each of many
sequences.
"""


@dataclass(frozen=True)
class PeakShares:
    """The shares of a GPU's peak values that a server reaches: of the operations while prompts are processed,
    for dense models and for mixtures of experts, and of the memory bandwidth.
    """

    dense: float
    experts: float
    bandwidth: float = 0.70


PEAK_SHARES = {
    "A100": PeakShares(0.71, 0.39),
    "H100": PeakShares(0.37, 0.27),
    "H200": PeakShares(0.37, 0.27),
    "H20": PeakShares(0.50, 0.30, 0.40),
}
OTHERS = PeakShares(0.50, 0.30)
"""The shares for GPUs without published speeds."""


@dataclass(frozen=True)
class Requests:
    """The requests to serve: `count` in all and `at_once` in parallel, each with `prompt` tokens of prompt
    and `new` tokens of answer.
    """

    count: int
    prompt: int
    new: int
    at_once: int

    def __post_init__(self) -> None:
        if min(self.count, self.new, self.at_once) < 1 or self.prompt < 0:
            raise ValueError(f"{self}: count, new and at_once must be at least 1")


def seconds(
    model: Model,
    serving: Serving,
    gpu: Gpu,
    gpus: int,
    requests: Requests,
    *,
    gpu_bytes: float,
    utilization: float,
) -> float:
    """Return the seconds until all requests are answered, the middle of the range."""
    shares, peak, bytes_per_s = (
        PEAK_SHARES.get(gpu.family, OTHERS),
        gpu.tflops * 10**12 * gpus,
        gpu.gb_per_s * 10**9,
    )
    together = gpus > 1
    prompts = requests.count * requests.prompt
    operations = prompts * (2 * model.active + 2 * model.layers * model.attention_width * requests.prompt)
    reading_s = operations / (
        peak * (shares.experts if model.is_moe else shares.dense) * (TOGETHER_SHARE if together else 1.0)
    )
    length = requests.prompt + requests.new / 2
    memory = share(model, serving, gpus, utilization=utilization, gpu_bytes=gpu_bytes)
    batch = max(1.0, min(requests.at_once, requests.count, memory.kv_tokens / length))
    read = memory.parts.weights * _share_read(model, batch) + batch * length * kv_bytes(model, serving, gpus)
    step_s = read / (bytes_per_s * shares.bandwidth) + batch * 2 * model.active / (peak * DECODING_SHARE)
    step_s += TOGETHER_STEP_S if together else STEP_S
    request_s = TOGETHER_REQUEST_S if together else REQUEST_S
    return reading_s + requests.count * requests.new / batch * step_s + requests.count * request_s


def new_tokens_per_s(
    model: Model,
    serving: Serving,
    gpu: Gpu,
    gpus: int,
    requests: Requests,
    *,
    gpu_bytes: float,
    utilization: float,
) -> tuple[float, float]:
    """Return the new tokens per second of the entire server, as (low, high)."""
    took_s = seconds(model, serving, gpu, gpus, requests, gpu_bytes=gpu_bytes, utilization=utilization)
    middle = requests.count * requests.new / took_s
    return middle / HALF_WIDTH, middle * HALF_WIDTH


def _share_read(model: Model, batch: float) -> float:
    """Return the share of the weights read in one step; experts that no token of the batch activates are not
    read.
    """
    if not model.is_moe:
        return 1.0
    passed = 1 - math.pow(1 - model.experts_used / model.experts, batch)
    return max(passed, model.active / model.params)
