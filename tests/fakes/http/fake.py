"""The base of all fakes: it listens, records, applies faults, and finds the route."""

import gzip
import socket
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from typing import Any, Self
from urllib.parse import urlsplit

from tests.fakes.http.connections import LOOPBACK, ConnectionServer, reset_on_close
from tests.fakes.http.faults import Delay, Fault, Hang, Rules, outcome
from tests.fakes.http.messages import Refusal, Request, Response, json_response
from tests.fakes.http.routes import Route
from tests.waiting import HANG_S


class HttpFake:
    """A fake API; use it as a context manager."""

    routes: Sequence[Route] = ()
    """Routes in order: of two that match, the first is used."""

    prefix = ""

    def __init__(self, *, port: int = 0) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        """Notified before and after each request is handled."""
        self._rules: Rules[Fault] = Rules()
        self._requests: list[Request] = []
        self._heals = 0
        self._stalled = False
        self._server = ConnectionServer(partial(_Connection, fake=self), port=port)

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.stopping = True
        self.heal()
        self._server.close(socket.SHUT_RD)
        assert not self._server.broken, f"the fake itself failed: {self._server.broken}"

    @property
    def port(self) -> int:
        return self._server.port

    @property
    def url(self) -> str:
        """Return the URL without the prefix, and without a slash at its end."""
        return f"http://{LOOPBACK}:{self.port}"

    # --------------------------------------------------------------------------------------------------------
    # what was requested

    @property
    def requests(self) -> list[Request]:
        """Return all requests in the order in which they arrived."""
        with self.lock:
            return [replace(request) for request in self._requests]

    def requests_to(self, method: str, path: str) -> list[Request]:
        return [request for request in self.requests if (request.method, request.path) == (method, path)]

    def await_requests(self, method: str, path: str, count: int = 1, *, limit_s: float = HANG_S) -> None:
        """Wait until this many requests have arrived; they need not have been answered."""
        wanted = f"{count} of {method} {path}"
        self.await_state(
            lambda: sum((r.method, r.path) == (method, path) for r in self._requests) >= count,
            wanted,
            limit_s=limit_s,
        )

    def await_state(
        self, is_so: Callable[[], object], wanted: str = "what was awaited", *, limit_s: float = HANG_S
    ) -> None:
        """Wait until requests have made the condition true; it is evaluated under the lock."""
        with self.changed:
            if not self.changed.wait_for(is_so, limit_s):
                last = [
                    f"{request.method} {request.path} {request.status}" for request in self._requests[-10:]
                ]
                raise AssertionError(
                    f"{wanted} did not come within {limit_s:.0f} s; the last requests: {last}"
                )

    def await_stalled(self) -> None:
        """Wait until half of a body has been sent for a request with the fault `Stall`."""
        self.await_state(lambda: self._stalled, "half of a body")

    # --------------------------------------------------------------------------------------------------------
    # what goes wrong

    def fail(
        self, fault: Fault, *, method: str = ".*", path: str = "", first: int = 1, times: int = 1
    ) -> None:
        """Apply the fault to `times` of the matching requests, from the `first` on; `path` is searched in the
        path.
        """
        with self.lock:
            self._rules.add(fault, method=method, path=path, first=first, times=times)

    def heal(self) -> None:
        """Remove all faults; hanging requests continue."""
        with self.changed:
            self._rules.clear()
            self._heals += 1
            self.changed.notify_all()

    # ---------------------------------------------------------------------------------------------------- for
    # fakes to build upon

    def handle(self, request: Request) -> Response | None:
        """Return the response to a request; None: the connection is reset."""
        with self.changed:
            self._requests.append(request)
            self.changed.notify_all()
            fault, heals = self.fault_for(request), self._heals
            if isinstance(fault, Delay):
                self._await_heal(heals)
            response = outcome(fault, lambda: self.respond(request), partial(self._stall, heals))
            request.status = response.status if response else 0
            self.changed.notify_all()
            if isinstance(fault, Hang):
                self._await_heal(heals)
            return response

    def fault_for(self, request: Request) -> Fault | None:
        return self._rules.meet(request.method, request.path)

    def respond(self, request: Request) -> Response:
        """Carry out the request, and return its response."""
        try:
            for route in self.routes:
                params = route.match_request(request.method, request.path)
                if params is not None:
                    request.params = params
                    content = self.dispatch(route, request)
                    return content if isinstance(content, Response) else json_response(content)
            return self.no_route(request)
        except Refusal as refusal:
            return refusal.response

    def dispatch(self, route: Any, request: Request) -> object:
        """Call the route's handler; override this for checks that precede all of them."""
        return route.handler(self, request)

    def no_route(self, request: Request) -> Response:
        return json_response({"error": f"the fake has no route for {request.method} {request.path}"}, 404)

    def _await_heal(self, heals: int) -> None:
        """Wait for the next call of `heal` after this many; the lock is released meanwhile."""
        self.changed.wait_for(lambda: self._heals > heals or self._server.stopping, HANG_S)

    def _stall(self, heals: int) -> None:
        with self.changed:
            self._stalled = True
            self.changed.notify_all()
            self._await_heal(heals)


class _Connection(BaseHTTPRequestHandler):
    """Serves HTTP/1.1 on one connection, request after request."""

    protocol_version = "HTTP/1.1"
    timeout = HANG_S
    disable_nagle_algorithm = (
        True  # head and body are two writes, and the second would wait for the client's word on the first
    )

    def __init__(self, sock: socket.socket, fake: HttpFake) -> None:
        self._fake = fake
        super().__init__(sock, sock.getpeername(), None)  # type: ignore[arg-type]  # there is no server of socketserver's

    def _serve(self) -> None:
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        headers = {name.lower(): value for name, value in self.headers.items()}
        if headers.get("content-encoding") == "gzip":
            body = gzip.decompress(body)
        path = urlsplit(self.path).path.removeprefix(self._fake.prefix)
        response = self._fake.handle(Request(self.command, self.path, headers, body, path))
        if response is None:
            reset_on_close(self.connection)
            self.close_connection = True
        else:
            self._send(response)

    def _send(self, response: Response) -> None:
        self.send_response_only(response.status)
        bodiless = response.status in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED)
        about_body = (
            {}
            if bodiless
            else {"content-type": response.content_type, "content-length": str(len(response.body))}
        )
        own = {"server": self.version_string(), "date": self.date_time_string()}
        headers = own | about_body | {name.lower(): value for name, value in response.headers.items()}
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.close_connection |= about_body.get("content-length") != headers.get("content-length")
        if bodiless or self.command == "HEAD":
            return
        half = len(response.body) // 2 if response.halfway is not None else 0
        self.wfile.write(response.body[:half])
        if response.halfway is not None:
            response.halfway()
        self.wfile.write(response.body[half:])

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = _serve

    def log_message(self, format: str, *args: object) -> None:
        """Log nothing, because tests inspect `requests`."""
