"""Limits of a complete HTTP answer: its seconds and its bytes, from the status line to the end.

Timeouts of the libraries count from one received byte to the next. A server that sends a byte now and then,
lines of a head without end, or `100 Continue` over and over, would hold whoever asks for ever, and an endless
body is read into memory. So the bytes themselves are counted, below everything that parses them.
"""

import io
import socket
import time
from functools import lru_cache
from http.client import HTTPConnection, HTTPResponse, HTTPSConnection
from typing import Any

from requests.adapters import HTTPAdapter
from urllib3.connection import HTTPConnection as PooledConnection
from urllib3.connection import HTTPSConnection as PooledSecureConnection
from urllib3.connectionpool import HTTPConnectionPool, HTTPSConnectionPool
from urllib3.poolmanager import PoolManager


class TooMuch(OSError):
    """The answer has more bytes than are read of it."""


@lru_cache
def limited(seconds_max: float, bytes_max: int) -> type[HTTPResponse]:
    """Return the class of answers with these limits. Reading beyond them raises TimeoutError or TooMuch,
    which are OSErrors.
    """

    class Limited(HTTPResponse):
        def __init__(self, sock: socket.socket, *arguments: Any, **options: Any) -> None:
            super().__init__(sock, *arguments, **options)
            self.fp = io.BufferedReader(_Counted(self.fp.detach(), sock, seconds_max, bytes_max))

    return Limited


class _Counted(io.RawIOBase):
    """What arrives at a socket, as long as it is within the limits."""

    def __init__(self, raw: io.RawIOBase, sock: socket.socket, seconds_max: float, bytes_max: int) -> None:
        self._raw, self._sock, self._bytes_left, self._seconds_max = raw, sock, bytes_max, seconds_max
        self._until_s = time.monotonic() + seconds_max

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        usual_s, left_s = self._sock.gettimeout(), self._until_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError(f"the answer did not end within {self._seconds_max:g} s")
        try:
            self._sock.settimeout(left_s if usual_s is None else min(usual_s, left_s))
            read = self._raw.readinto(buffer)
        finally:
            if self._sock.fileno() >= 0:
                self._sock.settimeout(usual_s)
        self._bytes_left -= read or 0
        if self._bytes_left < 0:
            raise TooMuch("the answer is too long")
        return read

    def close(self) -> None:
        self._raw.close()
        super().close()


class LimitedAdapter(HTTPAdapter):
    """An adapter of requests whose answers have these limits."""

    def __init__(self, seconds_max: float, bytes_max: int, **options: Any) -> None:
        self._answer = limited(seconds_max, bytes_max)
        super().__init__(**options)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options)
        self._limit(self.poolmanager)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return self._limit(super().proxy_manager_for(proxy, **options))

    def _limit(self, manager: PoolManager) -> PoolManager:
        # A proxy of another kind than HTTP has connections of its own, which are left as they are.
        if all(
            kind in (HTTPConnectionPool, HTTPSConnectionPool)
            for kind in manager.pool_classes_by_scheme.values()
        ):
            manager.pool_classes_by_scheme = _pools(self._answer)
        return manager


@lru_cache
def _pools(answer: type[HTTPResponse]) -> dict[str, type[HTTPConnectionPool]]:
    plain = type("LimitedConnection", (PooledConnection,), {"response_class": answer})
    secure = type("LimitedSecureConnection", (PooledSecureConnection,), {"response_class": answer})
    return {
        "http": type("LimitedPool", (HTTPConnectionPool,), {"ConnectionCls": plain}),
        "https": type("LimitedSecurePool", (HTTPSConnectionPool,), {"ConnectionCls": secure}),
    }


@lru_cache
def connections(answer: type[HTTPResponse]) -> tuple[type[HTTPConnection], type[HTTPSConnection]]:
    """Return connections of the standard library, plain and encrypted, with answers of this class."""
    plain = type("LimitedConnection", (HTTPConnection,), {"response_class": answer})
    return plain, type("LimitedSecureConnection", (HTTPSConnection,), {"response_class": answer})
