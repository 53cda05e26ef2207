"""Trainer `command`: any command line that saves checkpoints into a folder, as folders or files."""

import shlex
from collections.abc import Sequence

from prime_train.advice import Call, Operation
from prime_train.spec.checkpoint_names import CheckpointNames, counts_epochs
from prime_train.spec.spec import RunSpec
from prime_train.text.invocations import command
from prime_train.trainers import checkpoint_folders
from prime_train.trainers.checkpoint_folders import FileInfo
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.log_rules import LogRule
from prime_train.trainers.progress import LineReader, reader_for
from prime_train.trainers.trainer import Trainer


class CommandTrainer(Trainer):
    def command(
        self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None
    ) -> str:
        # A YAML block ends in a newline; without strip() the appended arguments would start a new line.
        line = spec.trainer.command.format(checkpoints=shlex.quote(checkpoints)).strip()
        if resume_step is None:
            return line
        path, number = shlex.quote(resume_folder or checkpoints), CheckpointNames.of(spec).number(resume_step)
        return f"{line} {spec.trainer.resume.format(step=number, epoch=number, checkpoint=path)}".strip()

    def environment(self, spec: RunSpec, *, attempt: int, run_id: str, link: str = "") -> dict[str, str]:
        ours = {"PRIME_TRAIN_RUN": run_id, "PRIME_TRAIN_ATTEMPT": str(attempt)}
        # Unbuffered, because lines are read while the trainer runs. The fault handler prints a stack trace
        # when a fatal signal ends the process.
        return (
            {"PYTHONUNBUFFERED": "1", "PYTHONFAULTHANDLER": "1"}
            | _wandb(spec, attempt, run_id, link)
            | spec.environment
            | ours
        )

    def reader(self, spec: RunSpec) -> LineReader:
        return reader_for(spec.trainer.progress, epochs=counts_epochs(spec))

    def step_of(self, spec: RunSpec, name: str) -> int | None:
        return CheckpointNames.of(spec).step_of(name)

    def folder_of(self, spec: RunSpec, step: int) -> str:
        return CheckpointNames.of(spec).name(step)

    def is_complete(self, spec: RunSpec, files: Sequence[FileInfo], now_s: int) -> bool:
        return checkpoint_folders.is_complete(spec.checkpoints, files, now_s)

    def is_begun(self, spec: RunSpec, files: Sequence[FileInfo]) -> bool:
        return True

    def known_errors(self) -> tuple[LogRule, ...]:
        return BUILT_IN


def _wandb(spec: RunSpec, attempt: int, run_id: str, link: str) -> dict[str, str]:
    """Return the W&B variables, which make all attempts of a run one W&B run.

    Only the first attempt sets the notes, because people may have edited them since.
    """
    if spec.wandb is None:
        return {}
    named = {"WANDB_PROJECT": spec.wandb.project, "WANDB_RUN_ID": run_id, "WANDB_RESUME": "allow"}
    notes = f"{run_id}, a run of prime-train: {command(Call(Operation.DIAGNOSE, run_id))}" + (
        f"; requested at {link}" if link else ""
    )
    named |= {"WANDB_NOTES": notes} if attempt == 1 else {}
    return named | ({"WANDB_ENTITY": spec.wandb.entity} if spec.wandb.entity else {})
