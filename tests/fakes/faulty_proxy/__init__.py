"""A faulty connection to an S3 server: a reverse proxy for HTTP/1.1 on loopback with faults set by the test.

Each connection of a client has a thread and one connection to the server behind it; their exchanges are
passed on one at a time, in pieces, heads byte by byte as they came. So `Host`, and with it every signature,
stays right, and keep-alive ends where either side ends it. `Expect: 100-continue` is the server's to answer.
A body in chunks is passed on in chunks of other sizes; its bytes are counted without the framing of HTTP, but
with that of `aws-chunked`.

A request meets one fault at most. Every exchange is recorded before the client can see its effect.
"""

from tests.fakes.faulty_proxy.faults import (
    ACCESS_DENIED,
    INTERNAL_ERROR,
    NO_SUCH_BUCKET,
    PERMANENT_REDIRECT,
    SERVICE_UNAVAILABLE,
    SLOW_DOWN,
    TIME_TOO_SKEWED,
    CutRequest,
    CutResponse,
    Delay,
    Exchange,
    Fault,
    FlipRequest,
    FlipResponse,
    Strike,
    TruncateResponse,
    s3_error,
)
from tests.fakes.faulty_proxy.proxy import FaultyProxy

__all__ = [
    "ACCESS_DENIED",
    "INTERNAL_ERROR",
    "NO_SUCH_BUCKET",
    "PERMANENT_REDIRECT",
    "SERVICE_UNAVAILABLE",
    "SLOW_DOWN",
    "TIME_TOO_SKEWED",
    "CutRequest",
    "CutResponse",
    "Delay",
    "Exchange",
    "Fault",
    "FaultyProxy",
    "FlipRequest",
    "FlipResponse",
    "Strike",
    "TruncateResponse",
    "s3_error",
]
