from rich.console import Console
from rich.text import Text

from prime_train.terminal.columns import Column, Fitting, fitting


def column(name: str, *cells: str, rank: int = 0, short: tuple[str, ...] | None = None) -> Column:
    return Column(name, tuple(map(Text, cells)), rank, tuple(map(Text, short)) if short is not None else None)


COLUMNS = (
    column("run", "mnist-abcde"),
    column("note", "a long story", rank=1, short=("story",)),
    column("state", "training"),
    column("age", "12 s", rank=2),
)


def shown(width: int) -> str:
    console = Console(width=width, file=None, color_system=None)
    with console.capture() as capture:
        console.print(Fitting(COLUMNS))
    return capture.get()


def names(width: int) -> list[str]:
    return [f"{taken.name}: {taken.cells[0]}" for taken in fitting(COLUMNS, width)]


def test_all_is_shown_where_there_is_room() -> None:
    assert names(80) == ["run: mnist-abcde", "note: a long story", "state: training", "age: 12 s"]


def test_a_short_form_comes_before_a_column_less() -> None:
    assert names(34) == ["run: mnist-abcde", "note: story", "state: training", "age: 12 s"]


def test_what_matters_least_goes_first() -> None:
    assert names(33) == ["run: mnist-abcde", "note: story", "state: training"]
    assert names(21) == ["run: mnist-abcde", "state: training"]


def test_where_a_row_does_not_fit_it_is_folded_and_nothing_is_cut() -> None:
    assert shown(20).split() == ["mnist-abcde", "training"]
    assert shown(8).replace("\n", "").split() == ["mnist-abcde", "training"]


def test_one_long_cell_leaves_room_for_the_other_columns_below_it() -> None:
    columns = (
        column("file", "x" * 50, "short"),
        column("size", "1 B", "2 B", rank=1),
        column("step", "", "30", rank=2),
    )
    console = Console(width=40, file=None, color_system=None)
    with console.capture() as capture:
        console.print(Fitting(columns))
    lines = [line.rstrip() for line in capture.get().splitlines()]
    assert lines == ["x" * 40, "x" * 10, "  size 1 B", "short", "  size 2 B  step 30"]


def test_no_line_is_wider_than_the_terminal() -> None:
    for width in range(8, 60):
        assert max(map(len, shown(width).splitlines())) <= width
