"""From a body to a call: parsed by the wire models, then held against the path it came by."""

from collections.abc import Callable

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from prime_train.control_plane.admission.calls import CANARY, Place
from prime_train.control_plane.webhook.calls import BeatCall, BootstrapCall, Call, CanaryCall, CommitCall, KeysCall
from prime_train.core.keys import manifest_key
from prime_train.core.wire import Beat, Commit, Nonce

MISTAKES_MAX = 5
SHOWN_CHARS_MAX = 24


class Odd(Exception):
    """A body that is well formed but cannot be meant."""


def _beat(place: Place, body: bytes) -> Call:
    beat = Beat.model_validate_json(body)
    _same(place, beat)
    # Whatever the agent takes for news: an end, and a machine about to be taken away, cannot wait for the next check.
    if not beat.news and (beat.exit is not None or beat.preempting):
        beat = beat.model_copy(update={"news": True})
    return BeatCall(beat)


def _exit(place: Place, body: bytes) -> Call:
    call = _beat(place, body)
    if isinstance(call, BeatCall) and call.beat.exit is None:
        raise Odd("exit: missing; say how the attempt ended")
    return call


def _commit(place: Place, body: bytes) -> Call:
    commit = Commit.model_validate_json(body)
    _same(place, commit)
    expected = manifest_key(commit.run, commit.step, commit.epoch)
    if commit.key != expected:
        raise Odd(f"key: {_short(repr(commit.key))} is not the manifest of step {commit.step}, which is {expected}")
    return CommitCall(commit)


def _bootstrap_call(place: Place, body: bytes) -> Call:
    return BootstrapCall(place.run, place.epoch, place.identity)


def _keys(place: Place, body: bytes) -> Call:
    return KeysCall(place.run, place.epoch, place.identity)


def _canary(place: Place, body: bytes) -> Call:
    return CanaryCall(Nonce.model_validate_json(body).nonce)


PARSERS: dict[str, Callable[[Place, bytes], Call]] = {
    "beat": _beat,
    "commit": _commit,
    "exit": _exit,
    "bootstrap": _bootstrap_call,
    "keys": _keys,
    CANARY: _canary,
}


def _same(place: Place, said: Beat | Commit) -> None:
    if said.run != place.run:
        raise Odd(f"run: {_short(repr(said.run))} is not the {place.run} of the path")
    if said.epoch != place.epoch:
        raise Odd(f"epoch: {said.epoch} is not the {place.epoch} of the path")
    if said.identity != place.identity:
        raise Odd(f"identity: {_short(repr(said.identity))} is not the one of the path")


def describe(error: ValidationError) -> str:
    """Which fields are wrong and how, a few of them. Values that may be secrets (of unknown fields, long texts) are not repeated."""
    rows = error.errors(include_url=False, include_context=False)
    more = [f"and {len(rows) - MISTAKES_MAX} more"] if len(rows) > MISTAKES_MAX else []
    return "; ".join([_mistake(row) for row in rows[:MISTAKES_MAX]] + more)


_UNSHOWN = {"extra_forbidden", "missing", "json_invalid", "string_too_long", "model_type"}


def _mistake(row: ErrorDetails) -> str:
    where = ".".join(_short(str(part)) for part in row["loc"]) or "body"
    value = row["input"]
    shown = row["type"] not in _UNSHOWN and isinstance(value, str | int | float | None)
    return f"{where}: {row['msg']}" + (f", not {_short(repr(value))}" if shown else "")


def _short(text: str) -> str:
    return text if len(text) <= SHOWN_CHARS_MAX else text[: SHOWN_CHARS_MAX - 3] + "..."
