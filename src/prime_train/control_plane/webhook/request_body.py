"""Reading of request bodies, bounded in bytes and in time, because their senders are not authenticated yet."""

import asyncio

from fastapi import Request

from prime_train.control_plane.admission.responses import CLOSE, Refused, overloaded, too_large
from prime_train.core.access.signing import body_bytes_max

BODY_DISCARDED_BYTES_MAX = 1024 * 1024
"""Bytes of a body over the limit that are read and discarded, so that the client receives the response."""
BUFFERED_BYTES_MAX = 64 * 1024 * 1024
"""Limit for all bodies together that arrive in several pieces."""
BODY_S_MAX = 10.0
WAITING_MAX = 512
"""Bodies that may be incomplete at the same time. Beyond, the one that is read for the longest is given up, unless that began less than
`WAITED_S_MIN` ago: those of machines and operators arrive within moments, and strangers who send none must not pile up."""
WAITED_S_MIN = 2.0


class BodyReader:
    """Reads the bodies of one application. Use only in the event loop's thread."""

    def __init__(
        self,
        limit_s: float = BODY_S_MAX,
        buffered_max: int = BUFFERED_BYTES_MAX,
        waiting_max: int = WAITING_MAX,
        waited_s_min: float = WAITED_S_MIN,
    ) -> None:
        self._limit_s, self._waiting_max, self._waited_s_min = limit_s, waiting_max, waited_s_min
        self._buffered_max, self._buffered = buffered_max, 0
        self._waiting: dict[asyncio.Timeout, float] = {}
        """The limits in time of the bodies that are being read, the longest first, and when each began."""

    async def read(self, request: Request) -> bytes:
        """Return the body. Raises Refused, after which the connection is not used further: for a body over the limit, for one that does
        not arrive in time or is cut off, and if too much is being read at the moment."""
        path = request.scope["path"]
        if _declared(request) > BODY_DISCARDED_BYTES_MAX:
            raise too_large(path)
        chunks: list[bytes] = []
        size, held, bytes_max, limit = 0, 0, body_bytes_max(path), asyncio.timeout(self._limit_s)
        try:
            async with limit:
                self._wait(limit)
                more = True
                while more:
                    message = await request.receive()
                    if message["type"] == "http.disconnect":
                        raise Refused(400, "the body was cut off, or is not sent as HTTP/1.1 demands", CLOSE)
                    chunk, more = message.get("body", b""), message.get("more_body", False)
                    size += len(chunk)
                    if size > BODY_DISCARDED_BYTES_MAX:
                        break
                    if self._buffered > self._buffered_max:
                        busy = overloaded()
                        raise Refused(busy.status, str(busy), busy.headers + CLOSE)
                    if size <= bytes_max:
                        chunks.append(chunk)
                        held += len(chunk)
                        self._buffered += len(chunk)
        except TimeoutError:
            why = f"the body did not arrive within {self._limit_s:.0f} s, or too many others came before it was complete"
            raise Refused(408, why, CLOSE) from None
        finally:
            self._buffered -= held
            self._waiting.pop(limit, None)
        if size > bytes_max:
            raise too_large(path)
        return b"".join(chunks)

    def _wait(self, limit: asyncio.Timeout) -> None:
        now_s = asyncio.get_running_loop().time()
        self._waiting[limit] = now_s
        if len(self._waiting) > self._waiting_max:
            longest, begun_s = next(iter(self._waiting.items()))
            if now_s - begun_s >= self._waited_s_min:
                del self._waiting[longest]
                longest.reschedule(now_s)


def _declared(request: Request) -> int:
    length: bytes = next((value for name, value in request.scope["headers"] if name == b"content-length"), b"0")
    return int(length) if length.isdigit() and len(length) < 20 else 0
