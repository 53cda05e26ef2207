"""Follow the newest log of an attempt on a rented machine over SSH; after a lost connection, lines already
shown are not repeated.
"""

import binascii
import codecs
import shlex
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_train.errors import TemporaryError
from prime_train.outputs.logs.log_tail import LOGS, TAIL_BYTES_MAX
from prime_train.text.log_times import EVERY_S, SUFFIX

if TYPE_CHECKING:
    from prime_train.app.machines import MachineConnection

ALIVE = "-"
LINE_BYTES_MAX = 2**18
_OFFSET = f"""awk -v after="$after" '$1 + {EVERY_S} >= after {{ print $2; exit }}' "$log{SUFFIX}\""""
_COUNT = (
    f'offset=$({_OFFSET}); if [ -n "$offset" ]; then tail -c "+$((offset + 1))" "$log" | wc -l; '
    "else echo 0; fi"
)
"""Shell commands that do what `log_times.offset_since` does."""
_SCRIPT = Path(__file__).with_name("remote_tail.sh")


@dataclass(frozen=True)
class LogPosition:
    """A position in a remote log. `inode`: the file's inode, 0 if nothing was shown yet; `offset`: the first
    byte not yet shown.
    """

    name: str = ""
    inode: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Piece:
    """A piece of a log. `name`: the log's name; `text`: empty if nothing was written for a moment."""

    name: str
    text: str


def remote_lines(machine: "MachineConnection", lines: int) -> tuple[str, str]:
    """Return the name and the last lines of the newest log on the machine; two empty strings if there is
    none. Raises TemporaryError if the connection is lost.
    """
    # These names are constants, so they need no quoting for the shell.
    logs = " ".join(LOGS)
    say = f'[ ! -e "$log" ] || {{ echo "$log"; tail -n {lines} "$log" | tail -c {TAIL_BYTES_MAX}; exit; }}'
    fetched = machine.shell.fetch(
        f"cd {machine.disk}/logs && for log in {logs}; do {say}; done",
        bytes_max=TAIL_BYTES_MAX + LINE_BYTES_MAX,
    )
    name, _, text = fetched.data.decode(errors="replace").partition("\n")
    return (name, text) if name in LOGS else ("", "")


def remote_lines_since(machine: "MachineConnection", since_s: int) -> int | None:
    """Return how many lines of the machine's newest log were written in the last `since_s` seconds of that
    machine's clock; None if there is no log yet, or no index of times. Raises TemporaryError if the
    connection is lost.
    """
    find = f'[ ! -e "$log" ] || {{ [ -e "$log{SUFFIX}" ] || exit; {_COUNT}; exit; }}'
    command = (
        f"cd {machine.disk}/logs && after=$(($(date +%s) - {since_s})) && for log "
        "in "
        f"{' '.join(LOGS)}; do {find}; done"
    )
    output = machine.shell.fetch(command, bytes_max=LINE_BYTES_MAX).data.strip()
    return int(output) if output.isdigit() else None


class RemoteTail:
    """A reader of one attempt's logs. `place` advances with the text handed out, so that a new connection
    continues there.
    """

    def __init__(self) -> None:
        self._lines = "all"
        self.place = LogPosition()
        self._decoder = _decoder()

    def begin_with(self, lines: int | None) -> None:
        """Set the number of past lines to show first if no text was handed out yet; None: all."""
        self._lines = "all" if lines is None else str(lines)

    def follow(self, machine: "MachineConnection") -> Iterator[Piece]:
        """Yield pieces of the log without end, at least every half a second, with an empty piece if there is
        nothing new. Raises TemporaryError if the connection is lost or its output cannot be parsed.
        """
        place = self.place
        words = (
            "sh",
            "-s",
            "--",
            machine.attempt,
            self._lines,
            place.name,
            str(place.inode),
            str(place.offset),
        )
        rest = b""
        for data in machine.shell.follow(shlex.join(words), stdin=_SCRIPT.read_bytes()):
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                raise TemporaryError(f"{machine.shell.where}: the machine's answer cannot be parsed")
            for line in lines:
                yield self._piece(line.decode(errors="replace"), machine.shell.where)
            if not lines:
                yield Piece(self.place.name, "")

    def _piece(self, line: str, where: str) -> Piece:
        if line == ALIVE:
            return Piece(self.place.name, "")
        try:
            name, inode, offset, encoded = line.split(" ")
            data = b64decode(encoded, validate=True)
            place = LogPosition(name, int(inode), int(offset) + len(data))
        except (ValueError, binascii.Error) as error:
            raise TemporaryError(f"{where}: the machine's answer cannot be parsed") from error
        if name not in LOGS:
            raise TemporaryError(f"{where}: the machine's answer cannot be parsed")
        if (place.name, place.inode) != (self.place.name, self.place.inode):
            self._decoder = _decoder()
        self.place = place
        # A piece may end in the middle of a character.
        return Piece(name, self._decoder.decode(data))


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")(errors="replace")
