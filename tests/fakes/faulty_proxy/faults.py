"""What can go wrong on the way, and with which requests."""

import re
from collections.abc import Callable
from dataclasses import dataclass

ALWAYS = 1_000_000
"""For `times`: every request there will be."""


@dataclass(frozen=True)
class Delay:
    """The request is passed on `delay_s` later, then as it is."""

    delay_s: float


@dataclass(frozen=True)
class Answer:
    """The client gets this instead; the server hears nothing."""

    status: int
    body: bytes = b""


@dataclass(frozen=True)
class CutRequest:
    """Both connections are reset after so many bytes of the request's body, or at its end where it is shorter."""

    after_bytes: int


@dataclass(frozen=True)
class LoseResponse:
    """The server has answered, so it has done what was asked; the client's connection is reset without a word."""


@dataclass(frozen=True)
class CutResponse:
    """The client's connection is reset after so many bytes of the response's body; a reset may take sent bytes with it."""

    after_bytes: int


@dataclass(frozen=True)
class TruncateResponse:
    """The response ends early and in order. `hidden`: its Content-Length says so too, so that only the contents can tell."""

    to_bytes: int
    hidden: bool = False


@dataclass(frozen=True)
class FlipRequest:
    """The byte at this offset of the request's body reaches the server with all bits turned."""

    at_byte: int


@dataclass(frozen=True)
class FlipResponse:
    """The same on the way back."""

    at_byte: int


@dataclass(frozen=True)
class Strike:
    """`then` is called with the port from which the client has connected: before the server hears of the request, or, where that is `done`,
    before the client hears of it. Where it says that the client is gone, both connections are reset."""

    then: Callable[[int], bool]
    done: bool = False


Fault = Delay | Answer | CutRequest | LoseResponse | CutResponse | TruncateResponse | FlipRequest | FlipResponse | Strike


def s3_error(status: int, code: str, message: str, more: str = "") -> Answer:
    """As S3 words its errors; `more` is XML."""
    body = f"<Error><Code>{code}</Code><Message>{message}</Message>{more}<RequestId>FAULTY</RequestId><HostId>proxy</HostId></Error>"
    return Answer(status, b'<?xml version="1.0" encoding="UTF-8"?>\n' + body.encode())


INTERNAL_ERROR = s3_error(500, "InternalError", "We encountered an internal error. Please try again.")
SERVICE_UNAVAILABLE = s3_error(503, "ServiceUnavailable", "Service is unable to handle request.")
SLOW_DOWN = s3_error(503, "SlowDown", "Please reduce your request rate.")
TIME_TOO_SKEWED = s3_error(403, "RequestTimeTooSkewed", "The difference between the request time and the server's time is too large.")
ACCESS_DENIED = s3_error(403, "AccessDenied", "Access Denied")
NO_SUCH_BUCKET = s3_error(404, "NoSuchBucket", "The specified bucket does not exist")
PERMANENT_REDIRECT = s3_error(
    301,
    "PermanentRedirect",
    "The bucket you are attempting to access must be addressed using the specified endpoint.",
    "<Endpoint>s3.elsewhere.invalid</Endpoint>",
)


@dataclass(frozen=True)
class Rule:
    """The fault for `times` requests of those that match, from the `first` on, counted from 1. `path` is searched in path and query."""

    fault: Fault
    method: str = ".*"
    path: str = ""
    first: int = 1
    times: int = 1


@dataclass
class Exchange:
    """A request and what came of it. Bytes are those of bodies: of the request as the client sent them, of the response as they were sent
    to it. `status` is 0 where the client was told none."""

    method: str
    target: str
    request_bytes: int = 0
    response_bytes: int = 0
    status: int = 0
    fault: Fault | None = None


def matches(seen: Exchange, method: str, path: str) -> bool:
    return re.fullmatch(method, seen.method) is not None and re.search(path, seen.target) is not None
