"""Authenticates requests and resolves their paths before the body is parsed. Reads no store; what is not
admitted is `Refused`.

Checks in this order: size, path, method, form of the headers, clock, signature. Whether the body is valid,
and belongs to the path, is checked later.
"""

import hmac
import json
import re
from collections.abc import Mapping
from functools import lru_cache

from prime_train.buckets.keys import is_identity, is_run_id
from prime_train.runs.launch_key import LAUNCH_KEY_HEADER, LAUNCH_KEY_PATH, is_key_name
from prime_train.runs.signing import (
    CLOCK_SKEW_S_MAX,
    MARKET_PATH,
    OFFERS_PATH,
    PROOF_HEADER,
    SIGNATURE_HEADER,
    STORE_PATH,
    TIMESTAMP_HEADER,
    body_bytes_max,
    prove,
    sign,
)
from prime_train.webhook.keyring import Keyring
from prime_train.webhook.notices import VAST_PATH, NoticeCall, read_notice
from prime_train.webhook.requests import (
    CANARY,
    GithubCall,
    LaunchCall,
    MarketCall,
    Request,
    RequestTarget,
    Response,
    StoreCall,
)
from prime_train.webhook.responses import FENCED_STATUS, Refused, nothing_here, too_large

METHODS: Mapping[str, str] = {
    "heartbeat": "POST",
    "commit": "POST",
    "exit": "POST",
    "bootstrap": "GET",
    "keys": "POST",
    CANARY: "POST",
}
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
_TOKEN = re.compile(r"[A-Za-z0-9_-]{1,8000}\.[A-Za-z0-9_-]{1,8000}\.[A-Za-z0-9_-]{1,2000}")


Admitted = RequestTarget | StoreCall | LaunchCall | GithubCall | MarketCall | NoticeCall


def admit(keyring: Keyring, request: Request) -> Admitted:
    """Return the target of an authenticated request. Raises Refused for any other."""
    if len(request.body) > body_bytes_max(request.path):
        raise too_large(request.path)
    if request.path == HEALTH_PATH:
        raise _needs("health", "GET")
    if request.path.startswith(STORE_PATH):
        return _operator(keyring, request)
    if request.path == LAUNCH_KEY_PATH:
        return _github(request)
    if request.path == MARKET_PATH:
        # The call of a reader of the market. The operator's key is refused: it must not be where this call is
        # made.
        if request.method != "GET":
            raise _needs("the market", "GET")
        _authenticate(keyring.market_keys, request)
        return MarketCall()
    if request.path == VAST_PATH:
        return read_notice(keyring, request)
    place = _place(request.path) if len(request.path) <= PATH_CHARS_MAX else None
    if place is None:
        raise nothing_here()
    method = METHODS[place.verb]
    if request.method != method:
        raise _needs(place.verb, method)
    _authenticate(keyring.keys(place.run, place.attempt, place.identity), request)
    return place


def proven(keyring: Keyring, request: Request, response: Response) -> Response:
    """Return a fence with the proof that it comes from here, and any other response to an admitted request as
    it is.

    An agent ends its training for a fence and for nothing else, so a proxy that answers in this place must
    not be able to write one.
    """
    place = (
        _place(request.path)
        if response.status == FENCED_STATUS and len(request.path) <= PATH_CHARS_MAX
        else None
    )
    if place is None:
        return response
    key = _key_of(keyring.keys(place.run, place.attempt, place.identity), request)
    if key is None:
        return response
    proof = prove(key, request.headers[SIGNATURE_HEADER], response.status, response.body)
    return response._replace(headers=(*response.headers, (PROOF_HEADER, proof)))


def _needs(what: str, method: str) -> Refused:
    return Refused(405, f"{what} needs {method}", (("allow", method),))


