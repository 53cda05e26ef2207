"""After how many steps, or epochs, a command says that its script saves."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prime_train.spec.checkpoint_names import EPOCH, STEP, counting_field
from prime_train.spec.config_format import flags, settings

if TYPE_CHECKING:
    from prime_train.spec.spec import RunSpec

_COUNTED = r"(?:steps?|iters?|iterations?|updates?|batches|epochs?)"
_INTERVAL = re.compile(
    r"(?:.*[._])?(?:every_n_(?:train_steps|epochs)|"
    r"(?:save|saving|ckpt|checkpoint|checkpointing|snapshot)(?:_(?:model|ckpt|checkpoint|state|weights))?_"
    rf"(?:(?:every|each)(?:_n)?(?:_{_COUNTED})?|(?:{_COUNTED}_)?(?:interval|freq|frequency|"
    rf"period)(?:_{_COUNTED})?|{_COUNTED}))"
)
"""Pattern of an option, or a setting, for how often a script saves."""
_STEPS = re.compile(r"steps?|iter|update|batches")
_NUMBER = re.compile(r"\d{1,3}(?:_\d{3})+|\d{1,9}")


def interval_in(spec: "RunSpec") -> int | None:
    """Return the interval that the command gives, in what the names of checkpoints count; None if it gives
    none, or one in another unit. Of a fixed name, which has no number, either unit is taken.
    """
    counted = counting_field(spec.checkpoints.pattern)
    given = (
        (name, value)
        for name, value in _given(spec.trainer.command)
        if _INTERVAL.fullmatch(name) and _NUMBER.fullmatch(value)
    )
    return next(
        (number for name, value in given if _is_of(name, counted) and (number := int(value)) > 0), None
    )


def _given(command: str) -> Iterator[tuple[str, str]]:
    yield from flags(command)
    yield from settings(command)


def _is_of(name: str, counted: str) -> bool:
    """Return whether an interval of this name is one of steps, or epochs; a name that says neither may be of
    both.
    """
    own = name.rpartition(".")[2]
    other = _STEPS if counted == EPOCH else re.compile("epoch") if counted == STEP else None
    return other is None or other.search(own) is None
