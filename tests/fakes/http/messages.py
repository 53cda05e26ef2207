"""Requests as received, and responses."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlsplit

Json = dict[str, Any]


@dataclass
class Request:
    """A request. `target` as received; `path` is without the query and the API's prefix, still escaped; names
    of `headers` are in lower case.

    `params`: the values in the path, by the names in the route's template. `status`: that of the response, 0
    while or if there is none.
    """

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    path: str = ""
    params: Mapping[str, Any] = field(default_factory=dict)
    status: int = 0

    @property
    def query_lists(self) -> dict[str, list[str]]:
        """Return each parameter of the query with all its values."""
        return parse_qs(urlsplit(self.target).query, keep_blank_values=True)

    @property
    def query(self) -> dict[str, str]:
        """Return each parameter of the query with its last value."""
        return {name: values[-1] for name, values in self.query_lists.items()}

    @property
    def json(self) -> Any:
        """Return the parsed body; None if there is none."""
        return json.loads(self.body) if self.body else None

    @property
    def form(self) -> dict[str, str]:
        return {
            name: values[-1] for name, values in parse_qs(self.body.decode(), keep_blank_values=True).items()
        }

    @property
    def token(self) -> str:
        """Return the client's bearer token; empty if there is none."""
        kind, _, value = self.headers.get("authorization", "").partition(" ")
        return value.strip() if kind.lower() == "bearer" else ""


@dataclass(frozen=True)
class Response:
    """A response. As a fault: the client gets this instead, and the request has no effect.

    `headers` replace the server's own; a Content-Length that is not the body's also ends the connection.
    `halfway` is called when half of the body has been sent, and the rest is sent when it returns.
    """

    status: int = 200
    body: bytes = b""
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)
    halfway: Callable[[], object] | None = None


class Refusal(Exception):
    """Raised by a handler to answer the request with this response."""

    def __init__(self, response: Response) -> None:
        super().__init__(response.status, response.body)
        self.response = response


def json_response(content: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(status, json.dumps(content).encode(), headers=headers or {})
