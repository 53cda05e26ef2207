"""The supported kinds of trainer, one package or module each and free of side effects; `trainers/registry.py`
lists them.
"""

from functools import cache
from importlib import import_module
from typing import cast

from prime_train.spec.spec import RunSpec
from prime_train.trainers.checkpoint_folders import FileInfo
from prime_train.trainers.exit_classifier import Named, classify, fired, named
from prime_train.trainers.log_rules import LogRule
from prime_train.trainers.progress import LineReader, Progress
from prime_train.trainers.registry import TRAINERS
from prime_train.trainers.scattered_checkpoints import Gathering, Scattered
from prime_train.trainers.trainer import Trainer

__all__ = [
    "FileInfo",
    "Gathering",
    "LineReader",
    "LogRule",
    "Named",
    "Progress",
    "Scattered",
    "Trainer",
    "classify",
    "fired",
    "named",
    "trainer_for",
    "trainer_of",
]


def trainer_for(spec: RunSpec) -> Trainer:
    """Return the trainer for `spec.trainer.kind`."""
    return trainer_of(spec.trainer.kind)


@cache
def trainer_of(kind: str) -> Trainer:
    """Return the trainer of a kind that `TRAINERS` lists."""
    module, _, name = TRAINERS[kind].implementation.partition(":")
    return cast("Trainer", getattr(import_module(module), name)())
