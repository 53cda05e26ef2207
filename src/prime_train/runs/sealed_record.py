"""Records of a run's state in its bucket, sealed with the master key, for the case that the store is restored
from an older copy.

A record is written at each turn of a run: a launch, its machine, a fence, an end, the confirmed end of a
machine. A store whose state is older than the newest record has been restored, or is another store, and
adopts the record before it does anything else for the run. A machine never reads or writes records, and a
record without this control plane's seal is ignored.
"""

import functools
import hashlib
import hmac
import json
from typing import Any

from pydantic import TypeAdapter

from prime_train.runs.run import Lease, Run
from prime_train.runs.signing import record_key_of
from prime_train.runs.stored_forms import in_todays_form, numbered


def sealed(run: Run, lease: Lease, master: bytes) -> bytes:
    """Return the record: its seal in the first line, run and lease as JSON in the rest."""
    state = _state().dump_python((run, lease), mode="json")
    body = json.dumps([numbered(state[0]), state[1]], ensure_ascii=False, separators=(",", ":")).encode(
        "utf-8", "replace"
    )
    return _seal(body, master) + b"\n" + body


def unsealed(data: bytes, master: bytes) -> tuple[Run, Lease] | None:
    """Return the recorded run and lease, whatever form they were written in; None without this control
    plane's seal. Raises ValueError if they are unreadable.
    """
    seal, _, body = data.partition(b"\n")
    if not hmac.compare_digest(seal, _seal(body, master)):
        return None
    state = json.loads(body)
    if isinstance(state, list) and state and isinstance(state[0], dict):
        body = json.dumps([in_todays_form(Run, state[0]), *state[1:]]).encode()
    run, lease = _state().validate_json(body)
    return run, lease


def is_ahead(place: tuple[int, int], run: Run) -> bool:
    """Return whether a record of that attempt and turn is newer than the run."""
    return place > (run.attempt, run.turn)


def _seal(body: bytes, master: bytes) -> bytes:
    return hmac.new(record_key_of(master), body, hashlib.sha256).hexdigest().encode()


@functools.cache
def _state() -> TypeAdapter[Any]:
    """Return the type adapter. Built on first use, because building it takes as long as reading a hundred
    records.
    """
    return TypeAdapter(tuple[Run, Lease])
