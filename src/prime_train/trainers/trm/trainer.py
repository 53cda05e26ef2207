"""Trainer `trm`: `pretrain.py` of the published code of tiny recursive models, and scripts of the same shape.

It saves only weights, each time in a file called `step_N`, and only after an evaluation. A launch that loads
them begins at step 0 again, with a new optimizer and a new learning-rate schedule; its steps are counted on
here from the step whose weights it loaded.
"""

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence

from prime_train.spec.causes import Cause
from prime_train.spec.spec import ProgressSpec, RunSpec
from prime_train.trainers.checkpoint_folders import FileInfo
from prime_train.trainers.command import CommandTrainer
from prime_train.trainers.conventions.command_settings import is_script
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.log_rules import LogRule
from prime_train.trainers.progress import LineReader, RegexReader
from prime_train.trainers.scattered_checkpoints import Gathering, Scattered
from prime_train.trainers.stale_outputs import Move, StaleOutputs
from prime_train.trainers.torchrun import torchrun
from prime_train.trainers.trm import conventions as trm

_NAME = re.compile(r"step_(\d{1,12})")
_LOADING = r"^Loading checkpoint "
_BAR = ProgressSpec(kind="regex", pattern=r"^\s*\d+%\|[^|]*\|\s*(?P<step>\d{1,12})/\d{1,12} \[")


RULES = (
    # Without the test split, training goes on, and fails at the first evaluation, before anything is saved.
    LogRule(r"^NO EVAL DATA FOUND", Cause.BAD_CONFIG, stop=True),
)


class TrmTrainer(CommandTrainer):
    def command(
        self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None
    ) -> str:
        line = super().command(
            spec, checkpoints=checkpoints, resume_step=resume_step, resume_folder=resume_folder
        )
        own = " ".join(
            f"{key}={shlex.quote(value.format(checkpoints=checkpoints))}"
            for key, value in trm.settings(spec).items()
        )
        # The evaluator needs a process group even with a single process.
        started = torchrun(line, workers=spec.trainer.workers) if is_script(spec.trainer.command) else line
        return f"{started} {own}"

    def reader(self, spec: RunSpec) -> LineReader:
        """Return a reader of the progress bar, unless the config says how progress is read."""
        return RegexReader(_BAR) if spec.trainer.progress == ProgressSpec() else super().reader(spec)

    def gathering(self, spec: RunSpec) -> Gathering:
        return Gathering(spec.checkpoints.folder, _weights)

    def resume_line(self, spec: RunSpec) -> str:
        return _LOADING

    def known_errors(self) -> tuple[LogRule, ...]:
        return (*RULES, *BUILT_IN)

    def counts_anew(self, spec: RunSpec) -> bool:
        return True

    def stale_outputs(self, spec: RunSpec) -> StaleOutputs:
        """Return the weights of an earlier launch, whose names this one uses for other steps."""
        return StaleOutputs(spec.checkpoints.folder, _earlier_weights)


def _weights(files: Sequence[FileInfo], read: Callable[[str], bytes]) -> Iterable[Scattered]:
    matched = [(file, found) for file in files if (found := _NAME.fullmatch(file.path))]
    return [Scattered(int(found[1]), {trm.CHECKPOINT: file.path}) for file, found in matched]


def _earlier_weights(listing: Collection[str], resume_step: int | None, *, attempt: int) -> Sequence[Move]:
    return [
        Move(name, f"before-attempt-{attempt}/{name}") for name in sorted(listing) if _NAME.fullmatch(name)
    ]
