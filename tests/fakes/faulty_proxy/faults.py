"""Faults between a client and an S3 server. Of the faults of any API, `Response` and `LoseResponse` are
supported too.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass

from tests.fakes.http import LoseResponse, Response


@dataclass(frozen=True)
class Delay:
    """The request is passed on unchanged after `delay_s`."""

    delay_s: float


@dataclass(frozen=True)
class CutRequest:
    """Both connections are reset after this many bytes of the request's body, or at its end if it is
    shorter.
    """

    after_bytes: int


@dataclass(frozen=True)
class CutResponse:
    """The client's connection is reset after this many bytes of the response's body; the reset may discard
    sent bytes.
    """

    after_bytes: int


@dataclass(frozen=True)
class TruncateResponse:
    """The response ends early, but in an orderly way. `hidden`: its Content-Length matches the shorter body,
    so that only the content shows the fault.
    """

    to_bytes: int
    hidden: bool = False


@dataclass(frozen=True)
class FlipRequest:
    """The byte at this offset of the request's body reaches the server with all bits flipped."""

    at_byte: int


@dataclass(frozen=True)
class FlipResponse:
    """The byte at this offset of the response's body reaches the client with all bits flipped."""

    at_byte: int


@dataclass(frozen=True)
class Strike:
    """`then` is called with the port from which the client has connected: before the server gets the request
    or, if that is `done`, before the client gets the response. If it returns that the client is gone, both
    connections are reset.
    """

    then: Callable[[int], bool]
    done: bool = False


Fault = (
    Delay
    | Response
    | CutRequest
    | LoseResponse
    | CutResponse
    | TruncateResponse
    | FlipRequest
    | FlipResponse
    | Strike
)


def s3_error(status: int, code: str, message: str, more: str = "") -> Response:
    """Return an error in S3's format; `more` is XML."""
    body = f"<Error><Code>{code}</Code><Message>{message}</Message>{more}<RequestId>FAULTY</RequestId><HostId>proxy</HostId></Error>"
    return Response(status, b'<?xml version="1.0" encoding="UTF-8"?>\n' + body.encode(), "application/xml")


INTERNAL_ERROR = s3_error(500, "InternalError", "We encountered an internal error. Please try again.")
SERVICE_UNAVAILABLE = s3_error(503, "ServiceUnavailable", "Service is unable to handle request.")
SLOW_DOWN = s3_error(503, "SlowDown", "Please reduce your request rate.")
TIME_TOO_SKEWED = s3_error(
    403, "RequestTimeTooSkewed", "The difference between the request time and the server's time is too large."
)
ACCESS_DENIED = s3_error(403, "AccessDenied", "Access Denied")
NO_SUCH_BUCKET = s3_error(404, "NoSuchBucket", "The specified bucket does not exist")
PERMANENT_REDIRECT = s3_error(
    301,
    "PermanentRedirect",
    "The bucket you are attempting to access must be addressed using the specified endpoint.",
    "<Endpoint>s3.elsewhere.invalid</Endpoint>",
)


@dataclass
class Exchange:
    """A request and its result. Byte counts are those of bodies: of the request as sent by the client, of the
    response as sent to it. `status` is 0 if the client got none.
    """

    method: str
    target: str
    request_bytes: int = 0
    response_bytes: int = 0
    status: int = 0
    fault: Fault | None = None

    def matches(self, method: str, path: str) -> bool:
        """Return whether the exchange matches: `method` in full; `path` is searched in path and query."""
        return re.fullmatch(method, self.method) is not None and re.search(path, self.target) is not None
