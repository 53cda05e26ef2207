"""Where a process tells at which point it stands, and waits until what is to be taken away there is gone (crash/sitecustomize.py)."""

import json
import socketserver
import threading
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Self

ORDER_BYTES_MAX = 4096

Take = Callable[[str], object]
"""Takes it away, and returns when it is gone. It is given the id of the machine on which the process is that tells; empty: on none."""


class Strikes:
    """Use as a context manager. `takes`: by the victim's name. `struck` is told of each point before anything is taken, while whoever has
    told of it stands still."""

    def __init__(self, takes: Mapping[str, Take], struck: Callable[[str], object]) -> None:
        self._takes, self._struck = takes, struck
        self.broken: list[str] = []
        self._front = _Front(self)
        self._thread = threading.Thread(target=self._front.serve_forever, kwargs={"poll_interval": 0.02}, name="strikes")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._front.shutdown()
        self._thread.join()
        self._front.server_close()
        assert not self.broken, f"what was to be taken away could not be: {self.broken}"

    @property
    def port(self) -> int:
        return int(self._front.server_address[1])

    def carry_out(self, order: Mapping[str, str]) -> None:
        self._struck(order["name"])
        self._takes[order["victim"]](order["pod"])


class _Order(socketserver.StreamRequestHandler):
    server: "_Front"

    def handle(self) -> None:
        order = json.loads(self.rfile.readline(ORDER_BYTES_MAX))
        try:
            self.server.strikes.carry_out(order)
        except Exception as error:  # of whatever kind: the test is told at its end
            self.server.strikes.broken.append(f"{order}: {error!r}")
        # Whoever has told may be gone with what was taken.
        with suppress(OSError):
            self.wfile.write(b".")


class _Front(socketserver.ThreadingTCPServer):
    def __init__(self, strikes: Strikes) -> None:
        super().__init__(("127.0.0.1", 0), _Order)
        self.strikes = strikes
