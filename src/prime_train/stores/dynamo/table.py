"""Calls to the table with the store's values; unmet conditions and conflicts are separated from failures."""

import random
import time
from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

from prime_train.clock import MeasuredClock, http_date_s
from prime_train.errors import TemporaryError
from prime_train.stores.dynamo.calls import UNMET, Calls, RequestRefused, Unable, Unreached
from prime_train.stores.dynamo.error_conversion import external_error
from prime_train.stores.dynamo.schema import WATCH_KEY, Key, Value, packed, packed_key, unpacked

TRIES_MAX = 3
"""Tries of a call that gets no response, or whose server fails or is too busy. Every call here may take
effect twice without harm.
"""
CONFLICTS_MAX = 6
"""Tries of a write that conflicts with another writer's transaction on the same item."""
PAUSE_S = 0.01
PAUSE_S_MAX = 0.3
PAGES_MAX = 10_000
BATCHES_MAX = 20
ACTIONS_MAX = 100
COUNTED_S_MAX = 60.0
"""Seconds for which the time is counted on from the date of a response: two heartbeats at the usual pace, so
that a webhook with one run need not request the time.
"""


_NONE: Mapping[str, Value] = MappingProxyType({})


class Unmet(Exception):
    """A condition was not met, and nothing was written. `item`: the existing item; `places`: positions of the
    refused actions of a transaction.
    """

    def __init__(self, item: dict[str, Any] | None = None, places: frozenset[int] = frozenset()) -> None:
        super().__init__("a condition was not met")
        self.item, self.places = item, places


class Conflict(Exception):
    """Another writer was writing one of a transaction's items, and nothing was written."""


class Write(NamedTuple):
    """An update, a condition, and the values that both refer to as `:name`. Without an update, the complete
    item is put or deleted.
    """

    update: str = ""
    condition: str = ""
    values: Mapping[str, Value] = _NONE

    def request(self) -> dict[str, Any]:
        texts = {"UpdateExpression": self.update, "ConditionExpression": self.condition}
        request: dict[str, Any] = {name: text for name, text in texts.items() if text}
        if self.values:
            request["ExpressionAttributeValues"] = packed(
                {f":{name}": value for name, value in self.values.items()}
            )
        return request


