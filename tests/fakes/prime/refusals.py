"""Refusals of Prime and of its gateways: a status and a body in one of their formats."""

from collections.abc import Sequence
from enum import StrEnum

from pydantic import ValidationError

from tests.fakes.http import Refusal, Response, json_response


def detail(status: int, text: str, **headers: str) -> Response:
    """Return a refusal whose `text` for people is the only reason given."""
    return json_response({"detail": text}, status, headers)


class Refused(Refusal):
    def __init__(self, status: int, text: str) -> None:
        super().__init__(detail(status, text))


class InvalidForm(StrEnum):
    """The two formats of a 422's body."""

    ERRORS = "errors"
    DETAIL = "detail"


def invalid(error: ValidationError, form: InvalidForm) -> dict[str, object]:
    """Return the body of a 422 for an invalid body of a request."""
    found = error.errors(include_url=False, include_context=False, include_input=False)
    match form:
        case InvalidForm.ERRORS:
            return {"errors": [{"param": _dotted(each["loc"]), "details": each["msg"]} for each in found]}
        case InvalidForm.DETAIL:
            return {
                "detail": [
                    {"type": each["type"], "loc": ["body", *each["loc"]], "msg": each["msg"]}
                    for each in found
                ]
            }


def _dotted(place: Sequence[int | str]) -> str:
    return ".".join(str(step) for step in place)


def _page(status: int, title: str) -> Response:
    return Response(
        status,
        f"<html><head><title>{status} {title}</title></head><body><h1>{title}</h1></body></html>".encode(),
        "text/html",
    )


TOO_MANY = detail(429, "Too many requests", **{"Retry-After": "1"})
SERVER_ERROR = detail(500, "Internal Server Error")
BAD_GATEWAY = _page(502, "Bad Gateway")
UNAVAILABLE = _page(503, "Service Temporarily Unavailable")
NO_STOCK_400 = detail(400, "Requested GPU is out of stock")
NO_STOCK_409 = detail(409, "No capacity left for this configuration")
NO_STOCK_503 = detail(503, "The provider is currently unavailable")
NO_FUNDS = detail(402, "Insufficient balance")
