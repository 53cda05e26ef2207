"""What is particular to one way of training, one module a trainer, all of it pure: `TRAINERS` is the table."""

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
    """The trainer that `spec.trainer.kind` names."""
    return TRAINERS[spec.trainer.kind]
