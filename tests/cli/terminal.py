"""The command on a real terminal: what a person sees and types."""

import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager

from tests.cli.shell import PROGRAM, Shell
from tests.waiting import HANG_S

READ_BYTES = 65_536
_CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


class Terminal:
    """A terminal of `columns` x 50. `seen` is everything displayed so far, without colours."""

    def __init__(self, master: int, slave: int, process: "subprocess.Popen[bytes]") -> None:
        self._master, self._process, self._raw = master, process, b""
        self._looked = 0
        self._slave: int | None = slave
        """Kept open until the command has opened it, because reading would end if no process had it open."""

    @property
    def seen(self) -> str:
        return _CONTROL.sub("", self._raw.decode(errors="replace")).replace("\r\n", "\n")

    @property
    def raw(self) -> bytes:
        """Return every byte that was sent to the terminal."""
        return self._raw

    @property
    def is_coloured(self) -> bool:
        return b"\x1b[" in self._raw

    def expect(self, text: str) -> None:
        """Wait until the text is displayed, after the text that was waited for before."""
        while text not in self.seen[self._looked :]:
            assert self._read(), f"it ended without {text!r}:\n{self.seen}"
        self._looked = self.seen.index(text, self._looked) + len(text)

    def type(self, line: str) -> None:
        os.write(self._master, line.encode() + b"\n")

    def answer(self, question: str, line: str = "") -> None:
        self.expect(question)
        self.type(line)

    def press_control_d(self) -> None:
        os.write(self._master, b"\x04")

    def end(self) -> int:
        """Wait until all output is read, and return the exit code."""
        while self._read():
            pass
        return self._process.wait(HANG_S)

    def close(self) -> None:
        self._let_go()
        os.close(self._master)

    def _read(self) -> bool:
        """Read some output. Return False if no process has the terminal open any more."""
        ready, _, _ = select.select([self._master], [], [], HANG_S)
        assert ready, f"nothing was shown for {HANG_S} s:\n{self.seen}"
        try:
            data = os.read(self._master, READ_BYTES)
        except OSError:
            return False  # the last one to hold the other end has left
        self._raw += data
        self._let_go()
        return bool(data)

    def _let_go(self) -> None:
        if self._slave is not None:
            os.close(self._slave)
            self._slave = None


@contextmanager
def terminal(shell: Shell, *args: str, columns: int = 80) -> Iterator[Terminal]:
    """Start the command on a terminal of its own."""
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    env = {name: value for name, value in shell.env.items() if name not in ("COLUMNS", "NO_COLOR")} | {
        "TERM": "xterm-256color"
    }
    process = subprocess.Popen(
        # Whoever leads a session and opens a terminal has it as its own, as after a log-in.
        ["/bin/sh", "-c", 'exec "$@" <"$TTY" >"$TTY" 2>&1', "sh", PROGRAM, *args],
        cwd=shell.here,
        env=env | {"TTY": os.ttyname(slave)},
        start_new_session=True,
    )
    seen = Terminal(master, slave, process)
    try:
        yield seen
    finally:
        process.kill()
        process.wait(HANG_S)
        seen.close()
