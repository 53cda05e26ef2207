"""Reading of request bodies, bounded in bytes and in time."""

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from prime_train.core.access.signing import body_bytes_max

BODY_DISCARDED_BYTES_MAX = 1024 * 1024
"""Bytes of a body over the limit that are read and discarded, so that the client receives the response."""
BUFFERED_BYTES_MAX = 64 * 1024 * 1024
"""Limit for all bodies together that arrive in several pieces, because their clients are not authenticated yet."""
BODY_S_MAX = 10.0
LOOK_S = 1.0

# The types of the ASGI specification.
Message = MutableMapping[str, Any]
Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]


class Overloaded(Exception):
    """Too much is being read at the moment to accept more."""


class BodyReader:
    """Reads the bodies of one event loop. One timer supervises all reads: a timer for each would cost more than the reading."""

    def __init__(self, limit_s: float = BODY_S_MAX, buffered_max: int = BUFFERED_BYTES_MAX) -> None:
        self._limit_s, self._buffered_max, self._buffered = limit_s, buffered_max, 0
        self._begun: dict[asyncio.Task[Any], float] = {}
        self._late: set[asyncio.Task[Any]] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def read(self, scope: Scope, receive: Receive) -> bytes | None:
        """Return the body; None if it is over the limit, in which case the connection cannot be used further.

        Raises TimeoutError if it did not arrive in time, ConnectionError if the client has disconnected, Overloaded if too much is being
        read.
        """
        task, loop = asyncio.current_task(), asyncio.get_running_loop()
        assert task is not None
        self._begun[task] = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(LOOK_S, self._look, loop)
        try:
            message = await receive()
            body = _chunk(message)
            if message.get("more_body"):
                return await self._rest(scope, receive, body)
            return body if len(body) <= body_bytes_max(scope["path"]) else None
        except asyncio.CancelledError:
            if task not in self._late:
                raise
            task.uncancel()
            raise TimeoutError(f"the body did not arrive within {self._limit_s:.0f} s") from None
        finally:
            self._late.discard(task)
            del self._begun[task]

    async def _rest(self, scope: Scope, receive: Receive, first: bytes) -> bytes | None:
        if _declared(scope) > BODY_DISCARDED_BYTES_MAX:
            return None
        chunks, size, more, bytes_max, received_bytes = [first], len(first), True, body_bytes_max(scope["path"]), len(first)
        self._buffered += received_bytes
        try:
            while more:
                if self._buffered > self._buffered_max:
                    raise Overloaded
                message = await receive()
                chunk, more = _chunk(message), message.get("more_body", False)
                size += len(chunk)
                if size > BODY_DISCARDED_BYTES_MAX:
                    return None
                if size <= bytes_max:
                    chunks.append(chunk)
                    received_bytes += len(chunk)
                    self._buffered += len(chunk)
            return b"".join(chunks) if size <= bytes_max else None
        finally:
            self._buffered -= received_bytes

    def _look(self, loop: asyncio.AbstractEventLoop) -> None:
        for task, begun_s in self._begun.items():
            if loop.time() - begun_s > self._limit_s and task not in self._late:
                self._late.add(task)
                task.cancel()
        self._timer = loop.call_later(LOOK_S, self._look, loop) if self._begun else None


def _declared(scope: Scope) -> int:
    length = next((value for name, value in scope["headers"] if name == b"content-length"), b"0")
    return int(length) if length.isdigit() and len(length) < 20 else 0


def _chunk(message: Message) -> bytes:
    if message["type"] == "http.disconnect":
        raise ConnectionError("the client has disconnected")
    chunk: bytes = message.get("body", b"")
    return chunk
