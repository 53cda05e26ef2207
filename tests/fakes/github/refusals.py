"""The fake's refusals, in GitHub's words."""

import json
from collections.abc import Mapping, Sequence

from tests.fakes.http import Refusal, Response

DOCS = "https://docs.github.com/rest"
OUTSIDE = 599
"""Status for a request or a response outside of GitHub's description of its API."""


class Refused(Refusal):
    """A refusal. `errors`: what is wrong with each field."""

    def __init__(
        self,
        status: int,
        message: str,
        *,
        errors: Sequence[Mapping[str, object]] = (),
        headers: Mapping[str, str] | None = None,
    ) -> None:
        body: dict[str, object] = {"message": message, "documentation_url": DOCS, "status": str(status)}
        if errors:
            body["errors"] = list(errors)
        super().__init__(
            Response(status, json.dumps(body).encode(), "application/json; charset=utf-8", headers or {})
        )


def not_found() -> Refused:
    return Refused(404, "Not Found")


def invalid(resource: str, field: str, message: str, code: str = "custom") -> Refused:
    """Return a 422 for one field."""
    return Refused(
        422,
        "Validation Failed",
        errors=[{"resource": resource, "code": code, "field": field, "message": message}],
    )


def problem(status: int, message: str, **headers: str) -> Response:
    """Return a response to use as a fault; `_` in a header's name stands for `-`."""
    return Refused(
        status, message, headers={name.replace("_", "-"): value for name, value in headers.items()}
    ).response


SERVER_ERROR = problem(500, "Server Error")
BAD_GATEWAY = Response(502, b"<html><head><title>Unicorn!</title></head><body>502</body></html>", "text/html")
UNAVAILABLE = problem(503, "Service Unavailable")
SECONDARY_403 = problem(
    403,
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
    retry_after="60",
)
SECONDARY_429 = problem(
    429,
    "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.",
    retry_after="60",
)
