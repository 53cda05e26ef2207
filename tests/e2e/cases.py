"""Which points of the kill matrix are tested on which kind of control plane.

Each point is tested once, one in three on functions, so that every role and every victim occurs on both. With
PRIME_TRAIN_MATRIX=all in the environment every point is tested on both, which takes twice as long.
"""

import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from tests.e2e.points import LAMBDA_POINTS, POINTS, Point
from tests.fakes.prime import sshd_program

ONE_IN = 3
"""One point in this many is on functions. They take half as long again there; the number is odd because most
points are pairs.
"""
ALL = os.environ.get("PRIME_TRAIN_MATRIX") == "all"


class On(Enum):
    PROCESSES = "processes"
    """`prime-train serve`, with SQLite and a folder; machines are local."""
    LAMBDAS = "lambdas"
    """Two functions with DynamoDB and S3; machines are rented."""


SAME_ON_LAMBDAS = {
    "before-launch-intent",
    "create-starts-machine",
    "put-agent",
    "takeover-lists-manifests",
    "takeover-create",
    "teardown",
}
"""Points that on functions are reached by the watcher's function; each has a twin in which a watcher reaches
it.
"""

DIFFERENT = [point for point in POINTS if point.name not in SAME_ON_LAMBDAS]


@dataclass(frozen=True)
class Case:
    point: Point
    on: On

    def __str__(self) -> str:
        return self.point.name if self.on is On.PROCESSES else f"{self.point.name} on lambdas"


def cases(*, both: bool = ALL) -> Sequence[Case]:
    """Return the cases. If no machines can be rented, all are on processes. Those on functions come one after
    the other, because a deployment takes as long as a run and is made by every worker that has one of them.
    """
    if sys.platform != "linux" or sshd_program() is None:
        return [Case(point, On.PROCESSES) for point in POINTS]
    on_either = [Case(point, on) for on in On for point in POINTS if on in _on(point, both=both)]
    only_there = LAMBDA_POINTS if both else LAMBDA_POINTS[:1]
    return [*on_either, *(Case(point, On.LAMBDAS) for point in only_there)]


def _on(point: Point, *, both: bool) -> Sequence[On]:
    if point.name in SAME_ON_LAMBDAS:
        return [On.PROCESSES]
    if both:
        return list(On)
    return [On.PROCESSES if DIFFERENT.index(point) % ONE_IN else On.LAMBDAS]
