"""Tables of DynamoDB on ministack, one for each test and deleted afterwards; and recorded calls.

ministack's measured behaviour: it supports conditions, ALL_OLD after a refused one, transactions with their
tokens and reasons, strongly consistent reads, reserved words, the largest item. It has no
TransactionConflict, does not throttle, answers a batch completely, ends no page at 1 MB, and checks no
signature.
"""

import functools
import itertools
import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import boto3

from prime_train.stores.dynamo.boto_calls import BotoCalls, client, create_table
from prime_train.stores.dynamo.calls import Calls
from prime_train.stores.dynamo.store import DynamoStore
from tests.fakes.s3_servers import S3Server

ANSWER_S_MAX = 60.0
"""Time limit in seconds of a response, because a machine that runs tests may be busy."""
_MAKING = threading.Lock()
_numbers = itertools.count(1)


@contextmanager
def table(server: S3Server) -> Iterator[str]:
    """Yield the name of a new table."""
    name = f"prime-train-{os.getpid()}-{next(_numbers)}"
    create_table(client_of(server), name)
    yield name
    client_of(server).delete_table(TableName=name)


@contextmanager
def store(server: S3Server) -> Iterator[DynamoStore]:
    with table(server) as name:
        yield DynamoStore(calls_of(server), name)


def calls_of(server: S3Server) -> Calls:
    return BotoCalls(client_of(server))


def client_of(server: S3Server) -> Any:
    with _MAKING:
        return _client(server.url, server.access_key, server.secret_key, server.region)


@functools.cache
def _client(url: str, access_key: str, secret_key: str, region: str) -> Any:
    """Return a client; cached, because making one takes longer than most tests."""
    return client(boto3.session.Session(access_key, secret_key), region, url, answer_s=ANSWER_S_MAX)


@dataclass
class RecordedCalls:
    """Calls that are recorded and passed on. `asked`: each operation with its request; `before` is called
    before each with its number, from 1 on.
    """

    calls: Calls
    requested: list[tuple[str, Mapping[str, Any]]] = field(default_factory=list)
    before: Callable[[int, str], object] = lambda number, operation: None

    def ask(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        self.requested.append((operation, request))
        self.before(len(self.requested), operation)
        return self.calls.ask(operation, request)

    @property
    def operations(self) -> list[str]:
        return [operation for operation, _ in self.requested]


@dataclass
class SmallPages:
    """Calls whose queries return two items per page."""

    calls: Calls

    def ask(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        return self.calls.ask(operation, {**request, "Limit": 2} if operation == "query" else request)
