"""A bare ASGI callable in front of the app that answers requests of agents, above all heartbeats, without the overhead of a framework."""

from starlette.types import ASGIApp

from prime_train.control_plane.dashboard_interface import is_page
from prime_train.control_plane.server.body import Receive, Scope
from prime_train.control_plane.server.page_server import PageServer
from prime_train.control_plane.server.request_handler import RequestHandler
from prime_train.control_plane.server.responder import Send, send_response

FAST_PREFIX = "/v1/"


class AsgiFastPath:
    """Answers everything under /v1/ itself; `pages` shows the dashboard, if there is one; everything else (health, documentation, lifespan)
    goes to `app`."""

    def __init__(self, app: ASGIApp, handler: RequestHandler, pages: PageServer | None = None) -> None:
        self._app, self._handler, self._pages = app, handler, pages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or not scope["path"].startswith(FAST_PREFIX):
            is_shown = self._pages is not None and scope["type"] == "http" and is_page(scope["path"])
            await (self._pages if is_shown and self._pages is not None else self._app)(scope, receive, send)
            return
        response = await self._handler.respond(scope, receive)
        if response is not None:
            await send_response(send, response)
