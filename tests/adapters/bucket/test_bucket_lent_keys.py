"""A bucket whose keys expire: each request is signed with the newest keys, and requests in progress
continue.
"""

import threading
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import Bucket
from prime_train.errors import TemporaryError
from prime_train.runs.wire import PodKeys
from tests.fakes.http import HttpFake, Request, Response, Stall
from tests.waiting import HANG_S

BODY = bytes(range(256)) * 16


class Signed(HttpFake):
    """A server that records which keys signed each request. It accepts the keys `good`; all others it reports
    as expired.
    """

    def __init__(self) -> None:
        super().__init__()
        self.good = {"id-1", "id-2"}

    @property
    def bucket_url(self) -> str:
        return f"s3://a-bucket?endpoint={self.url}&region=us-east-1"

    @property
    def by(self) -> list[tuple[str, str]]:
        return [(signer(request), request.headers["x-amz-security-token"]) for request in self.requests]

    def respond(self, request: Request) -> Response:
        is_good = signer(request) in self.good
        headers = {"etag": '"tag"', "last-modified": "Wed, 21 Oct 2026 07:28:00 GMT"}
        return Response(
            200 if is_good else 400,
            BODY if is_good else b"<Error><Code>ExpiredToken</Code></Error>",
            headers=headers,
        )


def signer(request: Request) -> str:
    return request.headers["authorization"].partition("Credential=")[2].partition("/")[0]


@dataclass
class Ring:
    number: int = 1
    valid_s: int = 60

    def newest(self) -> PodKeys:
        return PodKeys(
            access_key_id=f"id-{self.number}",
            secret_access_key="secret",
            session_token=f"token-{self.number}",
            valid_s=self.valid_s,
        )


@pytest.fixture
def server() -> Iterator[Signed]:
    with Signed() as here:
        yield here


@pytest.fixture
def ring() -> Ring:
    return Ring()


@pytest.fixture
def bucket(server: Signed, ring: Ring) -> Bucket:
    # Keys that the machine happens to have are left alone.
    return open_bucket(
        server.bucket_url, {"AWS_ACCESS_KEY_ID": "the-machines", "AWS_SECRET_ACCESS_KEY": "own"}, ring.newest
    )


def test_requests_are_signed_by_the_newest_keys_without_opening_the_bucket_anew(
    server: Signed, ring: Ring, bucket: Bucket
) -> None:
    assert bucket.read("a") == BODY
    ring.number = 2
    assert bucket.read("a") == BODY
    assert server.by == [("id-1", "token-1"), ("id-2", "token-2")]


def test_a_transfer_under_way_goes_on_when_the_keys_change(
    server: Signed, ring: Ring, bucket: Bucket
) -> None:
    server.fail(Stall())
    got: list[object] = []
    reading = threading.Thread(target=lambda: got.append(bucket.read("a")))
    reading.start()
    server.await_stalled()
    ring.number, server.good = 2, {"id-2"}
    server.heal()
    reading.join(HANG_S)
    assert got == [BODY]


def test_keys_that_have_ended_are_a_failure_that_passes(server: Signed, ring: Ring, bucket: Bucket) -> None:
    ring.valid_s, server.good = 0, set()
    with pytest.raises(TemporaryError, match="the credentials have expired") as caught:
        bucket.read("a")
    assert "token-1" not in str(caught.value)