class Table:
    """A table of DynamoDB. Thread-safe. Raises TemporaryError, PermanentError, and `Unmet`."""

    def __init__(self, calls: Calls, name: str) -> None:
        self.name, self.url, self._calls = name, f"dynamodb://{name}", calls
        self.clock = MeasuredClock(self._read_server_time_s, counted_s=COUNTED_S_MAX)
        """DynamoDB's time in whole seconds, taken from the date of each response."""

    def get(self, key: Key) -> dict[str, Any] | None:
        answer = self._ask("get_item", Key=packed_key(key), ConsistentRead=True)
        return unpacked(answer["Item"]) if "Item" in answer else None

    def get_all(self, keys: Sequence[Key]) -> dict[Key, dict[str, Any]]:
        """Return the existing items by key. They are read one after the other and do not form one
        snapshot.
        """
        wanted: Any = {self.name: {"Keys": [packed_key(key) for key in keys], "ConsistentRead": True}}
        found: dict[Key, dict[str, Any]] = {}
        for turn in range(BATCHES_MAX):
            answer = self._call("batch_get_item", RequestItems=wanted)
            items = (unpacked(item) for item in answer["Responses"].get(self.name, ()))
            found |= {(item["PK"], item["SK"]): item for item in items}
            wanted = answer.get("UnprocessedKeys")
            if not wanted:
                return found
            pause(turn)
        raise self.external_error("batch_get_item", RequestRefused("ThrottlingException"))

    def query(
        self, partition: str, *, where: str = "", show: str = "", limit: int | None = None, **values: Value
    ) -> Iterator[dict[str, Any]]:
        """Yield the items of a partition in the order of their keys. Pages are requested as they are
        consumed, with `limit` items each. `where` filters the items; `show` selects their attributes.
        """
        request: dict[str, Any] = {
            "KeyConditionExpression": "PK = :partition",
            "ExpressionAttributeValues": packed(
                {f":{name}": value for name, value in {"partition": partition, **values}.items()}
            ),
            "ConsistentRead": True,
        }
        request |= {"FilterExpression": where} if where else {}
        request |= {"ProjectionExpression": show} if show else {}
        request |= {"Limit": limit} if limit is not None else {}
        for _ in range(PAGES_MAX):
            answer = self._ask("query", **request)
            yield from map(unpacked, answer["Items"])
            if "LastEvaluatedKey" not in answer:
                return
            request["ExclusiveStartKey"] = answer["LastEvaluatedKey"]
        raise self.external_error("query", RequestRefused("", f"{partition} has more than {PAGES_MAX} pages"))

    def update(self, key: Key, write: Write) -> dict[str, Any]:
        """Return the item as it is after the write. `Unmet` holds the existing item."""
        answer = self._ask(
            "update_item",
            Key=packed_key(key),
            ReturnValues="ALL_NEW",
            ReturnValuesOnConditionCheckFailure="ALL_OLD",
            **write.request(),
        )
        return unpacked(answer["Attributes"])

    def put(self, key: Key, values: Mapping[str, Value], write: Write) -> None:
        self._ask("put_item", Item=packed_key(key) | packed(values), **write.request())

    def delete(self, key: Key) -> None:
        self._ask("delete_item", Key=packed_key(key))

    def transact(self, actions: Sequence[dict[str, Any]], token: str) -> None:
        """Execute all actions or none. A repeat with the same token takes effect once. Also raises
        `Conflict`.
        """
        named = [
            {kind: {"TableName": self.name, **request}}
            for action in actions
            for kind, request in action.items()
        ]
        self._call("transact_write_items", TransactItems=named, ClientRequestToken=token)

    def external_error(self, operation: str, error: RequestRefused | Unreached | Unable) -> Exception:
        """Return the error to raise for a failed operation."""
        return external_error(f"{self.url}: {operation}", error)

    def _ask(self, operation: str, **request: Any) -> Any:
        """Send a request about one item or one partition, and retry it on conflicts."""
        for turn in range(CONFLICTS_MAX):
            try:
                return self._call(operation, TableName=self.name, **request)
            except Conflict:
                pause(turn)
        raise self.external_error(operation, RequestRefused("TransactionConflictException"))

    def _call(self, operation: str, **request: Any) -> Any:
        for turn in range(TRIES_MAX):
            began = self.clock.begin()
            try:
                answer = self._calls.ask(operation, request)
                server_s = _date_s(answer)
                if server_s is not None:
                    self.clock.end(began, server_s)
                return answer
            except (RequestRefused, Unreached, Unable) as error:
                passes = isinstance(error, Unreached) or (
                    isinstance(error, RequestRefused) and error.is_passing
                )
                if not passes or turn == TRIES_MAX - 1:
                    raise self._judged(operation, error) from error
            pause(turn + 2)
        raise AssertionError("there is at least one try")

    def _read_server_time_s(self) -> float:
        """Return the server's time in seconds since the epoch, by reading a small item, whether it exists or
        not.
        """
        server_s = _date_s(self._ask("get_item", Key=packed_key(WATCH_KEY), ProjectionExpression="PK"))
        if server_s is None:
            raise TemporaryError(
                f"{self.url}: the answer has no Date header, so the store's time is not known"
            )
        return server_s

    def _judged(self, operation: str, error: RequestRefused | Unreached | Unable) -> Exception:
        """Return the error to raise: `Unmet` and `Conflict` for results that are not failures, or else an
        error of `ports`.
        """
        match error:
            case RequestRefused(code="ConditionalCheckFailedException", item=item):
                return Unmet(unpacked(item) if item else None)
            case RequestRefused(code="TransactionConflictException"):
                return Conflict()
            case RequestRefused(code="TransactionCanceledException"):
                return self._cancelled(operation, error)
            case _:
                return self.external_error(operation, error)

    def _cancelled(self, operation: str, refused: RequestRefused) -> Exception:
        codes = [reason.get("Code", "None") for reason in refused.reasons]
        unmet = frozenset(place for place, code in enumerate(codes) if code == UNMET)
        if unmet:
            return Unmet(places=unmet)
        if "TransactionConflict" in codes:
            return Conflict()
        failures = [
            RequestRefused(reason["Code"], reason.get("Message") or "")
            for reason in refused.reasons
            if reason.get("Code", "None") != "None"
        ]
        return self.external_error(operation, failures[0] if failures else refused)


def _date_s(answer: Mapping[str, Any]) -> float | None:
    return http_date_s(answer.get("ResponseMetadata", {}).get("HTTPHeaders", {}).get("date", ""))


def putting(key: Key, values: Mapping[str, Value], write: Write | None = None) -> dict[str, Any]:
    return {"Put": {"Item": packed_key(key) | packed(values), **(write or Write()).request()}}


def updating(key: Key, write: Write) -> dict[str, Any]:
    return {"Update": {"Key": packed_key(key), **write.request()}}


def deleting(key: Key, write: Write) -> dict[str, Any]:
    return {"Delete": {"Key": packed_key(key), **write.request()}}


def pause(turn: int) -> None:
    """Sleep for a random time with a bound that grows with each turn."""
    time.sleep(random.uniform(0, min(PAUSE_S * 2**turn, PAUSE_S_MAX)))
