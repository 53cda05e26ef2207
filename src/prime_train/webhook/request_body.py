"""Reading of request bodies, bounded in bytes and in time, because their senders are not authenticated
yet.
"""

import asyncio
from collections import Counter

from fastapi import Request

from prime_train.runs.signing import body_bytes_max
from prime_train.webhook.responses import CLOSE, Refused, overloaded, too_large

BODY_DISCARDED_BYTES_MAX = 1024 * 1024
"""Bytes of a body over the limit that are read and discarded, so that the client receives the response."""
BUFFERED_BYTES_MAX = 64 * 1024 * 1024
"""Limit for all bodies together that arrive in several pieces."""
BODY_S_MAX = 10.0
PATIENT_MAX = 512
PATIENT_OF_ADDRESS_MAX = 64
"""Incomplete bodies that may take `BODY_S_MAX`: of all clients, and of one address. Of more, the longest
awaited ones get `HASTY_S`, because strangers must not keep connections from others with bodies that they
never finish. A machine's arrives within moments, so none is refused for the number alone: behind a proxy all
clients have one address.
"""
HASTY_S = 2.0


class BodyReader:
    """Reads the bodies of one application. Use only in the event loop's thread."""

    def __init__(
        self,
        limit_s: float = BODY_S_MAX,
        buffered_max: int = BUFFERED_BYTES_MAX,
        patient_max: int = PATIENT_MAX,
        patient_of_address_max: int = PATIENT_OF_ADDRESS_MAX,
        hasty_s: float = HASTY_S,
    ) -> None:
        self._limit_s, self._hasty_s = limit_s, hasty_s
        self._patient_max, self._patient_of_address_max = patient_max, patient_of_address_max
        self._buffered_max, self._buffered = buffered_max, 0
        self._patient: dict[asyncio.Timeout, str] = {}
        """The time limits of incomplete bodies, longest awaited first, and the address that each comes
        from.
        """
        self._of_addresses: Counter[str] = Counter()

    async def read(self, request: Request) -> bytes:
        """Return the body. Raises Refused, after which the connection is not used further: for a body over
        the limit, for one that does not arrive in time or is cut off, and if too much is being read at the
        moment.
        """
        path = request.scope["path"]
        if _declared(request) > BODY_DISCARDED_BYTES_MAX:
            raise too_large(path)
        chunks: list[bytes] = []
        size, held, bytes_max, limit = 0, 0, body_bytes_max(path), asyncio.timeout(self._limit_s)
        address = request.client.host if request.client is not None else ""
        try:
            async with limit:
                self._await(limit, address)
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
            why = (
                f"the body did not arrive within {self._limit_s:.0f} s, or too many others came before "
                "it was complete"
            )
            raise Refused(408, why, CLOSE) from None
        finally:
            self._buffered -= held
            self._forget(limit)
        if size > bytes_max:
            raise too_large(path)
        return b"".join(chunks)

    def _await(self, limit: asyncio.Timeout, address: str) -> None:
        """Note an incomplete body, and hurry another one if this makes too many."""
        self._patient[limit] = address
        self._of_addresses[address] += 1
        if self._of_addresses[address] > self._patient_of_address_max:
            self._hurry(
                next(longest for longest, its_address in self._patient.items() if its_address == address)
            )
        elif len(self._patient) > self._patient_max:
            self._hurry(next(iter(self._patient)))

    def _hurry(self, limit: asyncio.Timeout) -> None:
        self._forget(limit)
        end_s = limit.when()
        if end_s is not None and not limit.expired():
            limit.reschedule(end_s - self._limit_s + self._hasty_s)

    def _forget(self, limit: asyncio.Timeout) -> None:
        address = self._patient.pop(limit, None)
        if address is not None:
            self._of_addresses[address] -= 1
            if not self._of_addresses[address]:
                del self._of_addresses[address]


def _declared(request: Request) -> int:
    length: bytes = next(
        (value for name, value in request.scope["headers"] if name == b"content-length"), b"0"
    )
    return int(length) if length.isdigit() and len(length) < 20 else 0
