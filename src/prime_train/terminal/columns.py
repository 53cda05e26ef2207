"""Tables that fit the width of the terminal: less important columns are dropped, and the cells of those that
remain are never truncated.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

GAP = 2
INDENT = 2


@dataclass(frozen=True)
class Column:
    """A column of a table. `rank`: 0 for a column that is always shown; the others are added in order of rank
    as long as they fit.
    """

    name: str
    cells: tuple[Text, ...]
    rank: int = 0
    short: tuple[Text, ...] | None = None
    """Shorter cells, used if the full ones do not fit."""

    @property
    def width(self) -> int:
        return max((len(self.name), *(cell.cell_len for cell in self.cells)))

    @property
    def shortened(self) -> "Column":
        return Column(self.name, self.short, self.rank) if self.short is not None else self


@dataclass(frozen=True)
class Fitting:
    """The columns as a table. If even the columns of rank 0 do not fit side by side, the first cell of each
    row gets a line of its own, and the next line has room for the others.
    """

    columns: Sequence[Column]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        taken = fitting(self.columns, options.max_width)
        if _total(taken) <= options.max_width:
            yield _table(taken)
        else:
            others = [_named(column) for column in self.columns if column is not taken[0]]
            yield _stacked([taken[0], *fitting(others, options.max_width - INDENT)])


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """Return the columns of rank 0 and as many others, full or shortened, as fit into `width` characters, in
    the order given.
    """
    taken = {place: column for place, column in enumerate(columns) if column.rank == 0}
    optional = sorted((column.rank, place) for place, column in enumerate(columns) if column.rank > 0)
    # Shortened columns are tried first, so that one wide column does not displace those after it.
    for _, place in optional:
        if _total([*taken.values(), columns[place].shortened]) > width:
            break
        taken[place] = columns[place].shortened
    for _, place in optional:
        if place in taken and _total([*(c for p, c in taken.items() if p != place), columns[place]]) <= width:
            taken[place] = columns[place]
    return [taken[place] for place in sorted(taken)]


def _total(columns: Sequence[Column]) -> int:
    return sum(column.width for column in columns) + GAP * (len(columns) - 1)


def _table(columns: Sequence[Column]) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, GAP, 0, 0))
    for column in columns:
        table.add_column(column.name, no_wrap=True)
    for row in zip(*(column.cells for column in columns), strict=True):
        table.add_row(*row)
    return table


def _named(column: Column) -> Column:
    """Return the column, if it is not always shown, with its name in each cell, because rows that are stacked
    have no header.
    """
    if column.rank == 0 or not column.name:
        return column
    cells = [column.cells, *([column.short] if column.short is not None else [])]
    full, *short = [
        tuple(Text(f"{column.name} ") + cell if cell else cell for cell in each) for each in cells
    ]
    return Column("", full, column.rank, short[0] if short else None)


def _stacked(columns: Sequence[Column]) -> Text:
    """Return the rows for a terminal narrower than a row: lines are folded, not truncated."""
    rows = []
    for first, *others in zip(*(column.cells for column in columns), strict=True):
        rows += [first, Text(" " * INDENT) + Text(" " * GAP).join(filter(None, others))]
    return Text("\n", overflow="fold").join(rows)
