"""Tables that fit the terminal they are printed on: what matters least gives way, and nothing that stays is cut."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rich.console import Console, ConsoleOptions, RenderableType
from rich.table import Table
from rich.text import Text

GAP = 2
INDENT = 2


@dataclass(frozen=True)
class Column:
    """One column. `rank` 0: always shown; the others are taken in by rank, as far as there is room."""

    name: str
    cells: tuple[Text, ...]
    rank: int = 0
    short: tuple[Text, ...] | None = None
    """The same in fewer words, for where the whole does not fit."""

    @property
    def width(self) -> int:
        return max((len(self.name), *(cell.cell_len for cell in self.cells)))

    @property
    def shortened(self) -> "Column":
        return Column(self.name, self.short, self.rank) if self.short is not None else self


@dataclass(frozen=True)
class Fitting:
    """The columns as a table; where not even those of rank 0 fit side by side, the first has a line of its own in each row."""

    columns: Sequence[Column]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[RenderableType]:
        taken = fitting(self.columns, options.max_width)
        yield _table(taken) if _total(taken) <= options.max_width else _stacked(taken)


def fitting(columns: Sequence[Column], width: int) -> list[Column]:
    """Those of rank 0, and of the others, whole or shortened, what fits into `width` characters; in the order given."""
    taken = {place: column for place, column in enumerate(columns) if column.rank == 0}
    optional = sorted((column.rank, place) for place, column in enumerate(columns) if column.rank > 0)
    # First in as few words as there are, so that a wordy column does not push out the ones after it.
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


def _stacked(columns: Sequence[Column]) -> Text:
    """For a terminal narrower than a row: folded, never cut."""
    rows = []
    for first, *others in zip(*(column.cells for column in columns), strict=True):
        rows += [first, Text(" " * INDENT) + Text(" " * GAP).join(others)]
    return Text("\n", overflow="fold").join(rows)
