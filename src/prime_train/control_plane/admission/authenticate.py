"""Authenticates requests and resolves their paths before the body is parsed. Reads no store, never raises.

Checks in this order: size, path, method, form of the headers, clock, signature. Whether the body is valid, and belongs to the path, is
checked later.
"""

import hmac
import json
from collections.abc import Mapping
from functools import lru_cache

from prime_train import __version__
from prime_train.control_plane.admission.calls import CANARY, MarketCall, Request, RequestTarget, Response, StoreCall
from prime_train.control_plane.admission.keyring import Keyring
from prime_train.control_plane.admission.notices import VAST_PATH, NoticeCall, read_notice
from prime_train.control_plane.admission.responses import FENCED_STATUS, refuse, too_large
from prime_train.core.access.signing import (
    CLOCK_SKEW_S_MAX,
    MARKET_PATH,
    PROOF_HEADER,
    SIGNATURE_HEADER,
    STORE_PATH,
    TIMESTAMP_HEADER,
    body_bytes_max,
    prove,
    sign,
)
from prime_train.core.keys import is_identity, is_run_id

METHODS: Mapping[str, str] = {"heartbeat": "POST", "commit": "POST", "exit": "POST", "bootstrap": "GET", "keys": "POST", CANARY: "POST"}
"""The allowed HTTP method of each verb."""
PATH_CHARS_MAX = 128
PLACES_CACHED_MAX = 16_384
ATTEMPT_DIGITS_MAX = 9
TIMESTAMP_DIGITS_MAX = 12
SIGNATURE_CHARS = 67
METHOD_CHARS_MAX = 32
CANARY_PATH = "/v1/canary"
HEALTH_PATH = "/healthz"
RUN_PATH = "/v1/runs/"


def admit(keyring: Keyring, request: Request) -> Response | RequestTarget | StoreCall | MarketCall | NoticeCall:
    """Return the target of an authenticated request, or a refusal; for the health path, the health response."""
    if len(request.body) > body_bytes_max(request.path):
        return too_large(request.now_s, request.path)
    if request.path == HEALTH_PATH:
        return _health(request)
    if request.path.startswith(STORE_PATH):
        return _operator(keyring, request)
    if request.path == MARKET_PATH:
        return _market(keyring, request)
    if request.path == VAST_PATH:
        return read_notice(keyring, request)
    place = _place(request.path) if len(request.path) <= PATH_CHARS_MAX else None
    if place is None:
        return refuse(404, "there is nothing at this path", request.now_s)
    method = METHODS[place.verb]
    if request.method != method:
        return refuse(405, f"{place.verb} needs {method}", request.now_s, (("allow", method),))
    reason = _distrust(keyring.keys(place.run, place.attempt, place.identity), request)
    return place if reason is None else refuse(401, reason, request.now_s)


def proven(keyring: Keyring, request: Request, response: Response) -> Response:
    """Return a fence with the proof that it comes from here, and any other response to an admitted request as it is.

    An agent ends its training for a fence and for nothing else, so a proxy that answers in this place must not be able to write one.
    """
    place = _place(request.path) if response.status == FENCED_STATUS and len(request.path) <= PATH_CHARS_MAX else None
    if place is None:
        return response
    key = _key_of(keyring.keys(place.run, place.attempt, place.identity), request)
    if key is None:
        return response
    proof = prove(key, request.headers[SIGNATURE_HEADER], response.status, response.body)
    return response._replace(headers=(*response.headers, (PROOF_HEADER, proof)))


def _health(request: Request) -> Response:
    if request.method != "GET":
        return refuse(405, "health needs GET", request.now_s, (("allow", "GET"),))
    return Response(200, json.dumps({"version": __version__, "now_s": request.now_s}).encode())


@lru_cache(PLACES_CACHED_MAX)
def _place(path: str) -> RequestTarget | None:
    if path == CANARY_PATH:
        return RequestTarget(CANARY, CANARY, 1)
    parts = path.removeprefix(RUN_PATH).split("/") if path.startswith(RUN_PATH) else []
    if len(parts) != 3 or parts[2] not in METHODS or parts[2] == CANARY or not is_run_id(parts[0]):
        return None
    number, dash, identity = parts[1].partition("-")
    attempt = _number(number, ATTEMPT_DIGITS_MAX)
    return RequestTarget(parts[2], parts[0], attempt, identity) if attempt and (is_identity(identity) or not dash) else None


def _number(text: str, digits_max: int) -> int | None:
    """Return a plain decimal number without signs, spaces or leading zeros; None for any other text."""
    if not (0 < len(text) <= digits_max and text.isascii() and text.isdecimal()) or (text[0] == "0" and len(text) > 1):
        return None
    return int(text)


def _operator(keyring: Keyring, request: Request) -> Response | StoreCall:
    """Return a call of the store that is signed with the operator's key, or a refusal."""
    name = request.path.removeprefix(STORE_PATH)
    if not (name.isascii() and name.replace("_", "").isalpha() and len(name) <= METHOD_CHARS_MAX):
        return refuse(404, "there is nothing at this path", request.now_s)
    if request.method != "POST":
        return refuse(405, "the store needs POST", request.now_s, (("allow", "POST"),))
    reason = _distrust(keyring.operator_keys, request)
    return StoreCall(name, request.body) if reason is None else refuse(401, reason, request.now_s)


def _market(keyring: Keyring, request: Request) -> Response | MarketCall:
    """Return the call of a reader of the market, or a refusal. The operator's key is refused as well: it must not be where this call is
    made."""
    if request.method != "GET":
        return refuse(405, "the market needs GET", request.now_s, (("allow", "GET"),))
    reason = _distrust(keyring.market_keys, request)
    return MarketCall() if reason is None else refuse(401, reason, request.now_s)


def _distrust(keys: tuple[str, ...], request: Request) -> str | None:
    """Return why the request is not authenticated by any of the keys, or None if it is."""
    stamped, given = request.headers.get(TIMESTAMP_HEADER, ""), request.headers.get(SIGNATURE_HEADER, "")
    at_s = _number(stamped, TIMESTAMP_DIGITS_MAX)
    if at_s is None or len(given) != SIGNATURE_CHARS or not given.startswith("v1=") or not given.isascii():
        return f"{TIMESTAMP_HEADER} (whole seconds) and {SIGNATURE_HEADER} (v1=<64 hex digits>) are required"
    if abs(request.now_s - at_s) > CLOCK_SKEW_S_MAX:
        return f"the clock is off by {at_s - request.now_s} s, more than {CLOCK_SKEW_S_MAX} s; sign with now_s"
    return "the signature is not valid for this path" if _key_of(keys, request) is None else None


def _key_of(keys: tuple[str, ...], request: Request) -> str | None:
    """Return the key that has signed the request, whose headers have the right form; None if none of these has."""
    at_s, given = int(request.headers[TIMESTAMP_HEADER]), request.headers[SIGNATURE_HEADER]
    for key in keys:
        if hmac.compare_digest(sign(key, at_s, request.method, request.path, request.body), given):
            return key
    return None
