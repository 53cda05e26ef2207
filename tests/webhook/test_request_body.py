"""Bodies of requests whose senders are not known yet: bounded in bytes, in time, and together."""

import asyncio
import itertools
from collections.abc import AsyncIterator

import pytest
from fastapi import Request
from starlette.types import Message

from prime_train.runs.signing import BODY_BYTES_MAX, STORE_BODY_BYTES_MAX
from prime_train.webhook.request_body import BODY_DISCARDED_BYTES_MAX, BodyReader
from prime_train.webhook.responses import Refused


def request(
    pieces: AsyncIterator[bytes], path: str = "/v1/canary", address: str = "192.0.2.1", **headers: str
) -> Request:
    """Return a request whose body arrives in these pieces."""
    encoded = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]

    async def receive() -> Message:
        piece = await anext(pieces, None)
        return {"type": "http.request", "body": piece or b"", "more_body": piece is not None}

    return Request(
        {"type": "http", "method": "POST", "path": path, "headers": encoded, "client": (address, 1)}, receive
    )


async def some(*pieces: bytes, then: asyncio.Event | None = None) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece
    if then is not None:
        await then.wait()


async def endless(drawn: list[int]) -> AsyncIterator[bytes]:
    for drawn[0] in itertools.count():
        yield b" " * 65536


def test_a_body_that_does_not_come_is_given_up_and_the_next_one_is_read() -> None:
    async def both() -> bytes:
        reader = BodyReader(limit_s=0.05)
        with pytest.raises(Refused, match="did not arrive within") as refusal:
            await reader.read(request(some(b"{", then=asyncio.Event())))
        assert (refusal.value.status, refusal.value.headers) == (408, (("connection", "close"),))
        return await reader.read(request(some(b"he", b"re")))

    assert asyncio.run(both()) == b"here"


def test_a_reader_that_is_cancelled_from_outside_stays_cancelled() -> None:
    async def cancelled() -> object:
        task = asyncio.create_task(BodyReader().read(request(some(then=asyncio.Event()))))
        await asyncio.sleep(0)
        task.cancel()
        (outcome,) = await asyncio.gather(task, return_exceptions=True)
        return outcome

    assert isinstance(asyncio.run(cancelled()), asyncio.CancelledError)


@pytest.mark.parametrize(
    ("path", "bytes_max"), [("/v1/canary", BODY_BYTES_MAX), ("/v1/store/save", STORE_BODY_BYTES_MAX)]
)
def test_a_body_at_its_limit_is_read_and_one_byte_more_is_refused(path: str, bytes_max: int) -> None:
    assert len(asyncio.run(BodyReader().read(request(some(b" " * bytes_max), path)))) == bytes_max
    with pytest.raises(Refused, match=f"more than {bytes_max} bytes") as refusal:
        asyncio.run(BodyReader().read(request(some(b" " * bytes_max, b" "), path)))
    assert (refusal.value.status, refusal.value.headers) == (413, (("connection", "close"),))


def test_a_body_without_end_is_read_to_a_limit_and_one_that_announces_it_is_not_read() -> None:
    drawn = [0]
    with pytest.raises(Refused, match="more than"):
        asyncio.run(BodyReader().read(request(endless(drawn))))
    assert drawn[0] <= BODY_DISCARDED_BYTES_MAX // 65536
    drawn = [-1]
    with pytest.raises(Refused, match="more than"):
        asyncio.run(BodyReader().read(request(endless(drawn), content_length="99999999999")))
    assert drawn == [-1]


def test_what_strangers_send_at_once_is_held_up_to_a_limit() -> None:
    async def read() -> tuple[object, ...]:
        reader, end = BodyReader(buffered_max=100), asyncio.Event()
        waits = asyncio.create_task(reader.read(request(some(b"x" * 60, then=end))))
        await asyncio.sleep(0)  # it has its 60 bytes now
        fits, crowds = await asyncio.gather(
            reader.read(request(some(b"x" * 40))),
            reader.read(request(some(b"x" * 41, b"x"))),
            return_exceptions=True,
        )
        end.set()
        return fits, crowds, await waits, await reader.read(request(some(b"x" * 100)))

    fits, crowds, waited, after = asyncio.run(read())
    assert (fits, waited, after) == (b"x" * 40, b"x" * 60, b"x" * 100)
    assert isinstance(crowds, Refused)
    assert (crowds.status, dict(crowds.headers)) == (503, {"retry-after": "2", "connection": "close"})


async def given_up(reader: BodyReader, *addresses: str) -> list[bool]:
    """Return which of the bodies without end that come from these addresses, one after the other, are given
    up.
    """
    strangers = []
    for address in addresses:
        strangers.append(
            asyncio.create_task(reader.read(request(some(b"{", then=asyncio.Event()), address=address)))
        )
        await asyncio.sleep(0)
    assert await reader.read(request(some(b"he", b"re"), address="192.0.2.9")) == b"here"
    done, _ = await asyncio.wait(strangers, timeout=0.05)
    outcome = [task in done for task in strangers]
    for task in strangers:
        task.cancel()
    await asyncio.gather(*strangers, return_exceptions=True)
    return outcome


def test_of_too_many_bodies_that_do_not_come_the_longest_awaited_is_given_up_and_others_are_read() -> None:
    assert asyncio.run(given_up(BodyReader(patient_max=2, hasty_s=0.0), *["192.0.2.1"] * 4)) == [
        True,
        True,
        True,
        False,
    ]


def test_an_address_that_finishes_no_body_costs_those_of_others_nothing() -> None:
    reader = BodyReader(patient_of_address_max=1, hasty_s=0.0)
    assert asyncio.run(given_up(reader, "192.0.2.2", *["192.0.2.1"] * 3)) == [False, True, True, False]


def test_a_body_that_is_given_up_at_this_moment_costs_the_next_request_nothing() -> None:
    async def read() -> bytes:
        reader = BodyReader(limit_s=0.0, patient_max=1)
        stranger = asyncio.create_task(reader.read(request(some(b"{", then=asyncio.Event()))))
        await asyncio.sleep(0)  # its time begins
        await asyncio.sleep(0)  # and is over, of which it has not been told yet
        machine = await reader.read(request(some(b"he", b"re")))
        with pytest.raises(Refused, match="did not arrive"):
            await stranger
        return machine

    assert asyncio.run(read()) == b"here"


def test_a_crowd_of_machines_is_read_however_many_come_at_once() -> None:
    async def read() -> list[bytes]:
        reader = BodyReader(patient_max=2, patient_of_address_max=1)
        return await asyncio.gather(*(reader.read(request(some(b"he", b"re"))) for _ in range(50)))

    assert asyncio.run(read()) == [b"here"] * 50
