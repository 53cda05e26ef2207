"""How long a step of a config takes on each kind of machine: as measured in earlier attempts, as estimated at the launch, or both."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from hashlib import sha256
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from prime_train.core.run import Attempt
    from prime_train.core.spec import RunSpec

STEPS_MIN = 5
"""Minimum number of steps for a reliable mean."""

Kind = tuple[str, int]
"""A kind of machine: its kind of GPU and their number."""


class Source(StrEnum):
    MEASURED = "measured"
    SCALED = "measured on another kind of GPU"
    """Measured on another kind, times the ratio of the two estimates."""
    ESTIMATED = "estimated"


@dataclass(frozen=True)
class StepEstimate:
    """The estimated seconds of one step on a kind of machine, as a range."""

    gpu: str
    gpu_count: int
    low_s: float
    high_s: float

    @property
    def kind(self) -> Kind:
        return self.gpu, self.gpu_count

    @property
    def middle_s(self) -> float:
        return math.sqrt(self.low_s * self.high_s)


@dataclass(frozen=True)
class StepTime:
    seconds: float
    source: Source


def step_times(measured: Mapping[Kind, float], estimates: Sequence[StepEstimate] = ()) -> dict[Kind, StepTime]:
    """Return the time of a step on each kind of machine on which it was measured or estimated.

    A measured time and an estimate are not comparable, because estimates are wrong by a factor that is about the same for all kinds. So
    where one kind was measured, the estimates of the others are multiplied with that factor.
    """
    found = {kind: StepTime(seconds, Source.MEASURED) for kind, seconds in measured.items()}
    middle = {one.kind: one.middle_s for one in estimates if one.low_s > 0}
    factors = [math.log(measured[kind] / middle[kind]) for kind in measured if kind in middle]
    if found and not factors:
        return found
    factor = math.exp(sum(factors) / len(factors)) if factors else 1.0
    source = Source.SCALED if factors else Source.ESTIMATED
    return {kind: StepTime(seconds * factor, source) for kind, seconds in middle.items()} | found


def training_key(spec: "RunSpec") -> str:
    """Return a digest of what is trained: two configs with the same digest make the same steps on the same machine."""
    parts = [spec.trainer.model_dump_json(), *(variant.model_dump_json() for variant in spec.hardware.variants)]
    return sha256("\n".join(parts).encode()).hexdigest()


def measured_in(attempts: "Iterable[Attempt]") -> dict[Kind, float]:
    """Return the mean seconds of a step, saves included, on each kind of machine on which the attempts made enough steps. The first step of
    each attempt is left out, because time is measured from its end."""
    sums: dict[Kind, tuple[int, int]] = {}
    for attempt in attempts:
        if attempt.first_step_s is None or attempt.last_sign_s is None:
            continue
        steps, seconds = attempt.last_step - attempt.resumed_step - 1, attempt.last_sign_s - attempt.first_step_s
        if steps > 0 and seconds > 0:
            known = sums.get(kind := (attempt.offer.gpu, attempt.offer.gpu_count), (0, 0))
            sums[kind] = known[0] + steps, known[1] + seconds
    return {kind: seconds / steps for kind, (steps, seconds) in sums.items() if steps >= STEPS_MIN}
