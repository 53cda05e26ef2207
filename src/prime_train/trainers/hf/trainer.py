"""Trainer `hf`: scripts and programs that train with the Trainer of transformers, that of TRL and adapters of
PEFT included.

The Trainer loads whatever folder it is given: a missing optimizer or scheduler is skipped without a message,
and training goes on with wrong moments. So a checkpoint counts only with all of its parts
(`hf/completeness.py`). A script that ignores the checkpoint to resume from starts over in silence; the agent
sees that in its first step.
"""

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from prime_train.spec.causes import Cause
from prime_train.spec.spec import ProgressSpec, RunSpec
from prime_train.text.finite import number_of
from prime_train.trainers.checkpoint_folders import FileInfo
from prime_train.trainers.conventions.command_settings import is_script
from prime_train.trainers.hf.conventions import STATE
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.log_lines import clean
from prime_train.trainers.log_rules import EvidenceStrength, LogRule
from prime_train.trainers.patterns import matches
from prime_train.trainers.progress import LineReader, Progress, names_not_finite, true_loss
from prime_train.trainers.script import ScriptTrainer

RULES = (
    # A checkpoint on SIGTERM ends with exit code 0, as a finished training does.
    LogRule(
        r"SIGTERM received, will request JIT checkpoint",
        Cause.STOPPED_EARLY,
        strength=EvidenceStrength.CONSEQUENCE,
    ),
    LogRule(
        r"ValueError: No valid checkpoint found in output directory", Cause.RESUME_IGNORED, resumed_only=True
    ),
    LogRule(r"safetensors_rust\.SafetensorError: Error while deserializing", Cause.BAD_CHECKPOINT),
)


class HfTrainer(ScriptTrainer):
    def reader(self, spec: RunSpec) -> LineReader:
        """Return a reader of the Trainer's own output, unless the config says how progress is read."""
        return (
            HfReader(spec.trainer.steps) if spec.trainer.progress == ProgressSpec() else super().reader(spec)
        )

    def is_complete(self, spec: RunSpec, files: Sequence[FileInfo], now_s: int) -> bool:
        # A program that starts its own processes may start more of them than the config says.
        known = spec.trainer.workers > 1 or is_script(spec.trainer.command)
        return has_all_parts(files, workers=spec.trainer.workers if known else None) and super().is_complete(
            spec, files, now_s
        )

    def best_files(self, spec: RunSpec) -> tuple[str, ...]:
        return (STATE,)

    def best_step(self, spec: RunSpec, files: Mapping[str, str]) -> int | None:
        """Return the step of the checkpoint that the Trainer loads at the end, with
        `load_best_model_at_end`.
        """
        try:
            path = json.loads(files.get(STATE, ""))["best_model_checkpoint"]
        except (ValueError, KeyError, TypeError, RecursionError):
            return None
        return self.step_of(spec, PurePosixPath(path).name) if isinstance(path, str) else None

    def known_errors(self) -> tuple[LogRule, ...]:
        return (*RULES, *BUILT_IN)


# Whether a checkpoint of the Trainer has all of its parts.
#
# The Trainer writes into the final folder: model, optimizer, scheduler, the state of random numbers of each
# process, and `trainer_state.json` last. Nothing marks a folder as complete. A folder that is written again
# in place still has the old `trainer_state.json`, which is then older than the weights.
INCOMPLETE = "checkpoint-is-incomplete.txt"
"""The file that exists while a checkpoint on SIGTERM is written."""

_ADAPTER = r"(?:[^/]+/)?"
"""A named adapter of PEFT has a folder of its own."""
_DEEPSPEED = r"global_step\d+/"

_WEIGHTS = re.compile(
    rf"{_ADAPTER}(?:model|pytorch_model|adapter_model)\.(?:safetensors|bin)"
    rf"|pytorch_model_fsdp(?:_\d+/\.metadata|\.bin)|{_DEEPSPEED}.*model_states\.pt"
)
_INDEX = re.compile(
    rf"(?P<stem>{_ADAPTER}(?:model|pytorch_model|adapter_model))\.(?P<kind>safetensors|bin)\.index\.json"
)
_OPTIMIZER = re.compile(
    rf"optimizer\.(?:pt|bin)|optimizer(?:_\d+)?/\.metadata|{_DEEPSPEED}.*optim_states\.pt"
)
_SCHEDULER = re.compile(rf"scheduler\.pt|{_DEEPSPEED}.*optim_states\.pt")
"""DeepSpeed keeps its own schedule with the optimizer."""
_RANK = re.compile(r"rng_state_(\d{1,5})\.pth")
_BEFORE_STATE = re.compile(
    rf"{_ADAPTER}(?:model|pytorch_model|adapter_model)[^/]*\.(?:safetensors|bin)|pytorch_model_fsdp.*|"
    rf"optimizer.*|scheduler\.pt|{_DEEPSPEED}.*"
)
"""Files that are written before `trainer_state.json`. Scripts may write further ones of their own after
it.
"""


