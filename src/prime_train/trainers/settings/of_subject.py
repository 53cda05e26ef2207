"""The settings of a subject, whichever trainer it is for: one row for each format."""

from collections.abc import Callable
from functools import lru_cache
from importlib import import_module
from typing import cast

from prime_train.spec.config_format import ConfigFormat
from prime_train.spec.rule import Subject
from prime_train.trainers.prime_rl.rules.schema import Same
from prime_train.trainers.settings.view import TrainingSettings

_READERS: dict[ConfigFormat, str] = {
    "areal": "prime_train.trainers.areal.training",
    "hf": "prime_train.trainers.hf.training",
    "prime_rl": "prime_train.trainers.prime_rl.training",
    "prime_rl_sft": "prime_train.trainers.prime_rl.sft_training",
    "torchtitan": "prime_train.trainers.torchtitan.training",
    "verl": "prime_train.trainers.verl.training",
}
"""The module that reads the settings of each format by a function `settings`; it is imported only where a subject
has that format.
"""

Read = Callable[[Subject], TrainingSettings | None]


def training_of(subject: Subject) -> TrainingSettings | None:
    """Return what the subject trains and how; None if its settings are of no trainer that is known."""
    return _training_of(Same(subject))


@lru_cache(maxsize=4)
def _training_of(same: Same[Subject]) -> TrainingSettings | None:
    """Return the settings, cached because several rules request those of one subject."""
    subject = same.it
    module = _READERS.get(subject.format)
    if module is None:
        return None
    return cast("Read", import_module(module).settings)(subject)
