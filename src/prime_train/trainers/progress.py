"""Progress parsed from a trainer's output. For any line, the result is a `Progress` or None, never an exception."""

import csv
import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from prime_train.core.spec import ProgressSpec
from prime_train.trainers.folders import STEP_MAX
from prime_train.trainers.lines import clean
from prime_train.trainers.patterns import matches


@dataclass(frozen=True)
class Progress:
    """A completed step. `loss` and `reward` are None if they are absent or not finite."""

    step: int
    loss: float | None = None
    reward: float | None = None


class LineReader(Protocol):
    def read(self, line: str) -> Progress | None:
        """Return the progress that this line reports, or None."""


def reader_for(spec: ProgressSpec) -> LineReader:
    """Return a new reader of the kind that `spec` names."""
    match spec.kind:
        case "jsonl":
            return JsonReader(spec)
        case "csv":
            return CsvReader(spec)
        case "regex":
            return RegexReader(spec)


class JsonReader:
    """Reader of lines that each hold one JSON object."""

    def __init__(self, spec: ProgressSpec) -> None:
        self._spec = spec

    def read(self, line: str) -> Progress | None:
        text = clean(line).strip()
        if not text.startswith("{"):
            return None
        try:
            found = json.loads(text)
        except (ValueError, RecursionError):
            return None
        return _progress(found, self._spec)


class CsvReader:
    """Reader of CSV rows. A row with the name of the step's column is a header, wherever it occurs, because a restarted trainer writes it
    again."""

    def __init__(self, spec: ProgressSpec) -> None:
        self._spec = spec
        self._header: list[str] = []

    def read(self, line: str) -> Progress | None:
        try:
            cells = [cell.strip() for cell in next(csv.reader([clean(line)]), [])]
        except csv.Error:
            return None
        if self._spec.step in cells:
            self._header = cells
            return None
        if not cells or len(cells) != len(self._header):
            return None
        return _progress(dict(zip(self._header, cells, strict=True)), self._spec)


class RegexReader:
    """Reader that uses the last of the examined matches in a line, because a progress bar overwrites itself many times in one line."""

    def __init__(self, spec: ProgressSpec) -> None:
        self._pattern = spec.pattern

    def read(self, line: str) -> Progress | None:
        last = None
        for found in matches(self._pattern, clean(line)) if self._pattern else ():
            last = found
        if last is None:
            return None
        groups = {name: value.replace(",", "") for name, value in last.groupdict().items() if value is not None}
        return _progress(groups, ProgressSpec())


def _progress(values: object, names: ProgressSpec) -> Progress | None:
    if not isinstance(values, Mapping):
        return None
    step = _step(values.get(names.step))
    if step is None:
        return None
    return Progress(step, _number(values.get(names.loss)), _number(values.get(names.reward)))


def _step(value: object) -> int | None:
    """Return a whole number from 0 to `STEP_MAX`, or None for everything else, including NaN."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= 20:
        value = int(value)
    number = value if isinstance(value, int) and not isinstance(value, bool) else _number(value)
    if number is None or not 0 <= number <= STEP_MAX or number != int(number):
        return None
    return int(number)


def _number(value: object) -> float | None:
    """Return a finite float, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
