"""What earlier runs of this account have measured of a config."""

from dataclasses import dataclass

from prime_train.market.quotes import Market
from prime_train.market.step_times import Measurement, TimeSource

MIB_PER_GIB = 1024


@dataclass(frozen=True)
class MeasuredKind:
    """What was measured of this config on a kind of machine."""

    gpu: str
    gpu_count: int
    measurement: Measurement

    @property
    def text(self) -> str:
        """Return the measurement in words: 1x H100_80GB: 3.2 s a step, varying by 8%, at most 61.2 of 79.6
        GiB in use on one GPU (probe qwen-x7k2m, 12 steps)
        """
        return f"{self.figures} ({self.measurement.text})"

    @property
    def figures(self) -> str:
        """Return the measurement in words, without the run that made it."""
        one = self.measurement
        name = f"{self.gpu_count}x {self.gpu}" if self.gpu else "a machine without a GPU"
        of = f" of {one.gpu_mib / MIB_PER_GIB:.1f}" if one.gpu_mib else ""
        memory = (
            f", at most {one.gpu_peak_mib / MIB_PER_GIB:.1f}{of} GiB in use on one GPU"
            if one.gpu_peak_mib
            else ""
        )
        varies = f", varying by {one.spread_s / one.seconds:.0%}" if one.spread_s else ""
        return f"{name}: {one.seconds:.3g} s a step{varies}{memory}"


def measured_kinds(market: Market) -> tuple[MeasuredKind, ...]:
    """Return what was measured of the config itself, on each kind of machine."""
    return tuple(
        MeasuredKind(gpu, count, time.basis)
        for (gpu, count), time in market.work.step_times.items()
        if time.source is TimeSource.MEASURED and time.basis is not None
    )
