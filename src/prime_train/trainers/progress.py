"""Progress parsed from a trainer's output. For any line, the result is a `Progress` or None, never an
exception.
"""

import csv
import json
import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Protocol

from prime_train.spec.spec import ProgressSpec
from prime_train.text.finite import number_of
from prime_train.trainers.checkpoint_folders import STEP_MAX
from prime_train.trainers.log_lines import clean
from prime_train.trainers.patterns import matches

OTHERS_MAX = 50
"""Number of further numbers that are read from one row; some trainers write hundreds of them."""
NAME_CHARS_MAX = 100
_ANY = ProgressSpec()
_BARE = re.compile(r"(?<=[:\[,\s])(?P<sign>[-+]?)(?P<word>nan|inf|infinity)(?=[\s,}\]])", re.IGNORECASE)
"""A number that is not finite, as other writers than Python's own put it into a line of JSON."""


@dataclass(frozen=True)
class Progress:
    """A completed step. `loss` and `reward` are None if they are absent or not finite. `others`: further
    finite numbers of the same row, by name. `not_finite`: the names of figures that the trainer reported as
    NaN or infinite, `loss` and `reward` by these names. A loss of 0 beside a norm of the gradients that is
    not finite counts as not finite, too: some trainers log such a loss instead of NaN.
    """

    step: int
    loss: float | None = None
    reward: float | None = None
    others: Mapping[str, float] = field(default_factory=dict, compare=False)
    not_finite: frozenset[str] = field(default=frozenset(), compare=False)
    grad_norm: float | None = field(default=None, compare=False)
    learning_rate: float | None = field(default=None, compare=False)


class LineReader(Protocol):
    def read(self, line: str) -> Progress | None:
        """Return the progress that this line reports, or None."""


def reader_for(spec: ProgressSpec, *, epochs: bool = False) -> LineReader:
    """Return a new reader of the kind that `spec` names. `epochs`: the steps of the run are epochs, so
    batches within one do not count.
    """
    match spec.kind:
        case "jsonl":
            return JsonReader(spec)
        case "csv":
            return CsvReader(spec)
        case "regex":
            return RegexReader(spec, epochs=epochs)


class JsonReader:
    """Reader of lines that each hold one JSON object."""

    def __init__(self, spec: ProgressSpec) -> None:
        self._spec = spec

    def read(self, line: str) -> Progress | None:
        text = clean(line).strip()
        if not text.startswith("{"):
            return None
        return _progress(_parsed(text) or _parsed(_BARE.sub(_as_json, text)), self._spec)


def _parsed(text: str) -> object:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _as_json(found: re.Match[str]) -> str:
    """Return a number that JSON does not have as Python's reader takes it."""
    sign = "-" if found["sign"] == "-" else ""
    return "NaN" if found["word"].lower() == "nan" else f"{sign}Infinity"


class CsvReader:
    """Reader of CSV rows. A row with the name of the step's column is a header, wherever it occurs, because a
    restarted trainer writes it again.
    """

    def __init__(self, spec: ProgressSpec = _ANY) -> None:
        self._spec = spec
        self._header: list[str] = []

    def read(self, line: str) -> Progress | None:
        return _progress(self.row(line), self._spec)

    def row(self, line: str) -> dict[str, str] | None:
        """Return the cells of a row by the names of their columns, or None for a header and for what is no
        row.
        """
        try:
            cells = [cell.strip() for cell in next(csv.reader([clean(line)]), [])]
        except csv.Error:
            return None
        if self._spec.step in cells:
            self._header = cells
            return None
        if not cells or len(cells) != len(self._header):
            return None
        return dict(zip(self._header, cells, strict=True))


