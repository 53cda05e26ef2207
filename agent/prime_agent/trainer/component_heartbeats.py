"""Loopback server for the heartbeats of a trainer's components.

A ping only proves that its sender is alive. Steps, and with them every deadline, come from the trainer's
reported progress, because a component that keeps pinging while no step is made would otherwise hide a stall.
The use of pings is to show which component stopped first.

Requests are handled one at a time, for at most a second each: only a few pings arrive per step, and a slow
client delays no more than the next ping.
"""

import logging
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import BaseServer, TCPServer
from typing import Any

from prime_train.trainers.component_heartbeats import ReceivedHeartbeats, component_of, first_silent

REQUEST_S_MAX = 1.0

_log = logging.getLogger(__name__)


class Heartbeats:
    """Server that listens from its creation until the process ends. Raises OSError if no port is
    available.
    """

    def __init__(self, components: tuple[str, ...], clock: Callable[[], float]) -> None:
        self._server = _Server(components, clock)
        threading.Thread(target=self._server.serve_forever, name="component-heartbeats", daemon=True).start()

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def received(self) -> Mapping[str, ReceivedHeartbeats]:
        return self._server.received


def report(received: Mapping[str, ReceivedHeartbeats], now_s: float, *, quiet_s: float) -> list[str]:
    """Return lines for people: one for each component, and one that names the component that stopped first,
    if that is known.
    """
    lines = []
    for component, calls in received.items():
        last = "" if calls.last_s is None else f", the last one {now_s - calls.last_s:.0f} s ago"
        lines.append(f"{component}: {calls.count} heartbeats{last}")
    silent = first_silent(received, now_s, quiet_s=quiet_s)
    return [*lines, f"the {silent} fell silent first"] if silent is not None else lines


class _Server(TCPServer):
    def __init__(self, components: tuple[str, ...], clock: Callable[[], float]) -> None:
        self.components = components
        self.received = {component: ReceivedHeartbeats() for component in components}
        self.clock = clock
        super().__init__(("127.0.0.1", 0), _Handler)

    def called(self, component: str) -> None:
        """Count a ping in a single assignment, because other threads read the counts meanwhile."""
        self.received = {
            **self.received,
            component: ReceivedHeartbeats(self.received[component].count + 1, self.clock()),
        }

    def handle_error(self, request: Any, client_address: Any) -> None:
        _log.warning("a heartbeat was disconnected", exc_info=True)


class _Handler(BaseHTTPRequestHandler):
    timeout = REQUEST_S_MAX

    def do_GET(self) -> None:
        server = _server(self.server)
        component = component_of(self.path, server.components)
        if component is not None:
            server.called(component)
        self.send_response_only(HTTPStatus.NOT_FOUND if component is None else HTTPStatus.NO_CONTENT)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because the trainer's own log has a line for each step already."""


def _server(server: BaseServer) -> _Server:
    assert isinstance(server, _Server)
    return server
