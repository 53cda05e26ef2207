"""How long a step of a config takes on each kind of machine: as measured in earlier attempts, as estimated at
the launch, or both.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING

from prime_train.runs.forecast import STEP_S_MAX, STEP_S_MIN, Kind, StepEstimate, kind_of

if TYPE_CHECKING:
    from prime_train.runs.run import Attempt, Run
    from prime_train.spec.spec import RunSpec

STEPS_MIN = 5
"""Minimum number of steps for a reliable mean."""
SAME = 1.01
"""The factor up to which two estimates count as equal."""


class TimeSource(StrEnum):
    GIVEN = "given"
    """By the person who asks."""
    MEASURED = "measured"
    SIMILAR = "measured in runs of the same model and trainer"
    """Measured with other settings on the same kind of machine, times the ratio of the two estimates."""
    SCALED = "measured on another kind of GPU"
    """Measured on another kind, times the ratio of the two estimates."""
    ESTIMATED = "estimated"


SPREADS: Mapping[TimeSource, float] = {
    TimeSource.GIVEN: 1.0,
    TimeSource.MEASURED: 1.15,
    TimeSource.SIMILAR: 1.35,
    TimeSource.SCALED: 1.5,
    TimeSource.ESTIMATED: 2.0,
}
"""The factors by which a time of each source may be too high or too low at least: assumptions. An estimate
has a range of its own; this one counts where that is not known.
"""
DEVIATIONS = 2.0
"""How many standard deviations of the mean a measured time may be wrong by."""


@dataclass(frozen=True)
class Measurement:
    """What a run's attempts on one kind of machine showed. `seconds`: the mean of a step, saves included;
    `steps`: the number of steps; `estimate_s`: what was estimated of such a step at the launch, 0: nothing.
    `gpu_peak_mib`: the most memory in MiB that was in use on one GPU, of `gpu_mib` in all; None: not known.
    `is_probe`: whether the run was launched to measure this. `spread_s`: the standard deviation of a step, 0:
    not known.
    """

    seconds: float
    steps: int
    run: str = ""
    estimate_s: float = 0.0
    gpu_peak_mib: float | None = None
    gpu_mib: float | None = None
    is_probe: bool = False
    spread_s: float = 0.0

    @property
    def text(self) -> str:
        """Return in words where it was measured: probe qwen-probe-x7k2m, 12 steps"""
        run = (
            f"{'probe ' if self.is_probe else ''}{self.run}"
            if self.run
            else "a probe"
            if self.is_probe
            else "an earlier run"
        )
        return f"{run}, {self.steps:,} step{'' if self.steps == 1 else 's'}"


@dataclass(frozen=True)
class StepTime:
    """The seconds of a step on a kind of machine. `basis`: the measurement behind it; None: there is none.
    `factor`: of an estimate, that from its middle to both ends of its range; None: not known.
    """

    seconds: float
    source: TimeSource
    basis: Measurement | None = None
    factor: float | None = field(default=None, compare=False)

    @property
    def spread(self) -> float:
        """Return the factor by which the time may be too high or too low. If steps differ much from each
        other, a few of them tell less.
        """
        if self.source is TimeSource.ESTIMATED and self.factor is not None:
            return self.factor
        one = self.basis
        few = (
            DEVIATIONS * one.spread_s / (one.seconds * math.sqrt(one.steps))
            if one is not None and one.steps
            else 0.0
        )
        return max(SPREADS[self.source], 1 + few)


def step_times(
    measured: Mapping[Kind, Measurement],
    estimates: Sequence[StepEstimate] = (),
    similar: Mapping[Kind, Measurement] | None = None,
) -> dict[Kind, StepTime]:
    """Return the time of a step on each kind of machine on which it was measured or estimated. `similar`:
    what runs of the same model and trainer showed that had other settings.

    A measured time and an estimate are not comparable, because estimates are wrong by a factor that is about
    the same for all kinds. So where one kind was measured, the estimates of the others are multiplied with
    that factor. Settings in files that a config only names change the estimate, too, and by that factor a
    measured time.
    """
    middle = {one.kind: one.middle_s for one in estimates if one.is_possible}
    known = {**(similar or {}), **measured}
    found = {
        kind: time
        for kind, one in known.items()
        if (time := _measured(one, middle.get(kind), is_same=kind in measured))
    }
    factors = [
        (factor, one)
        for kind, one in known.items()
        if (factor := _log_factor(one, middle.get(kind))) is not None
    ]
    if found and not factors:
        return found
    if not factors:
        return {
            one.kind: StepTime(one.middle_s, TimeSource.ESTIMATED, factor=one.high_s / one.middle_s)
            for one in estimates
            if one.low_s > 0
        }
    factor, basis = math.exp(sum(one for one, _ in factors) / len(factors)), factors[0][1]
    scaled = {
        kind: StepTime(seconds * factor, TimeSource.SCALED, basis)
        for kind, seconds in middle.items()
        if _is_possible(seconds * factor)
    }
    return scaled | found


def _measured(one: Measurement, estimate_s: float | None, *, is_same: bool) -> StepTime | None:
    """Return the measured time, corrected by how much the estimate has changed since; None if that cannot be
    known, but must be, or cannot be true.
    """
    ratio = estimate_s / one.estimate_s if estimate_s is not None and one.estimate_s else None
    if not _is_possible(one.seconds) or (ratio is None and not is_same):
        return None
    if ratio is None or (is_same and 1 / SAME < ratio < SAME):
        return StepTime(one.seconds, TimeSource.MEASURED, one)
    return (
        StepTime(one.seconds * ratio, TimeSource.SIMILAR, one) if _is_possible(one.seconds * ratio) else None
    )


def _log_factor(one: Measurement, estimate_s: float | None) -> float | None:
    """Return the logarithm of the factor by which the measured time differs from what was estimated of it, at
    the launch or, if nothing was, now; None if it is not known. A kind that the config does not allow, so
    that it has no estimate now, tells the factor, too.
    """
    estimate_s = one.estimate_s or estimate_s or 0.0
    return (
        math.log(one.seconds / estimate_s) if _is_possible(one.seconds) and _is_possible(estimate_s) else None
    )


def _is_possible(seconds: float) -> bool:
    """Return whether a step can take that long."""
    return STEP_S_MIN <= seconds <= STEP_S_MAX


def training_key(spec: "RunSpec") -> str:
    """Return a digest of what is trained: two configs with the same digest make the same steps on the same
    machine, however many.
    """
    parts = [
        spec.trainer.model_dump_json(exclude={"steps"}),
        *(variant.model_dump_json() for variant in spec.hardware.variants),
    ]
    return sha256("\n".join(parts).encode()).hexdigest()


def measured_in(run: "Run", attempts: "Iterable[Attempt]") -> dict[Kind, Measurement]:
    """Return what the run's attempts showed on each kind of machine on which they made enough steps. The
    first step of each attempt is left out, because time is measured from its end.
    """
    by_kind: dict[Kind, list[Attempt]] = {}
    for attempt in attempts:
        by_kind.setdefault(kind_of(attempt.offer), []).append(attempt)
    estimates = {one.kind: one.middle_s for one in run.forecast.steps}
    found = {}
    for kind, alike in by_kind.items():
        timed = [_timed(attempt) for attempt in alike]
        steps, seconds = sum(steps for steps, _ in timed), sum(seconds for _, seconds in timed)
        if steps >= STEPS_MIN and _is_possible(seconds / steps):
            fullest = max(alike, key=lambda attempt: attempt.gpu_peak_mib or 0.0)
            found[kind] = Measurement(
                seconds / steps,
                steps,
                run.run_id,
                estimates.get(kind, 0.0),
                fullest.gpu_peak_mib,
                fullest.gpu_mib,
                run.probe is not None,
                _spread_s(alike),
            )
    return found


def _spread_s(attempts: "Sequence[Attempt]") -> float:
    """Return the standard deviation of the steps of these attempts; 0: not known."""
    known = [one for one in attempts if one.timed_steps and one.timed_spread_s]
    steps = sum(one.timed_steps for one in known)
    return math.sqrt(sum(one.timed_steps * one.timed_spread_s**2 for one in known) / steps) if steps else 0.0


def _timed(attempt: "Attempt") -> tuple[int, float]:
    """Return the number of steps after the first one, and the seconds in which they were made: as the agent
    has timed them, or else from the heartbeats that arrived.
    """
    if attempt.timed_steps and attempt.timed_s > 0:
        return attempt.timed_steps, attempt.timed_s
    if attempt.first_step_s is None or attempt.last_sign_s is None:
        return 0, 0.0
    steps, seconds = attempt.last_step - attempt.resumed_step - 1, attempt.last_sign_s - attempt.first_step_s
    return (steps, float(seconds)) if steps > 0 and seconds > 0 else (0, 0.0)