class RegexReader:
    """Reader that uses the last of the examined matches in a line, because a progress bar overwrites itself
    many times in one line.
    """

    def __init__(self, spec: ProgressSpec, *, epochs: bool = False) -> None:
        self._pattern, self._first, self._epochs = spec.pattern, spec.first, epochs

    def read(self, line: str) -> Progress | None:
        last = None
        for found in matches(self._pattern, clean(line)) if self._pattern else ():
            last = found
        if last is None:
            return None
        groups = {
            name: value.replace(",", "") for name, value in last.groupdict().items() if value is not None
        }
        if "step" not in groups and "epoch" in groups:
            groups = _counted(groups, epochs=self._epochs, first=self._first)
        return _progress(groups, ProgressSpec(first=self._first))


def _progress(values: object, names: ProgressSpec) -> Progress | None:
    if not isinstance(values, Mapping):
        return None
    step = step_of(values.get(names.step))
    if step is None:
        return None
    known = {names.step, names.loss, names.reward}
    norm = values.get(names.grad_norm)
    loss, reward = true_loss(values.get(names.loss), norm), values.get(names.reward)
    lost = names_not_finite({"loss": loss, "reward": reward}) | names_not_finite(values, known)
    rate = number_of(values.get(names.learning_rate))
    return Progress(
        step - names.first + 1,
        number_of(loss),
        number_of(reward),
        others_of(values, known),
        lost,
        grad_norm=number_of(norm),
        learning_rate=rate,
    )


def true_loss(loss: object, grad_norm: object) -> object:
    """Return the loss as it was reported; NaN for a 0 that stands in for one, as the norm of the gradients
    tells.
    """
    return math.nan if number_of(loss) == 0 and is_not_finite(grad_norm) else loss


def _counted(groups: Mapping[str, str], *, epochs: bool, first: int) -> dict[str, str]:
    """Return the groups with the step: the epoch, or the batch counted on over all epochs if it and their
    number are known.
    """
    numbers = [step_of(groups.get(name)) for name in ("epoch", "batch", "batches")]
    if epochs or any(number is None for number in numbers):
        return {name: value for name, value in groups.items() if name not in ("batch", "batches")} | {
            "step": groups["epoch"]
        }
    epoch, batch, batches = (number or 0 for number in numbers)
    return {name: value for name, value in groups.items() if name != "batch"} | {
        "step": str(max(0, epoch - first) * batches + batch)
    }


def others_of(values: Mapping[str, object], known: Collection[str] = ()) -> dict[str, float]:
    """Return the finite numbers among the values, by name, but for those that are known, and no more than
    `OTHERS_MAX`.
    """
    found = (
        (name, number_of(value))
        for name, value in values.items()
        if isinstance(name, str) and name not in known
    )
    named = (
        (name, number)
        for name, number in found
        if number is not None and 0 < len(name) <= NAME_CHARS_MAX and name.isprintable()
    )
    return dict(islice(named, OTHERS_MAX))


def names_not_finite(values: Mapping[str, object], known: Collection[str] = ()) -> frozenset[str]:
    """Return the names of the values that are NaN or infinite, but for those that are known, and no more than
    `OTHERS_MAX`.
    """
    found = (
        name
        for name, value in values.items()
        if isinstance(name, str) and name not in known and is_not_finite(value)
    )
    return frozenset(
        islice((name for name in found if 0 < len(name) <= NAME_CHARS_MAX and name.isprintable()), OTHERS_MAX)
    )


def is_not_finite(value: object) -> bool:
    """Return whether the value is a number that is not finite, such as NaN."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return False
    try:
        return not math.isfinite(float(value))
    except ValueError:
        return False
    except OverflowError:  # an integer that is too large for a float
        return True


def step_of(value: object) -> int | None:
    """Return a whole number from 0 to `STEP_MAX`, or None for everything else, including NaN."""
    if isinstance(value, str) and value.strip().isdecimal() and len(value) <= 20:
        value = int(value)
    number = value if isinstance(value, int) and not isinstance(value, bool) else number_of(value)
    if number is None or not 0 <= number <= STEP_MAX or number != int(number):
        return None
    return int(number)
