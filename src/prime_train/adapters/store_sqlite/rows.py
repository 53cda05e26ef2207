"""Our values as rows of the tables, and back."""

import json
from dataclasses import replace
from typing import Any

from pydantic import TypeAdapter, ValidationError

from prime_train.core.breaker import Watch
from prime_train.core.run import Alert, Happening, Lease, Run
from prime_train.core.wire import Beat, Order

RUN = TypeAdapter(Run)
HAPPENING = TypeAdapter(Happening)
ALERT = TypeAdapter(Alert)
WATCH = TypeAdapter(Watch)


def dump(adapter: TypeAdapter[Any], value: object) -> str:
    """JSON that loads again whatever is in the value: pydantic's own would turn an infinite number into null, and half a surrogate pair
    (from an odd file name in an error's text) can not be written at all."""
    text = json.dumps(adapter.dump_python(value, mode="json"), ensure_ascii=False, separators=(",", ":"))
    return _utf8(text)


def _utf8(text: str) -> str:
    return text.encode("utf-8", "replace").decode()


def run_of(text: str, version: int, next_check_s: int | None) -> Run:
    return replace(RUN.validate_json(text), version=version, next_check_s=next_check_s)


def lease_row(lease: Lease) -> tuple[str | int | None, ...]:
    """In the order of the statements that write and load leases."""
    beat = lease.beat.model_dump_json() if lease.beat is not None else None
    counts = (lease.epoch, lease.open, lease.version, lease.seq, lease.beat_s)
    return (*counts, beat, lease.order.value, _utf8(lease.order_reason), lease.committed_step, lease.committed_key)


def lease_of(
    run_id: str,
    epoch: int,
    is_open: int,
    version: int,
    seq: int,
    beat_s: int | None,
    beat: str | None,
    order: str,
    order_reason: str,
    committed_step: int,
    committed_key: str,
) -> Lease:
    last = Beat.model_validate_json(beat) if beat is not None else None
    return Lease(run_id, epoch, bool(is_open), version, seq, beat_s, last, Order(order), order_reason, committed_step, committed_key)


def first_problem(error: ValueError) -> str:
    """In words, without the values: pydantic's own message would print them."""
    if not isinstance(error, ValidationError):
        return str(error)[:300]
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"[:300]
