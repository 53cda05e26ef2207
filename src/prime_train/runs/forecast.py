"""What was estimated of a config when its run was launched, because only then its trainer's files were at
hand: the time of a step, and the memory of GPUs. Whether that memory fits a machine is decided by
`GpuNeed.fit` alone, for the ranking and for every place that says so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING

from prime_train.text.gpu_names import on_board

if TYPE_CHECKING:
    from prime_train.runs.offer import Offer

GIB = 2**30
USABLE_SHARE = 0.98
"""The usable share of a GPU's nominal GB, taken as GiB (an 80 GB H100 has 79.2); the rest is for the driver
and CUDA.
"""
ESTIMATES_MAX = 100
FAMILY_CHARS_MAX = 300
STEP_S_MIN, STEP_S_MAX = 1e-6, 1e7
"""Seconds that a step can take. Other times are ignored: what a machine or another server reports must not
make costs infinite.
"""

Kind = tuple[str, int]
"""A kind of machine: its kind of GPU, with the board if that makes it another kind, and their number."""


def kind_of(offer: "Offer") -> Kind:
    """Return the kind of machine that the offer is, by which times of steps are known."""
    return on_board(offer.gpu, offer.socket), offer.gpu_count


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
        """Return whether this can be true. Estimates come with a run, from whoever launched it, and are
        compared with those of others.
        """
        return STEP_S_MIN <= self.low_s <= self.high_s <= STEP_S_MAX

    @property
    def middle_s(self) -> float:
        """Return the seconds in the middle of the range; 0, which is not known, for one that cannot be
        true.
        """
        return math.sqrt(self.low_s * self.high_s) if self.is_possible else 0.0


class Fit(StrEnum):
    """Whether an estimated need fits the usable memory, the best first."""

    YES = "yes"
    TIGHT = "tight"
    """The estimate fits, but the upper end of its band does not: nine in ten of such runs work."""
    UNLIKELY = "unlikely"
    """The lower end of the band fits, but the estimate does not."""
    NO = "no"
    """Not even the lower end of the band fits."""

    @property
    def is_expected(self) -> bool:
        """Return whether the estimate itself fits."""
        return self in (Fit.YES, Fit.TIGHT)


@dataclass(frozen=True)
class GpuNeed:
    """The memory in bytes that each GPU of a machine with `gpu_count` GPUs must have usable: by the estimate,
    and at both ends of its band.
    """

    gpu_count: int
    low_bytes: float
    expected_bytes: float
    high_bytes: float

    def fit_into(self, usable_bytes: float) -> Fit:
        if self.high_bytes <= usable_bytes:
            return Fit.YES
        if self.expected_bytes <= usable_bytes:
            return Fit.TIGHT
        return Fit.UNLIKELY if self.low_bytes <= usable_bytes else Fit.NO

    def fit(self, gpu_gb: int) -> Fit:
        """Return whether the need fits GPUs with a nominal `gpu_gb` GB each."""
        return self.fit_into(usable_bytes(gpu_gb))

    @property
    def text(self) -> str:
        """Return the band in words: 28 to 41 GiB of each GPU"""
        low, high = f"{self.low_bytes / GIB:.0f}", f"{self.high_bytes / GIB:.0f}"
        return f"{low if low == high else f'{low} to {high}'} GiB of each GPU"


def usable_bytes(gpu_gb: int) -> float:
    """Return the usable bytes of a GPU with a nominal `gpu_gb` GB."""
    return gpu_gb * USABLE_SHARE * GIB


def need_on(needs: Sequence[GpuNeed], gpu_count: int) -> GpuNeed | None:
    """Return the need on a machine with that many GPUs; on one with more than the training uses, that of
    those it uses. None: unknown.
    """
    return max(
        (need for need in needs if need.gpu_count <= gpu_count), key=lambda need: need.gpu_count, default=None
    )


@dataclass(frozen=True)
class Forecast:
    """`steps`: the estimated time of a step, by kind of machine. `every_steps`, `every_s`: training between
    two saves; None: not known, or set in the other unit. `stall_s`: seconds that training pauses for a save.
    Bytes of 0 are not known. `family`: the trainer, the model and how it is trained, in words; runs with the
    same words differ from their estimates by about the same factor. Empty: not known. `last_step`: the last
    step by the trainer's own settings; None: not known. `needs`: the memory of GPUs, of each variant; empty:
    not known. `environment`: the environments of the rollouts, in words; empty: there are none, or they are
    not known. `batch_tokens`: tokens of a step at most; 0: not known.
    """

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
