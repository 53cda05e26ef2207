"""What a trainer's log and exit code say: the cause of its end, what follows from it, and the line that says
so.

It is what an agent and the control plane would make of them, but for what only they know: which steps are
durable and how earlier attempts ended.
"""

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prime_train.advice import Option, SettingAdvice
from prime_train.errors import UsageError
from prime_train.runs.next_action import Ending, Next, next_action
from prime_train.spec.causes import POLICY, Cause
from prime_train.spec.spec import TrainerSpec
from prime_train.text.formatting import alternatives
from prime_train.text.invocations import flag
from prime_train.text.redaction import redacted
from prime_train.text.safe import defused
from prime_train.trainers.error_lines import is_error
from prime_train.trainers.log_lines import clean
from prime_train.trainers.of_spec import Named, named, trainer_of
from prime_train.trainers.registry import TRAINERS

READ_BYTES_MAX = 4 * 2**20
"""Bytes read from the end of a log."""

_STEP = re.compile(
    r"(?i)(?P<planned>\b(?:total|max(?:imum)?|num(?:ber of)?|warm-?up|optimi[sz]ation|accumulation|"
    r"train(?:ing)?|sav(?:e|ing)|logging"
    r"|eval\w*|decay)[ -]+(?:\w+[ -]+)?(?=steps\b))?"
    r"\b(?:global_?step|steps?|iter|iteration)\b[\"']?\s{0,3}[:=/#]?\s{0,3}(?P<step>\d{1,12})\b"
)
"""A step that was reached, or a number of steps that a trainer says before it begins: that it will make, or
accumulates.
"""


@dataclass(frozen=True)
class LogEnding:
    """`found`: what the log says; `next`: what follows; `step`: the newest step that the log shows, 0:
    none.
    """

    found: Named
    next: Next
    step: int

    @property
    def title(self) -> str:
        return POLICY[self.found.cause].title

    @property
    def advice(self) -> str:
        return POLICY[self.found.cause].advice


def ending_of(path: Path, *, code: int, kind: str) -> LogEnding:
    """Return what the end of the log at `path` and the exit code say. Raises UsageError if there is no such
    file or kind of trainer.
    """
    if kind not in TRAINERS:
        raise UsageError(
            f"{flag(Option(SettingAdvice.KIND))}: unknown kind of trainer {kind!r}; known: "
            f"{alternatives(TRAINERS)}"
        )
    return ending_in(_last_lines(path), code=code, kind=kind)


def ending_in(lines: Sequence[str], *, code: int, kind: str) -> LogEnding:
    """Return what these last lines of a log and the exit code say of a trainer of this kind."""
    found = named(lines, trainer_of(kind).known_errors(), code=code)
    step = _newest_step(lines)
    # A leak of host memory shows after many steps, and a start from the newest checkpoint makes progress
    # again.
    leaks = found.cause is Cause.HOST_OOM and step > 0
    ending = Ending(found.cause, found.line, found.action, code, step=step, has_gained=leaks)
    return LogEnding(
        Named(found.cause, redacted(defused(found.line)), found.action),
        next_action(TrainerSpec(command="-"), ending),
        step,
    )


def _newest_step(lines: Iterable[str]) -> int:
    """Return the newest step that the log shows outside of errors; 0 if it shows none."""
    texts = (clean(line) for line in lines)
    said = (found for text in texts if not is_error(text) for found in _STEP.finditer(text))
    return max((int(found["step"]) for found in said if not found["planned"]), default=0)


def _last_lines(path: Path) -> list[str]:
    if not path.is_file():
        raise UsageError(f"{flag(Option(SettingAdvice.LOG))}: {path} is not a file")
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - READ_BYTES_MAX))
            return file.read(READ_BYTES_MAX).decode(errors="replace").replace("\r\n", "\n").split("\n")
    except OSError as error:
        raise UsageError(
            f"{flag(Option(SettingAdvice.LOG))}: {path} cannot be read: {error.strerror or error}"
        ) from error
