"""The questions every trainer answers, purely."""

from collections.abc import Sequence
from typing import Protocol

from prime_train.core.spec import RunSpec
from prime_train.trainers.folders import FileSeen
from prime_train.trainers.log_rules import LogRule
from prime_train.trainers.progress import LineReader


class Trainer(Protocol):
    def command(self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None) -> str:
        """The line for /bin/sh: `checkpoints` is the absolute checkpoint folder, the resume arguments follow when there is a step to
        resume. `resume_folder` is the absolute folder of that checkpoint. What is filled in is quoted for the shell.
        """

    def environment(self, spec: RunSpec, *, attempt: int, run_id: str, link: str = "") -> dict[str, str]:
        """Variables the trainer gets on top of the machine's; those of `spec.environment` are among them and win. `link`: where people
        asked for the run, for its tracker."""

    def reader(self, spec: RunSpec) -> LineReader:
        """A fresh reader of progress lines; it may remember a header, so each stream of lines has its own."""

    def step_of(self, spec: RunSpec, name: str) -> int | None:
        """The step of a checkpoint folder called `name`; None for any other name, however close."""

    def folder_of(self, spec: RunSpec, step: int) -> str:
        """The name of the checkpoint folder of `step`."""

    def is_complete(self, spec: RunSpec, files: Sequence[FileSeen], now_s: int) -> bool:
        """Whether a checkpoint folder with these files is whole, as far as names, sizes and times tell."""

    def is_begun(self, spec: RunSpec, files: Sequence[FileSeen]) -> bool:
        """Whether steps may stand still for a checkpoint folder with these files: somebody whose saving they wait for has begun."""

    def log_rules(self, spec: RunSpec) -> tuple[LogRule, ...]:
        """The user's rules, then the built-in table: what log lines mean."""
