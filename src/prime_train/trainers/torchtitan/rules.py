"""Rules about torchtitan's settings (TR478)."""

import math
from collections.abc import Iterator

from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.trainers.settings.of_subject import training_of
from prime_train.trainers.settings.view import Reader

TOPIC = "torchtitan"
_DEGREES = ("data_parallel_replicate", "context", "tensor", "pipeline")
_SHARD = "parallelism.data_parallel_shard_degree"


RULES = Rules(TOPIC, requires="torchtitan")


@RULES.error(
    "TR478",
    "degrees of parallelism for another number of processes",
    why="torchtitan stops when it makes its mesh of GPUs: the product of all degrees must be the number of "
    "processes.",
    fix="change the degrees, or the number of GPUs and workers",
)
def mesh(subject: Subject) -> Iterator[Violation]:
    training, spec, config = training_of(subject), subject.spec, subject.trainer
    if training is None or spec is None or config is None:
        return
    world, read = training.processes.value, Reader(config)
    if world is None or not spec.hardware.gpus:
        return
    degrees = {name: read.maybe(f"parallelism.{name}_parallel_degree") for name in _DEGREES[1:]}
    degrees[_DEGREES[0]] = read.maybe(f"parallelism.{_DEGREES[0]}_degree")
    others = math.prod(one.value or 1 for one in degrees.values())
    shard = read.integer(_SHARD, default=-1, least=-1).value
    if (shard < 1 and world % others == 0) or (shard >= 1 and shard * others == world):
        return
    largest = max(degrees.values(), key=lambda one: one.value or 1)
    path = largest.path or tuple(_SHARD.split("."))
    needed = f"{shard * others}" if shard >= 1 else f"a multiple of {others}"
    message = f"the degrees of parallelism are for {needed} processes, and the run starts {world}"
    yield Violation(path, message, document="trainer")