def has_all_parts(files: Sequence[FileInfo], *, workers: int | None) -> bool:
    """Return whether the model, the optimizer, the scheduler, and the random state of each of `workers`
    processes are there, none of them newer than `trainer_state.json` is. `workers` is None if the number of
    processes is not known.
    """
    paths = {file.path for file in files}
    state = next((file for file in files if file.path == STATE), None)
    if state is None or INCOMPLETE in paths or not paths >= _random_states(workers or _workers_seen(paths)):
        return False
    if not all(
        any(part.fullmatch(path) for path in paths) for part in (_OPTIMIZER, _SCHEDULER)
    ) or not _has_weights(paths):
        return False
    if any(re.match(_DEEPSPEED, path) for path in paths) and "latest" not in paths:
        return False
    return all(file.mtime_s <= state.mtime_s for file in _before_state(files))


def _has_weights(paths: Collection[str]) -> bool:
    """Return whether the weights are there: whole, or in parts. An index is none, and without a part beside
    it nothing was written yet.
    """
    if any(_WEIGHTS.fullmatch(path) for path in paths):
        return True
    indexes = [found for path in paths if (found := _INDEX.fullmatch(path))]
    return any(_has_part(paths, found["stem"], found["kind"]) for found in indexes)


def _has_part(paths: Collection[str], stem: str, kind: str) -> bool:
    return any(path.startswith(f"{stem}-") and path.endswith(f".{kind}") for path in paths)


def _before_state(files: Iterable[FileInfo]) -> Iterable[FileInfo]:
    return (file for file in files if _BEFORE_STATE.fullmatch(file.path))


def _workers_seen(paths: Collection[str]) -> int:
    """Return the number of processes, as far as their random states show it."""
    ranks = [int(found[1]) for path in paths if (found := _RANK.fullmatch(path))]
    return 1 + max(ranks, default=0)


def _random_states(workers: int) -> set[str]:
    return {"rng_state.pth"} if workers == 1 else {f"rng_state_{rank}.pth" for rank in range(workers)}


# Progress of the Trainer, parsed from its output.
#
# Its lines of figures do not contain the step, but its progress bar does, and is drawn again right after each
# of them:
#
#     {'loss': '2.105', 'grad_norm': '2.135', 'learning_rate': '4.994e-05', 'epoch': '0.01'}
#       2%|▏         | 12/500 [00:03<02:05,  3.88it/s]
#
# Other bars look the same, such as that of an evaluation, and have another total. So a bar counts only if its
# total is the number of steps: the one of the config, or that of the bar below a line of figures of training.
# Versions before 5 do not quote the numbers.
_BAR = r"^\s*\d+%\|[^|]*\|\s*(?P<step>\d{1,12})/(?P<total>\d{1,12}) \["
_FIGURE = r"'(?P<name>loss|reward|grad_norm|learning_rate)': '?(?P<value>[-+.\w]+)'?"


class HfReader:
    """Reader of the Trainer's output. `steps` is the number of steps if it is known."""

    def __init__(self, steps: int | None) -> None:
        self._total = steps
        self._figures: dict[str, str] = {}

    def read(self, line: str) -> Progress | None:
        text = clean(line)
        if text.lstrip().startswith("{"):
            self._figures |= {found["name"]: found["value"] for found in matches(_FIGURE, text)}
            return None
        bar = next(matches(_BAR, text), None)
        return None if bar is None else self._drawn(int(bar["step"]), int(bar["total"]))

    def _drawn(self, step: int, total: int) -> Progress | None:
        if self._figures:
            self._total = total
        if total != self._total or step == 0:
            return None
        figures, self._figures = self._figures, {}
        loss, reward, norm = (
            true_loss(figures.get("loss"), figures.get("grad_norm")),
            figures.get("reward"),
            figures.get("grad_norm"),
        )
        return Progress(
            step,
            number_of(loss),
            number_of(reward),
            not_finite=names_not_finite({**figures, "loss": loss}),
            grad_norm=number_of(norm),
            learning_rate=number_of(figures.get("learning_rate")),
        )
