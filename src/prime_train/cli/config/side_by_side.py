"""Render two versions side by side, with the meaning of each change and the runs that used them."""

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prime_train.adapters.config_yaml import masked
from prime_train.configs import changes as config_changes
from prime_train.core.errors import UsageError
from prime_train.operations.config_runs import used_by

if TYPE_CHECKING:
    from prime_train.core.run import Run
    from prime_train.operations.config_versions import Texts

CONTEXT_LINES = 3
LINES_MAX = 5000
TAB = 4
_WORDS = re.compile(r"\w+|\W")


@dataclass(frozen=True)
class Side:
    """One of the two sides. `runs`: None if it is the current file and not a version, so that no run can have used it."""

    title: str
    texts: "Texts"
    runs: "tuple[Run, ...] | None" = None


@dataclass(frozen=True)
class Row:
    """A line of the comparison. `left` and `right`: line number and text, None if that side has no such line. `mark`: shows the kind of
    change without colours: `<`, `>`, `|` or nothing."""

    left: tuple[int, str] | None
    mark: str
    right: tuple[int, str] | None


def picture(name: str, before: Side, after: Side) -> RenderableType:
    """Return the comparison of two sides that differ."""
    parts: list[RenderableType] = []
    for title, old, new, changes in _files(name, before, after):
        if old == new:
            continue
        parts += [Text(title, style="bold"), table(rows(old, new), before.title, after.title), Text()]
        parts += [*_words(changes), Text()] if changes else []
    return Group(*parts, *_used(before), *_used(after))


def rows(before: str, after: str) -> list[Row]:
    """Return the changed lines with their context; a row without sides stands for omitted lines. Raises UsageError above `LINES_MAX`
    lines."""
    first, second = (text.splitlines() for text in (before, after))
    if max(len(first), len(second)) > LINES_MAX:
        raise UsageError(f"more than {LINES_MAX:,} lines", fix="compare them with diff")
    found: list[Row] = []
    for number, group in enumerate(difflib.SequenceMatcher(None, first, second, autojunk=False).get_grouped_opcodes(CONTEXT_LINES)):
        found += [Row(None, "", None)] if number or group[0][1] or group[0][3] else []
        for kind, start, end, other_start, other_end in group:
            found += _pairs(kind, list(enumerate(first, 1))[start:end], list(enumerate(second, 1))[other_start:other_end])
    return found


def table(found: Sequence[Row], before: str, after: str) -> RenderableType:
    """Return the rows as a table as wide as the terminal, in two equal halves. Longer lines are wrapped, not truncated."""
    made = Table.grid(padding=(0, 1), expand=True)
    width = len(str(max((side[0] for row in found for side in (row.left, row.right) if side), default=1)))
    for _ in range(2):
        made.add_column(justify="right", style="dim", width=width, no_wrap=True)
        made.add_column(ratio=1, overflow="fold")
        if len(made.columns) == 2:
            made.add_column(width=1, no_wrap=True)
    made.add_row("", Text(before, style="underline"), "", "", Text(after, style="underline"))
    for row in found:
        left, right = _halves(row)
        numbers = [str(side[0]) if side else "" for side in (row.left, row.right)]
        made.add_row(numbers[0], left, Text(row.mark, style="bold"), numbers[1], right)
    return made


def _files(name: str, before: Side, after: Side) -> Iterator[tuple[str, str, str, tuple[config_changes.Change, ...] | None]]:
    old, new = masked(before.texts.config), masked(after.texts.config)
    yield name, old, new, config_changes.of_config(old, new)
    old, new = masked(before.texts.trainer or ""), masked(after.texts.trainer or "")
    yield "the trainer's file", old, new, config_changes.of_trainer(old, new)


def _pairs(kind: str, left: list[tuple[int, str]], right: list[tuple[int, str]]) -> Iterator[Row]:
    """Yield rows with the lines side by side; if one side of a change has more lines, the rest follow alone."""
    both = min(len(left), len(right))
    mark = "" if kind == "equal" else "|"
    yield from (Row(old, mark, new) for old, new in zip(left[:both], right[:both], strict=True))
    yield from (Row(old, "<", None) for old in left[both:])
    yield from (Row(None, ">", new) for new in right[both:])


def _halves(row: Row) -> tuple[Text, Text]:
    if row.left is None and row.right is None:
        return Text("...", style="dim"), Text("...", style="dim")
    left, right = (Text(_plain(side[1]) if side else "") for side in (row.left, row.right))
    left.stylize({"|": "yellow", "<": "red"}.get(row.mark, ""))
    right.stylize({"|": "yellow", ">": "green"}.get(row.mark, ""))
    if row.mark == "|":
        _mark_words(left, right)
    return left, right


def _mark_words(left: Text, right: Text) -> None:
    """Highlight the words that differ between the two lines."""
    words, others = _WORDS.findall(left.plain), _WORDS.findall(right.plain)
    starts, other_starts = (list(accumulate(map(len, found), initial=0)) for found in (words, others))
    for kind, start, end, other_start, other_end in difflib.SequenceMatcher(None, words, others, autojunk=False).get_opcodes():
        if kind != "equal":
            left.stylize("bold reverse red", starts[start], starts[end])
            right.stylize("bold reverse green", other_starts[other_start], other_starts[other_end])


def _words(changes: tuple[config_changes.Change, ...]) -> Iterator[RenderableType]:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", overflow="fold")
    grid.add_column(overflow="fold")
    for change in changes:
        said = Text(change.said)
        grid.add_row(change.key, Text("\n").join([said, Text(change.meaning, style="dim")]) if change.meaning else said)
    yield grid


def _used(side: Side) -> Iterator[RenderableType]:
    if side.runs is None:
        return
    if not side.runs:
        yield Text(f"no run used {side.title}")
    for run in side.runs:
        yield Text(f"{side.title} was used by {used_by(run)}")


def _plain(line: str) -> str:
    """Return the line with tabs expanded and control characters replaced by spaces."""
    return "".join(char if char.isprintable() else " " for char in line.expandtabs(TAB))
