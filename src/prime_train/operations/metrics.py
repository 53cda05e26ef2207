"""Locate a run's metrics: on the disk of its machine, here or elsewhere, or in the bucket, where an ending attempt leaves them."""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from prime_train.control_plane.wiring.home import Home
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit
from prime_train.core.keys import METRICS_EVIDENCE, evidence_key
from prime_train.core.run import Run
from prime_train.operations.machine_access import disk_here, file_of, reached, why_unknown
from prime_train.ports import RunRecord, TemporaryError
from prime_train.trainers import Progress, trainer_for

READ_BYTES_MAX = 64 * 2**20


@dataclass(frozen=True)
class Source:
    """The lines of a metrics file, and the name of the place they were read from."""

    name: str
    lines: Iterable[str]


def of_file(path: Path) -> Source:
    """Read a metrics file, at most the last `READ_BYTES_MAX` bytes. Raises UsageError if it cannot be read."""
    try:
        return Source(str(path), _tail(path))
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}", fix="give the path of the run's metrics.jsonl", code=Exit.USAGE) from error


def of_run(
    home: Home, record: RunRecord, warn: Callable[[str], None], *, asks_machine: bool = True, bytes_max: int = READ_BYTES_MAX
) -> Source | None:
    """Return the run's newest metrics, or None if there are none. `warn` is called with the reason if a machine could not be read. A rented
    machine is logged in to only with `asks_machine`. Of a long file on a machine, the last `bytes_max` bytes are read."""
    there = _on_disk(home, record.run, bytes_max)
    if there is None and asks_machine:
        there = _elsewhere(home, record.run, warn, bytes_max)
    return there or _stored(home, record.run)


def progress_in(run: Run, lines: Iterable[str]) -> list[Progress]:
    """Return the progress that these lines of the run's trainer report, in their order. A step that was trained twice appears twice."""
    reader = trainer_for(run.spec).reader(run.spec)
    return [made for line in lines if (made := reader.read(line)) is not None]


def _on_disk(home: Home, run: Run, bytes_max: int) -> Source | None:
    file = run.spec.trainer.progress.file
    disk = disk_here(home, run)
    if disk is None or file is None or not (disk / "work" / file).is_file():
        return None
    return Source(str(disk / "work" / file), _tail(disk / "work" / file, bytes_max))


def _elsewhere(home: Home, run: Run, warn: Callable[[str], None], bytes_max: int) -> Source | None:
    """Return the metrics on the run's machine, or None. If the machine cannot be reached, `warn` is called and the search continues in the
    bucket."""
    file, unknown = run.spec.trainer.progress.file, why_unknown(home, run)
    if unknown:
        warn(unknown)
    if file is None or unknown:
        return None
    try:
        with reached(home, run) as machine:
            data = file_of(machine, f"work/{file}", bytes_max=bytes_max) if machine is not None else b""
    except TemporaryError as error:
        warn(str(error))
        return None
    return Source(f"the machine of attempt {run.attempt}", data.decode(errors="replace").splitlines()) if data else None


def _stored(home: Home, run: Run) -> Source | None:
    bucket = home.bucket()
    for attempt in reversed(run.attempts):
        key = evidence_key(run.run_id, attempt.number, METRICS_EVIDENCE)
        content = bucket.get(key)
        if content is not None:
            return Source(key, content.data.decode(errors="replace").splitlines())
    return None


def _tail(path: Path, bytes_max: int = READ_BYTES_MAX) -> list[str]:
    with path.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - bytes_max))
        return file.read(bytes_max).decode(errors="replace").splitlines()
