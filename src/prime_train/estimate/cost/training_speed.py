"""How fast a GPU trains: tokens a second, from ... to, within a factor of two.

Seconds of one token are those of its operations in matrices, of its attention, and of starting the kernels of each layer, which many
tokens at once share:

    matrices     6 for each parameter it passes (4 with LoRA, whose frozen weights have no gradient), 2 more where layers are made again
    attention    6 x layers x width x length (causal), a third more where layers are made again
    kernels      1.5 ms for each layer, forward and backward

The shares of a GPU's peak that are reached are read off published speeds (tests/data/training_speeds.json): matrices by GPU, less where
they are narrow; for GPUs without any, `OTHERS` holds nine in ten of them all. A mixture of experts reaches half of them. RL with
roll-outs takes 6 times as long: of two published runs one is in its range, the other 3 times slower; a smoke run tells more than this.
"""

from dataclasses import dataclass

from prime_train.estimate.gpus import Gpu
from prime_train.estimate.memory.setup import Method, Recompute
from prime_train.estimate.models.table import Model

HALF_WIDTH = 1.4
"""Slow and fast end, from the middle: 1.96 times between them."""
KERNELS_S = 1.5e-3
MOE_SHARE = 0.5
RL_TIMES = 6.0
UNLINKED_SHARE = 0.6
"""Of what several GPUs reach without NVLink between them: shards go over PCIe."""


@dataclass(frozen=True)
class Reach:
    """Shares of a GPU's peak. `narrow`: the width of hidden states at which half of what matrices could reach is lost."""

    matrices: float
    attention: float
    narrow: float


REACH = {
    "A100": Reach(0.68, 0.24, 150),
    "H100": Reach(0.55, 0.16, 300),
    "H200": Reach(0.60, 0.40, 500),
    "GH200": Reach(0.60, 0.40, 500),
    "B200": Reach(0.42, 0.25, 1000),
    "B300": Reach(0.42, 0.25, 1000),
    "GB200": Reach(0.42, 0.25, 1000),
    "GB300": Reach(0.42, 0.25, 1000),
}
OTHERS = Reach(0.60, 0.24, 150)


@dataclass(frozen=True)
class Pass:
    """What is done to tokens, and how many of them a GPU has at once."""

    seq_len: int = 4096
    micro_batch: int = 1
    method: Method = Method.FULL
    recompute: Recompute = Recompute.FULL
    rl: bool = False


def token_s(model: Model, done: Pass, gpu: Gpu, gpus: int) -> float:
    """Seconds of one GPU for one token, the middle of the range."""
    again = {Recompute.FULL: 1.0, Recompute.SELECTIVE: 0.35, Recompute.NONE: 0.0}[done.recompute]
    reach, peak = REACH.get(gpu.family, OTHERS), gpu.tflops * 10**12
    share = reach.matrices * model.hidden / (model.hidden + reach.narrow) * (MOE_SHARE if model.is_moe else 1.0)
    matrices = matrix_operations(model, done.method) + 2 * again * model.active
    attention = 6 * model.layers * model.attention_width * done.seq_len * (1 + again / 3)
    kernels_s = KERNELS_S * model.layers * (1 + again / 3) / (done.seq_len * done.micro_batch)
    seconds = matrices / (peak * share) + attention / (peak * reach.attention) + kernels_s
    together = 1.0 if gpus == 1 or gpu.linked else UNLINKED_SHARE
    return seconds / together * (RL_TIMES if done.rl else 1.0)


def tokens_per_s(model: Model, done: Pass, gpu: Gpu, gpus: int) -> tuple[float, float]:
    """Of all GPUs together, slow end and fast end."""
    middle = gpus / token_s(model, done, gpu, gpus)
    return middle / HALF_WIDTH, middle * HALF_WIDTH


def matrix_operations(model: Model, method: Method) -> float:
    """Of one token, forward and backward, nothing made again."""
    return (6 if method is Method.FULL else 4) * model.active
