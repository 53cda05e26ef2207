"""How well peaks are estimated that were not used in the fit: of sources left out, and of random halves."""

import random
from collections.abc import Iterable, Iterator

from prime_train.estimate.memory.phases import Need, training_need
from prime_train.estimate.memory.software_factors import LEARNED, Learned
from tests.benchmarks.memory.fit import learn
from tests.benchmarks.memory.row_parser import Row
from tests.benchmarks.memory.rows import estimate, model, training

SPLITS = 50


def sources_left_out(published: list[Row]) -> Iterator[tuple[Row, Learned]]:
    """Yield each row with constants fitted to the other sources; only training rows are used."""
    teachers = {row.source for row in published if row.is_training}
    for source in sorted({row.source for row in published}):
        learned = learn(row for row in published if row.source != source) if source in teachers else LEARNED
        yield from ((row, learned) for row in published if row.source == source)


def halves(published: list[Row], splits: int = SPLITS, seed: int = 1) -> Iterator[list[tuple[Row, Learned]]]:
    """Yield repeatedly the rows of one half, with constants fitted to the other half."""
    chance = random.Random(seed)
    for _ in range(splits):
        mixed = chance.sample(published, len(published))
        learned = learn(mixed[::2])
        yield [(row, learned) for row in mixed[1::2]]


def reported(held_out: Iterable[tuple[Row, Learned]]) -> list[tuple[float, float]]:
    """Return pairs of the estimate and the measurement."""
    return [(estimate(row, learned), row.peak) for row, learned in held_out]


def need_of(row: Row, learned: Learned) -> Need:
    """Return the need of a training."""
    return training_need(model(row), training(row, learned), row.gpus)
