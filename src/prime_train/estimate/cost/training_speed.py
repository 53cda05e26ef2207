"""Estimates how fast GPUs train: tokens per second, as a range within a factor of two.

The seconds per token are those of its matrix operations, of its attention, and of launching each layer's
kernels, which all tokens of a pass share:

    matrices     6 operations per active parameter (4 with LoRA, whose frozen weights have no gradient), 2
    more if layers are recomputed attention    6 x layers x width x length (causal), a third more if layers
    are recomputed kernels      1.5 ms per layer, forward and backward

The reached shares of a GPU's peak are derived from published speeds (tests/data/training_speeds.json): per
GPU, lower for narrow matrices; for GPUs without published speeds, the range of `OTHERS` covers nine in ten of
all speeds. A mixture of experts reaches half of the share. RL with rollouts takes 6 times as long: of two
published runs one is within the range, the other 3 times slower; a smoke run is more reliable than this.
"""

from dataclasses import dataclass

from prime_train.estimate.gpus import Gpu
from prime_train.estimate.memory.training_setup import Method, Recompute
from prime_train.estimate.models.dimensions import Model

HALF_WIDTH = 1.4
"""The factor from the middle to the slow and to the fast end; the ends are 1.96 times apart."""
KERNELS_S = 1.5e-3
"""Seconds for launching one layer's kernels, forward and backward."""
MOE_SHARE = 0.5
"""The factor on the reached share for a mixture of experts."""
RL_TIMES = 6.0
"""The factor on the time of a step if its rollouts are generated on the same machine."""
UNLINKED_SHARE = 0.6
"""The factor on the speed of several GPUs without NVLink, whose shards are sent over PCIe."""


@dataclass(frozen=True)
class PeakShares:
    """The shares of a GPU's peak that training reaches. `narrow` is the width of the hidden states at which
    matrices reach half of their share.
    """

    matrices: float
    attention: float
    narrow: float


PEAK_SHARES = {
    "A100": PeakShares(0.68, 0.24, 150),
    "H100": PeakShares(0.55, 0.16, 300),
    "H200": PeakShares(0.60, 0.40, 500),
    "GH200": PeakShares(0.60, 0.40, 500),
    "B200": PeakShares(0.42, 0.25, 1000),
    "B300": PeakShares(0.42, 0.25, 1000),
    "GB200": PeakShares(0.42, 0.25, 1000),
    "GB300": PeakShares(0.42, 0.25, 1000),
}
OTHERS = PeakShares(0.60, 0.24, 150)
"""The shares for GPUs without published speeds; the range covers nine in ten of all published speeds."""


@dataclass(frozen=True)
class Pass:
    """How tokens are trained, and how many of them are on a GPU in one pass."""

    seq_len: int = 4096
    micro_batch: int = 1
    method: Method = Method.FULL
    recompute: Recompute = Recompute.FULL
    rl: bool = False


def token_s(model: Model, done: Pass, gpu: Gpu, gpus: int) -> float:
    """Return the GPU-seconds per token, the middle of the range."""
    again = {Recompute.FULL: 1.0, Recompute.SELECTIVE: 0.35, Recompute.NONE: 0.0}[done.recompute]
    shares, peak = PEAK_SHARES.get(gpu.family, OTHERS), gpu.tflops * 10**12
    share = (
        shares.matrices * model.hidden / (model.hidden + shares.narrow) * (MOE_SHARE if model.is_moe else 1.0)
    )
    matrices = matrix_operations(model, done.method) + 2 * again * model.active
    attention = 6 * model.layers * model.attention_width * done.seq_len * (1 + again / 3)
    kernels_s = KERNELS_S * model.layers * (1 + again / 3) / (done.seq_len * done.micro_batch)
    seconds = matrices / (peak * share) + attention / (peak * shares.attention) + kernels_s
    together = 1.0 if gpus == 1 or gpu.linked else UNLINKED_SHARE
    return seconds / together * (RL_TIMES if done.rl else 1.0)


def tokens_per_s(model: Model, done: Pass, gpu: Gpu, gpus: int) -> tuple[float, float]:
    """Return the tokens per second of all GPUs together, as (low, high)."""
    middle = gpus / token_s(model, done, gpu, gpus)
    return middle / HALF_WIDTH, middle * HALF_WIDTH


def matrix_operations(model: Model, method: Method) -> float:
    """Return the matrix operations per token, forward and backward, without recomputation."""
    return (6 if method is Method.FULL else 4) * model.active
