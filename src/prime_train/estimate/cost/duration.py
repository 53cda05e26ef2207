"""Estimates how long an amount of training takes on a machine and what it costs, as ranges: before a run nothing more exact is known.

The time is tokens divided by the published speed of GPUs of that kind (estimate/cost/training_speed.py), plus the start, which is paid as
well. The cost is time times price; on a spot machine the cost of preemptions is added. estimate/cost/bill.py has the bill of an entire run,
line by line.
"""

import math
from dataclasses import dataclass

from prime_train.estimate.cost.training_speed import Pass, tokens_per_s
from prime_train.estimate.gpus import Gpu
from prime_train.estimate.memory.training_setup import Method, Recompute
from prime_train.estimate.models.dimensions import Model

HOUR_S = 3600.0


@dataclass(frozen=True)
class Between:
    """A range of finite, non-negative amounts; both ends are included. Raises ValueError for any other range."""

    low: float
    high: float

    def __post_init__(self) -> None:
        if not 0 <= self.low <= self.high < math.inf:
            raise ValueError(f"{self.low} to {self.high} is not a range of finite amounts")

    @property
    def expected(self) -> float:
        """Return the geometric mean of both ends."""
        return math.sqrt(self.low * self.high)

    def __mul__(self, factor: "Between") -> "Between":
        return Between(self.low * factor.low, self.high * factor.high)

    def __add__(self, more: "Between") -> "Between":
        return Between(self.low + more.low, self.high + more.high)


PREEMPTION_EVERY_S = Between(3 * HOUR_S, 24 * HOUR_S)
"""The assumed seconds between two preemptions of a spot machine."""
START_S = Between(5 * 60.0, 20 * 60.0)
"""Seconds for boot, set-up, model download and compilation."""
SPOT_SHARE = Between(0.02, 0.15)
"""The share of time that preemptions add: 25 minutes each (half of 30 between checkpoints, 10 until another machine trains), every 3 to 24
hours."""


@dataclass(frozen=True)
class Work:
    """An amount of training. `tokens` are the trained ones. `rl` means that the same machine samples them first."""

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
    """GPUs of one kind, with the price of all of them per hour."""

    gpu: Gpu
    count: int
    usd_per_hour: float
    spot: bool


def time_s(model: Model, work: Work, machine: Machine) -> Between:
    """Return the seconds from the order to the last token, including preemptions on a spot machine."""
    trained = START_S + training_s(model, work, machine)
    return trained * Between(1 + SPOT_SHARE.low, 1 + SPOT_SHARE.high) if machine.spot else trained


def training_s(model: Model, work: Work, machine: Machine) -> Between:
    """Return the seconds from the first token to the last."""
    done = Pass(work.seq_len, work.micro_batch, work.method, work.recompute, work.rl)
    slow, fast = tokens_per_s(model, done, machine.gpu, machine.count)
    return Between(work.tokens / fast, work.tokens / slow)


def usd(time: Between, machine: Machine) -> Between:
    """Return the dollars for a time in seconds on the machine."""
    per_s = machine.usd_per_hour / HOUR_S
    return time * Between(per_s, per_s)
