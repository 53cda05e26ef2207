"""Responses: the reply to a heartbeat or commit, and the format of all refusals. They have the form of the wire's `Reply`, with one name
for agents of old, and `Refusal`."""

import json
from collections.abc import Callable, Mapping
from functools import lru_cache

from prime_train.control_plane.admission.calls import Headers, Response
from prime_train.core.access.signing import body_bytes_max
from prime_train.core.errors import ExternalError, TemporaryError

HEARTBEAT_S = 30
"""The heartbeat interval in seconds in replies to an unknown run."""
OK, FENCED = "ok", "fenced"
FENCED_STATUS = 409
REPLIES_CACHED_MAX = 16_384
RETRY_S = 2
DELAY_S_MAX = 600


@lru_cache(REPLIES_CACHED_MAX)
def reply(outcome: str, order: str, reason: str, pace_s: int, committed_step: int, now_s: int, wakes: bool = False) -> Response:
    """Return the response to a heartbeat or a commit. Cached, because most heartbeats of one second get the same response."""
    content = {
        "outcome": outcome,
        "order": order,
        "reason": reason,
        "heartbeat_s": pace_s,
        "committed_step": committed_step,
        "now_s": now_s,
        "verdict": outcome,  # what agents from before 2026-11-23 call it
    }
    return Response(FENCED_STATUS if outcome == FENCED else 200, _json(content), wakes)


def answer_to(
    outcome: str, order: str, reason: str, *, committed_step: int, pace_s: Callable[[], int], is_news: bool, now_s: int
) -> Response:
    """Return the response to a heartbeat or commit that the store has answered. `pace_s` returns the run's heartbeat interval, which a
    machine that was replaced is not given; `is_news`: the run is due now, so the watcher is woken."""
    interval_s = HEARTBEAT_S if outcome == FENCED else pace_s()
    return reply(outcome, order, reason, interval_s, committed_step, now_s, is_news and outcome == OK)


def refuse(status: int, why: str, now_s: int, headers: Headers = ()) -> Response:
    """Return a refusal in the format of all refusals."""
    return Response(status, _json({"error": why, "now_s": now_s}), headers=headers)


def too_large(now_s: int, path: str) -> Response:
    """Return a refusal that closes the connection, so that the rest of the body is not read."""
    return refuse(413, f"the body has more than {body_bytes_max(path)} bytes", now_s, (("connection", "close"),))


def unavailable(error: ExternalError, now_s: int) -> Response:
    """Return the refusal for a store that does not answer; whether the write took effect is unknown, and a retry is safe."""
    delay_s = int(error.delay_s) if isinstance(error, TemporaryError) else 0
    delay_s = min(max(RETRY_S, delay_s), DELAY_S_MAX)
    return refuse(503, "the store does not answer; retry later", now_s, (("retry-after", str(delay_s)),))


def overloaded(now_s: int) -> Response:
    """Return the refusal for a full queue."""
    return refuse(503, "too many requests are waiting; retry later", now_s, (("retry-after", str(RETRY_S)),))


def _json(content: Mapping[str, object]) -> bytes:
    """Return the JSON as the wire's models serialise it; a lone surrogate, which they cannot serialise, becomes a question mark."""
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
