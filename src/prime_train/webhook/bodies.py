"""Parses a body with the wire models, and checks it against the path of the request."""

from collections.abc import Callable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from prime_train.buckets.keys import manifest_key
from prime_train.runs.wire import Commit, Heartbeat, Nonce
from prime_train.webhook.agent_calls import (
    BootstrapCall,
    Call,
    CanaryCall,
    CommitCall,
    HeartbeatCall,
    KeysCall,
)
from prime_train.webhook.requests import CANARY, RequestTarget
from prime_train.webhook.responses import Refused

ERRORS_MAX = 5
SHOWN_CHARS_MAX = 24
MISTAKE_CHARS_MAX = 160
"""Characters of one mistake that are told: that of a wrong name lists all names, of which there may be a
hundred.
"""


def read(place: RequestTarget, body: bytes) -> Call:
    """Return the call in the body of a request that was admitted to `place`. Raises Refused for a body that
    is not valid there.
    """
    try:
        return PARSERS[place.verb](place, body)
    except ValidationError as error:
        raise Refused(422, describe(error)) from error


def _heartbeat(place: RequestTarget, body: bytes) -> Call:
    heartbeat = Heartbeat.model_validate_json(body)
    _same(place, heartbeat)
    # Whatever the agent's own flag says, an exit or a coming preemption must not wait for the next check of
    # its run.
    news = heartbeat.news or heartbeat.exit is not None or heartbeat.preempting
    return HeartbeatCall(heartbeat if heartbeat.news == news else heartbeat.model_copy(update={"news": news}))


def _exit(place: RequestTarget, body: bytes) -> Call:
    call = _heartbeat(place, body)
    if isinstance(call, HeartbeatCall) and call.heartbeat.exit is None:
        raise Refused(422, "exit: missing; it must tell how the attempt ended")
    return call


def _commit(place: RequestTarget, body: bytes) -> Call:
    commit = Commit.model_validate_json(body)
    _same(place, commit)
    expected = manifest_key(commit.run, commit.step, commit.attempt)
    if commit.key != expected:
        raise Refused(
            422,
            f"key: {_short(repr(commit.key))} is not the manifest of step {commit.step}, which is {expected}",
        )
    return CommitCall(commit)


def _bootstrap_call(place: RequestTarget, body: bytes) -> Call:
    return BootstrapCall(place.run, place.attempt, place.identity)


def _keys(place: RequestTarget, body: bytes) -> Call:
    return KeysCall(place.run, place.attempt, place.identity)


def _canary(place: RequestTarget, body: bytes) -> Call:
    return CanaryCall(Nonce.model_validate_json(body).nonce)


PARSERS: dict[str, Callable[[RequestTarget, bytes], Call]] = {
    "heartbeat": _heartbeat,
    "commit": _commit,
    "exit": _exit,
    "bootstrap": _bootstrap_call,
    "keys": _keys,
    CANARY: _canary,
}


def _same(place: RequestTarget, message: Heartbeat | Commit) -> None:
    if message.run != place.run:
        raise Refused(422, f"run: {_short(repr(message.run))} is not the {place.run} of the path")
    if message.attempt != place.attempt:
        raise Refused(422, f"attempt: {message.attempt} is not the {place.attempt} of the path")
    if message.identity != place.identity:
        raise Refused(422, f"identity: {_short(repr(message.identity))} is not the one of the path")


def describe(error: ValidationError) -> str:
    """Return up to `ERRORS_MAX` wrong fields and their mistakes, without values that may be secrets (of
    unknown fields, long texts).
    """
    rows = error.errors(include_url=False, include_context=False)
    more = [f"and {len(rows) - ERRORS_MAX} more"] if len(rows) > ERRORS_MAX else []
    return "; ".join([_error_text(row) for row in rows[:ERRORS_MAX]] + more)


_UNSHOWN = {"extra_forbidden", "missing", "json_invalid", "string_too_long", "model_type"}


def _error_text(row: ErrorDetails) -> str:
    where = ".".join(_short(str(part)) for part in row["loc"]) or "body"
    value = row["input"]
    shown = row["type"] not in _UNSHOWN and isinstance(value, str | int | float | None)
    return f"{where}: {row['msg'][:MISTAKE_CHARS_MAX]}" + (f", not {_short(repr(value))}" if shown else "")


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS_MAX else text[: SHOWN_CHARS_MAX - 3] + "..."
