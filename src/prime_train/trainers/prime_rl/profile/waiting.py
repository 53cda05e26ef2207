"""Which side waits for the other, and how much spare capacity the engines have: the two questions that every
diagnosis starts from.
"""

from enum import StrEnum, auto

from prime_train.trainers.prime_rl.profile.metric_keys import StepPart
from prime_train.trainers.prime_rl.profile.rollouts import Engines
from prime_train.trainers.prime_rl.profile.times import Times

WAITS = 0.15
"""Minimum share of the time at which a side counts as waiting."""

FULL, EMPTY = 0.5, 0.1
"""Engines count as full if at least this share of the samples shows them full, and as empty if at most this
share does.
"""
CACHE_EMPTY = 0.5
RUNNING_MANY = 128
"""Number of concurrent requests at which an engine's compute is nearly saturated, however empty its cache
is.
"""


class Side(StrEnum):
    """Which side waits."""

    TRAINER = "the trainer waits"
    ORCHESTRATOR = "batches are held back"
    BOTH = "both wait"
    NONE = "nobody waits"


class EngineHeadroom(StrEnum):
    """How much more load the engines could take."""

    NONE = auto()
    SOME = auto()
    MUCH = auto()
    UNKNOWN = auto()


def side(times: Times) -> Side:
    """Return which side waits for at least the share `WAITS` of its time."""
    waits, holds = times.parts[StepPart.WAIT].share >= WAITS, (held_back_share(times) or 0.0) >= WAITS
    if waits:
        return Side.BOTH if holds else Side.TRAINER
    return Side.ORCHESTRATOR if holds else Side.NONE


def held_back_share(times: Times) -> float | None:
    """Return the share of the orchestrator's time for which it held finished batches back; None if it is
    unknown.
    """
    rollouts = times.rollouts
    if rollouts is None or rollouts.held_back_s is None or rollouts.batch_s <= 0:
        return None
    return min(1.0, rollouts.held_back_s / rollouts.batch_s)


def engine_headroom(engines: Engines | None) -> EngineHeadroom:
    """Return how much more load the engines could take."""
    if engines is None:
        return EngineHeadroom.UNKNOWN
    if engines.full_share >= FULL:
        return EngineHeadroom.NONE
    empty = (
        engines.full_share <= EMPTY
        and (engines.cache or 0.0) < CACHE_EMPTY
        and (engines.running_each or 0.0) < RUNNING_MANY
    )
    return EngineHeadroom.MUCH if empty else EngineHeadroom.SOME


def best_s(busy_s: float, own_s: float | None) -> float:
    """Return the shortest step in seconds with both sides in parallel. If the rollouts' pace is unknown, it
    is no limit.
    """
    return max(busy_s, own_s or 0.0)
