"""What was estimated of a config when its run was launched, because only then its trainer's files were at hand."""

import math
from dataclasses import dataclass
from hashlib import sha256

from prime_train.core.market.gpu_memory import GpuNeed

ESTIMATES_MAX = 100
FAMILY_CHARS_MAX = 300
STEP_S_MIN, STEP_S_MAX = 1e-6, 1e7
"""Seconds that a step can take. Other times are ignored: what a machine or another server reports must not make costs infinite."""

Kind = tuple[str, int]
"""A kind of machine: its kind of GPU, with the board if that makes it another kind, and their number."""


@dataclass(frozen=True)
class StepEstimate:
    """The estimated seconds of one step on a kind of machine, as a range."""

    gpu: str
    gpu_count: int
    low_s: float
    high_s: float

    @property
    def kind(self) -> Kind:
        return self.gpu, self.gpu_count

    @property
    def is_possible(self) -> bool:
        """Return whether this can be true. Estimates come with a run, from whoever launched it, and are compared with those of others."""
        return STEP_S_MIN <= self.low_s <= self.high_s <= STEP_S_MAX

    @property
    def middle_s(self) -> float:
        """Return the seconds in the middle of the range; 0, which is not known, for one that cannot be true."""
        return math.sqrt(self.low_s * self.high_s) if self.is_possible else 0.0


@dataclass(frozen=True)
class Forecast:
    """`steps`: the estimated time of a step, by kind of machine. `every_steps`, `every_s`: training between two saves; None: not known, or
    set in the other unit. `stall_s`: seconds that training pauses for a save. Bytes of 0 are not known. `family`: the trainer, the model
    and how it is trained, in words; runs with the same words differ from their estimates by about the same factor. Empty: not known.
    `last_step`: the last step by the trainer's own settings; None: not known. `needs`: the memory of GPUs, of each variant; empty: not
    known. `environment`: the environments of the rollouts, in words; empty: there are none, or they are not known. `batch_tokens`: tokens
    of a step at most; 0: not known."""

    steps: tuple[StepEstimate, ...] = ()
    every_steps: int | None = None
    every_s: float | None = None
    stall_s: float | None = None
    checkpoint_bytes: float = 0.0
    model_bytes: float = 0.0
    family: str = ""
    last_step: int | None = None
    needs: tuple[GpuNeed, ...] = ()
    environment: str = ""
    batch_tokens: float = 0.0

    @property
    def family_key(self) -> str:
        """Return a digest of the family, so that nobody learns which models others train."""
        return sha256(self.family.encode()).hexdigest() if self.family else ""

    @property
    def trained(self) -> str:
        """Return the model and how it is trained, without the trainer: Qwen/Qwen3-8B lora"""
        return self.family.partition(": ")[2]


NO_FORECAST = Forecast()
