"""How long a stated amount of training takes on a machine, and what it costs: always from ... to, for nobody knows it closer before a run.

Operations of a token, forward and backward: 6 for each parameter it passes (4 with LoRA, whose frozen weights have no gradient), and
12 x layers x width x length for attention over sequences of that length (counted whole, as published shares are, though causal kernels
skip half). Time is operations over what the GPUs do at their peak, divided by the share of it that is reached; on top comes the start,
which is paid as well. Money is time times price; on a spot machine, what preemptions cost comes on top.

The shares are ours, held against 58 published speeds (tests/data/training_speeds.json). 56 are of dense models, tuned by the makers of
the trainers: none is slower than the low end, none on H100 faster than the high one, on A100 most are. Of RL there are only two, from
end to end, both of mixtures of experts, and both in their range.
"""

import math
from dataclasses import dataclass

from prime_train.core.gpus import Gpu
from prime_train.core.memory import Method
from prime_train.core.model_table import Model

HOUR_S = 3600.0


@dataclass(frozen=True)
class Between:
    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < math.inf:
            raise ValueError(f"{self.low} to {self.high} is no range of finite amounts")

    @property
    def expected(self) -> float:
        """The middle in ratio: as much below as above."""
        return math.sqrt(self.low * self.high)

    def __mul__(self, factor: "Between") -> "Between":
        return Between(self.low * factor.low, self.high * factor.high)

    def __add__(self, more: "Between") -> "Between":
        return Between(self.low + more.low, self.high + more.high)


START_S = Between(5 * 60.0, 20 * 60.0)
"""Boot, set-up, download of the model, compilation."""
SPOT_SHARE = Between(0.02, 0.15)
"""What preemptions add: 25 minutes each (half of 30 between checkpoints, 10 until another machine trains), once a day or in 3 hours."""


@dataclass(frozen=True)
class Work:
    """`tokens`: trained on. `rl`: they are sampled first, by the same machine."""

    tokens: float
    seq_len: int = 4096
    method: Method = Method.FULL
    rl: bool = False

    def __post_init__(self) -> None:
        if not (0 < self.tokens < math.inf and self.seq_len > 0):
            raise ValueError(f"{self.tokens} tokens in sequences of {self.seq_len}; both must be above 0")


@dataclass(frozen=True)
class Machine:
    gpu: Gpu
    count: int
    usd_per_hour: float
    spot: bool


SHARES = {
    # (RL, mixture of experts): of the GPUs' peak, all time after the start counted
    (False, False): Between(0.20, 0.50),
    (False, True): Between(0.10, 0.30),
    (True, False): Between(0.03, 0.10),
    (True, True): Between(0.01, 0.04),
}
UNLINKED_TIMES = 0.5
"""Of the low end, where several GPUs of a box have no NVLink between them and shards go over PCIe."""


def share_of_peak(model: Model, work: Work, machine: Machine) -> Between:
    share = SHARES[work.rl, model.is_moe]
    together = machine.count == 1 or machine.gpu.linked
    return share if together else Between(share.low * UNLINKED_TIMES, share.high)


def operations(model: Model, work: Work) -> float:
    """Of one trained token."""
    weights = 6 if work.method is Method.FULL else 4
    return weights * model.active + 12 * model.layers * model.attention_width * work.seq_len


def time_s(model: Model, work: Work, machine: Machine) -> Between:
    """From the order to the last token, what preemptions cost counted in."""
    peak_s = work.tokens * operations(model, work) / (machine.count * machine.gpu.tflops * 10**12)
    share = share_of_peak(model, work, machine)
    trained = START_S + Between(peak_s / share.high, peak_s / share.low)
    return trained * Between(1 + SPOT_SHARE.low, 1 + SPOT_SHARE.high) if machine.spot else trained


def usd(time: Between, machine: Machine) -> Between:
    per_s = machine.usd_per_hour / HOUR_S
    return time * Between(per_s, per_s)
