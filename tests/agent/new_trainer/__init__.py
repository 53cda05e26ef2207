"""A kind of trainer that prime-train does not have: it only counts. Everything about it is in this package,
and `ROW` is its row in the registry.
"""

import re
import sys
from collections.abc import Collection, Sequence
from pathlib import Path

from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.trainers.command import CommandTrainer
from prime_train.trainers.kind import Layout, TrainerKind
from prime_train.trainers.log_rules import LogRule
from prime_train.trainers.progress import LineReader, Progress
from prime_train.trainers.services import Service, ServiceSurroundings
from prime_train.trainers.stale_outputs import Move, StaleOutputs

KIND = "counting"
CONFIG = "counting.txt"
"""The trainer's config file with lines NAME=VALUE: `port` of its service; `stall`, the step after which it
hangs; `dies`, the step before which it ends.
"""
LOG = "out/counting.log"
_MADE = re.compile(r"iteration (\d+) of \d+, cost ([\d.]+)")


class Reader:
    """Parser of the trainer's own format of progress lines."""

    def read(self, line: str) -> Progress | None:
        found = _MADE.fullmatch(line)
        return Progress(int(found[1]), float(found[2])) if found else None


class CountingTrainer(CommandTrainer):
    def command(
        self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None
    ) -> str:
        words = [
            sys.executable,
            str(Path(__file__).parent / "train.py"),
            checkpoints,
            str(spec.trainer.steps),
        ]
        return " ".join(words if resume_folder is None else [*words, resume_folder])

    def reader(self, spec: RunSpec) -> LineReader:
        return Reader()

    def log_rules(self, spec: RunSpec) -> tuple[LogRule, ...]:
        return (LogRule("ran out of fingers", Cause.HOST_OOM), *super().log_rules(spec))

    def stale_outputs(self, spec: RunSpec) -> StaleOutputs:
        return StaleOutputs("out", _session)

    def services(self, spec: RunSpec, machine: ServiceSurroundings) -> tuple[Service, ...]:
        settings = dict(line.split("=") for line in machine.read(CONFIG).splitlines())
        return (
            Service(
                "the abacus",
                Cause.NETWORK_ERROR,
                1,
                ports=(int(settings["port"]),),
                paths=("/alive",),
                every_s=0.2,
            ),
        )

    def log_files(self, spec: RunSpec) -> tuple[str, ...]:
        return (LOG,)

    def shown_command(self, spec: RunSpec) -> str:
        return f"count to {spec.trainer.steps}"

    def config_file(self, spec: RunSpec) -> str:
        return CONFIG


def _session(listing: Collection[str], resume_step: int | None, *, attempt: int) -> Sequence[Move]:
    """Return the renames that move the session of an earlier launch away, because the trainer refuses to
    start beside one.
    """
    return [Move("session", f"../old-session-{attempt}")] if "session" in listing else []


ROW = TrainerKind(
    "tests.agent.new_trainer:CountingTrainer",
    "counts",
    command_advice=f"write {CONFIG}",
    needs_steps="it would count forever",
    layout=lambda spec: Layout(
        "out/saved",
        "iteration-{step:06d}",
        sentinel="done",
        files=("state",),
        progress_file="out/progress.txt",
    ),
)
