"""The lines under `require` in a config, such as `eval/accuracy >= base - 0.01`: what the results of a run
have to be.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from prime_train.text.nearest import nearest
from prime_train.text.safe import is_safe_character

NAME_CHARS_MAX = 100


def violation_of_name(name: str) -> str:
    """Return why `name` cannot be the name of a number, or ""."""
    if not 0 < len(name) <= NAME_CHARS_MAX:
        return f"a name has 1 to {NAME_CHARS_MAX} characters"
    if name != name.strip() or not all(map(is_safe_character, name)):
        return "a name has no control characters, and no blanks at its ends"
    return ""


BASE = "base"
LINE_CHARS_MAX = 200
FORM = "write a number's name, >=, <=, > or <, and a value such as 0.8, base, base - 0.01 or base * 1.02"
_LINE = re.compile(r"(?P<name>[^<>=!]*)(?P<operator>[<>=!]+)(?P<limit>.*)")
_NUMBER = r"[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?"
_LIMIT = re.compile(
    rf"(?P<number>{_NUMBER})|(?P<base>[A-Za-z_]\w*)(?:\s*(?P<change>[-+*/])\s*(?P<amount>{_NUMBER}))?"
)
_OPERATORS: dict[str, Callable[[float, float], bool]] = {
    ">=": lambda seen, limit: seen >= limit,
    "<=": lambda seen, limit: seen <= limit,
    ">": lambda seen, limit: seen > limit,
    "<": lambda seen, limit: seen < limit,
}
_CHANGES: dict[str, Callable[[float, float], float]] = {
    "+": lambda base, amount: base + amount,
    "-": lambda base, amount: base - amount,
    "*": lambda base, amount: base * amount,
    "/": lambda base, amount: base / amount,
}


@dataclass(frozen=True)
class Requirement:
    """A line. The limit is `amount`, or with `of_base` the number of the base run, changed by `amount` if
    there is a `change`.
    """

    text: str
    name: str
    operator: str
    of_base: bool
    change: str
    amount: float

    def limit(self, base: float) -> float:
        """Return the limit, for the number `base` of the base run."""
        if not self.of_base:
            return self.amount
        return _CHANGES[self.change](base, self.amount) if self.change else base


def parse_requirement(text: str) -> Requirement:
    """Return the line. Raises ValueError with what is wrong with it, and what to write instead."""
    if len(text) > LINE_CHARS_MAX:
        raise ValueError(f"a requirement has at most {LINE_CHARS_MAX} characters")
    line = _LINE.fullmatch(text)
    if line is None:
        raise ValueError(f"{text!r} compares nothing; {FORM}")
    name, operator, limit = line["name"].strip(), line["operator"], line["limit"].strip()
    if why := violation_of_name(name):
        raise ValueError(f"{text!r} names no number ({why}); {FORM}")
    if operator not in _OPERATORS:
        instead = {"=>": ">=", "=<": "<="}.get(operator, ">= or <=")
        raise ValueError(f"{text!r}: {operator} is not a comparison that can be required; use {instead}")
    found = _LIMIT.fullmatch(limit)
    if found is None:
        raise ValueError(f"{text!r}: {limit or 'nothing'} is not a value to compare with; {FORM}")
    if found["number"] is not None:
        return Requirement(
            text, name, operator, of_base=False, change="", amount=_finite(text, found["number"])
        )
    if found["base"] != BASE:
        close = f"; did you mean {BASE}?" if nearest(found["base"], [BASE]) else f"; {FORM}"
        raise ValueError(f"{text!r}: {found['base']} is not a value to compare with{close}")
    amount = _finite(text, found["amount"]) if found["amount"] is not None else 0.0
    if found["change"] == "/" and amount == 0:
        raise ValueError(f"{text!r} divides by 0")
    return Requirement(text, name, operator, of_base=True, change=found["change"] or "", amount=amount)


def _finite(text: str, number: str) -> float:
    value = float(number)
    if not math.isfinite(value):
        raise ValueError(f"{text!r}: {number} is too large")
    return value


class Met(StrEnum):
    """How a requirement was judged."""

    MET = "met"
    NOT_MET = "not met"
    PENDING = "not known yet"
    """There is nothing to compare with yet."""


@dataclass(frozen=True)
class JudgedRequirement:
    """A requirement and how it was judged. `why`: why there were no two numbers to compare, otherwise empty;
    `limit`: what the number was compared with, None if it is not known.
    """

    requirement: Requirement
    outcome: Met
    limit: float | None = None
    why: str = ""


def judged_requirement(
    wanted: Requirement, this: Mapping[str, float | None], base: Mapping[str, float | None] | None
) -> JudgedRequirement:
    """Return the requirement, judged by the numbers of a run and those of the base run. A number that is None
    is not finite; `base` is None if there is no base run.
    """
    if wanted.name not in this:
        close = nearest(wanted.name, this)
        fix = (
            f"; did you mean {close[0]}?"
            if close
            else f"; it has {', '.join(sorted(this)[:8])}"
            if this
            else ""
        )
        return JudgedRequirement(wanted, Met.NOT_MET, why=f"the run has no result named {wanted.name}{fix}")
    seen, limit = this[wanted.name], None if wanted.of_base else wanted.amount
    if wanted.of_base and base is not None:
        of_base = base.get(wanted.name)
        limit = wanted.limit(of_base) if of_base is not None else None
    if seen is None:
        return JudgedRequirement(wanted, Met.NOT_MET, limit, "the run's number is not finite")
    if limit is None:
        return JudgedRequirement(wanted, Met.PENDING, why=_why_no_limit(wanted.name, base))
    if not math.isfinite(limit):
        return JudgedRequirement(
            wanted, Met.PENDING, why="the number of the base run leads to no finite limit"
        )
    return JudgedRequirement(
        wanted, Met.MET if _OPERATORS[wanted.operator](seen, limit) else Met.NOT_MET, limit
    )


def _why_no_limit(name: str, base: Mapping[str, float | None] | None) -> str:
    if base is None:
        return "there is no base run to compare with"
    return (
        "the number of the base run is not finite"
        if name in base
        else f"the base run has no result named {name}"
    )
