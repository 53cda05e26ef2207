"""Times of batches and rollouts, and how full the inference engines are."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from prime_train.trainers.prime_rl.profile.metric_keys import LOADS
from prime_train.trainers.prime_rl.profile.orchestrator import Load, Shipped

BINDING = 0.9
"""Share of the allowed rollouts in flight from which on that limit is considered the constraint."""

CACHE_FULL = 0.85
"""Share of an engine's cache in use from which on the engine will soon have to preempt requests."""


@dataclass(frozen=True)
class Rollouts:
    """Times and losses of rollouts, as means over the same batches; a field is None if it is not reported."""

    batch_s: float
    held_back_s: float | None
    own_s: float | None
    paced: bool
    """Whether `own_s` is the actual pace and not only a lower bound."""
    rollout_s: float | None
    longest_s: float | None
    model_s: float | None
    tools_s: float | None
    failed_share: float | None
    dropped_share: float | None

    @property
    def tools_share(self) -> float | None:
        """Share of a rollout's time spent outside the model."""
        if self.model_s is None or self.tools_s is None or self.model_s + self.tools_s <= 0:
            return None
        return self.tools_s / (self.model_s + self.tools_s)


@dataclass(frozen=True)
class Engines:
    """State of the inference servers during the same steps, as medians over the samples; a field is None if
    it is not reported.

    `full_share` is the share of the samples in which requests waited, the cache was nearly full, or requests
    were preempted.
    """

    looks: int
    full_share: float
    running: float | None
    waiting: float | None
    running_each: float | None
    cache: float | None
    inflight: float | None
    allowed: float | None

    @property
    def outside_share(self) -> float | None:
        """Share of the rollouts in flight that have no request at the engines at the moment."""
        if self.running is None or not self.inflight:
            return None
        return max(0.0, 1 - (self.running + (self.waiting or 0.0)) / self.inflight)


def rollouts_of(batches: Sequence[Shipped], engines: Engines | None) -> Rollouts | None:
    """Return the means over the batches; None if there are no batches."""
    if not batches:
        return None
    batch_s, held_back_s = (
        fmean(batch.cycle_s for batch in batches),
        _mean(batch.held_back_s for batch in batches),
    )
    least_s, paced_s = (
        max(0.0, batch_s - held_back_s) if held_back_s is not None else None,
        _paced_s(batches, engines),
    )
    made = sum(batch.rollouts or 0.0 for batch in batches)
    dropped = [batch.dropped for batch in batches if batch.dropped is not None]
    longest = [batch.longest_s for batch in batches if batch.longest_s is not None]
    return Rollouts(
        batch_s=batch_s,
        held_back_s=held_back_s,
        own_s=min(batch_s, max(least_s or 0.0, paced_s)) if paced_s is not None else least_s,
        paced=paced_s is not None,
        rollout_s=_mean(batch.total_s for batch in batches),
        longest_s=max(longest, default=None),
        model_s=_mean(batch.model_s for batch in batches),
        tools_s=_mean(batch.tools_s for batch in batches),
        failed_share=_mean(batch.failed_share for batch in batches),
        dropped_share=sum(dropped) / (made + sum(dropped)) if dropped and made > 0 else None,
    )


def _paced_s(batches: Sequence[Shipped], engines: Engines | None) -> float | None:
    """Return the seconds per batch with the maximum number of rollouts in flight; None if fewer are in
    flight, or a figure is missing.
    """
    if (
        engines is None
        or not engines.inflight
        or not engines.allowed
        or engines.inflight < BINDING * engines.allowed
    ):
        return None
    if any(batch.agents != 1 for batch in batches):
        return None
    work_s = _mean(
        batch.rollouts * batch.total_s if batch.rollouts is not None and batch.total_s is not None else None
        for batch in batches
    )
    return work_s / engines.inflight if work_s is not None else None


def engines_of(loads: Sequence[Load]) -> Engines | None:
    """Return the state of the engines over the samples; None if no sample has their figures."""
    looks = [load.figures for load in loads if load.figures.keys() & {"running", "waiting", "cache"}]
    if not looks:
        return None
    figures = {name: _median(load.figures.get(name) for load in loads) for name in LOADS}
    return Engines(
        looks=len(looks),
        full_share=sum(map(_is_full, looks)) / len(looks),
        running=figures["running"],
        waiting=figures["waiting"],
        running_each=figures["running_each"],
        cache=figures["cache"],
        inflight=figures["inflight"],
        allowed=figures["allowed"],
    )


def _is_full(look: Mapping[str, float]) -> bool:
    return (
        look.get("waiting", 0.0) >= 1
        or look.get("cache", 0.0) >= CACHE_FULL
        or look.get("preemptions", 0.0) > 0
    )


def _mean(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if known else None


def _median(values: Iterable[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return median(known) if known else None
