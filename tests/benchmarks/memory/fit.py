"""Learn the constants of memory_learned.py from published peaks.

    python -m tests.benchmarks.memory.fit [ROWS.json ...]

prints them as they stand in that module. Each constant begins with what a count of copies gives (`FIRST`) and
departs from it, and each trainer from what is shared (`DEPARTS`), only as far as peaks demand: least squares
of logarithms, with a spread for each as its prior.
"""

import math
import sys
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from prime_train.estimate.memory.phases import Training, training_need
from prime_train.estimate.memory.software_factors import Learned, MadeWith, Software, software
from prime_train.estimate.models.dimensions import Model
from tests.benchmarks.memory.row_parser import PEAKS, Row, made_with
from tests.benchmarks.memory.rows import model, rows, training

AIM = 0.03
"""Share by which the fit aims above the peaks, because an estimate that is too low is worse than one that is
too high.
"""
BELOW_TIMES = 1.5
"""Factor on the weight of estimates that are too low."""
NOISE = 0.06
"""Share of a peak that no constant explains; far larger errors count by their size, not by their square."""
FIRST = {
    "wide": (16.0, 0.15),
    "narrow": (9.0, 0.15),
    "compiled": (4.5, 0.15),
    "chunked": (7.0, 0.2),
    "allocated": (0.25, 0.4),
    "reserved": (0.8, 0.3),
    "device": (1.4, 0.2),
    "fragments": (2.0, 0.15),
    "natural": (8192.0, 1e-3),
    "compiled_share": (0.8, 0.15),
}
"""Initial value of each constant, and the spread of its logarithm."""
DEPARTS = {
    "wide": 0.2,
    "narrow": 0.2,
    "compiled": 0.2,
    "chunked": 0.2,
    "allocated": 0.3,
    "reserved": 0.3,
    "device": 0.3,
    "fragments": 0.2,
    "natural": 1.0,
    "compiled_share": 0.1,
}
STEP, STEP_MAX, DONE = 0.02, 0.3, 0.01
Numbers = NDArray[np.float64]


@dataclass(frozen=True)
class Requested:
    """A parsed row."""

    model: Model
    training: Training
    made: MadeWith
    gpus: int
    peak: float

    def error(self, made_of: Software) -> float:
        """Return the logarithm of the estimate over the value aimed at."""
        how = replace(self.training, software=made_of)
        return math.log(training_need(self.model, how, self.gpus).peak.total / self.peak) - AIM


def requested(row: Row) -> Requested:
    return Requested(model(row), training(row), made_with(row), row.gpus, row.peak)


def learn(published: Iterable[Row], passes: int = 6) -> Learned:
    """Fit the constants to the training peaks among the rows, by the Gauss-Newton method."""
    given = [requested(row) for row in published if row.is_training]
    names = _names(given)
    first = np.array([math.log(FIRST[constant][0]) if not trainer else 0.0 for trainer, constant in names])
    stiff = np.array(
        [(FIRST[constant][1] if not trainer else DEPARTS[constant]) ** -2 for trainer, constant in names]
    )
    found = first.copy()
    for _ in range(passes):
        errors, slopes = _slopes(given, names, found)
        weights = (
            np.where(errors < 0, BELOW_TIMES, 1.0) / NOISE**2 / np.maximum(1.0, np.abs(errors) / (2 * NOISE))
        )
        down = slopes.T @ (weights * errors) + stiff * (found - first)
        step = np.linalg.solve(slopes.T @ (weights[:, None] * slopes) + np.diag(stiff), -down)
        found = found + np.clip(step, -STEP_MAX, STEP_MAX)
        if np.abs(step).max() < DONE:
            break
    return _learned(names, found)


def _names(given: list[Requested]) -> list[tuple[str, str]]:
    """Return the shared constants, without a trainer, and then those of each trainer."""
    trainers = sorted({one.made.trainer for one in given})
    return [("", constant) for constant in FIRST] + [
        (trainer, constant) for trainer in trainers for constant in DEPARTS
    ]


def _slopes(given: list[Requested], names: list[tuple[str, str]], found: Numbers) -> tuple[Numbers, Numbers]:
    """Return the errors, and how each changes with each constant."""
    here = _softwares(given, _learned(names, found))
    errors = np.array([one.error(here[one.made]) for one in given])
    slopes = np.zeros((len(given), len(names)))
    for column, (trainer, constant) in enumerate(names):
        if trainer:
            # A trainer's own constant stands beside the shared one: it moves its rows in the same way.
            own = np.array([one.made.trainer == trainer for one in given])
            slopes[:, column] = np.where(own, slopes[:, names.index(("", constant))], 0.0)
            continue
        there = _softwares(given, _learned(names, found + STEP * (np.arange(len(names)) == column)))
        for line, one in enumerate(given):
            if there[one.made] != here[one.made]:
                slopes[line, column] = (one.error(there[one.made]) - errors[line]) / STEP
    return errors, slopes


def _softwares(given: list[Requested], learned: Learned) -> dict[MadeWith, Software]:
    return {made: software(made, learned) for made in {one.made for one in given}}


def _learned(names: list[tuple[str, str]], found: Numbers) -> Learned:
    shared: dict[str, float] = {}
    times: dict[str, dict[str, float]] = {}
    for (trainer, constant), value in zip(names, np.exp(found), strict=True):
        (times.setdefault(trainer, {}) if trainer else shared)[constant] = float(value)
    return Learned(shared, times)


def main(paths: list[Path]) -> None:
    learned = learn([row for path in paths or [PEAKS] for row in rows(path)], passes=20)
    print({constant: float(f"{value:.3g}") for constant, value in learned.shared.items()})
    for trainer, times in learned.times.items():
        print(
            trainer,
            {constant: round(value, 2) for constant, value in times.items() if abs(value - 1) >= 0.03},
        )


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
