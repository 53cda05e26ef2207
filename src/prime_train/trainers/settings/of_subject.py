"""The settings of a subject, whichever trainer it is for: one row for each format."""

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING, cast

from prime_train.spec.config_format import ConfigFormat
from prime_train.spec.rule import Subject

if TYPE_CHECKING:
    from prime_train.trainers.settings.view import TrainingSettings

_READERS: dict[ConfigFormat, str] = {
    "areal": "areal.training",
    "hf": "hf.training",
    "prime_rl": "prime_rl.training",
    "prime_rl_sft": "prime_rl.sft_training",
    "torchtitan": "torchtitan.training",
    "verl": "verl.training",
}
"""The module of trainers whose function `settings` reads each format. It is imported where a subject has that
format, because a user who saves a file waits for the check.
"""

Read = Callable[[Subject], "TrainingSettings | None"]


def training_of(subject: Subject) -> "TrainingSettings | None":
    """Return what the subject trains and how; None if its settings are of no trainer that is known."""
    module = _READERS.get(subject.format)
    if module is None:
        return None
    return cast("Read", import_module(f"prime_train.trainers.{module}").settings)(subject)
