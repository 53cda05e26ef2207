"""Reads the metrics that an agent stores as CSV. The file was written on a rented machine, so rows that
cannot be parsed are left out.
"""

import csv
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from prime_train.spec.limits import STEP_MAX

STEP_COLUMN, TIME_COLUMN = "step", "time_s"
NAME_CHARS_MAX = 200
COLUMNS_MAX = 1000


@dataclass(frozen=True)
class MetricRow:
    """What the trainer reported of one step at `time_s`, in seconds since 1970. A step that was trained twice
    appears twice. `values` are finite; `not_finite`: the names of figures that were reported as NaN or
    infinite.
    """

    step: int
    time_s: float
    values: dict[str, float]
    not_finite: tuple[str, ...] = ()


def metric_rows(lines: Iterable[str]) -> Iterator[MetricRow]:
    """Yield the rows, in their order. A header may follow anywhere, because an agent adds columns as the
    trainer reports new figures.
    """
    columns: list[str] = []
    for line in lines:
        cells = _cells(line)
        if cells[:2] == [STEP_COLUMN, TIME_COLUMN]:
            columns = cells[:COLUMNS_MAX]
        elif (row := _row(columns, cells)) is not None:
            yield row


def _cells(line: str) -> list[str]:
    try:
        return next(csv.reader([line]), [])
    except csv.Error:
        return []


def _row(columns: list[str], cells: list[str]) -> MetricRow | None:
    if (
        len(columns) < 2
        or len(cells) < 2
        or not (cells[0].isascii() and cells[0].isdigit() and len(cells[0]) <= len(str(STEP_MAX)))
    ):
        return None
    time_s = _number(cells[1])
    named = [
        (name, number)
        for name, cell in zip(columns[2:], cells[2:], strict=False)
        if (number := _number(cell)) is not None
    ]
    values = {
        name: number for name, number in named if name[:NAME_CHARS_MAX] == name and math.isfinite(number)
    }
    lost = tuple(
        name for name, number in named if name[:NAME_CHARS_MAX] == name and not math.isfinite(number)
    )
    return (
        MetricRow(int(cells[0]), time_s, values, lost)
        if time_s is not None and math.isfinite(time_s)
        else None
    )


def _number(cell: str) -> float | None:
    try:
        return float(cell)
    except ValueError:
        return None
