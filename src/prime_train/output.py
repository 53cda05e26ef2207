"""The only way to the terminal: everything that is printed, logged or drawn is neutralised here, so that foreign text has no effect.

Log lines, file names, failure details and provider texts may hold control characters that move the cursor, set the clipboard, or hide other
text. Each is shown as its escape. Only a `console` emits colours, which it adds to texts that are neutralised already. In a GitHub Actions
job, where log lines may be commands to the runner, such lines are broken up as well.
"""

import io
import os
import re
import sys
from collections.abc import Iterable
from typing import IO, TYPE_CHECKING, Any, cast

from prime_train.core.text.safe import lines_of_text, neutralized, without_commands

if TYPE_CHECKING:
    from rich.console import Console

_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


class Door(io.TextIOWrapper):
    """A text stream whose `write` neutralises; `write_trusted` is for text that this program made from neutralised parts."""

    in_job = False
    """Whether GitHub's runner may take lines of this stream for commands."""

    def write(self, text: str, /) -> int:
        self.write_trusted(without_commands(safe) if (safe := lines_of_text(text)) and self.in_job else safe)
        return len(text)

    def write_trusted(self, text: str) -> int:
        return super().write(text)


class _Trusted:
    """A view of a `Door` for rich, whose `write` does not neutralise again."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def __getattr__(self, name: str) -> Any:
        return getattr(self._door, name)

    def write(self, text: str) -> int:
        return self._door.write_trusted(text)


def close_doors() -> None:
    """Replace the standard output and standard error of this process by a `Door` each."""
    in_job = os.environ.get("GITHUB_ACTIONS") == "true"
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, Door):
            setattr(sys, name, _door(stream, in_job=in_job))


def _door(stream: io.TextIOWrapper, *, in_job: bool) -> Door:
    stream.flush()
    encoding = "utf-8" if stream.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968") else stream.encoding
    door = Door(stream.buffer, encoding, "backslashreplace", line_buffering=stream.line_buffering, write_through=stream.write_through)
    door.in_job = in_job
    return door


def print_command(line: str) -> None:
    """Print a command for GitHub's runner; its parts must be escaped already."""
    stream = sys.stdout
    (stream.write_trusted if isinstance(stream, Door) else stream.write)(f"{neutralized(line, keep=chr(10))}\n")
    stream.flush()


def print_coloured(text: str) -> None:
    """Print a text whose only escapes are this program's colours; the rest is neutralised. No colours if stdout is not a terminal."""
    stream = sys.stdout
    text = text if stream.isatty() else _COLOUR.sub("", text)
    if isinstance(stream, Door):
        for part in _COLOUR.split(text):
            (stream.write_trusted if _COLOUR.fullmatch(part) else stream.write)(part)
        stream.write("\n")
    else:
        print(text)


def console(**options: Any) -> "Console":
    """Return a rich console that never parses strings as markup and neutralises every segment."""
    from rich.console import Console
    from rich.segment import Segment

    class DoorConsole(Console):
        def render(self, *args: Any, **more: Any) -> Iterable[Segment]:
            return map(_safe, super().render(*args, **more))

        @property
        def file(self) -> IO[str]:
            stream = super().file
            return cast("IO[str]", _Trusted(stream)) if isinstance(stream, Door) else stream

        @file.setter
        def file(self, stream: IO[str]) -> None:
            self._file = stream

    def _safe(segment: Segment) -> Segment:
        if segment.control:
            return segment
        style = segment.style
        if style is not None and style.link and neutralized(style.link) != style.link:
            style = style.update_link(None)
        return Segment(lines_of_text(segment.text), style)

    return DoorConsole(**{"markup": False, "emoji": False, "highlight": False} | options)


def print_rows(rows: Iterable[tuple[str, str]]) -> None:
    """Print name and text in two columns; the second wraps at the terminal's width."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, Text(text))
    console().print(table)
