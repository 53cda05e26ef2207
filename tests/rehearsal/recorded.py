"""Recordings as a process would have made them, from a list of what it did."""

import hashlib
import json
from collections.abc import Callable, Iterable

from prime_train.rehearsal.recording import Change, FileChange, OutputLine, Recording


class Recorder:
    """Makes a recording. Time passes with `after`; each other call happens at the time reached."""

    def __init__(self) -> None:
        self.recording = Recording()
        self.now_s = 0.0

    def after(self, seconds: float) -> None:
        self.now_s += seconds

    def line(self, text: str, stream: str = "stdout") -> None:
        lines = self.recording.lines
        lines.append(OutputLine(len(lines), self.now_s, stream, text))

    def write(self, path: str, content: bytes | str, seconds: float = 0.01) -> None:
        """Write a file, and close it."""
        self._change(Change.BEGUN, path)
        self.after(seconds)
        self._change(Change.CLOSED, path, content=content)

    def begin(self, path: str) -> None:
        self._change(Change.BEGUN, path)

    def move(self, source: str, path: str, content: bytes | str = b"", *, is_folder: bool = False) -> None:
        self._change(Change.MOVED, path, content=content, came_from=source, is_folder=is_folder)

    def link(self, path: str, target: str) -> None:
        self._change(Change.LINKED, path, came_from=target)

    def hard_link(self, path: str, content: bytes) -> None:
        self._change(Change.LINKED, path, content=content)

    def delete(self, path: str, *, is_folder: bool = False) -> None:
        self._change(Change.DELETED, path, is_folder=is_folder)

    def _change(
        self,
        change: Change,
        path: str,
        *,
        content: bytes | str = b"",
        came_from: str = "",
        is_folder: bool = False,
    ) -> None:
        data = content.encode() if isinstance(content, str) else content
        self.recording.changes.append(
            FileChange(
                len(self.recording.changes),
                self.now_s,
                change,
                path,
                size=len(data),
                digest=hashlib.sha256(data).hexdigest() if data else "",
                text=content if isinstance(content, str) else None,
                came_from=came_from,
                is_folder=is_folder,
            )
        )


def state(number: int, size: int = 5000) -> bytes:
    """Return bytes that are no text, and others for each number."""
    return bytes([0, number % 251]) * (size // 2)


def trained(
    lines: Callable[[int], Iterable[str]],
    *,
    steps: int = 60,
    every: int = 20,
    name: str = "ckpt_{}.pt",
    stream: str = "stdout",
    step_s: float = 0.1,
) -> Recorder:
    """Return the recording of a training that completes steps from 1, prints what `lines` gives for each, and
    then saves if it is time to.
    """
    made = Recorder()
    for step in range(1, steps + 1):
        made.after(step_s)
        for line in lines(step):
            made.line(line, stream)
        made.after(0.01)
        if step % every == 0:
            made.write(name.format(step), state(step))
    return made


def json_line(**values: object) -> str:
    return json.dumps(values)
