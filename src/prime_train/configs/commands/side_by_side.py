"""Render two versions side by side, with the meaning of each change and the runs that used them."""

import difflib
import re
from collections.abc import Iterator, Sequence
from itertools import accumulate

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from prime_train.checks.changes import ConfigChange, Judgement
from prime_train.checks.compare_versions import Comparison, Side, VersionRow
from prime_train.configs.history.version_users import used_by

TAB = 4
_WORDS = re.compile(r"\w+|\W")


def render(found: Comparison) -> RenderableType:
    """Return the comparison of two sides that differ."""
    parts: list[RenderableType] = []
    for file in found.files:
        parts += [
            Text(file.title, style="bold"),
            table(file.rows, found.before.title, found.after.title),
            Text(),
        ]
        parts += [*_words(file.changes), Text()] if file.changes else []
        parts += [*_judged(file.judged), Text()] if file.judged else []
    return Group(*parts, *_used(found.before), *_used(found.after))


def table(found: Sequence[VersionRow], before: str, after: str) -> RenderableType:
    """Return the rows as a table as wide as the terminal, in two equal halves. Longer lines are wrapped, not
    truncated.
    """
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


def _halves(row: VersionRow) -> tuple[Text, Text]:
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
    for kind, start, end, other_start, other_end in difflib.SequenceMatcher(
        None, words, others, autojunk=False
    ).get_opcodes():
        if kind != "equal":
            left.stylize("bold reverse red", starts[start], starts[end])
            right.stylize("bold reverse green", other_starts[other_start], other_starts[other_end])


def _words(changes: tuple[ConfigChange, ...]) -> Iterator[RenderableType]:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", overflow="fold")
    grid.add_column(overflow="fold")
    for change in changes:
        text = Text(change.text)
        grid.add_row(
            change.key, Text("\n").join([text, Text(change.meaning, style="dim")]) if change.meaning else text
        )
    yield grid


def _judged(judged: tuple[Judgement, ...]) -> Iterator[RenderableType]:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", overflow="fold")
    grid.add_column(overflow="fold")
    for one in judged:
        grid.add_row(one.key, Text(one.text))
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
