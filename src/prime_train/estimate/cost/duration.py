"""How long a stated amount of training takes on a machine, and what it costs: always from ... to, for nobody knows it closer before a run.

Time is tokens over the speed that such GPUs reach (cost_speed.py), or steps times what a step takes where that is known; on top comes the
start, which is paid as well. Money is time times price; on a spot machine, what preemptions cost comes on top. What a whole run comes to,
line by line, is told by cost_bill.py.
"""

import math
from dataclasses import dataclass

from prime_train.estimate.cost.training_speed import Pass, tokens_per_s
from prime_train.estimate.gpus import Gpu
from prime_train.estimate.memory.setup import Method, Recompute
from prime_train.estimate.models.table import Model

HOUR_S = 3600.0


@dataclass(frozen=True)
class Between:
    """A range of finite amounts, both ends in it."""

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


PREEMPTION_EVERY_S = Between(3 * HOUR_S, 24 * HOUR_S)
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
    micro_batch: int = 1
    recompute: Recompute = Recompute.FULL

    def __post_init__(self) -> None:
        if not (0 < self.tokens < math.inf and self.seq_len > 0):
            raise ValueError(f"{self.tokens} tokens in sequences of {self.seq_len}; both must be above 0")


@dataclass(frozen=True)
class Machine:
    """GPUs of one kind, and the price of all of them."""

    gpu: Gpu
    count: int
    usd_per_hour: float
    spot: bool


def time_s(model: Model, work: Work, machine: Machine) -> Between:
    """From the order to the last token, what preemptions cost counted in."""
    trained = START_S + training_s(model, work, machine)
    return trained * Between(1 + SPOT_SHARE.low, 1 + SPOT_SHARE.high) if machine.spot else trained


def training_s(model: Model, work: Work, machine: Machine) -> Between:
    """From the first token to the last."""
    done = Pass(work.seq_len, work.micro_batch, work.method, work.recompute, work.rl)
    slow, fast = tokens_per_s(model, done, machine.gpu, machine.count)
    return Between(work.tokens / fast, work.tokens / slow)


def usd(time: Between, machine: Machine) -> Between:
    per_s = machine.usd_per_hour / HOUR_S
    return time * Between(per_s, per_s)
