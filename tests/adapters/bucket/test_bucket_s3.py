"""A bucket on S3 over a faulty network: requests are retried a limited number of times, and incomplete data
is never stored or used.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from prime_train.buckets.keys import blob_key
from prime_train.buckets.location import place_of
from prime_train.buckets.s3 import S3Bucket
from prime_train.checkpoints.chunks import READS_MAX, Damaged, fetch
from prime_train.checkpoints.hashing import digest_of
from prime_train.checkpoints.manifest import Chunk
from prime_train.errors import TemporaryError
from tests.buckets import keys_for, url_of
from tests.builders import RUN_ID
from tests.fakes.faulty_proxy import (
    INTERNAL_ERROR,
    SERVICE_UNAVAILABLE,
    SLOW_DOWN,
    CutRequest,
    CutResponse,
    Fault,
    FaultyProxy,
    FlipRequest,
    FlipResponse,
    TruncateResponse,
)
from tests.fakes.http import ALWAYS, LoseResponse
from tests.fakes.s3_servers import S3Server, needs_minio

RETRIES_MAX = 2
OLD = b"old" * 1000
NEW = bytes(range(256)) * 2000
KINDS = ["ministack", pytest.param("minio", marks=needs_minio)]
RequestedMachine = Callable[[S3Bucket, Path], object]


@dataclass
class Line:
    """A server, and the network connection to it. Buckets are cached, because opening one takes a while."""

    server: S3Server
    proxy: FaultyProxy
    opened: dict[str, S3Bucket] = field(default_factory=dict)

    def bucket(self, checksum: str = "crc64nvme") -> S3Bucket:
        if checksum not in self.opened:
            url = url_of(self.server.through(self.proxy.url), "wire") + f"&checksum={checksum}"
            self.opened[checksum] = S3Bucket(place_of(url, keys_for(self.server)), retries_max=RETRIES_MAX)
        return self.opened[checksum]


@pytest.fixture(scope="module", params=KINDS)
def line(request: pytest.FixtureRequest) -> Iterator[Line]:
    server: S3Server = request.getfixturevalue(request.param)
    with FaultyProxy(server.url) as between:
        yield Line(server, between)


only_minio = pytest.mark.parametrize(
    "line", [pytest.param("minio", marks=needs_minio)], indirect=True, scope="module"
)


@pytest.fixture
def bucket(line: Line) -> S3Bucket:
    """Return a bucket that contains only the object `old`."""
    made = line.bucket()
    for stat in list(made.list("")):
        made.delete(stat.key)
    made.put("old", OLD)
    return made


@pytest.fixture
def proxy(line: Line, bucket: S3Bucket) -> Iterator[FaultyProxy]:
    """Return a proxy that passes everything on until it is configured otherwise."""
    line.proxy.forget()
    yield line.proxy
    line.proxy.heal()


def there(bucket: S3Bucket, key: str) -> bytes | None:
    found = bucket.read(key)
    return bytes(found) if found is not None else None


def put_file(bucket: S3Bucket, folder: Path) -> None:
    (folder / "file").write_bytes(NEW)
    bucket.put_file("new", folder / "file")


ASKED: Mapping[str, tuple[str, RequestedMachine]] = {
    "put": ("PUT", lambda bucket, _: bucket.put("new", NEW)),
    "put_if": ("PUT", lambda bucket, _: bucket.put_if("new", NEW, tag=None)),
    "put_file": ("PUT", put_file),
    "get": ("GET", lambda bucket, _: bucket.get("old")),
    "read": ("GET", lambda bucket, _: bucket.read("old")),
    "get_file": ("GET", lambda bucket, folder: bucket.get_file("old", folder / "got")),
    "stat": ("HEAD", lambda bucket, _: bucket.stat("old")),
    "list": ("GET", lambda bucket, _: list(bucket.list(""))),
    "delete": ("POST|DELETE", lambda bucket, _: bucket.delete("gone")),
}


# ---------------------------------------------------------------- a server in trouble


@pytest.mark.parametrize(
    "fault", [INTERNAL_ERROR, SERVICE_UNAVAILABLE, SLOW_DOWN], ids=["500", "503", "slow-down"]
)
@pytest.mark.parametrize("requested", ASKED)
def test_a_server_that_fails_is_retried(
    bucket: S3Bucket, proxy: FaultyProxy, tmp_path: Path, requested: str, fault: Fault
) -> None:
    method, ask = ASKED[requested]
    proxy.fail(fault, method=method)
    ask(bucket, tmp_path)
    if method == "PUT":
        assert there(bucket, "new") == NEW
    if requested == "get_file":
        assert (tmp_path / "got").read_bytes() == OLD


@pytest.mark.parametrize("requested", ASKED)
def test_one_that_keeps_failing_is_queried_so_often_and_no_more(
    bucket: S3Bucket, proxy: FaultyProxy, tmp_path: Path, requested: str
) -> None:
    method, ask = ASKED[requested]
    proxy.fail(SLOW_DOWN, method=method, times=ALWAYS)
    with pytest.raises(
        TemporaryError, match="SlowDown: the server asks for fewer requests" if method != "HEAD" else "503"
    ):
        ask(bucket, tmp_path)
    assert len(proxy.exchanges(method=method)) == RETRIES_MAX + 1
    proxy.heal()
    assert there(bucket, "new") is None
    assert not (tmp_path / "got").exists()


# ---------------------------------------------------------------- cut on the way there


@pytest.mark.parametrize("after_bytes", [0, 1, len(NEW) // 2, len(NEW) - 1, len(NEW)])
def test_an_upload_that_is_cut_once_arrives_complete(
    bucket: S3Bucket, proxy: FaultyProxy, after_bytes: int
) -> None:
    proxy.fail(CutRequest(after_bytes), method="PUT")
    bucket.put("new", NEW)
    assert there(bucket, "new") == NEW


@only_minio
@pytest.mark.parametrize("after_bytes", [0, 1, len(NEW) // 2, len(NEW) - 1])
@pytest.mark.parametrize("key", ["new", "old"])
def test_an_upload_that_is_cut_each_time_leaves_what_was_there(
    bucket: S3Bucket, proxy: FaultyProxy, tmp_path: Path, after_bytes: int, key: str
) -> None:
    proxy.fail(CutRequest(after_bytes), method="PUT", times=ALWAYS)
    with pytest.raises(TemporaryError, match="cannot be reached"):
        bucket.put(key, NEW)
    with pytest.raises(TemporaryError, match="cannot be reached"):
        put_file(bucket, tmp_path)
    proxy.heal()
    assert there(bucket, key) == (OLD if key == "old" else None)


def test_an_upload_whose_answer_is_lost_arrives_complete(bucket: S3Bucket, proxy: FaultyProxy) -> None:
    proxy.fail(LoseResponse(), method="PUT")
    bucket.put("new", NEW)
    assert there(bucket, "new") == NEW


def test_of_a_conditional_write_whose_answer_is_lost_no_defeat_is_claimed(
    bucket: S3Bucket, proxy: FaultyProxy
) -> None:
    proxy.fail(LoseResponse(), method="PUT")
    try:
        message = bucket.put_if("new", NEW, tag=None)
    except TemporaryError:
        message = True
    assert message, "it was written, by us"
    assert there(bucket, "new") == NEW


# ---------------------------------------------------------------- changed on the way there


@only_minio
@pytest.mark.parametrize("checksum", ["crc64nvme", "sha256", "signed"])
@pytest.mark.parametrize("at_byte", [0, len(NEW) // 2, len(NEW) - 1])
@pytest.mark.parametrize("key", ["new", "old"])
def test_a_byte_that_changed_on_its_way_is_never_stored(
    line: Line, bucket: S3Bucket, proxy: FaultyProxy, checksum: str, at_byte: int, key: str
) -> None:
    checked = line.bucket(checksum)
    proxy.fail(FlipRequest(at_byte), method="PUT", times=ALWAYS)
    with pytest.raises(TemporaryError, match="the received data differs from the data that was sent"):
        checked.put(key, NEW)
    proxy.heal()
    assert there(bucket, key) == (OLD if key == "old" else None)
    checked.put(key, NEW)
    assert there(bucket, key) == NEW


@only_minio
def test_a_byte_that_changed_in_one_part_of_a_large_file_leaves_no_file(
    bucket: S3Bucket, proxy: FaultyProxy, tmp_path: Path
) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(20 * 2**20)
    proxy.fail(FlipRequest(1000), method="PUT", path="partNumber=2")
    with pytest.raises(TemporaryError, match="the received data differs from the data that was sent"):
        bucket.put_file("large", tmp_path / "large")
    assert bucket.stat("large") is None


# ---------------------------------------------------------------- on the way back


@pytest.mark.parametrize("to_bytes", [0, 1, len(OLD) // 2, len(OLD) - 1])
@pytest.mark.parametrize("how", [CutResponse, TruncateResponse])
def test_an_answer_that_breaks_off_is_fetched_on(
    bucket: S3Bucket,
    proxy: FaultyProxy,
    tmp_path: Path,
    to_bytes: int,
    how: type[CutResponse] | type[TruncateResponse],
) -> None:
    for _ in range(2):
        proxy.fail(how(to_bytes), method="GET")
    assert there(bucket, "old") == OLD
    assert bucket.get_file("old", tmp_path / "got")
    assert (tmp_path / "got").read_bytes() == OLD


@pytest.mark.parametrize("how", [CutResponse, TruncateResponse])
def test_an_answer_that_always_breaks_off_leaves_no_file(
    bucket: S3Bucket, proxy: FaultyProxy, tmp_path: Path, how: type[CutResponse] | type[TruncateResponse]
) -> None:
    proxy.fail(how(1), method="GET", times=ALWAYS)
    with pytest.raises(TemporaryError):
        bucket.read("old")
    with pytest.raises(TemporaryError):
        bucket.get_file("old", tmp_path / "got")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "fault", [CutResponse(60), TruncateResponse(60), TruncateResponse(60, hidden=True), FlipResponse(200)]
)
def test_a_list_that_did_not_come_complete_is_not_taken_for_one(
    bucket: S3Bucket, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.fail(fault, method="GET", path="list-type", times=ALWAYS)
    try:
        keys = [stat.key for stat in bucket.list("")]
    except TemporaryError:
        return
    assert keys == ["old"]


@pytest.mark.parametrize(
    "fault", [FlipResponse(0), FlipResponse(len(NEW) - 1), TruncateResponse(100, hidden=True)]
)
def test_a_chunk_that_changed_on_its_way_back_is_fetched_again(
    bucket: S3Bucket, proxy: FaultyProxy, fault: Fault
) -> None:
    chunk = Chunk(digest=digest_of(NEW), size=len(NEW), stored=len(NEW))
    bucket.put(blob_key(RUN_ID, chunk.digest), NEW)
    proxy.fail(fault, method="GET", path="/blobs/")
    assert fetch(bucket, RUN_ID, chunk) == NEW
    assert len(proxy.exchanges(method="GET", path="/blobs/")) == 2


@pytest.mark.parametrize(
    ("fault", "says"),
    [
        (FlipResponse(5), "a different content"),
        (TruncateResponse(100, hidden=True), "has 100 bytes in the bucket instead of 512000"),
    ],
)
def test_one_that_always_comes_changed_counts_as_damaged(
    bucket: S3Bucket, proxy: FaultyProxy, fault: Fault, says: str
) -> None:
    chunk = Chunk(digest=digest_of(NEW), size=len(NEW), stored=len(NEW))
    bucket.put(blob_key(RUN_ID, chunk.digest), NEW)
    proxy.fail(fault, method="GET", path="/blobs/", times=ALWAYS)
    with pytest.raises(Damaged, match=says):
        fetch(bucket, RUN_ID, chunk)
    assert len(proxy.exchanges(method="GET", path="/blobs/")) == READS_MAX


@pytest.mark.parametrize(
    "fault", [INTERNAL_ERROR, LoseResponse(), CutResponse(1), TruncateResponse(1, hidden=True)]
)
def test_a_delete_that_fails_is_done_or_reported_to_have_failed(
    bucket: S3Bucket, proxy: FaultyProxy, fault: Fault
) -> None:
    proxy.fail(fault, method="POST|DELETE")
    with suppress(TemporaryError):
        bucket.delete("old")
    proxy.heal()
    bucket.delete("old")
    assert bucket.stat("old") is None
