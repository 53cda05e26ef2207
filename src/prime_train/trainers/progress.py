"""Progress out of the lines a trainer writes. Whatever the line, the answer is a `Progress` or None, never an exception."""

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
    """A step that was made. `loss` and `reward` are None where there is none, or it is no finite number."""

    step: int
    loss: float | None = None
    reward: float | None = None


class LineReader(Protocol):
    def read(self, line: str) -> Progress | None:
        """The progress this line tells of, or None."""


def reader_for(spec: ProgressSpec) -> LineReader:
    """A fresh reader of the kind that `spec` names."""
    match spec.kind:
        case "jsonl":
            return JsonReader(spec)
        case "csv":
            return CsvReader(spec)
        case "regex":
            return RegexReader(spec)


class JsonReader:
    """One JSON object a line."""

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
    """A header, then rows. A row that names the step's column is a header, wherever it stands: a restarted trainer writes it again."""

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
    """The last match in a line counts, of as many as are looked at: a progress bar draws many over one another."""

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
    """A whole number from 0 to `STEP_MAX`; everything else, NaN included, is no step."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= 20:
        value = int(value)
    number = value if isinstance(value, int) and not isinstance(value, bool) else _number(value)
    if number is None or not 0 <= number <= STEP_MAX or number != int(number):
        return None
    return int(number)


def _number(value: object) -> float | None:
    """A finite float, or None."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return None
    try:
        number = float(value)
    except (ValueError, OverflowError):
        return None
    return number if math.isfinite(number) else None
