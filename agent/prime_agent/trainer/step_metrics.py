"""Loss and reward of each step, kept until a checkpoint of that step is uploaded, which may be many steps
later.

They are also kept on disk, so that an agent that is restarted on the same machine has the values that its
predecessor read. If the disk cannot be written, the values are only kept in memory.
"""

import json
import logging
import math
import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from prime_agent.outputs.metrics_csv import MetricsCsv
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import Progress, trainer_for

STEPS_MAX = 50_000
"""Number of newest steps kept. The file holds at most twice as many."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Metrics:
    """Metrics that the trainer reported for a checkpoint, None if not reported. They go into the manifest and
    decide which checkpoints are the best.
    """

    loss: float | None = None
    reward: float | None = None
    finite: bool | None = None
    """Whether the last loss was a finite number; None: unknown."""
    not_finite_since: int | None = None
    """The step from which on no reported loss was finite; None: the last one was, or it is unknown."""
    learning_rate: float | None = None


NO_METRICS = Metrics()


class StepMetrics:
    """Metrics by step, shared by the thread that reads the trainer and the one that uploads. `path` is the
    file that outlives the process. `table` gets every row that the trainer reported.
    """

    def __init__(self, path: Path, table: MetricsCsv | None = None) -> None:
        self._path, self._csv = path, table
        self._lock = threading.Lock()
        self._by_step: dict[int, Metrics] = {}
        self._lines = 0
        for row in _read(path):
            self._remember(row)
        if self._by_step:
            self._write([])  # without truncated lines and old steps

    def add(self, rows: Iterable[Progress]) -> None:
        """Store these rows; a later value for the same step replaces the earlier one."""
        rows = list(rows)
        if self._csv is not None:
            self._csv.add(rows)
        measured = [
            _measured(row)
            for row in rows
            if row.loss is not None or row.reward is not None or "loss" in row.not_finite
        ]
        if not measured:
            return
        with self._lock:
            for row in measured:
                self._remember(row)
            self._write(measured)

    def at(self, step: int, *, after: int) -> Metrics:
        """Return the newest reported value of each metric for the steps above `after` and up to `step`. What
        is known of whether the loss is finite counts from before, too, if it is not.
        """
        with self._lock:
            before = [
                (made, self._by_step[made]) for made in sorted(self._by_step, reverse=True) if made <= step
            ]
        measured = [metrics for made, metrics in before if made > after]
        newest, since = _first(metrics.loss for metrics in measured), _not_finite_since(before)
        return Metrics(
            newest if since is None else None,
            _first(metrics.reward for metrics in measured),
            finite=False if since is not None else True if newest is not None else None,
            not_finite_since=since,
            learning_rate=_first(metrics.learning_rate for metrics in measured),
        )

    def _remember(self, row: Progress) -> None:
        # stored as the newest again, also if the trainer has gone back
        before = self._by_step.pop(row.step, NO_METRICS)
        loss = row.loss if row.loss is not None else before.loss
        reward = row.reward if row.reward is not None else before.reward
        rate = row.learning_rate if row.learning_rate is not None else before.learning_rate
        self._by_step[row.step] = Metrics(loss, reward, learning_rate=rate)
        if len(self._by_step) > STEPS_MAX:
            del self._by_step[next(iter(self._by_step))]

    def _write(self, rows: list[Progress]) -> None:
        try:
            self._lines += len(rows)
            if not rows or self._lines > 2 * STEPS_MAX:
                self._rewrite()
                return
            with self._path.open("a") as file:
                file.writelines(_line(row.step, row.loss, row.reward, row.learning_rate) for row in rows)
        except OSError as error:
            _log.warning("the metrics of steps cannot be stored on the disk: %s", error)

    def _rewrite(self) -> None:
        fresh = self._path.with_suffix(".new")
        with fresh.open("w") as file:
            file.writelines(
                _line(step, metrics.loss, metrics.reward, metrics.learning_rate)
                for step, metrics in self._by_step.items()
            )
        fresh.replace(self._path)
        self._lines = len(self._by_step)


def _line(step: int, loss: float | None, reward: float | None, learning_rate: float | None) -> str:
    return json.dumps({"step": step, "loss": loss, "reward": reward, "learning_rate": learning_rate}) + "\n"


def _measured(row: Progress) -> Progress:
    """Return the row with a loss of NaN if it was not finite."""
    return replace(row, loss=math.nan) if "loss" in row.not_finite else row


def _not_finite_since(newest_first: list[tuple[int, Metrics]]) -> int | None:
    """Return the step from which on no loss was finite; None if the last one was, or none is known."""
    since = None
    for step, metrics in newest_first:
        if metrics.loss is not None:
            if math.isfinite(metrics.loss):
                break
            since = step
    return since


def _read(path: Path) -> Iterator[Progress]:
    """Yield the rows that an earlier agent wrote; truncated lines are skipped."""
    try:
        lines = path.read_text().splitlines()
    except FileNotFoundError:
        return
    except (OSError, ValueError) as error:
        _log.warning("the metrics of earlier steps cannot be read: %s", error)
        return
    for line in lines:
        try:
            row = json.loads(line)
            yield Progress(row["step"], row["loss"], row["reward"], learning_rate=row.get("learning_rate"))
        except (ValueError, KeyError, TypeError):
            continue


def _first(values: Iterable[float | None]) -> float | None:
    return next((value for value in values if value is not None), None)


READ_BYTES_MAX = 32 * 2**20
"""Bytes read from the end of the metrics file. Few of them are kept, because some trainers write hundreds of
figures every few seconds."""
KEPT_CHARS_MAX = 2**20


def stored_metrics(work: Path, spec: RunSpec) -> str:
    """Return the last lines of the trainer's metrics file, reduced to what is kept as evidence of where the
    time of a step goes; "" if the trainer has no such file. Raises OSError."""
    progress = spec.trainer.progress
    if progress.file is None or progress.kind != "jsonl" or not (work / progress.file).exists():
        return ""
    trainer = trainer_for(spec)
    rows = [row for line in _tail(work / progress.file).splitlines() if (row := trainer.kept_row(spec, line))]
    kept = "".join(f"{row}\n" for row in rows)
    return kept if len(kept) <= KEPT_CHARS_MAX else kept[-KEPT_CHARS_MAX:].partition("\n")[2]


def _tail(path: Path) -> str:
    with path.open("rb") as file:
        size = file.seek(0, 2)
        file.seek(max(0, size - READ_BYTES_MAX))
        return file.read(READ_BYTES_MAX).decode(errors="replace")
