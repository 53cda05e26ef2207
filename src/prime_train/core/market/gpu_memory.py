"""Whether a training fits the memory of a machine's GPUs: one rule for the ranking of offers and for every place that says so."""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

GIB = 2**30
USABLE_SHARE = 0.98
"""The usable share of a GPU's nominal GB, taken as GiB (an 80 GB H100 has 79.2); the rest is for the driver and CUDA."""


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
    """The memory in bytes that each GPU of a machine with `gpu_count` GPUs must have usable: by the estimate, and at both ends of its
    band."""

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
    """Return the need on a machine with that many GPUs; on one with more than the training uses, that of those it uses. None: unknown."""
    return max((need for need in needs if need.gpu_count <= gpu_count), key=lambda need: need.gpu_count, default=None)
