"""The only way to the terminal: everything that is printed, logged or drawn is neutralised here, so that
foreign text has no effect.

Log lines, file names, failure details and provider texts may hold control characters that move the cursor,
set the clipboard, or hide other text. Each is shown as its escape. Only a console of `console.py` emits
colours, which it adds to texts that are neutralised already. In a GitHub Actions job, where log lines may be
commands to the runner, such lines are broken up as well.
"""

import io
import os
import re
import sys
from typing import Any

from prime_train.text.safe import lines_of_text, neutralized, without_commands

_COLOUR = re.compile(r"(\x1b\[[0-9;]*m)")


class SafeStream(io.TextIOWrapper):
    """A text stream whose `write` neutralises; `write_trusted` is for text that this program made from
    neutralised parts.
    """

    in_job = False
    """Whether GitHub's runner may take lines of this stream for commands."""

    def write(self, text: str, /) -> int:
        self.write_drawn(lines_of_text(text))
        return len(text)

    def write_drawn(self, text: str) -> int:
        """Write a text whose foreign parts are neutralised already, such as a table: its lines may still be
        commands in a job.
        """
        return self.write_trusted(without_commands(text) if self.in_job else text)

    def write_trusted(self, text: str) -> int:
        return super().write(text)


class Trusted:
    """A view of a `SafeStream` for rich, whose `write` does not neutralise again."""

    def __init__(self, stream: SafeStream) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        return self._stream.write_drawn(text)


def install_safe_streams() -> None:
    """Replace the standard output and standard error of this process by a `SafeStream` each."""
    in_job = os.environ.get("GITHUB_ACTIONS") == "true"
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if isinstance(stream, io.TextIOWrapper) and not isinstance(stream, SafeStream):
            setattr(sys, name, _safe_stream(stream, in_job=in_job))


def _safe_stream(stream: io.TextIOWrapper, *, in_job: bool) -> SafeStream:
    stream.flush()
    encoding = (
        "utf-8" if stream.encoding.lower() in ("ascii", "us-ascii", "ansi_x3.4-1968") else stream.encoding
    )
    safe = SafeStream(
        stream.buffer,
        encoding,
        "backslashreplace",
        line_buffering=stream.line_buffering,
        write_through=stream.write_through,
    )
    safe.in_job = in_job
    return safe


def print_command(line: str) -> None:
    """Print a command for GitHub's runner; its parts must be escaped already."""
    stream = sys.stdout
    (stream.write_trusted if isinstance(stream, SafeStream) else stream.write)(
        f"{neutralized(line, keep=chr(10))}\n"
    )
    stream.flush()


def print_coloured(text: str) -> None:
    """Print a text whose only escapes are this program's colours; the rest is neutralised. No colours if
    stdout is not a terminal.
    """
    stream = sys.stdout
    text = text if stream.isatty() else _COLOUR.sub("", text)
    if isinstance(stream, SafeStream):
        for part in _COLOUR.split(text):
            (stream.write_trusted if _COLOUR.fullmatch(part) else stream.write)(part)
        stream.write("\n")
    else:
        print(text)
