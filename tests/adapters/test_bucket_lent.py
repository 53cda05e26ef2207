"""A bucket whose keys end: each request is signed by the newest there are, and what is under way goes on."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from prime_train.adapters.bucket import open_bucket
from prime_train.core.wire import PodKeys
from prime_train.ports import Bucket, TemporaryError

WAIT_S_MAX = 30.0
BODY = bytes(range(256)) * 16


@dataclass
class Signed:
    """A server that tells by whom each request was signed. `gate`: the second half of a body comes when it is open. `good`: whose keys it
    takes; of all others it says that they have ended."""

    by: list[tuple[str, str]] = field(default_factory=list)
    gate: threading.Event = field(default_factory=threading.Event)
    half: threading.Event = field(default_factory=threading.Event)
    good: set[str] = field(default_factory=lambda: {"id-1", "id-2"})

    def __post_init__(self) -> None:
        self.gate.set()
        self.http = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        threading.Thread(target=self.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()

    @property
    def url(self) -> str:
        return f"s3://a-bucket?endpoint=http://127.0.0.1:{self.http.server_port}&region=us-east-1"

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        here = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                who = self.headers["authorization"].partition("Credential=")[2].partition("/")[0]
                here.by.append((who, self.headers["x-amz-security-token"]))
                if who not in here.good:
                    return self._say(400, b"<Error><Code>ExpiredToken</Code></Error>")
                return self._say(200, BODY)

            def _say(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("content-length", str(len(body)))
                self.send_header("etag", '"tag"')
                self.send_header("last-modified", "Wed, 21 Oct 2026 07:28:00 GMT")
                self.end_headers()
                self.wfile.write(body[: len(body) // 2])
                self.wfile.flush()
                here.half.set()
                assert here.gate.wait(WAIT_S_MAX)
                self.wfile.write(body[len(body) // 2 :])

            def log_message(self, format: str, *args: object) -> None:
                """Quiet."""

        return Handler


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
    here = Signed()
    yield here
    here.http.shutdown()
    here.http.server_close()


@pytest.fixture
def ring() -> Ring:
    return Ring()


@pytest.fixture
def bucket(server: Signed, ring: Ring) -> Bucket:
    # Keys that the machine happens to have are left alone.
    return open_bucket(server.url, {"AWS_ACCESS_KEY_ID": "the-machines", "AWS_SECRET_ACCESS_KEY": "own"}, ring.newest)


def test_requests_are_signed_by_the_newest_keys_without_opening_the_bucket_anew(server: Signed, ring: Ring, bucket: Bucket) -> None:
    assert bucket.read("a") == BODY
    ring.number = 2
    assert bucket.read("a") == BODY
    assert server.by == [("id-1", "token-1"), ("id-2", "token-2")]


def test_a_transfer_under_way_goes_on_when_the_keys_change(server: Signed, ring: Ring, bucket: Bucket) -> None:
    server.gate.clear()
    got: list[object] = []
    reading = threading.Thread(target=lambda: got.append(bucket.read("a")))
    reading.start()
    assert server.half.wait(WAIT_S_MAX)
    ring.number, server.good = 2, {"id-2"}
    server.gate.set()
    reading.join(WAIT_S_MAX)
    assert got == [BODY]


def test_keys_that_have_ended_are_a_failure_that_passes(server: Signed, ring: Ring, bucket: Bucket) -> None:
    ring.valid_s, server.good = 0, set()
    with pytest.raises(TemporaryError, match="the credentials have expired") as caught:
        bucket.read("a")
    assert "token-1" not in str(caught.value)
