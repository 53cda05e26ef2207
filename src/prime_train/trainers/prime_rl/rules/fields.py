"""The settings of prime-rl: their names, allowed values and defaults.

A table has one row per setting, below its section ("+" after a section: it accepts any other key as well):

    lr null | number[0..) = 1e-06

that is the name, the allowed kinds of value, and the default ("!" if the setting is required). The kinds are:
null, bool, text, any, 'a word', int and number with bounds (a round bracket excludes the bound), @Section,
by:type(word@Section, ...) for a section that is selected by one of its settings, and list:... and map:...,
which apply to all that follows.

Every check loads this module, so rows are parsed on request, and kept as named tuples, which are fast to
define.
"""

import json
import re
from functools import cache
from itertools import pairwise
from typing import NamedTuple

from prime_train.spec.tree import Value
from prime_train.trainers.prime_rl.reference import prime_rl_559b4477

ROOT = "RLConfig"
UNSAID = "(unsaid)"
"""Default of a setting that has none, as for sections and lists."""
_ROW = r"(\w+) (.*?)(?: (!)| = (.*))?"
_KIND = r"(int|number|by)([\[(:])(.*)"
_SIDES = r"([\[(])(.*)\.\.(.*)([\])])"


class ValueKind(NamedTuple):
    """A kind of value that a setting allows. `name` is null, bool, text, any, word, int, number, section, by,
    list or map.
    """

    name: str
    low: float | None = None
    high: float | None = None
    low_open: bool = False
    high_open: bool = False
    text: str = ""
    """The word, the section, or for `by` the setting that selects."""
    options: tuple[tuple[str, str], ...] = ()
    """For the kind `by`: pairs of word and section."""
    items: tuple["ValueKind", ...] = ()
    """For the kinds `list` and `map`: the kinds that each item allows."""

    def admits(self, number: float) -> bool:
        below = self.low is not None and (number < self.low or (self.low_open and number == self.low))
        above = self.high is not None and (number > self.high or (self.high_open and number == self.high))
        return not below and not above


class FieldUse(NamedTuple):
    name: str
    kinds: tuple[ValueKind, ...]
    default: Value = UNSAID
    needed: bool = False

    def kind(self, name: str) -> ValueKind | None:
        return next((kind for kind in self.kinds if kind.name == name), None)

    @property
    def words(self) -> tuple[str, ...]:
        return tuple(kind.text for kind in self.kinds if kind.name == "word")


class Section(NamedTuple):
    name: str
    settings: dict[str, FieldUse]
    is_open: bool = False
    """Whether the section accepts keys that it does not name."""


@cache
def section(name: str) -> Section:
    """Return a section of the newest table. Raises KeyError if there is no section of that name."""
    return _section(_texts()[name])


def below(setting: FieldUse, tag: str | None) -> tuple[Section, ...]:
    """Return the sections that may describe a table at this setting: the one that `tag` selects, or all
    alternatives if it selects none.
    """
    plain = setting.kind("section")
    if plain is not None:
        return (section(plain.text),)
    by = setting.kind("by")
    if by is None:
        return ()
    chosen = [to for word, to in by.options if word == (tag or setting.default)]
    return tuple(section(to) for to in chosen or [to for _, to in by.options])


@cache
def _texts() -> dict[str, list[str]]:
    """Return the lines of each section, starting with its own."""
    lines = prime_rl_559b4477.FIELDS.splitlines()
    starts = [at for at, line in enumerate(lines) if not line.startswith(" ")]
    return {
        lines[at].split(" ")[0]: [line.strip() for line in lines[at:end]]
        for at, end in pairwise((*starts, len(lines)))
    }


def _section(rows: list[str]) -> Section:
    name, _, mark = rows[0].partition(" ")
    settings = (_setting(row) for row in rows[1:])
    return Section(name, {setting.name: setting for setting in settings}, is_open=mark == "+")


def _setting(row: str) -> FieldUse:
    found = re.fullmatch(_ROW, row)
    assert found is not None, row
    name, kinds, needed, default = found.groups()
    return FieldUse(
        name,
        _kinds(kinds.replace(" ", "")),
        UNSAID if default is None else json.loads(default),
        needed is not None,
    )


def _kinds(text: str) -> tuple[ValueKind, ...]:
    """Return the kinds in a text; list and map apply to the rest of it."""
    first, bar, rest = text.partition("|")
    if first.startswith(("list:", "map:")):
        name, _, items = text.partition(":")
        return (ValueKind(name, items=_kinds(items)),)
    return (_kind(first), *(_kinds(rest) if bar else ()))


def _kind(text: str) -> ValueKind:
    if text.startswith("'"):
        return ValueKind("word", text=text.strip("'"))
    if text.startswith("@"):
        return ValueKind("section", text=text[1:])
    found = re.fullmatch(_KIND, text)
    if found is None:
        return ValueKind(text)
    if found[1] == "by":
        by, _, options = found[3].rstrip(")").partition("(")
        pairs = (option.partition("@") for option in options.split(","))
        return ValueKind("by", text=by, options=tuple((word, to) for word, _, to in pairs))
    sides = re.fullmatch(_SIDES, found[2] + found[3])
    assert sides is not None, text
    low, high = (float(side) if side else None for side in (sides[2], sides[3]))
    return ValueKind(found[1], low, high, low_open=sides[1] == "(", high_open=sides[4] == ")")
