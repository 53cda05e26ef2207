"""Times of the last steps: of each part of a step, of the rollouts beside it, and how full the engines are.

Three figures carry the diagnosis. All are means, so that a save every tenth step counts for a tenth:

    mean_s   a step of the trainer, from end to end            p busy_s   the step without the wait for a
    batch             b: lower bound of a step with the present trainer own_s    a batch if nothing were held
    back                 R: lower bound of a step with the present rollouts

Trainer and rollouts run in parallel, so a step takes as long as the slower of them, at best max(b, R). If
finished batches are held back, R cannot be observed: rollouts continue meanwhile, so R lies between the
batch's time without the holding back and with it. If the maximum number of rollouts is in flight, R follows
from Little's law: the rollouts per batch, times the duration of one, divided by those in flight. Otherwise R
is taken as its lower bound, and a gain computed from it is an upper bound.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from prime_train.trainers.prime_rl.profile.metric_keys import REPORTED, StepPart, key_of
from prime_train.trainers.prime_rl.profile.orchestrator import Load
from prime_train.trainers.prime_rl.profile.rollouts import Engines, Rollouts, engines_of, rollouts_of
from prime_train.trainers.prime_rl.profile.rows import LoggedRows
from prime_train.trainers.prime_rl.profile.trainer_steps import Trained

LONG_FACTOR, LONG_SHARE = 3.0, 0.25
"""A wait is long if it exceeds the median wait times `LONG_FACTOR` plus the median step times
`LONG_SHARE`.
"""


@dataclass(frozen=True)
class Spread:
    """Seconds over the steps: median, 90th percentile, and the share of the total time."""

    median_s: float
    p90_s: float
    share: float


@dataclass(frozen=True)
class Times:
    """Times of the examined trainer steps: the newest ones, without the first steps of each launch."""

    first_step: int
    last_step: int
    steps: int
    step: Spread
    mean_s: float
    busy_s: float
    parts: Mapping[StepPart, Spread]
    waits: tuple[float, ...]
    """For each step, the share of its time spent waiting for a batch."""
    long_waits: int
    """Number of steps whose wait is far longer than most."""
    long_waits_s: float
    """Excess of the long waits over the median wait, averaged over all steps: seconds per step."""
    saves: int
    save_every: int | None
    """Steps between saves; None with fewer than two saves."""
    mfu_pct: float | None
    rollouts: Rollouts | None
    engines: Engines | None
    missing: tuple[str, ...]
    """Keys that would add information but are missing."""

    def mean_of(self, part: StepPart) -> float:
        """Return the mean seconds of a part per step; 0 if it is not reported."""
        return self.parts[part].share * self.mean_s if part in self.parts else 0.0


def settled(rows: LoggedRows) -> tuple[Trained, ...]:
    """Return the steps that are not among the first ones of a launch."""
    return tuple(step for step in rows.trained if step.settled)


def times(rows: LoggedRows, steps: Sequence[Trained]) -> Times:
    """Return the times of these trainer steps (at least one), and of what the other components reported
    during them.
    """
    total_s = sum(step.length_s for step in steps)
    numbers = {step.step for step in steps}
    batches = [batch for batch in rows.shipped if batch.step in numbers]
    loads = _meanwhile(rows.loads, steps)
    saves = [step.step for step in steps if step.parts.get(StepPart.SAVE, 0.0) > 0]
    engines = engines_of(loads)
    rollouts = rollouts_of(batches, engines)
    longer_s = _longer_s(steps)
    used = [step.mfu_pct for step in steps if step.mfu_pct is not None]
    return Times(
        first_step=steps[0].step,
        last_step=steps[-1].step,
        steps=len(steps),
        step=_spread([step.length_s for step in steps], total_s),
        mean_s=total_s / len(steps),
        busy_s=(total_s - sum(step.parts[StepPart.WAIT] for step in steps)) / len(steps),
        parts={part: _spread(found, total_s) for part in StepPart if (found := _of_part(steps, part))},
        waits=tuple(
            step.parts[StepPart.WAIT] / step.length_s if step.length_s > 0 else 0.0 for step in steps
        ),
        long_waits=len(longer_s),
        long_waits_s=sum(longer_s) / len(steps),
        saves=len(saves),
        save_every=round((saves[-1] - saves[0]) / (len(saves) - 1)) if len(saves) > 1 else None,
        mfu_pct=median(used) if used else None,
        rollouts=rollouts,
        engines=engines,
        missing=tuple(_missing(steps, rollouts, loads)),
    )


def _longer_s(steps: Sequence[Trained]) -> list[float]:
    """Return, for each wait that is far longer than most, its excess over the median wait in seconds."""
    usual_s, step_s = (
        median(step.parts[StepPart.WAIT] for step in steps),
        median(step.length_s for step in steps),
    )
    line_s = LONG_FACTOR * usual_s + LONG_SHARE * step_s
    return [step.parts[StepPart.WAIT] - usual_s for step in steps if step.parts[StepPart.WAIT] > line_s]


def _of_part(steps: Sequence[Trained], part: StepPart) -> list[float]:
    """Return the seconds of a part for each step, 0 for steps that do not report it; empty if no step
    does.
    """
    return [step.parts.get(part, 0.0) for step in steps] if any(part in step.parts for step in steps) else []


def _spread(seconds: Sequence[float], total_s: float) -> Spread:
    ranked = sorted(seconds)
    share = sum(seconds) / total_s if total_s > 0 else 0.0
    return Spread(median(ranked), ranked[math.ceil(0.9 * len(ranked)) - 1], share)


def _meanwhile(loads: Iterable[Load], steps: Sequence[Trained]) -> list[Load]:
    """Return the load samples taken during these steps; all of them if the trainer's rows have no time."""
    first, last = steps[0], steps[-1]
    if first.at_s is None or last.at_s is None:
        return list(loads)
    return [
        load
        for load in loads
        if load.at_s is not None and first.at_s - first.length_s <= load.at_s <= last.at_s
    ]


def _missing(steps: Sequence[Trained], rollouts: Rollouts | None, loads: Sequence[Load]) -> Iterable[str]:
    yield from (key_of(part) for part in REPORTED if not any(part in step.parts for step in steps))
    if rollouts is None:
        yield "time/step of the orchestrator"
    else:
        if rollouts.held_back_s is None:
            yield "time/wait_for_policy"
        if rollouts.tools_share is None:
            yield "train/agg/all/<agent>/timing/agent/model/mean"
    if engines_of(loads) is None:
        yield (
            "inference/agg/num_requests_running, ..._waiting, kv_cache_usage_perc "
            "(orchestrator.collect_inference_metrics)"
        )
