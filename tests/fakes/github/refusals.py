"""How the fake says no, in GitHub's words."""

import json
from collections.abc import Mapping, Sequence

from tests.fakes.prime.faults import Answer

DOCS = "https://docs.github.com/rest"
OUTSIDE = 599
"""What is asked or answered outside GitHub's description of its API."""


class Refused(Exception):
    """The request is answered with this. `errors`: what is wrong with each field."""

    def __init__(
        self, status: int, message: str, *, errors: Sequence[Mapping[str, object]] = (), headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.errors = errors
        self.headers = headers or {}

    def answer(self) -> Answer:
        body: dict[str, object] = {"message": self.message, "documentation_url": DOCS, "status": str(self.status)}
        if self.errors:
            body["errors"] = list(self.errors)
        return Answer(self.status, json.dumps(body).encode(), "application/json; charset=utf-8", self.headers)


def not_found() -> Refused:
    return Refused(404, "Not Found")


def invalid(resource: str, field: str, message: str, code: str = "custom") -> Refused:
    """A 422 for one field."""
    return Refused(422, "Validation Failed", errors=[{"resource": resource, "code": code, "field": field, "message": message}])


def problem(status: int, message: str, **headers: str) -> Answer:
    """An answer to order as a fault; `_` in a header's name stands for `-`."""
    return Refused(status, message, headers={name.replace("_", "-"): value for name, value in headers.items()}).answer()


SERVER_ERROR = problem(500, "Server Error")
BAD_GATEWAY = Answer(502, b"<html><head><title>Unicorn!</title></head><body>502</body></html>", "text/html")
UNAVAILABLE = problem(503, "Service Unavailable")
SECONDARY_403 = problem(403, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.", retry_after="60")
SECONDARY_429 = problem(429, "You have exceeded a secondary rate limit. Please wait a few minutes before you try again.", retry_after="60")
