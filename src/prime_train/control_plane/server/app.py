"""The webhook as a FastAPI app, with documentation for people at /docs. Every route leads to the same request handler as the bare path.

The page at /docs is plain HTML that loads nothing: the usual one runs a script from another company's server in the reader's browser.
"""

from dataclasses import dataclass
from html import escape
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from fastapi.responses import HTMLResponse
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from prime_train.control_plane.admission.authenticate import ATTEMPT_DIGITS_MAX
from prime_train.control_plane.server.body import Receive, Scope
from prime_train.control_plane.server.responder import Responder, Send, send_response
from prime_train.core.keys import RUN_ID_PATTERN
from prime_train.core.wire import SIGNATURE_HEADER, TIMESTAMP_HEADER, Bootstrap, Commit, Heartbeat, Nonce, PodKeys, Refusal, Reply
from prime_train.version import __version__

_SCHEMAS = "#/components/schemas/"
_REFUSALS = {
    401: "not signed by this attempt, or the sender's clock is wrong",
    413: "body too large",
    422: "the body cannot be parsed",
    503: "ask again",
}

_PARAMETERS: dict[str, dict[str, Any]] = {
    "run": {"type": "string", "pattern": f"^{RUN_ID_PATTERN}$"},
    "attempt": {"type": "integer", "minimum": 1, "maximum": 10**ATTEMPT_DIGITS_MAX - 1},
    TIMESTAMP_HEADER: {"type": "string", "pattern": "^[0-9]{1,12}$", "description": "When it was signed, in seconds since 1970."},
    SIGNATURE_HEADER: {"type": "string", "pattern": "^v1=[0-9a-f]{64}$"},
}


@dataclass(frozen=True)
class Row:
    """The description of a route of the webhook, for the documentation of its API."""

    method: str
    path: str
    says: str
    answer: type[BaseModel] | None
    body: type[BaseModel] | None = None
    fenced: bool = True
    signed: bool = True
    static: bool = False


ROUTES = (
    Row("POST", "/v1/runs/{run}/{attempt}/heartbeat", "A heartbeat; the reply carries orders.", Reply, Heartbeat),
    Row("POST", "/v1/runs/{run}/{attempt}/commit", "A checkpoint whose manifest is in the bucket becomes the newest.", Reply, Commit),
    Row("POST", "/v1/runs/{run}/{attempt}/exit", "The last heartbeat: how the attempt ended.", Reply, Heartbeat),
    Row("GET", "/v1/runs/{run}/{attempt}/bootstrap", "The complete job, for the current attempt.", Bootstrap),
    Row(
        "POST", "/v1/runs/{run}/{attempt}/keys", "New keys to the bucket, because those of the bootstrap expire soon.", PodKeys, static=True
    ),
    Row("POST", "/v1/canary", "The watcher's own heartbeat, which shows that requests can arrive.", Nonce, Nonce, fenced=False),
    Row("GET", "/healthz", "Version and clock.", None, fenced=False, signed=False),
)


def create_app(responder: Responder) -> FastAPI:
    """Return the app around a responder, such as a request handler; the caller closes the responder."""

    async def endpoint(request: Request) -> Response:
        response = await responder.respond(request.scope, request.receive)
        if response is None:
            return Response(status_code=400)  # the client has disconnected, so nobody receives it
        return Response(response.body, response.status, dict(response.headers), media_type="application/json")

    async def anything_else(scope: Scope, receive: Receive, send: Send) -> None:
        response = await responder.respond(scope, receive)
        if response is not None:
            await send_response(send, response)

    async def documentation(request: Request) -> Response:
        return HTMLResponse(_page(), headers={"content-security-policy": "default-src 'none'; frame-ancestors 'none'"})

    app = FastAPI(title="prime-train webhook", version=__version__, docs_url=None, redoc_url=None)
    app.add_api_route("/docs", documentation, methods=["GET"], include_in_schema=False)
    for row in ROUTES:
        app.add_api_route(row.path, endpoint, methods=[row.method], summary=row.says, responses=_answers(row), openapi_extra=_extra(row))
    app.mount("/", anything_else)
    app.openapi = lambda: _openapi(app)  # type: ignore[method-assign] # the way FastAPI documents for extending the schema
    return app


def _page() -> str:
    """Return the page for people: the table of the routes, and where the complete description is."""
    rows = "".join(
        f"<tr><td>{row.method}</td><td><code>{escape(row.path)}</code></td><td>{escape(row.says)}</td>"
        f"<td>{'signed' if row.signed else 'by anyone'}</td></tr>"
        for row in ROUTES
    )
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>prime-train webhook {__version__}</title></head><body>'
        f"<h1>prime-train webhook {__version__}</h1><table><tr><th>method</th><th>path</th><th>what it is</th><th>requested</th></tr>{rows}"
        '</table><p>Bodies, answers and limits: <a href="openapi.json">openapi.json</a> (OpenAPI), for any viewer.</p></body></html>'
    )


def _answers(row: Row) -> dict[int | str, dict[str, Any]]:
    answers: dict[int | str, dict[str, Any]] = {200: {"model": row.answer} if row.answer else {}}
    if row.fenced:
        answers[409] = {"model": Reply, "description": "fenced: a newer attempt has taken over"}
    if row.fenced:
        keys = ", or this control plane's keys for machines do not expire" if row.static else ""
        answers[404] = {"model": Refusal, "description": f"this cannot be the name of an attempt{keys}"}
    if row.signed:
        answers |= {status: {"model": Refusal, "description": why} for status, why in _REFUSALS.items()}
    return answers


def _extra(row: Row) -> dict[str, Any]:
    """Return the parts of the schema that FastAPI cannot derive, because the webhook itself reads and checks the bodies."""
    names = [(name, "path") for name in ("run", "attempt") if f"{{{name}}}" in row.path]
    names += [(name, "header") for name in (TIMESTAMP_HEADER, SIGNATURE_HEADER) if row.signed]
    extra: dict[str, Any] = {
        "parameters": [{"name": name, "in": place, "required": True, "schema": _PARAMETERS[name]} for name, place in names]
    }
    if row.body is not None:
        schema = {"$ref": _SCHEMAS + row.body.__name__}
        extra["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return extra


def _openapi(app: FastAPI) -> dict[str, Any]:
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        bodies = {row.body for row in ROUTES if row.body is not None}
        _, models = models_json_schema([(body, "validation") for body in bodies], ref_template=_SCHEMAS + "{model}")
        schema["components"]["schemas"] |= models["$defs"]
        app.openapi_schema = schema
    return app.openapi_schema
