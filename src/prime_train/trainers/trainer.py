"""The interface of every trainer; none of its methods has side effects."""

from collections.abc import Sequence
from typing import Protocol

from prime_train.core.spec import RunSpec
from prime_train.trainers.folders import FileSeen
from prime_train.trainers.log_rules import LogRule
from prime_train.trainers.progress import LineReader


class Trainer(Protocol):
    def command(self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None) -> str:
        """Return the command line for /bin/sh, with every inserted value quoted for the shell.

        `checkpoints` is the absolute checkpoint folder. Resume arguments are appended if `resume_step` is set; `resume_folder` is the
        absolute folder of that checkpoint.
        """

    def environment(self, spec: RunSpec, *, attempt: int, run_id: str, link: str = "") -> dict[str, str]:
        """Return the variables that the trainer gets in addition to the machine's. They include those of `spec.environment`, which take
        precedence.

        `link` is the address where people requested the run, for its tracker.
        """

    def reader(self, spec: RunSpec) -> LineReader:
        """Return a new reader of progress lines. Use one for each stream of lines, because a reader may remember a header."""

    def step_of(self, spec: RunSpec, name: str) -> int | None:
        """Return the step of the checkpoint folder called `name`, or None for any other name, however similar."""

    def folder_of(self, spec: RunSpec, step: int) -> str:
        """Return the name of the checkpoint folder of `step`."""

    def is_complete(self, spec: RunSpec, files: Sequence[FileSeen], now_s: int) -> bool:
        """Return whether a checkpoint folder with these files is complete, as far as names, sizes and times show. `now_s` is the time in
        seconds since 1970."""

    def is_begun(self, spec: RunSpec, files: Sequence[FileSeen]) -> bool:
        """Return whether these files of a checkpoint folder show that a save has begun for which training steps wait, so that steps may
        stand still."""

    def log_rules(self, spec: RunSpec) -> tuple[LogRule, ...]:
        """Return the user's log rules, followed by the built-in ones."""
