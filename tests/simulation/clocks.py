"""The clocks of the machines that a control plane runs on: wrong, set forward and back, and standing still
while their machine does.

A decision by one of them breaks a promise; the store's time, computed with `prime_train.clock`, continues
correctly.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import cast

from prime_train.clock import Anchor, MeasuredClock, anchored
from prime_train.runs.store import Store
from tests.simulation.loop import START_S, Loop

DAY_S = 86_400
SKEWS_S = (3, 60, 285, 900, 3600, DAY_S)
"""Largest errors of a clock: of a good one, one that replaces healthy machines, one that stops runs, and one
that is obvious.
"""
STEPS_MAX = 3
BOOTED_S_MAX = 1_000_000


@dataclass(frozen=True)
class Step:
    """A change of the wall clock at that second, forward or back."""

    at_s: float
    by_s: float


@dataclass
class Host:
    """A machine with a wall clock of its own, on which no decision may depend, and the seconds since it
    booted. `paused`: while those stand still, as in a suspended virtual machine.
    """

    loop: Loop
    skew_s: float = 0.0
    steps: tuple[Step, ...] = ()
    booted_s: float = 0.0
    paused: list[tuple[float, float]] = field(default_factory=list)

    def wall_s(self) -> float:
        return (
            self.loop.now_s
            + self.skew_s
            + sum(step.by_s for step in self.steps if step.at_s <= self.loop.now_s)
        )

    def uptime_s(self) -> float:
        now_s = self.loop.now_s
        stood_s = sum(min(end_s, now_s) - start_s for start_s, end_s in self.paused if start_s < now_s)
        return now_s - self.booted_s - stood_s


def draw_host(rng: random.Random, loop: Loop, quiet_s: float, *, skewed: bool = True) -> Host:
    """Draw a machine whose clock is off by up to a day either way, and is set now and then until `quiet_s`;
    not `skewed`: it begins right.
    """
    most_s = rng.choice(SKEWS_S)
    count = rng.choice((0, 0, rng.randint(1, STEPS_MAX)))
    steps = tuple(
        Step(rng.uniform(START_S, quiet_s), rng.uniform(-1, 1) * rng.choice(SKEWS_S)) for _ in range(count)
    )
    return Host(
        loop,
        rng.uniform(-most_s, most_s) if skewed else rng.uniform(-3, 3),
        steps,
        rng.uniform(0, BOOTED_S_MAX),
    )


class ServingHost:
    """The time of a store in a file of that machine. Each process that starts there uses the anchor that the
    first one of the boot has stored.
    """

    def __init__(self, host: Host) -> None:
        self._host = host
        self._anchor: Anchor | None = None
        self._last_s = 0
        self.start()

    def start(self) -> None:
        """Let a process open the file."""
        host = self._host
        self._anchor = anchored(
            self._anchor, self._last_s, boot="boot", uptime_s=host.uptime_s(), wall_s=host.wall_s()
        )

    def now_s(self) -> float:
        assert self._anchor is not None
        told_s = self._anchor.now_s(self._host.uptime_s())
        self._last_s = int(told_s)
        return told_s


class _Reached:
    """The store as used by one process, whose machine has other clocks."""

    def __init__(self, store: Store, clock: Callable[[], int]) -> None:
        self._store, self.now_s = store, clock

    def __getattr__(self, name: str) -> object:
        return getattr(self._store, name)


def reached(store: Store, host: Host, requested: Callable[[], None]) -> Store:
    """Return that store, used from that machine; `asked` is called whenever the store's time is requested."""

    def ask() -> float:
        requested()
        return float(store.now_s())

    clock = MeasuredClock(ask, monotonic=host.uptime_s, wall=host.wall_s)
    return cast("Store", _Reached(store, clock))
