"""Seconds of the last steps, put together: what each part of a step takes, what the rollouts beside it take, how full the engines are.

Three figures carry the diagnosis, all of them means, so that a save every tenth step counts for a tenth:

    mean_s   a step of the trainer, from end to end             p
    busy_s   of it, all but the wait for a batch                b: no step can be shorter while the trainer is what it is
    own_s    a batch, were nothing held back                    R: no step can be shorter while the rollouts are what they are

Trainer and rollouts run side by side, so a step takes what the slower of them takes, and at best max(b, R). Where finished batches are held
back, R is not seen: rollouts go on meanwhile, so that it lies between a batch's time without the holding back and with it. Where as many
are in flight as may be, it is what Little's law says: the rollouts of a batch, times what one takes, over those in flight. Else it is
taken for the least there can be, and so a gain worked out from it for the most.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from prime_train.trainers.prime_rl.profile.metric_keys import TOLD, Part, key_of
from prime_train.trainers.prime_rl.profile.orchestrator import Load
from prime_train.trainers.prime_rl.profile.rollouts import Engines, Rollouts, engines_of, rollouts_of
from prime_train.trainers.prime_rl.profile.rows import Told
from prime_train.trainers.prime_rl.profile.trainer_steps import Trained

LONG_FACTOR, LONG_SHARE = 3.0, 0.25
"""A wait is a long one above so many times the usual one and, on top, this share of a usual step."""


@dataclass(frozen=True)
class Spread:
    """Seconds over the steps: median, slow end (90th percentile), and the share of all the time."""

    median_s: float
    p90_s: float
    share: float


@dataclass(frozen=True)
class Times:
    """Of the last settled steps."""

    first_step: int
    last_step: int
    steps: int
    step: Spread
    mean_s: float
    busy_s: float
    parts: Mapping[Part, Spread]
    waits: tuple[float, ...]
    """Of each step, the share that was waited for a batch."""
    long_waits: int
    """Steps with a wait far longer than most."""
    long_waits_s: float
    """What these are longer, over all steps: seconds a step."""
    saves: int
    save_every: int | None
    """Steps from one save to the next; None where there were not two."""
    mfu_pct: float | None
    rollouts: Rollouts | None
    engines: Engines | None
    missing: tuple[str, ...]
    """Keys that would tell more and are not there."""

    def mean_of(self, part: Part) -> float:
        return self.parts[part].share * self.mean_s if part in self.parts else 0.0


def settled(told: Told) -> tuple[Trained, ...]:
    return tuple(step for step in told.trained if step.settled)


def times(told: Told, steps: Sequence[Trained]) -> Times:
    """Of these steps of the trainer, one at least, and what the others said meanwhile."""
    total_s = sum(step.length_s for step in steps)
    numbers = {step.step for step in steps}
    batches = [batch for batch in told.shipped if batch.step in numbers]
    loads = _meanwhile(told.loads, steps)
    saves = [step.step for step in steps if step.parts.get(Part.SAVE, 0.0) > 0]
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
        busy_s=(total_s - sum(step.parts[Part.WAIT] for step in steps)) / len(steps),
        parts={part: _spread(found, total_s) for part in Part if (found := _of_part(steps, part))},
        waits=tuple(step.parts[Part.WAIT] / step.length_s if step.length_s > 0 else 0.0 for step in steps),
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
    """Of each wait that is far longer than most, by how much."""
    usual_s, step_s = median(step.parts[Part.WAIT] for step in steps), median(step.length_s for step in steps)
    line_s = LONG_FACTOR * usual_s + LONG_SHARE * step_s
    return [step.parts[Part.WAIT] - usual_s for step in steps if step.parts[Part.WAIT] > line_s]


def _of_part(steps: Sequence[Trained], part: Part) -> list[float]:
    """Of each step; where a step did not tell, nothing was done. Empty where none did."""
    return [step.parts.get(part, 0.0) for step in steps] if any(part in step.parts for step in steps) else []


def _spread(seconds: Sequence[float], total_s: float) -> Spread:
    ranked = sorted(seconds)
    share = sum(seconds) / total_s if total_s > 0 else 0.0
    return Spread(median(ranked), ranked[math.ceil(0.9 * len(ranked)) - 1], share)


def _meanwhile(loads: Iterable[Load], steps: Sequence[Trained]) -> list[Load]:
    """What was looked at during these steps; all of it, where the trainer's rows bear no time."""
    first, last = steps[0], steps[-1]
    if first.at_s is None or last.at_s is None:
        return list(loads)
    return [load for load in loads if load.at_s is not None and first.at_s - first.length_s <= load.at_s <= last.at_s]


def _missing(steps: Sequence[Trained], rollouts: Rollouts | None, loads: Sequence[Load]) -> Iterable[str]:
    yield from (key_of(part) for part in TOLD if not any(part in step.parts for step in steps))
    if rollouts is None:
        yield "time/step of the orchestrator"
    else:
        if rollouts.held_s is None:
            yield "time/wait_for_policy"
        if rollouts.tools_share is None:
            yield "train/agg/all/<agent>/timing/agent/model/mean"
    if engines_of(loads) is None:
        yield "inference/agg/num_requests_running, ..._waiting, kv_cache_usage_perc (orchestrator.collect_inference_metrics)"
