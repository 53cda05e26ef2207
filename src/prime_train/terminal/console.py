"""Rich consoles that neutralise foreign text as `output` requires. They are a module of their own because
rich is slow to import.
"""

from collections.abc import Iterable
from typing import IO, Any, cast

from rich.console import Console
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from prime_train.terminal.output import SafeStream, Trusted
from prime_train.text.safe import lines_of_text, neutralized


class SafeConsole(Console):
    """A console that neutralises control characters in every segment that it prints."""

    def render(self, *args: Any, **more: Any) -> Iterable[Segment]:
        return map(_safe, super().render(*args, **more))

    @property
    def file(self) -> IO[str]:
        stream = super().file
        return cast("IO[str]", Trusted(stream)) if isinstance(stream, SafeStream) else stream

    @file.setter
    def file(self, stream: IO[str]) -> None:
        self._file = stream


def console(**options: Any) -> Console:
    """Return a console that never parses strings as markup."""
    return SafeConsole(**{"markup": False, "emoji": False, "highlight": False} | options)


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print name and text in two columns; the second wraps at the terminal's width."""
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, Text(text))
    console().print(table)


def _safe(segment: Segment) -> Segment:
    if segment.control:
        return segment
    style = segment.style
    if style is not None and style.link and neutralized(style.link) != style.link:
        style = style.update_link(None)
    return Segment(lines_of_text(segment.text), style)
