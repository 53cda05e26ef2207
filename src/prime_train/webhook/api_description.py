"""The description of the API: each route with its body, its answers and its refusals, for OpenAPI and for the
page at /docs.

The page at /docs is plain HTML that loads nothing: the usual one runs a script from another company's server
in the reader's browser.
"""

from dataclasses import dataclass
from html import escape
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from prime_train.buckets.keys import RUN_ID_PATTERN
from prime_train.runs.wire import (
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    Bootstrap,
    Commit,
    Heartbeat,
    Nonce,
    PodKeys,
    Refusal,
    Reply,
)
from prime_train.version import __version__
from prime_train.webhook.authenticate import ATTEMPT_DIGITS_MAX

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
    TIMESTAMP_HEADER: {
        "type": "string",
        "pattern": "^[0-9]{1,12}$",
        "description": "When it was signed, in seconds since 1970.",
    },
    SIGNATURE_HEADER: {"type": "string", "pattern": "^v1=[0-9a-f]{64}$"},
}


@dataclass(frozen=True)
class DescribedRoute:
    """A described route. `static`: it is refused where the keys of machines do not expire."""

    method: str
    path: str
    says: str
    answer: type[BaseModel] | None
    body: type[BaseModel] | None = None
    fenced: bool = True
    signed: bool = True
    static: bool = False


ROUTES = (
    DescribedRoute(
        "POST",
        "/v1/runs/{run}/{attempt}/heartbeat",
        "A heartbeat; the reply carries orders.",
        Reply,
        Heartbeat,
    ),
    DescribedRoute(
        "POST",
        "/v1/runs/{run}/{attempt}/commit",
        "A checkpoint whose manifest is in the bucket becomes the newest.",
        Reply,
        Commit,
    ),
    DescribedRoute(
        "POST",
        "/v1/runs/{run}/{attempt}/exit",
        "The last heartbeat: how the attempt ended.",
        Reply,
        Heartbeat,
    ),
    DescribedRoute(
        "GET", "/v1/runs/{run}/{attempt}/bootstrap", "The complete job, for the current attempt.", Bootstrap
    ),
    DescribedRoute(
        "POST",
        "/v1/runs/{run}/{attempt}/keys",
        "New keys to the bucket, because those of the bootstrap expire soon.",
        PodKeys,
        static=True,
    ),
    DescribedRoute(
        "POST",
        "/v1/canary",
        "The watcher's own heartbeat, which shows that requests can arrive.",
        Nonce,
        Nonce,
        fenced=False,
    ),
    DescribedRoute("GET", "/healthz", "Version and clock.", None, fenced=False, signed=False),
)


def docs_page() -> str:
    """Return the page for people: the table of the routes, and where the complete description is."""
    rows = "".join(
        f"<tr><td>{row.method}</td><td><code>{escape(row.path)}</code></td><td>{escape(row.says)}</td>"
        f"<td>{'signed' if row.signed else 'by anyone'}</td></tr>"
        for row in ROUTES
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>prime-train webhook '
        f"{__version__}</title></head><body>"
        f"<h1>prime-train webhook {__version__}</h1><table><tr><th>method</th><th>path</th><th>what it "
        f"is</th><th>requested</th></tr>{rows}"
        '</table><p>Bodies, answers and limits: <a href="openapi.json">openapi.json</a> (OpenAPI), for any '
        "viewer.</p></body></html>"
    )


def answers(row: DescribedRoute) -> dict[int | str, dict[str, Any]]:
    """Return the answers of a route, as FastAPI describes them."""
    found: dict[int | str, dict[str, Any]] = {200: {"model": row.answer} if row.answer else {}}
    if row.fenced:
        keys = ", or this control plane's keys for machines do not expire" if row.static else ""
        found[409] = {"model": Reply, "description": "fenced: a newer attempt has taken over"}
        found[404] = {"model": Refusal, "description": f"this cannot be the name of an attempt{keys}"}
    if row.signed:
        found |= {status: {"model": Refusal, "description": why} for status, why in _REFUSALS.items()}
    return found


def extra(row: DescribedRoute) -> dict[str, Any]:
    """Return the parts of the schema that FastAPI cannot derive, because a body is parsed only after its
    signature was checked.
    """
    names = [(name, "path") for name in ("run", "attempt") if f"{{{name}}}" in row.path]
    names += [(name, "header") for name in (TIMESTAMP_HEADER, SIGNATURE_HEADER) if row.signed]
    found: dict[str, Any] = {
        "parameters": [
            {"name": name, "in": place, "required": True, "schema": _PARAMETERS[name]}
            for name, place in names
        ]
    }
    if row.body is not None:
        schema = {"$ref": _SCHEMAS + row.body.__name__}
        found["requestBody"] = {"required": True, "content": {"application/json": {"schema": schema}}}
    return found


def openapi(app: FastAPI) -> dict[str, Any]:
    """Return the description of the application, made once."""
    if app.openapi_schema is None:
        schema = get_openapi(title=app.title, version=app.version, routes=app.routes)
        bodies = {row.body for row in ROUTES if row.body is not None}
        _, models = models_json_schema(
            [(body, "validation") for body in bodies], ref_template=_SCHEMAS + "{model}"
        )
        schema["components"]["schemas"] |= models["$defs"]
        app.openapi_schema = schema
    return app.openapi_schema
