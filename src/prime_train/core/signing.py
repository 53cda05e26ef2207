"""How a request proves whose it is, and how large it may be: what both ends of the wire must agree on before either reads a body."""

import hashlib
import hmac

BODY_BYTES_MAX = 64 * 1024
STORE_PATH = "/v1/store/"
"""Under it the operator calls the store's own methods."""
STORE_BODY_BYTES_MAX = 512 * 1024
"""A run with all its attempts, and its config."""
CLOCK_SKEW_S_MAX = 60
"""How far the time a request was signed at may be from the server's, in seconds. Well below the shortest time that a machine may be silent
by default: a heartbeat that was held up on its way must not be taken for a sign of life of now. Whoever has another clock is told the
server's, and signs by that."""
TIMESTAMP_HEADER = "x-pt-timestamp"
SIGNATURE_HEADER = "x-pt-signature"


def attempt_key(master: bytes, run_id: str, attempt: int, identity: str = "") -> str:
    """The attempt's own key: HMAC(master, run, attempt, identity), hex. Nothing is stored; a fence makes it worthless."""
    named = "|".join(("pt/attempt/v1", run_id, str(attempt), *filter(None, [identity])))
    return hmac.new(master, named.encode(), hashlib.sha256).hexdigest()


def record_key_of(master: bytes) -> bytes:
    """The key that seals what the control plane records of runs in the bucket."""
    return hmac.new(master, b"pt/record/v1", hashlib.sha256).digest()


def attempt_path(run_id: str, attempt: int, identity: str, verb: str) -> str:
    """What an attempt calls, as it is signed."""
    return f"/v1/runs/{run_id}/{attempt}{'-' if identity else ''}{identity}/{verb}"


def operator_key(master: bytes) -> str:
    """The key of whoever may do all that a watcher does: launch, watch, stop. Hex."""
    return hmac.new(master, b"pt/operator/v1", hashlib.sha256).hexdigest()


def body_bytes_max(path: str) -> int:
    """How large the body of a request to `path` may be."""
    return STORE_BODY_BYTES_MAX if path.startswith(STORE_PATH) else BODY_BYTES_MAX


def told_time_s(refusal: object) -> int | None:
    """The server's time in a refusal, as parsed from its JSON; None where it tells none."""
    now_s = refusal.get("now_s") if isinstance(refusal, dict) else None
    return now_s if isinstance(now_s, int) and not isinstance(now_s, bool) and now_s > 0 else None


def sign(key: str, timestamp_s: int, method: str, path: str, body: bytes) -> str:
    """Signature of one request: HMAC(key, "v1:timestamp:METHOD:length of path:path:body"), hex, with its version in front. The length says
    where the path ends, so that no two requests are signed alike."""
    head = f"v1:{timestamp_s}:{method}:{len(path)}:{path}:".encode()
    return "v1=" + hmac.new(key.encode(), head + body, hashlib.sha256).hexdigest()
