"""The control plane's one application: what agents, operators, GitHub's jobs, providers and people ask of it.

`serve` and the Lambda run the same application and differ in their `Host`. A request is authenticated over
the bytes as they arrived, before anything in them is parsed; then its body is read with the wire's models,
and the host carries out what it requests. A refusal is an exception wherever it is found, and one handler
answers it. A response to a request that nobody has signed closes its connection, so that strangers can keep
none.
"""

import json
import logging
from typing import Protocol

from fastapi import FastAPI, Request, Response
from fastapi.responses import HTMLResponse, JSONResponse
from starlette.routing import Mount, Route
from starlette.types import Receive, Scope, Send

from prime_train.errors import ExternalError
from prime_train.pages.dashboard.requests import RUN_PAGES
from prime_train.runs.launch_key import LAUNCH_KEY_HEADER, LAUNCH_KEY_PATH
from prime_train.runs.signing import MARKET_PATH, SIGNATURE_HEADER, STORE_PATH, TIMESTAMP_HEADER
from prime_train.version import __version__
from prime_train.webhook import notices
from prime_train.webhook import requests as calls
from prime_train.webhook.agent_calls import Call
from prime_train.webhook.api_description import ROUTES, answers, docs_page, extra, openapi
from prime_train.webhook.authenticate import HEALTH_PATH, Admitted, admit, proven
from prime_train.webhook.bodies import read
from prime_train.webhook.page_server import PageServer
from prime_train.webhook.request_body import BodyReader
from prime_train.webhook.responses import CLOSE, Refused, bug, nothing_here, unavailable
from prime_train.webhook.state import WebhookContext

_SIGNED_BY = {
    name.encode(): name for name in (TIMESTAMP_HEADER, SIGNATURE_HEADER, LAUNCH_KEY_HEADER, *notices.HEADERS)
}

ADMITTED = "prime_train.admitted"
"""Key of the ASGI scope of a request whose signature is valid."""

log = logging.getLogger(__name__)


class Host(Protocol):
    """What runs the application. All methods raise ExternalError for what does not answer now."""

    def now_s(self) -> int:
        """Return the time by which signatures are judged, and which refusals tell."""

    def webhook(self) -> WebhookContext:
        """Return what the requests are about."""

    async def carry_out(self, webhook: WebhookContext, call: Call) -> calls.Response:
        """Return the response to a call, once everything it requests is durable. Raises Refused."""

    def wake(self) -> None:
        """Have a run looked at that may need a decision now."""


def create_app(host: Host, pages: PageServer | None = None, bodies: BodyReader | None = None) -> FastAPI:
    """Return the application as `host` runs it. `pages`: the dashboard; None: it is not served."""
    reader = bodies or BodyReader()

    async def authenticated(request: Request) -> tuple[WebhookContext, calls.Request, Admitted]:
        """Return what the request is about, the request with its body as it arrived, and its target. Raises
        Refused.
        """
        body, scope = await reader.read(request), request.scope
        headers = {
            _SIGNED_BY[name]: value.decode("latin-1")
            for name, value in scope["headers"]
            if name in _SIGNED_BY
        }
        asked = calls.Request(scope["method"], scope["path"], headers, body, host.now_s())
        webhook = host.webhook()
        target = admit(webhook, asked)
        scope[ADMITTED] = True
        return webhook, asked, target

    async def answer(request: Request) -> Response:
        # as a dependency it would cost each heartbeat a sixth more
        webhook, asked, target = await authenticated(request)
        response = await host.carry_out(
            webhook, read(target, asked.body) if isinstance(target, calls.RequestTarget) else target
        )
        if response.wakes:
            host.wake()
        return _sent(proven(webhook, asked, response))

    async def health() -> Response:
        body = json.dumps({"version": __version__, "now_s": host.now_s()}).encode()
        return _sent(calls.Response(200, body, headers=CLOSE))

    async def docs() -> Response:
        policy = {"content-security-policy": "default-src 'none'; frame-ancestors 'none'"}
        return HTMLResponse(docs_page(), headers=policy | dict(CLOSE))

    async def description() -> Response:
        return JSONResponse(app.openapi(), headers=dict(CLOSE))

    async def elsewhere(scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse what has no route here, or not with this method, with the reason."""
        await authenticated(Request(scope, receive))
        raise nothing_here()

    async def refused(request: Request, refusal: Exception) -> Response:
        assert isinstance(refusal, Refused)
        try:
            now_s = host.now_s()
        except ExternalError:
            now_s = 0
        response = refusal.response(now_s)
        return _sent(
            response
            if ADMITTED in request.scope
            else response._replace(headers=tuple({*response.headers, *CLOSE}))
        )

    async def unanswered(request: Request, error: Exception) -> Response:
        assert isinstance(error, ExternalError)
        log.warning("a request could not be answered: %s", error)
        return await refused(request, unavailable(error))

    async def failed(request: Request, error: Exception) -> Response:
        log.error("a request could not be answered", exc_info=error)
        return await refused(request, bug())

    app = FastAPI(
        title="prime-train webhook",
        version=__version__,
        openapi_url=None,
        redirect_slashes=False,
        telemetry={
            "tracing": False,
            "metrics": False,
            "logs": False,
        },  # it costs each heartbeat, and nobody collects it
    )
    for row in ROUTES:
        endpoint = health if row.path == HEALTH_PATH else answer
        app.add_api_route(
            row.path,
            endpoint,
            methods=[row.method],
            summary=row.says,
            responses=answers(row),
            openapi_extra=extra(row),
        )
    for method, path, undescribed in (
        ("POST", f"{STORE_PATH}{{name}}", answer),
        ("POST", LAUNCH_KEY_PATH, answer),
        ("GET", MARKET_PATH, answer),
        ("POST", notices.VAST_PATH, answer),
        ("GET", "/docs", docs),
        ("GET", "/openapi.json", description),
    ):
        app.add_api_route(path, undescribed, methods=[method], include_in_schema=False)
    if pages is not None:
        app.router.routes += [Route("/", pages), Mount(RUN_PAGES.rstrip("/"), pages)]
    app.router.routes.append(Mount("/", elsewhere))
    app.router.default = elsewhere  # for paths with a line's end, which no pattern matches
    app.add_exception_handler(Refused, refused)
    app.add_exception_handler(ExternalError, unanswered)
    app.add_exception_handler(Exception, failed)
    app.openapi = lambda: openapi(app)  # type: ignore[method-assign] # the way FastAPI documents for extending the schema
    return app


def _sent(response: calls.Response) -> Response:
    return Response(response.body, response.status, dict(response.headers), media_type="application/json")
