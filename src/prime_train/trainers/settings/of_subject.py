"""The settings of a subject, whichever trainer it is for: one row for each format."""

from collections.abc import Callable
from functools import lru_cache

from prime_train.spec.config_format import ConfigFormat
from prime_train.spec.rule import Subject
from prime_train.trainers.areal import training as areal
from prime_train.trainers.hf import training as hf
from prime_train.trainers.prime_rl import sft_training
from prime_train.trainers.prime_rl import training as prime_rl
from prime_train.trainers.prime_rl.rules.schema import Same
from prime_train.trainers.settings.view import TrainingSettings
from prime_train.trainers.torchtitan import training as torchtitan
from prime_train.trainers.verl import training as verl

_READERS: dict[ConfigFormat, Callable[[Subject], TrainingSettings | None]] = {
    "areal": areal.settings,
    "hf": hf.settings,
    "prime_rl": prime_rl.settings,
    "prime_rl_sft": sft_training.settings,
    "torchtitan": torchtitan.settings,
    "verl": verl.settings,
}
"""How the settings of each format are read."""


def training_of(subject: Subject) -> TrainingSettings | None:
    """Return what the subject trains and how; None if its settings are of no trainer that is known."""
    return _training_of(Same(subject))


@lru_cache(maxsize=4)
def _training_of(same: Same[Subject]) -> TrainingSettings | None:
    """Return the settings, cached because several rules request those of one subject."""
    read = _READERS.get(same.it.format)
    return read(same.it) if read is not None else None
