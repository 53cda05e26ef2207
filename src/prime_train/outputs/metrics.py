"""Locate a run's metrics: on the disk of its machine, here or elsewhere, or in the bucket, where an ending
attempt leaves them, and to which every attempt streams them while it trains.
"""

import json
import math
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from prime_train.app.machines import Machines
from prime_train.app.run_access import RunFiles
from prime_train.buckets.keys import METRICS_EVIDENCE, METRICS_STREAM, evidence_key, stream_prefix
from prime_train.buckets.port import Bucket, Stat, small_object
from prime_train.errors import TemporaryError, UsageError
from prime_train.exit_codes import Exit
from prime_train.outputs.metric_rows import metric_rows
from prime_train.outputs.stored_content import end_of, lines_of
from prime_train.runs.run import Attempt, Run
from prime_train.runs.store import RunRecord
from prime_train.spec.spec import ProgressSpec, RunSpec
from prime_train.trainers.of_spec import LineReader, Progress, trainer_for
from prime_train.trainers.progress import JsonReader

READ_BYTES_MAX = 64 * 2**20


@dataclass(frozen=True)
class MetricsSource:
    """The lines of a metrics file, and the name of the place they were read from. `is_streamed`: an agent
    wrote the rows, one form for all trainers; otherwise they are as the trainer wrote them.
    """

    name: str
    lines: Iterable[str]
    is_streamed: bool = False

    def reader(self, spec: RunSpec) -> LineReader:
        """Return a new reader of the lines."""
        return JsonReader(ProgressSpec()) if self.is_streamed else trainer_for(spec).reader(spec)


def of_file(path: Path) -> MetricsSource:
    """Read a metrics file, at most the last `READ_BYTES_MAX` bytes. Raises UsageError if it cannot be
    read.
    """
    try:
        return MetricsSource(str(path), _tail(path))
    except OSError as error:
        raise UsageError(
            f"{path}: {error.strerror}", fix="give the path of the run's metrics.jsonl", code=Exit.USAGE
        ) from error


def of_run(
    files: RunFiles, record: RunRecord, warn: Callable[[str], None], *, bytes_max: int = READ_BYTES_MAX
) -> MetricsSource | None:
    """Return the run's newest metrics, or None if there are none. `warn` is called with the reason if a
    machine could not be read. Of a long file, the last `bytes_max` bytes are read.
    """
    run = record.run
    return _elsewhere(files.machines, run, warn, bytes_max) or left_by(files, run, bytes_max=bytes_max)


def left_by(files: RunFiles, run: Run, *, bytes_max: int = READ_BYTES_MAX) -> MetricsSource | None:
    """Return what lies of the run's metrics on this machine's disk or else in the bucket; None if nothing
    does. A run that is over has none elsewhere.
    """
    file, disk = run.spec.trainer.progress.file, files.machines.disk(run)
    if disk is not None and file is not None and (disk / "work" / file).is_file():
        return MetricsSource(str(disk / "work" / file), _tail(disk / "work" / file, bytes_max))
    # The newest attempt that left anything: the end of the trainer's own file says more than what was
    # streamed meanwhile.
    bucket = files.bucket()
    attempts = reversed(run.attempts)
    found = (
        _evidence(bucket, run, attempt) or _streamed(bucket, run, attempt, bytes_max) for attempt in attempts
    )
    return next((source for source in found if source is not None), None)


def progress_in(run: Run, source: MetricsSource) -> list[Progress]:
    """Return the progress that these lines report, in their order. A step that was trained twice appears
    twice.
    """
    reader = source.reader(run.spec)
    return [made for line in source.lines if (made := reader.read(line)) is not None]


def _elsewhere(
    machines: Machines, run: Run, warn: Callable[[str], None], bytes_max: int
) -> MetricsSource | None:
    """Return the metrics on the run's machine, or None. If the machine cannot be reached, `warn` is called
    and the search continues in the bucket.
    """
    file, unknown = run.spec.trainer.progress.file, machines.why_unknown(run)
    if unknown:
        warn(unknown)
    if file is None or unknown:
        return None
    try:
        with machines.reached(run) as machine:
            data = machine.end_of(f"work/{file}", bytes_max=bytes_max) if machine is not None else b""
    except TemporaryError as error:
        warn(str(error))
        return None
    return (
        MetricsSource(f"the machine of attempt {run.attempt}", data.decode(errors="replace").splitlines())
        if data
        else None
    )


def _evidence(bucket: Bucket, run: Run, attempt: Attempt) -> MetricsSource | None:
    key = evidence_key(run.run_id, attempt.number, METRICS_EVIDENCE)
    content = small_object(bucket, key)
    return (
        MetricsSource(key, content.data.decode(errors="replace").splitlines())
        if content is not None
        else None
    )


def _streamed(bucket: Bucket, run: Run, attempt: Attempt, bytes_max: int) -> MetricsSource | None:
    prefix = stream_prefix(run.run_id, attempt.number, attempt.identity, METRICS_STREAM)
    # The time at which an agent read a row says little of when its step ended, so it is left out; a time in
    # the row itself is kept.
    found = metric_rows(_table(bucket, list(bucket.list(prefix)), bytes_max))
    rows = [
        json.dumps({**row.values, **dict.fromkeys(row.not_finite, math.nan), "step": row.step})
        for row in found
    ]
    return MetricsSource(prefix.removesuffix("/"), rows, is_streamed=True) if rows else None


def _table(bucket: Bucket, pieces: Sequence[Stat], bytes_max: int) -> Iterable[str]:
    """Return the lines, of a long table only the last ones, and the first header: columns are only ever added
    behind those of it.
    """
    if sum(piece.size for piece in pieces) <= bytes_max:
        return lines_of(bucket, pieces)
    header = next(lines_of(bucket, pieces[:1]), "")
    return [header, *end_of(bucket, pieces, bytes_max).split("\n")[1:]]


def _tail(path: Path, bytes_max: int = READ_BYTES_MAX) -> list[str]:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - bytes_max))
        return file.read(bytes_max).decode(errors="replace").splitlines()
