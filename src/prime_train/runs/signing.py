"""Signatures and size limits of requests, on which both ends must agree before either reads a body."""

import hashlib
import hmac
import re

BODY_BYTES_MAX = 64 * 1024
STORE_PATH = "/v1/store/"
"""Path below which the operator calls the methods of the store."""
OFFERS_PATH = STORE_PATH + "offers"
"""Path at which the offers of the control plane's providers are read, also with the market's key."""
MARKET_PATH = "/v1/market"
"""Path at which the figures are read by which machines are compared."""
STORE_BODY_BYTES_MAX = 512 * 1024
"""Size limit in bytes of the body of a store call: enough for a run with all its attempts and its config."""
CLOCK_SKEW_S_MAX = 60
"""How far the signed time of a request may differ from the server's, in seconds. Well below the shortest
default silence limit of a machine, so that a delayed heartbeat is not taken for a current sign of life. A
client with another clock receives the server's time, and signs by that.
"""
TIMESTAMP_HEADER = "x-pt-timestamp"
SIGNATURE_HEADER = "x-pt-signature"
PROOF_HEADER = "x-pt-proof"
"""Header of a response that proves that the control plane itself has fenced the attempt."""
MARKET_KEY_PREFIX = "pt_market_"
_MARKET_KEY = re.compile(MARKET_KEY_PREFIX + "[0-9a-f]{64}")


def attempt_key(master: bytes, run_id: str, attempt: int, identity: str = "") -> str:
    """Return the attempt's own key: HMAC(master, run, attempt, identity), hex. It is derived, not stored; a
    fence makes it worthless.
    """
    named = "|".join(("pt/attempt/v1", run_id, str(attempt), *filter(None, [identity])))
    return hmac.new(master, named.encode(), hashlib.sha256).hexdigest()


def record_key_of(master: bytes) -> bytes:
    """Return the key that seals the control plane's records of runs in the bucket."""
    return hmac.new(master, b"pt/record/v1", hashlib.sha256).digest()


def attempt_path(run_id: str, attempt: int, identity: str, verb: str) -> str:
    """Return the URL path of a request of an attempt, which its signature covers."""
    return f"/v1/runs/{run_id}/{attempt}{'-' if identity else ''}{identity}/{verb}"


def operator_key(master: bytes) -> str:
    """Return the operator's key, hex, which permits everything that a watcher does: launch, watch, stop."""
    return hmac.new(master, b"pt/operator/v1", hashlib.sha256).hexdigest()


def market_key(master: bytes) -> str:
    """Return the key that permits reading the market's figures and offers, and nothing else. Its prefix tells
    it from the master key, which must not be given to a job in its place.
    """
    return MARKET_KEY_PREFIX + hmac.new(master, b"pt/market/v1", hashlib.sha256).hexdigest()


def is_market_key(text: str) -> bool:
    """Return whether the text has the form of a market key."""
    return _MARKET_KEY.fullmatch(text) is not None


def body_bytes_max(path: str) -> int:
    """Return the largest allowed body of a request to `path`, in bytes."""
    return STORE_BODY_BYTES_MAX if path.startswith(STORE_PATH) else BODY_BYTES_MAX


def server_time_s(refusal: object) -> int | None:
    """Return the server's time in seconds from the parsed JSON of a refusal; None if it has none."""
    now_s = refusal.get("now_s") if isinstance(refusal, dict) else None
    return now_s if isinstance(now_s, int) and not isinstance(now_s, bool) and now_s > 0 else None


def sign(key: str, timestamp_s: int, method: str, path: str, body: bytes) -> str:
    """Return the signature of one request: HMAC(key, "v1:timestamp:METHOD:length of path:path:body"), hex,
    prefixed with its version. The length marks where the path ends, so that no two requests have the same
    signed text.
    """
    head = f"v1:{timestamp_s}:{method}:{len(path)}:{path}:".encode()
    return "v1=" + hmac.new(key.encode(), head + body, hashlib.sha256).hexdigest()


def prove(key: str, signature: str, status: int, body: bytes) -> str:
    """Return the proof that the response with this status and body answers the request with that signature:
    HMAC(key, "v1:proof:signature: status:body"), hex, prefixed with its version. Nobody on the way between
    the two ends has the key.
    """
    head = f"v1:proof:{signature}:{status}:".encode()
    return "v1=" + hmac.new(key.encode(), head + body, hashlib.sha256).hexdigest()
