"""What intermediaries answer in the control plane's place: proxies, gateways, login pages, and old caches."""

from prime_train.runs.wire import Outcome, Reply
from tests.fakes.faulty_proxy import Delay, Fault, FlipResponse, TruncateResponse
from tests.fakes.http import LoseResponse, Response

PAGE = (
    b"<!doctype html><html><head><title>Sign in</title></head><body>Please sign in to continue.</body></html>"
)
FENCED = Reply(outcome=Outcome.FENCED, reason="another attempt holds the lease").model_dump_json().encode()
STATUSES = (
    *(
        201,
        204,
        301,
        302,
        400,
        401,
        402,
        403,
        404,
        405,
        408,
        409,
        410,
        411,
        413,
        418,
        421,
        425,
        426,
        429,
        451,
    ),
    *(500, 501, 502, 503, 504, 511),
)

ANSWERS: tuple[Fault, ...] = (
    *(Response(status) for status in STATUSES),
    *(Response(status, PAGE, "text/html") for status in (200, 403, 404, 409, 502, 503)),
    *(Response(status, FENCED) for status in (200, 403, 409, 410)),
    Response(200, b"{}"),
    Response(200, b"null"),
    Response(200, Reply(outcome=Outcome.OK).model_dump_json().encode()),
    TruncateResponse(0),
    TruncateResponse(7),
    TruncateResponse(7, hidden=True),
    FlipResponse(3),
    LoseResponse(),
    Delay(3),
)
