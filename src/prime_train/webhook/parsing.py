"""From a request to the call in it, or to the refusal: who is it, and what is asked. Asks nobody, never raises.

The checks, in this order: size, path, method, form of the headers, clock, signature, body, body against path.
"""

import hmac
import json
from functools import lru_cache

from pydantic import ValidationError

from prime_train import __version__
from prime_train.core.keys import is_run_id
from prime_train.core.wire import CLOCK_SKEW_S_MAX, SIGNATURE_HEADER, STORE_PATH, TIMESTAMP_HEADER, body_bytes_max, operator_key, sign
from prime_train.webhook.bodies import VERBS, Odd, Place, describe
from prime_train.webhook.calls import CANARY, Call, Request, Response, StoreCall
from prime_train.webhook.desk import Desk
from prime_train.webhook.responses import refuse, too_large

PATH_CHARS_MAX = 128
PLACES_CACHED_MAX = 16_384
EPOCH_DIGITS_MAX = 9
TIMESTAMP_DIGITS_MAX = 12
SIGNATURE_CHARS = 67
METHOD_CHARS_MAX = 32
CANARY_PATH = "/v1/canary"
HEALTH_PATH = "/healthz"
RUN_PATH = "/v1/runs/"


def parse(desk: Desk, request: Request) -> Response | Call:
    """The call in a request, or the response that refuses it. Asks nobody and never raises."""
    if len(request.body) > body_bytes_max(request.path):
        return too_large(request.now_s, request.path)
    if request.path == HEALTH_PATH:
        return _health(request)
    if request.path.startswith(STORE_PATH):
        return _operator(desk, request)
    place = _place(request.path) if len(request.path) <= PATH_CHARS_MAX else None
    if place is None:
        return refuse(404, "there is nothing at this path", request.now_s)
    method, parser = VERBS[place.verb]
    if request.method != method:
        return refuse(405, f"{place.verb} is asked with {method}", request.now_s, (("allow", method),))
    reason = _distrust(desk.keys(place.run, place.epoch), request)
    if reason is not None:
        return refuse(401, reason, request.now_s)
    try:
        return parser(place, request.body)
    except ValidationError as error:
        return refuse(422, describe(error), request.now_s)
    except Odd as error:
        return refuse(422, str(error), request.now_s)


def _health(request: Request) -> Response:
    if request.method != "GET":
        return refuse(405, "health is asked with GET", request.now_s, (("allow", "GET"),))
    return Response(200, json.dumps({"version": __version__, "now_s": request.now_s}).encode())


@lru_cache(PLACES_CACHED_MAX)
def _place(path: str) -> Place | None:
    if path == CANARY_PATH:
        return Place(CANARY, CANARY, 1)
    parts = path.removeprefix(RUN_PATH).split("/") if path.startswith(RUN_PATH) else []
    if len(parts) != 3 or parts[2] not in VERBS or parts[2] == CANARY or not is_run_id(parts[0]):
        return None
    epoch = _number(parts[1], EPOCH_DIGITS_MAX)
    return Place(parts[2], parts[0], epoch) if epoch else None


def _number(text: str, digits_max: int) -> int | None:
    """A plain decimal number without signs, spaces or leading zeros."""
    if not (0 < len(text) <= digits_max and text.isascii() and text.isdecimal()) or (text[0] == "0" and len(text) > 1):
        return None
    return int(text)


def _operator(desk: Desk, request: Request) -> Response | Call:
    """A call of the store, signed by whoever has the master key."""
    name = request.path.removeprefix(STORE_PATH)
    if not (name.isascii() and name.replace("_", "").isalpha() and len(name) <= METHOD_CHARS_MAX):
        return refuse(404, "there is nothing at this path", request.now_s)
    if request.method != "POST":
        return refuse(405, "the store is asked with POST", request.now_s, (("allow", "POST"),))
    reason = _distrust(tuple(operator_key(master) for master in desk.masters), request)
    return StoreCall(name, request.body) if reason is None else refuse(401, reason, request.now_s)


def _distrust(keys: tuple[str, ...], request: Request) -> str | None:
    """Why the request is not believed to come from whoever has one of the keys, or None."""
    stamped, given = request.headers.get(TIMESTAMP_HEADER, ""), request.headers.get(SIGNATURE_HEADER, "")
    at_s = _number(stamped, TIMESTAMP_DIGITS_MAX)
    if at_s is None or len(given) != SIGNATURE_CHARS or not given.startswith("v1=") or not given.isascii():
        return f"{TIMESTAMP_HEADER} (whole seconds) and {SIGNATURE_HEADER} (v1=<64 hex digits>) are needed"
    if abs(request.now_s - at_s) > CLOCK_SKEW_S_MAX:
        return f"the clock is off by {at_s - request.now_s} s, more than {CLOCK_SKEW_S_MAX}; sign by now_s"
    for key in keys:
        if hmac.compare_digest(sign(key, at_s, request.method, request.path, request.body), given):
            return None
    return "the signature is none of this path's"
