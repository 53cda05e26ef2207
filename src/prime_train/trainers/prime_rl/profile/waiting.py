"""Who waits for whom, and what the engines could take on top: the two questions from which every diagnosis starts."""

from enum import StrEnum, auto

from prime_train.trainers.prime_rl.profile.metric_keys import Part
from prime_train.trainers.prime_rl.profile.rollouts import Engines
from prime_train.trainers.prime_rl.profile.times import Times

WAITS = 0.15
"""Share of the time from which on a side is said to wait."""

FULL, EMPTY = 0.5, 0.1
"""Engines are full in at least, and empty in at most, that share of the looks at them."""
CACHE_EMPTY = 0.5
RUNNING_MANY = 128
"""With so many requests at once an engine computes about all it can, however empty its cache."""


class Side(StrEnum):
    """Who waits."""

    TRAINER = "the trainer waits"
    ORCHESTRATOR = "batches are held back"
    BOTH = "both wait"
    NONE = "nobody waits"


class Room(StrEnum):
    """What the engines could take on top."""

    NONE = auto()
    SOME = auto()
    MUCH = auto()
    UNKNOWN = auto()


def side(times: Times) -> Side:
    waits, holds = times.parts[Part.WAIT].share >= WAITS, (held_share(times) or 0.0) >= WAITS
    if waits:
        return Side.BOTH if holds else Side.TRAINER
    return Side.ORCHESTRATOR if holds else Side.NONE


def held_share(times: Times) -> float | None:
    """Of the orchestrator's time, what it held finished batches back."""
    rollouts = times.rollouts
    if rollouts is None or rollouts.held_s is None or rollouts.batch_s <= 0:
        return None
    return min(1.0, rollouts.held_s / rollouts.batch_s)


def room(engines: Engines | None) -> Room:
    if engines is None:
        return Room.UNKNOWN
    if engines.full_share >= FULL:
        return Room.NONE
    empty = engines.full_share <= EMPTY and (engines.cache or 0.0) < CACHE_EMPTY and (engines.running_each or 0.0) < RUNNING_MANY
    return Room.MUCH if empty else Room.SOME


def best_s(busy_s: float, own_s: float | None) -> float:
    """The shortest step when both sides go on side by side. Where the rollouts' pace is not known, it is no limit."""
    return max(busy_s, own_s or 0.0)
