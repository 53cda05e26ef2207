"""Trainer `hf`: scripts and programs that train with the Trainer of transformers, that of TRL and adapters of PEFT included.

The Trainer loads whatever folder it is given: a missing optimizer or scheduler is skipped without a message, and training goes on with
wrong moments. So a checkpoint counts only with all of its parts (`hf/completeness.py`). A script that ignores the checkpoint to resume
from starts over in silence; the agent sees that in its first step.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath

from prime_train.spec.causes import Cause
from prime_train.spec.spec import ProgressSpec, RunSpec
from prime_train.trainers.checkpoint_folders import FileInfo
from prime_train.trainers.conventions.command_settings import is_script
from prime_train.trainers.conventions.hf import STATE
from prime_train.trainers.hf.completeness import has_all_parts
from prime_train.trainers.hf.progress import HfReader
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.log_rules import EvidenceStrength, LogRule
from prime_train.trainers.progress import LineReader
from prime_train.trainers.script import ScriptTrainer

RULES = (
    # A checkpoint on SIGTERM ends with exit code 0, as a finished training does.
    LogRule(r"SIGTERM received, will request JIT checkpoint", Cause.STOPPED_EARLY, strength=EvidenceStrength.CONSEQUENCE),
    LogRule(r"ValueError: No valid checkpoint found in output directory", Cause.RESUME_IGNORED, resumed_only=True),
    LogRule(r"safetensors_rust\.SafetensorError: Error while deserializing", Cause.BAD_CHECKPOINT),
)


class HfTrainer(ScriptTrainer):
    def reader(self, spec: RunSpec) -> LineReader:
        """Return a reader of the Trainer's own output, unless the config says how progress is read."""
        return HfReader(spec.trainer.steps) if spec.trainer.progress == ProgressSpec() else super().reader(spec)

    def is_complete(self, spec: RunSpec, files: Sequence[FileInfo], now_s: int) -> bool:
        # A program that starts its own processes may start more of them than the config says.
        known = spec.trainer.workers > 1 or is_script(spec.trainer.command)
        return has_all_parts(files, workers=spec.trainer.workers if known else None) and super().is_complete(spec, files, now_s)

    def best_files(self, spec: RunSpec) -> tuple[str, ...]:
        return (STATE,)

    def best_step(self, spec: RunSpec, files: Mapping[str, str]) -> int | None:
        """Return the step of the checkpoint that the Trainer loads at the end, with `load_best_model_at_end`."""
        try:
            path = json.loads(files.get(STATE, ""))["best_model_checkpoint"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return self.step_of(spec, PurePosixPath(path).name) if isinstance(path, str) else None

    def known_errors(self) -> tuple[LogRule, ...]:
        return (*RULES, *BUILT_IN)
