"""Files that a trainer appends rows to, such as `results/eval.csv`: which steps their rows belong to, and
what of them belongs to a step.

A row is a line. The step of a row is the value of the first of `STEP_NAMES` that the header of a table, or
the object on a line, has. Of a run that counts epochs, rows are told by their epoch instead, because their
steps are of another unit.
"""

import csv
import json
import math
from collections.abc import Callable, Sequence
from pathlib import PurePosixPath

STEP_NAMES = ("step", "global_step", "train_step", "steps", "iteration", "iter", "_step")
EPOCH_NAMES = ("epoch", "epochs")
ROWS_BYTES_MAX = 64 * 2**20
"""Size up to which the rows of a file are read."""

Steps = list[int | None]
"""The step of each line; None for a line that is of no step, such as a header."""


def has_rows(path: str, size: int) -> bool:
    """Return whether the file is one of rows, by its name and size."""
    return size <= ROWS_BYTES_MAX and PurePosixPath(path).suffix.lower() in _READERS


def steps_of(path: str, data: bytes, names: Sequence[str] = STEP_NAMES) -> Steps | None:
    """Return the step of each line of a file, as `data.splitlines()` divides it; None if they cannot be told.
    `names`: the names that the column of steps may have.
    """
    read = _READERS.get(PurePosixPath(path).suffix.lower())
    try:
        return read(data.decode(), names) if read is not None else None
    except (ValueError, csv.Error, RecursionError):
        return None


def up_to(path: str, data: bytes, step: int, *, epoch: int | None = None) -> bytes | None:
    """Return the file without the rows of steps after `step`; None if the steps of its rows cannot be told.
    `epoch`: the trainer's number of the last epoch, after which rows are left out instead, if the run counts
    epochs. A last line without an end is left out, because it was read while it was written.
    """
    data = data[: data.rfind(b"\n") + 1]
    steps = steps_of(path, data, STEP_NAMES if epoch is None else EPOCH_NAMES)
    if steps is None:
        return None
    last, lines = step if epoch is None else epoch, data.decode().splitlines(keepends=True)
    return "".join(line for line, of in zip(lines, steps, strict=True) if of is None or of <= last).encode()


def loses_rows(path: str, before: bytes, after: bytes) -> bool:
    """Return whether `after`, which would take the place of `before`, lacks rows that it does not replace:
    rows of steps before its own first one or, where the steps of rows cannot be told, any, if it does not go
    on where `before` began and is smaller.
    """
    old, new = steps_of(path, before), steps_of(path, after)
    if old is not None and new is not None:
        first = min((step for step in new if step is not None), default=None)
        return any(step is not None and (first is None or step < first) for step in old)
    return len(after) < len(before) and not before.startswith(after) and _shared_lines(before, after) < 2


def _shared_lines(one: bytes, other: bytes) -> int:
    count = 0
    for first, second in zip(one.splitlines(), other.splitlines(), strict=False):
        if first != second:
            break
        count += 1
    return count


def _table(separator: str) -> Callable[[str, Sequence[str]], Steps | None]:
    def read(text: str, names: Sequence[str]) -> Steps | None:
        lines = text.splitlines()
        rows = list(csv.reader(lines, delimiter=separator, strict=True))
        if len(rows) != len(lines) or not rows:
            return None  # a value goes over several lines, or the file is empty
        place = next((rows[0].index(name) for name in names if name in rows[0]), None)
        if place is None:
            return None
        steps: Steps = []
        for row in rows:
            is_header = row == rows[0] or not row
            steps.append(None if is_header else _whole(row[place] if place < len(row) else ""))
        return steps

    return read


def _objects(text: str, names: Sequence[str]) -> Steps | None:
    steps: Steps = []
    for line in text.splitlines():
        if not line.strip():
            steps.append(None)
            continue
        row = json.loads(line)
        name = next((name for name in names if isinstance(row, dict) and name in row), None)
        if name is None:
            return None
        steps.append(_whole(row[name]))
    return steps or None


def _whole(value: object) -> int:
    """Return the step as a number. Raises ValueError if it is none, such as an infinite one, or one that no
    float holds.
    """
    try:
        number = float(value) if isinstance(value, str | int | float) else math.nan
    except OverflowError:
        number = math.inf
    if not math.isfinite(number) or number != int(number):
        raise ValueError("a step is a whole number")
    return int(number)


_READERS: dict[str, Callable[[str, Sequence[str]], Steps | None]] = {
    ".csv": _table(","),
    ".tsv": _table("\t"),
    ".jsonl": _objects,
    ".ndjson": _objects,
    ".txt": lambda text, names: None,
    ".log": lambda text, names: None,
}
