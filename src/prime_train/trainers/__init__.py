"""The supported kinds of trainer, one module each and free of side effects; `TRAINERS` maps each kind's name to its trainer."""

from prime_train.core.spec import RunSpec
from prime_train.trainers.command import CommandTrainer
from prime_train.trainers.exit_classifier import classify, fired
from prime_train.trainers.folders import FileSeen
from prime_train.trainers.log_rules import LogRule
from prime_train.trainers.prime_rl import PrimeRlTrainer
from prime_train.trainers.progress import LineReader, Progress
from prime_train.trainers.torchrun import TorchrunTrainer
from prime_train.trainers.trainer import Trainer

__all__ = ["TRAINERS", "FileSeen", "LineReader", "LogRule", "Progress", "Trainer", "classify", "fired", "trainer_for"]

TRAINERS: dict[str, Trainer] = {"command": CommandTrainer(), "torchrun": TorchrunTrainer(), "prime_rl": PrimeRlTrainer()}


def trainer_for(spec: RunSpec) -> Trainer:
    """Return the trainer for `spec.trainer.kind`."""
    return TRAINERS[spec.trainer.kind]
