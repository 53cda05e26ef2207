"""The newest log of an attempt on a rented machine, followed over SSH: what was shown is not shown again after a lost connection."""

import binascii
import codecs
import shlex
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from prime_train.operations.log_tail import LOGS, TAIL_BYTES_MAX
from prime_train.ports import TemporaryError

if TYPE_CHECKING:
    from prime_train.operations.machine import Machine

ALIVE = "-"
LINE_BYTES_MAX = 2**18
_SCRIPT = Path(__file__).with_name("remote_tail.sh")


@dataclass(frozen=True)
class Place:
    """In which file, by its number there, and from which byte on nothing was shown yet. `inode` 0: nothing was."""

    name: str = ""
    inode: int = 0
    offset: int = 0


@dataclass(frozen=True)
class Piece:
    """`name`: of the log it is from; `text` is empty where nothing came for a moment."""

    name: str
    text: str


def remote_lines(machine: "Machine", lines: int) -> tuple[str, str]:
    """Name and last lines of the newest log there; empty where there is none. TemporaryError: the connection is lost."""
    # Names of ours, with nothing in them for a shell.
    logs = " ".join(LOGS)
    say = f'[ ! -e "$log" ] || {{ echo "$log"; tail -n {lines} "$log" | tail -c {TAIL_BYTES_MAX}; exit; }}'
    fetched = machine.shell.fetch(f"cd {machine.disk}/logs && for log in {logs}; do {say}; done", bytes_max=TAIL_BYTES_MAX + LINE_BYTES_MAX)
    name, _, text = fetched.data.decode(errors="replace").partition("\n")
    return (name, text) if name in LOGS else ("", "")


class RemoteTail:
    """Of one attempt. `place` goes along with what was handed out, so a new connection goes on from there. `lines`: so many of the past
    come first; None: all."""

    def __init__(self, lines: int | None) -> None:
        self._lines = "all" if lines is None else str(lines)
        self.place = Place()
        self._decoder = _decoder()

    def follow(self, machine: "Machine") -> Iterator[Piece]:
        """For ever; an empty piece at least every half a second. TemporaryError: the connection is lost, or there is no log yet."""
        place = self.place
        words = ("sh", "-s", "--", machine.attempt, self._lines, place.name, str(place.inode), str(place.offset))
        rest = b""
        for data in machine.shell.follow(shlex.join(words), stdin=_SCRIPT.read_bytes()):
            *lines, rest = (rest + data).split(b"\n")
            if len(rest) > LINE_BYTES_MAX:
                raise TemporaryError(f"{machine.shell.where}: its answer is not understood")
            for line in lines:
                yield self._piece(line.decode(errors="replace"), machine.shell.where)
            if not lines:
                yield Piece(self.place.name, "")

    def _piece(self, line: str, where: str) -> Piece:
        if line == ALIVE:
            return Piece(self.place.name, "")
        try:
            name, inode, offset, said = line.split(" ")
            data = b64decode(said, validate=True)
            place = Place(name, int(inode), int(offset) + len(data))
        except (ValueError, binascii.Error) as error:
            raise TemporaryError(f"{where}: its answer is not understood") from error
        if name not in LOGS:
            raise TemporaryError(f"{where}: its answer is not understood")
        if (place.name, place.inode) != (self.place.name, self.place.inode):
            self._decoder = _decoder()
        self.place = place
        # A piece may end in the middle of a character.
        return Piece(name, self._decoder.decode(data))


def _decoder() -> codecs.IncrementalDecoder:
    return codecs.getincrementaldecoder("utf-8")(errors="replace")
