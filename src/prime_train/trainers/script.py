"""Base of the trainers whose command is a script or a program that starts its own processes: Hugging Face,
Lightning and torchtitan.
"""

from prime_train.spec.spec import RunSpec
from prime_train.trainers.command import CommandTrainer
from prime_train.trainers.conventions.command_settings import is_script
from prime_train.trainers.torchrun import launched, nccl


class ScriptTrainer(CommandTrainer):
    """A trainer whose command is a script or module with its arguments, started in one process per worker, or
    a program that starts its own processes.
    """

    def command(
        self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None
    ) -> str:
        line = super().command(
            spec, checkpoints=checkpoints, resume_step=resume_step, resume_folder=resume_folder
        )
        return launched(line, workers=spec.trainer.workers) if is_script(spec.trainer.command) else line

    def environment(self, spec: RunSpec, *, attempt: int, run_id: str, link: str = "") -> dict[str, str]:
        # Without torchrun's variables, a single process does not form a process group.
        own = nccl() if spec.trainer.workers > 1 else {}
        return own | super().environment(spec, attempt=attempt, run_id=run_id, link=link)
