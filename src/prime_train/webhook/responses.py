"""Responses: the reply to a heartbeat or commit, and the format of all refusals. They have the form of the
wire's `Reply`, with one name for agents of old, and `Refusal`.
"""

import json
from collections.abc import Mapping
from functools import lru_cache

from prime_train.errors import ExternalError, TemporaryError
from prime_train.pages.dashboard.requests import Headers
from prime_train.runs.signing import body_bytes_max
from prime_train.webhook.requests import Response

HEARTBEAT_S = 30
"""The heartbeat interval in seconds in replies to an unknown run."""
OK, FENCED = "ok", "fenced"
FENCED_STATUS = 409
REPLIES_CACHED_MAX = 16_384
RETRY_S = 2
DELAY_S_MAX = 600
CLOSE: Headers = (("connection", "close"),)


@lru_cache(REPLIES_CACHED_MAX)
def reply(
    outcome: str, order: str, reason: str, pace_s: int, committed_step: int, now_s: int, wakes: bool = False
) -> Response:
    """Return the response to a heartbeat or a commit. Cached, because most heartbeats of one second get the
    same response.
    """
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


class Refused(Exception):
    """A request is not carried out: the status, the reason for whoever sent it, and headers of the
    response.
    """

    def __init__(self, status: int, why: str, headers: Headers = ()) -> None:
        super().__init__(why)
        self.status, self.headers = status, headers

    def response(self, now_s: int) -> Response:
        """Return the refusal in the format of all refusals."""
        return Response(self.status, _json({"error": str(self), "now_s": now_s}), headers=self.headers)


def nothing_here() -> Refused:
    return Refused(404, "there is nothing at this path")


def too_large(path: str) -> Refused:
    """Return a refusal that closes the connection, so that the rest of the body is not read."""
    return Refused(413, f"the body has more than {body_bytes_max(path)} bytes", CLOSE)


def busy(why: str) -> Refused:
    """Return a refusal for now, with the time after which to try again."""
    return Refused(503, why, (("retry-after", str(RETRY_S)),))


def unavailable(error: ExternalError) -> Refused:
    """Return the refusal for a store that does not answer; whether the write took effect is unknown, and a
    retry is safe.
    """
    delay_s = int(error.delay_s) if isinstance(error, TemporaryError) else 0
    delay_s = min(max(RETRY_S, delay_s), DELAY_S_MAX)
    return Refused(503, "the store does not answer; retry later", (("retry-after", str(delay_s)),))


def overloaded() -> Refused:
    """Return the refusal for a full queue."""
    return busy("too many requests are waiting; retry later")


def bug() -> Refused:
    return Refused(500, "a bug in the control plane; see its log")


def _json(content: Mapping[str, object]) -> bytes:
    """Return the JSON as the wire's models serialise it; a lone surrogate, which they cannot serialise,
    becomes a question mark.
    """
    return json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
