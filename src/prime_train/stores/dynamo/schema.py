"""The table's definition, the keys of its items, and the encoding of values."""

import zlib
from collections.abc import Mapping
from typing import Any

Key = tuple[str, str]
Value = str | int | bool | list[str]

SHARDS = 4
"""Number of partitions that leases are spread over; one handles 1,000 heartbeats per second. It is part of
the layout, so existing tables depend on it.
"""
EXPIRES = "exp"
"""Attribute with the time, in seconds since the epoch, after which DynamoDB may delete an item."""
DEFINITION: Mapping[str, Any] = {
    "AttributeDefinitions": [
        {"AttributeName": "PK", "AttributeType": "S"},
        {"AttributeName": "SK", "AttributeType": "S"},
    ],
    "KeySchema": [{"AttributeName": "PK", "KeyType": "HASH"}, {"AttributeName": "SK", "KeyType": "RANGE"}],
    "BillingMode": "PAY_PER_REQUEST",
}
LEASES = tuple(f"LEASE#{shard}" for shard in range(SHARDS))
RUNS = tuple(f"RUNS#{shard}" for shard in range(SHARDS))
OUTBOX = "OUT"
WATCH_KEY: Key = ("CTL", "WATCH")


def lease_key(run_id: str) -> Key:
    return LEASES[_shard(run_id)], run_id


def run_key(run_id: str) -> Key:
    return RUNS[_shard(run_id)], run_id


def history_of(run_id: str) -> str:
    """Return the partition of a run's history."""
    return f"RUN#{run_id}"


def history_key(run_id: str, version: int) -> Key:
    return history_of(run_id), f"EV#{version:012d}"


def sent_key(alert_key: str) -> Key:
    return f"TOLD#{alert_key}", "TOLD"


def packed_key(key: Key) -> dict[str, Any]:
    return {"PK": {"S": key[0]}, "SK": {"S": key[1]}}


def packed(values: Mapping[str, Value]) -> dict[str, Any]:
    """Return the values in DynamoDB's encoding. Floats are stored inside JSON, where they keep every
    digit.
    """
    return {name: _packed(value) for name, value in values.items()}


def unpacked(item: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _unpacked(typed) for name, typed in item.items()}


def _packed(value: Value) -> dict[str, Any]:
    match value:
        case bool():
            return {"BOOL": value}
        case int():
            return {"N": str(value)}
        case str():
            return {"S": value}
        case list():
            return {"L": [{"S": text} for text in value]}


def _unpacked(typed: Mapping[str, Any]) -> Any:
    ((kind, value),) = typed.items()
    return int(value) if kind == "N" else [one["S"] for one in value] if kind == "L" else value


def _shard(run_id: str) -> int:
    return zlib.crc32(run_id.encode()) % SHARDS
