"""A bare ASGI callable in front of the app that answers requests of agents, above all heartbeats, without the overhead of a framework."""

from starlette.types import ASGIApp

from prime_train.control_plane.server.body import Receive, Scope
from prime_train.control_plane.server.request_handler import RequestHandler
from prime_train.control_plane.server.responder import Send, send_response

FAST_PREFIX = "/v1/"


class AsgiFastPath:
    """Answers everything under /v1/ itself; everything else (health, documentation, lifespan) goes to `app`."""

    def __init__(self, app: ASGIApp, gate: RequestHandler) -> None:
        self._app, self._gate = app, gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(FAST_PREFIX):
            await self._app(scope, receive, send)
            return
        response = await self._gate.respond(scope, receive)
        if response is not None:
            await send_response(send, response)
