"""Trainer `torchtitan`: its own training module, or a script with its checkpointer and its arguments.

torchtitan saves nothing unless it is told to, and starts from step 1 without an error if the folder of
checkpoints is not the one in which they were restored. So this kind adds these arguments itself, and refuses
a command that contradicts them.
"""

import shlex

from prime_train.spec.causes import Cause
from prime_train.spec.spec import ProgressSpec, RunSpec
from prime_train.text.finite import number_of
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.log_lines import clean
from prime_train.trainers.log_rules import LogRule
from prime_train.trainers.patterns import matches
from prime_train.trainers.progress import LineReader, Progress, names_not_finite, true_loss
from prime_train.trainers.script import ScriptTrainer
from prime_train.trainers.torchrun import one_worker
from prime_train.trainers.torchtitan.conventions import choices

RULES = (
    LogRule(r"Training starts at step 1\b", Cause.RESUME_IGNORED, stop=True, resumed_only=True),
    LogRule(r"checkpoint\.load_step=\d+ but checkpoint .* is not found", Cause.BAD_CHECKPOINT),
    # In torchtitan 0.3 this checkpointer can neither save nor load.
    LogRule(r"TorchCheckpointingManager does not implement", Cause.BAD_CONFIG),
)

_STEP = r"- INFO - step:\s+(?P<step>\d{1,12})\s+loss:\s+(?P<loss>[-+.\w]+)(?:\s+grad_norm:\s+(?P<grad_norm>[-+.\w]+))?"
_LAST = r"- INFO - Saving a .*checkpoint.* at last step, step (?P<step>\d{1,12})\."
"""The last step is logged only if the interval of logging divides it."""


class TorchtitanTrainer(ScriptTrainer):
    def command(
        self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None
    ) -> str:
        line = super().command(
            spec, checkpoints=checkpoints, resume_step=resume_step, resume_folder=resume_folder
        )
        own = ["--checkpoint.enable", "--checkpoint.folder", shlex.quote(checkpoints)]
        if not {"last_save_model_only", "last_save_in_hf"} & choices(spec.trainer.command).keys():
            # Otherwise the last checkpoint holds no optimizer, and the run cannot be extended.
            own.append("--checkpoint.no_last_save_model_only")
        return f"{line} {' '.join(own)}"

    def environment(self, spec: RunSpec, *, attempt: int, run_id: str, link: str = "") -> dict[str, str]:
        own = one_worker(run_id, attempt) if spec.trainer.workers == 1 else {}
        return own | super().environment(spec, attempt=attempt, run_id=run_id, link=link)

    def reader(self, spec: RunSpec) -> LineReader:
        """Return a reader of torchtitan's own output, unless the config says how progress is read."""
        return TorchtitanReader() if spec.trainer.progress == ProgressSpec() else super().reader(spec)

    def known_errors(self) -> tuple[LogRule, ...]:
        return (*RULES, *BUILT_IN)


class TorchtitanReader:
    """Reader of torchtitan's log. Lines of a validation have another form."""

    def read(self, line: str) -> Progress | None:
        text = clean(line)
        found = next(matches(_STEP, text), None) or next(matches(_LAST, text), None)
        if found is None:
            return None
        values = found.groupdict()
        norm = values.get("grad_norm")
        loss = true_loss(values.get("loss"), norm)
        lost = names_not_finite({"loss": loss, "grad_norm": norm})
        return Progress(int(values["step"]), number_of(loss), not_finite=lost, grad_norm=number_of(norm))
