"""What a probe has measured, and what the whole run of its config would take on such a machine."""

from dataclasses import dataclass

from prime_train.core.market.forecast import kind_of
from prime_train.core.market.step_times import Measurement, measured_in
from prime_train.core.offers import Offer
from prime_train.core.run import Run
from prime_train.core.text.formatting import span, usd
from prime_train.reports.cost.seen import MeasuredKind


@dataclass(frozen=True)
class ProbeResult:
    """The measurement of a probe on one kind of machine. `spread_s`: the standard deviation of a step, 0: not known.
    `all_steps`: the number of steps of the config, `hours` and `usd`: what they take on the machine that the probe had, without starts,
    saves and losses; None: the config does not say how many there are."""

    config: str
    gpu: str
    gpu_count: int
    step_s: float
    steps: int
    gpu_peak_mib: float | None = None
    gpu_mib: float | None = None
    spread_s: float = 0.0
    all_steps: int | None = None
    hours: float | None = None
    usd: float | None = None

    @property
    def text(self) -> str:
        """Return the measurement in words: 1x H100_80GB: 3.2 s a step ...; there, all 2,000 steps of qwen take 1 h 47 min and cost $3.74"""
        one = Measurement(self.step_s, self.steps, gpu_peak_mib=self.gpu_peak_mib, gpu_mib=self.gpu_mib, spread_s=self.spread_s)
        kind = MeasuredKind(self.gpu, self.gpu_count, one)
        if self.all_steps is None or self.hours is None or self.usd is None:
            return kind.figures
        whole = f"all {self.all_steps:,} steps of {self.config} take {span(self.hours * 3600)} and cost {usd(self.usd)}"
        return f"{kind.figures}; there, {whole}"


def probe_result(run: Run) -> ProbeResult | None:
    """Return what a probe has measured so far; None if the run is no probe, or has measured too few steps."""
    found = measured_in(run, run.attempts) if run.probe is not None else {}
    if run.probe is None or not found:
        return None
    (gpu, count), one = next(reversed(found.items()))
    steps = run.spec.trainer.steps
    hours = steps * one.seconds / 3600 if steps is not None else None
    dollars = hours * _last_offer(run, gpu, count).usd_per_hour if hours is not None else None
    return ProbeResult(
        run.probe.config, gpu, count, one.seconds, one.steps, one.gpu_peak_mib, one.gpu_mib, one.spread_s, steps, hours, dollars
    )


def _last_offer(run: Run, gpu: str, count: int) -> Offer:
    return next(one.offer for one in reversed(run.attempts) if kind_of(one.offer) == (gpu, count))
