"""The state of a run as it is recorded in its bucket, sealed with the master key, for the day on which the store is restored from an older
copy.

It is recorded at each turn of a run: a launch, its machine, a fence, an end, a machine that is gone. A store that says less than the
newest record has been restored, or is another one, and takes up what the record says before it does anything for the run. A machine never
reads or writes records, and one that was not sealed by this control plane is nobody's.
"""

import functools
import hashlib
import hmac
import json
from typing import Any

from pydantic import TypeAdapter

from prime_train.core.run import Lease, Run
from prime_train.core.signing import record_key_of


def sealed(run: Run, lease: Lease, master: bytes) -> bytes:
    """The record: its seal in the first line, run and lease as JSON in the rest."""
    state = _state().dump_python((run, lease), mode="json")
    body = json.dumps(state, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return _seal(body, master) + b"\n" + body


def unsealed(data: bytes, master: bytes) -> tuple[Run, Lease] | None:
    """What was recorded; None where the seal is not this control plane's. Raises ValueError for a record of another version that cannot be
    read."""
    seal, _, body = data.partition(b"\n")
    if not hmac.compare_digest(seal, _seal(body, master)):
        return None
    run, lease = _state().validate_json(body)
    return run, lease


def is_ahead(place: tuple[int, int], run: Run) -> bool:
    """Whether a record of that attempt and turn says more than the run does."""
    return place > (run.attempt, run.turn)


def _seal(body: bytes, master: bytes) -> bytes:
    return hmac.new(record_key_of(master), body, hashlib.sha256).hexdigest().encode()


@functools.cache
def _state() -> TypeAdapter[Any]:
    """Made when it is first used: it takes as long as a hundred values."""
    return TypeAdapter(tuple[Run, Lease])
