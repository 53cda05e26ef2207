"""A server to which a process reports the point it has reached, and where it waits until the victim is gone
(crash/sitecustomize.py).
"""

import json
import socket
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Self

from tests.fakes.http import ConnectionServer

ORDER_BYTES_MAX = 4096

Take = Callable[[str], object]
"""A function that kills the victim, and returns when it is gone. Its argument is the id of the machine of the
reporting process; empty: none.
"""


class Strikes:
    """Use as a context manager. `takes`: functions by the victim's name. `struck` is called for each point
    before anything is killed, while the reporting process waits.
    """

    def __init__(self, takes: Mapping[str, Take], struck: Callable[[str], object]) -> None:
        self._takes, self._struck = takes, struck
        self.broken: list[str] = []
        self._server = ConnectionServer(self._serve)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close(socket.SHUT_RD)
        broken = self.broken + self._server.broken
        assert not broken, f"what was to be taken away could not be: {broken}"

    @property
    def port(self) -> int:
        return self._server.port

    def _serve(self, sock: socket.socket) -> None:
        with sock.makefile("rb") as lines:
            line = lines.readline(ORDER_BYTES_MAX)
        if not line.endswith(b"\n"):
            return  # whoever began to report was killed before it had said which point it is at
        order = json.loads(line)
        try:
            self._struck(order["name"])
            self._takes[order["victim"]](order["pod"])
        except Exception as error:  # of whatever kind: the test fails at its end
            self.broken.append(f"{order}: {error!r}")
        # Whoever has reported may be gone with what was taken.
        with suppress(OSError):
            sock.sendall(b".")
