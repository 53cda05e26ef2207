"""The interface of a request handler for the app and the bare path, and the sending of a response."""

from collections.abc import Awaitable, Callable
from typing import Protocol

from prime_train.control_plane.admission.calls import Response
from prime_train.control_plane.server.body import Message, Receive, Scope

Send = Callable[[Message], Awaitable[None]]


class Responder(Protocol):
    async def respond(self, scope: Scope, receive: Receive) -> Response | None:
        """Return the response; None if the client has disconnected."""


async def send_response(send: Send, response: Response) -> None:
    headers = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(response.body))]
    headers += [(name.encode(), value.encode()) for name, value in response.headers]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": response.body})
