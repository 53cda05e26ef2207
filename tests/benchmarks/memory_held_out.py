"""How well peaks are told that constants were not learned from: of sources left out, and of random halves."""

import random
from collections.abc import Iterable, Iterator

from prime_train.estimate.memory.phases import Need, training_need
from prime_train.estimate.memory.software import LEARNED, Learned
from tests.benchmarks.memory_fit import learn
from tests.benchmarks.memory_rows import estimate, model, training
from tests.benchmarks.memory_said import Row

SPLITS = 50


def sources_left_out(published: list[Row]) -> Iterator[tuple[Row, Learned]]:
    """Each row with what the other sources' teach; only rows of trainings do."""
    teachers = {row.source for row in published if row.is_training}
    for source in sorted({row.source for row in published}):
        learned = learn(row for row in published if row.source != source) if source in teachers else LEARNED
        yield from ((row, learned) for row in published if row.source == source)


def halves(published: list[Row], splits: int = SPLITS, seed: int = 1) -> Iterator[list[tuple[Row, Learned]]]:
    """Each time, the rows of one half with what the other teaches."""
    chance = random.Random(seed)
    for _ in range(splits):
        mixed = chance.sample(published, len(published))
        learned = learn(mixed[::2])
        yield [(row, learned) for row in mixed[1::2]]


def told(held_out: Iterable[tuple[Row, Learned]]) -> list[tuple[float, float]]:
    """What is told, and what was measured."""
    return [(estimate(row, learned), row.peak) for row, learned in held_out]


def need_of(row: Row, learned: Learned) -> Need:
    """Of a training."""
    return training_need(model(row), training(row, learned), row.gpus)