@lru_cache(PLACES_CACHED_MAX)
def _place(path: str) -> RequestTarget | None:
    if path == CANARY_PATH:
        return RequestTarget(CANARY, CANARY, 1)
    parts = path.removeprefix(RUN_PATH).split("/") if path.startswith(RUN_PATH) else []
    if len(parts) != 3 or parts[2] not in METHODS or parts[2] == CANARY or not is_run_id(parts[0]):
        return None
    number, dash, identity = parts[1].partition("-")
    attempt = _number(number, ATTEMPT_DIGITS_MAX)
    return (
        RequestTarget(parts[2], parts[0], attempt, identity)
        if attempt and (is_identity(identity) or not dash)
        else None
    )


def _number(text: str, digits_max: int) -> int | None:
    """Return a plain decimal number without signs, spaces or leading zeros; None for any other text."""
    if not (0 < len(text) <= digits_max and text.isascii() and text.isdecimal()) or (
        text[0] == "0" and len(text) > 1
    ):
        return None
    return int(text)


def _github(request: Request) -> GithubCall:
    """Return the request for a launch key. Its token is verified when the call is carried out, because that
    needs GitHub's keys.
    """
    if request.method != "POST":
        raise _needs("a launch key", "POST")
    try:
        content = json.loads(request.body)
    except (ValueError, RecursionError):
        content = None
    token = content.get("token") if isinstance(content, dict) else None
    if not isinstance(token, str) or not _TOKEN.fullmatch(token):
        raise Refused(
            422, 'the body must be {"token": "..."}, with the token that GitHub has signed for the job'
        )
    return GithubCall(token)


def _operator(keyring: Keyring, request: Request) -> StoreCall | LaunchCall:
    """Return a call of the store that is signed with the operator's key or a launch key. Offers may be read
    with the market's key, too.
    """
    name = request.path.removeprefix(STORE_PATH)
    if not (name.isascii() and name.replace("_", "").isalpha() and len(name) <= METHOD_CHARS_MAX):
        raise nothing_here()
    if request.method != "POST":
        raise _needs("the store", "POST")
    launch_key = request.headers.get(LAUNCH_KEY_HEADER, "")
    if launch_key:
        if not is_key_name(launch_key):
            raise Refused(401, f"{LAUNCH_KEY_HEADER} must name a launch key")
        _authenticate(keyring.launch_secrets(launch_key), request)
        return LaunchCall(name, request.body, launch_key)
    _authenticate(
        (*keyring.operator_keys, *(keyring.market_keys if request.path == OFFERS_PATH else ())), request
    )
    return StoreCall(name, request.body)


def _authenticate(keys: tuple[str, ...], request: Request) -> None:
    """Raise Refused unless one of the keys has signed the request, within the tolerance of the clocks."""
    stamped, given = request.headers.get(TIMESTAMP_HEADER, ""), request.headers.get(SIGNATURE_HEADER, "")
    at_s = _number(stamped, TIMESTAMP_DIGITS_MAX)
    if at_s is None or len(given) != SIGNATURE_CHARS or not given.startswith("v1=") or not given.isascii():
        raise Refused(
            401,
            f"{TIMESTAMP_HEADER} (whole seconds) and {SIGNATURE_HEADER} (v1=<64 hex digits>) are required",
        )
    if abs(request.now_s - at_s) > CLOCK_SKEW_S_MAX:
        raise Refused(
            401,
            f"the clock is off by {at_s - request.now_s} s, more than {CLOCK_SKEW_S_MAX} s; sign with now_s",
        )
    if _key_of(keys, request) is None:
        raise Refused(401, "the signature is not valid for this path")


def _key_of(keys: tuple[str, ...], request: Request) -> str | None:
    """Return the key that has signed the request, whose headers have the right form; None if none of these
    has.
    """
    at_s, given = int(request.headers[TIMESTAMP_HEADER]), request.headers[SIGNATURE_HEADER]
    for key in keys:
        if hmac.compare_digest(sign(key, at_s, request.method, request.path, request.body), given):
            return key
    return None
