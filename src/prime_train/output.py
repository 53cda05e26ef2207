"""The one door to the terminal: whatever is printed, logged or drawn passes it, and nothing that a stranger wrote does anything there.

Log lines, names of files, details of a failure and texts of providers may hold control characters: they would move the cursor, set the
clipboard, or hide what stands there. Each is shown as its escape. Only what a `console` draws has colours, which it adds to texts that are
neutralised already. In a job of GitHub Actions, where lines of the log may be commands, those are broken up as well.
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
    """A text stream whose `write` neutralises; `write_trusted` is for what this program made itself of neutralised parts."""

    in_job = False
    """Whether lines of it may be taken for commands of GitHub's runner."""

    def write(self, text: str, /) -> int:
        self.write_trusted(without_commands(safe) if (safe := lines_of_text(text)) and self.in_job else safe)
        return len(text)

    def write_trusted(self, text: str) -> int:
        return super().write(text)


class _Trusted:
    """The door as rich sees it."""

    def __init__(self, door: Door) -> None:
        self._door = door

    def __getattr__(self, name: str) -> Any:
        return getattr(self._door, name)

    def write(self, text: str) -> int:
        return self._door.write_trusted(text)


def close_doors() -> None:
    """Put a door before the standard output and the standard error of this process."""
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
    """A command for GitHub's runner, whose parts are escaped already."""
    stream = sys.stdout
    (stream.write_trusted if isinstance(stream, Door) else stream.write)(f"{neutralized(line, keep=chr(10))}\n")
    stream.flush()


def print_coloured(text: str) -> None:
    """A text whose only escapes are colours that this program put there, around parts without any."""
    stream = sys.stdout
    text = text if stream.isatty() else _COLOUR.sub("", text)
    if isinstance(stream, Door):
        for part in _COLOUR.split(text):
            (stream.write_trusted if _COLOUR.fullmatch(part) else stream.write)(part)
        stream.write("\n")
    else:
        print(text)


def console(**options: Any) -> "Console":
    """A console of rich: strings are texts, and never markup."""
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
    """Names and texts in two columns, of which the second folds at the terminal's width."""
    from rich.table import Table
    from rich.text import Text

    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for name, text in rows:
        table.add_row(name, Text(text))
    console().print(table)
