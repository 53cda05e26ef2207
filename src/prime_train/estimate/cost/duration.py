"""Estimates how long an amount of training takes on a machine, as a range: before a run nothing more exact is known.

The time is tokens divided by the published speed of GPUs of that kind (estimate/cost/training_speed.py). estimate/cost/bill.py has the bill
of an entire run, line by line; estimate/run_costs.py what it is expected to cost on each offer.
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
    """GPUs of one kind."""

    gpu: Gpu
    count: int


def training_s(model: Model, work: Work, machine: Machine) -> Between:
    """Return the seconds from the first token to the last."""
    done = Pass(work.seq_len, work.micro_batch, work.method, work.recompute, work.rl)
    slow, fast = tokens_per_s(model, done, machine.gpu, machine.count)
    return Between(work.tokens / fast, work.tokens / slow)
