"""The supported kinds of trainer, one package or module each and free of side effects; `core/registry/trainers.py` lists them."""

from functools import cache
from importlib import import_module
from typing import cast

from prime_train.core.registry.trainers import TRAINERS
from prime_train.core.spec import RunSpec
from prime_train.trainers.exit_classifier import classify, fired
from prime_train.trainers.folders import FileSeen
from prime_train.trainers.log_rules import LogRule
from prime_train.trainers.progress import LineReader, Progress
from prime_train.trainers.trainer import Trainer

__all__ = ["FileSeen", "LineReader", "LogRule", "Progress", "Trainer", "classify", "fired", "trainer_for"]


def trainer_for(spec: RunSpec) -> Trainer:
    """Return the trainer for `spec.trainer.kind`."""
    return _loaded(TRAINERS[spec.trainer.kind].implementation)


@cache
def _loaded(implementation: str) -> Trainer:
    module, _, name = implementation.partition(":")
    return cast("Trainer", getattr(import_module(module), name)())
