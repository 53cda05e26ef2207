"""Trainer `lightning`: scripts that train with Lightning's Trainer.

Its checkpoints are single files such as `epoch=1-step=500.ckpt`, or folders of that name with FSDP. The
script chooses the names; they have to contain the step. Each is gathered in a folder of its own. The script
has to pass the checkpoint on, as `trainer.fit(model, ckpt_path=...)`; one that does not starts over in
silence, which the agent sees in its first step.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from pathlib import PurePosixPath

from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec
from prime_train.text.finite import number_of
from prime_train.trainers.checkpoint_folders import FileInfo
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.lightning.conventions import CHECKPOINT, LOGS, saved_in
from prime_train.trainers.log_rules import EvidenceStrength, LogRule
from prime_train.trainers.progress import (
    CsvReader,
    LineReader,
    Progress,
    is_not_finite,
    names_not_finite,
    others_of,
    step_of,
    true_loss,
)
from prime_train.trainers.scattered_checkpoints import Gathering, Scattered
from prime_train.trainers.script import ScriptTrainer
from prime_train.trainers.stale_outputs import Move, StaleOutputs

_NAME = re.compile(r"(?:.*[^A-Za-z])?step[=_-]?(\d{1,12})(?!\d).*\.ckpt")
_SHARDED = ".metadata"
_SHARDED_LAST = "meta.pt"
"""The file that Lightning writes last in a folder of shards."""
_LOSSES = ("train_loss", "train_loss_step", "loss_step", "train/loss", "train/loss_step")
_RATE = "lr-"
"""What the names of columns begin with that Lightning's monitor of learning rates writes."""

RULES = (
    # Versions up to 2.6 end with exit code 0 on SIGTERM, as a finished training does.
    LogRule(r"Received SIGTERM: \d+", Cause.STOPPED_EARLY, strength=EvidenceStrength.CONSEQUENCE),
    LogRule(r"Trying to restore .* state but checkpoint contains only the model", Cause.BAD_CONFIG),
)


class LightningTrainer(ScriptTrainer):
    def reader(self, spec: RunSpec) -> LineReader:
        """Return a reader of the CSV logger's file, unless the config says how progress is read."""
        is_csv = (spec.trainer.progress.file or "").endswith(".csv") and spec.trainer.progress.kind != "regex"
        return LightningReader(spec.trainer.progress.loss) if is_csv else super().reader(spec)

    def gathering(self, spec: RunSpec) -> Gathering:
        return Gathering(saved_in(spec), _checkpoints, lambda path: path.parts[0].endswith(".ckpt"))

    def is_complete(self, spec: RunSpec, files: Sequence[FileInfo], now_s: int) -> bool:
        paths = {file.path for file in files}
        is_sharded = f"{CHECKPOINT}/{_SHARDED}" in paths and f"{CHECKPOINT}/{_SHARDED_LAST}" in paths
        return (CHECKPOINT in paths or is_sharded) and super().is_complete(spec, files, now_s)

    def known_errors(self) -> tuple[LogRule, ...]:
        return (*RULES, *BUILT_IN)

    def stale_outputs(self, spec: RunSpec) -> StaleOutputs:
        """Return the logs of earlier launches, beside which the CSV logger would number its folder
        differently.
        """
        return StaleOutputs(LOGS, _earlier_logs)


class LightningReader:
    """Reader of the CSV logger's file, whose steps count from 0. `loss` is the column of the loss, if it has
    not one of the usual names.
    """

    def __init__(self, loss: str) -> None:
        self._rows = CsvReader()
        self._losses = (loss, *_LOSSES)

    def read(self, line: str) -> Progress | None:
        row = self._rows.row(line)
        step = step_of(row.get("step")) if row is not None else None
        if row is None or step is None:
            return None
        losses = (row.get(name) for name in self._losses)
        found = next((loss for loss in losses if number_of(loss) is not None or is_not_finite(loss)), None)
        norm = row.get("grad_norm")
        loss = true_loss(found, norm)
        lost = names_not_finite({"loss": loss}) | names_not_finite(row, ("step",))
        rate = number_of(
            next((value for name, value in row.items() if name.startswith(_RATE) and value), None)
        )
        return Progress(
            step + 1,
            number_of(loss),
            others=others_of(row, ("step",)),
            not_finite=lost,
            grad_norm=number_of(norm),
            learning_rate=rate,
        )


def _checkpoints(files: Sequence[FileInfo], read: Callable[[str], bytes]) -> Iterable[Scattered]:
    """Return the checkpoints whose names contain the step; of several of one step the one that was written
    last.
    """
    newest: dict[int, tuple[float, Mapping[str, str]]] = {}
    for name, parts in _by_name(files).items():
        found = _NAME.fullmatch(name)
        written_s = max(file.mtime_s for file in parts)
        if found is not None and written_s >= newest.get(int(found[1]), (0.0, {}))[0]:
            newest[int(found[1])] = (
                written_s,
                {
                    str(PurePosixPath(CHECKPOINT, *PurePosixPath(one.path).parts[1:])): one.path
                    for one in parts
                },
            )
    return [Scattered(step, newest[step][1]) for step in sorted(newest)]


def _by_name(files: Iterable[FileInfo]) -> Mapping[str, Sequence[FileInfo]]:
    """Return the files by the name of the file or folder that they are, or are in."""
    found: dict[str, list[FileInfo]] = {}
    for file in files:
        found.setdefault(PurePosixPath(file.path).parts[0], []).append(file)
    return found


def _earlier_logs(listing: Collection[str], resume_step: int | None, *, attempt: int) -> Sequence[Move]:
    return [
        Move(name, f"before-attempt-{attempt}/{name}")
        for name in sorted(listing)
        if re.fullmatch(r"version_\d+", name)
    ]
