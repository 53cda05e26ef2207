"""The contract of every bucket. A row of BUCKETS is a kind of bucket: a function from an empty folder to the
URL of a fresh, empty bucket.
"""

import hashlib
import json
import os
import secrets
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import GET_BYTES_MAX, Bucket
from prime_train.errors import PermanentError
from tests.buckets import keys_for, url_of
from tests.fakes.s3_servers import S3Server, needs_minio
from tests.waiting import HANG_S

KINDS = ["folder", "ministack", pytest.param("minio", marks=needs_minio)]
MIB = 1024 * 1024

# Writes objects that are each made of one letter, for as long as it lives; says so when the first one is
# there.
WRITER = """
import sys
from pathlib import Path
from prime_train.buckets.open import open_bucket
bucket, file, key = open_bucket(sys.argv[1], make=True), Path(sys.argv[2]), sys.argv[3]
for turn in range(1_000_000):
    data = bytes([97 + turn % 26]) * (3_000_000 + turn)
    if turn % 2:
        file.write_bytes(data)
        bucket.put_file(key, file)
    else:
        bucket.put(key, data)
    print(turn, flush=True)
"""

# Raises a counter so many times, as whoever keeps a `latest.json` does, and prints how often it was first.
COUNTER = """
import json, sys
from prime_train.buckets.open import open_bucket
bucket, won = open_bucket(sys.argv[1], make=True), 0
print("ready", flush=True)
sys.stdin.readline()
while won < int(sys.argv[2]):
    seen = bucket.get("latest.json")
    count = json.loads(seen.data)["count"] if seen else 0
    won += bucket.put_if("latest.json", json.dumps({"count": count + 1}).encode(), tag=seen.tag if seen else None)
print(won, flush=True)
"""


@pytest.fixture(params=KINDS, name="url")
def _url(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "folder":
        return (tmp_path / "a bucket").as_uri()
    server: S3Server = request.getfixturevalue(request.param)
    for name, value in keys_for(server).items():
        monkeypatch.setenv(name, value)
    return url_of(server, f"a prefix/{secrets.token_hex(4)}")


@pytest.fixture(name="bucket")
def _bucket(url: str) -> Bucket:
    return open_bucket(url, make=True)


def keys(bucket: Bucket, prefix: str = "") -> list[str]:
    return [stat.key for stat in bucket.list(prefix)]


def data(bucket: Bucket, key: str) -> bytes | None:
    content = bucket.get(key)
    return content.data if content is not None else None


def test_what_was_put_is_read_back_by_anybody(bucket: Bucket, url: str) -> None:
    bucket.put("runs/a/spec.json", b"one")
    bucket.put("runs/a/spec.json", b"two")
    assert data(open_bucket(url, make=True), "runs/a/spec.json") == b"two"


def test_an_empty_object_is_an_object(bucket: Bucket) -> None:
    bucket.put("empty", b"")
    assert data(bucket, "empty") == b""
    assert keys(bucket) == ["empty"]


def test_what_is_missing_is_none_and_not_an_error(bucket: Bucket, tmp_path: Path) -> None:
    bucket.put("a/b", b"x")
    for key in ("nothing", "a", "a/b/c", "a/bb"):
        assert bucket.get(key) is None
        assert bucket.stat(key) is None
        assert bucket.get_file(key, tmp_path / "target") is False
        bucket.delete(key)
    assert list(bucket.list("nothing/")) == []
    assert not (tmp_path / "target").exists()
    assert data(bucket, "a/b") == b"x"


def test_a_failed_fetch_leaves_an_older_file_alone(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "target").write_bytes(b"older")
    assert bucket.get_file("nothing", tmp_path / "target") is False
    assert (tmp_path / "target").read_bytes() == b"older"


def test_stat_and_list_tell_size_and_time(bucket: Bucket) -> None:
    bucket.put("a/b", b"four")
    (listed,) = bucket.list("")
    assert listed == bucket.stat("a/b")
    assert listed.size == 4
    assert listed.written_s > 1_700_000_000


def test_a_listing_is_in_the_order_of_keys(bucket: Bucket) -> None:
    some = [
        "a",
        "a-b",
        "a.b",
        "ab/c",
        "b/a/z",
        "b/a-/z",
        "b/aa",
        "b/a.json",
        "ä/1",
        "z",
        "Z/y",
        "\U0001f600",
        "\uffee",
    ]
    for key in some:
        bucket.put(key, b"")
    assert keys(bucket) == sorted(some, key=str.encode)


def test_a_prefix_need_not_end_with_a_slash(bucket: Bucket) -> None:
    some = [
        "runs/a/latest.json",
        "runs/a/manifests/000000000025-e1.json",
        "runs/a/manifests/000000000050-e1.json",
        "runs/ab/x",
        "runs-x",
    ]
    for key in some:
        bucket.put(key, b"")
    assert keys(bucket, "runs/a/manifests/") == some[1:3]
    assert keys(bucket, "runs/a/manifests") == some[1:3]
    assert keys(bucket, "runs/a/manifests/000000000025") == some[1:2]
    assert keys(bucket, "runs/a/manifests/000000000025-e1.json") == some[1:2]
    assert keys(bucket, "runs/a") == some[:4]
    assert keys(bucket, "runs/a/") == some[:3]
    for nothing in (
        "runs/a/manifests/000000000025-e1.json/",
        "../",
        "runs//a",
        "/",
        "runs/../runs/a/",
        "x\0",
        "runs/a/x\0/y",
    ):
        assert keys(bucket, nothing) == []


def test_a_listing_survives_what_is_deleted_meanwhile(bucket: Bucket) -> None:
    for name in range(20):
        bucket.put(f"a{name:02d}/x", b"")
    listing = bucket.list("")
    assert next(listing).key == "a00/x"
    for name in range(20):
        bucket.delete(f"a{name:02d}/x")
    assert {stat.key for stat in listing} <= {f"a{name:02d}/x" for name in range(20)}


@pytest.mark.parametrize(
    "key",
    [
        "",
        "/",
        "/etc/passwd",
        "a//b",
        "a/",
        "../a",
        "a/../b",
        ".",
        "a/./b",
        "a\0b",
        "a\nb",
        "a\x7f",
        ".tmp/x",
        ".tmpx",
        "x" * 1025,
        "ä" * 513,
        "\ud800",
    ],
)
def test_what_is_no_key_is_refused_by_every_method(bucket: Bucket, key: str, tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"")
    calls: list[Callable[[], object]] = [
        lambda: bucket.put(key, b""),
        lambda: bucket.put_if(key, b"", tag=None),
        lambda: bucket.put_file(key, file),
        lambda: bucket.get(key),
        lambda: bucket.get_file(key, file),
        lambda: bucket.stat(key),
        lambda: bucket.delete(key),
    ]
    for call in calls:
        with pytest.raises(PermanentError, match="key"):
            call()
    assert keys(bucket) == []


PART = st.text(
    st.characters(exclude_characters="/\x7f", min_codepoint=32, exclude_categories=["Cs"]),
    min_size=1,
    max_size=20,
)
KEY = st.lists(PART, min_size=1, max_size=4).map("/".join)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(key=KEY.filter(lambda key: not key.startswith(".tmp") and not {".", ".."} & set(key.split("/"))))
@example("runs/a b/ü 日本'\"\\*?[x]%20#&+.json")
@example("...")
@example("a/.tmp/b")
def test_any_text_is_a_key(bucket: Bucket, key: str) -> None:
    bucket.put(key, key.encode())
    assert data(bucket, key) == key.encode()
    assert keys(bucket) == [key]
    assert keys(bucket, key[:-1]) == [key]
    bucket.delete(key)
    assert keys(bucket) == []


def test_a_large_file_comes_back_bit_for_bit(bucket: Bucket, tmp_path: Path) -> None:
    block = os.urandom(MIB)
    with (tmp_path / "large").open("wb") as file:
        for turn in range(33):
            file.write(block[turn:])
    bucket.put_file("runs/a/blobs/large", tmp_path / "large")
    assert bucket.get_file("runs/a/blobs/large", tmp_path / "new folder" / "back") is True
    assert digest(tmp_path / "new folder" / "back") == digest(tmp_path / "large")
    assert sorted(p.name for p in (tmp_path / "new folder").iterdir()) == ["back"]
    stat = bucket.stat("runs/a/blobs/large")
    assert stat is not None
    assert stat.size == (tmp_path / "large").stat().st_size


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_an_object_is_not_its_file(bucket: Bucket, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"before")
    bucket.put_file("a", tmp_path / "file")
    (tmp_path / "file").write_bytes(b"after!")
    assert data(bucket, "a") == b"before"
    assert bucket.get_file("a", tmp_path / "back")
    (tmp_path / "back").write_bytes(b"scribble")
    assert data(bucket, "a") == b"before"


def test_only_small_objects_are_read_complete(bucket: Bucket, tmp_path: Path) -> None:
    with (tmp_path / "large").open("wb") as file:
        file.truncate(GET_BYTES_MAX + 1)
    bucket.put_file("large", tmp_path / "large")
    with pytest.raises(PermanentError, match=str(GET_BYTES_MAX)):
        bucket.get("large")
    bucket.put("just", b"\1" * GET_BYTES_MAX)
    assert data(bucket, "just") == b"\1" * GET_BYTES_MAX


def test_a_file_that_is_not_there_is_refused_by_name(bucket: Bucket, tmp_path: Path) -> None:
    with pytest.raises(PermanentError, match="no-such-file"):
        bucket.put_file("a", tmp_path / "no-such-file")
    assert keys(bucket) == []


def test_a_conditional_write_needs_the_tag_that_was_read(bucket: Bucket) -> None:
    assert bucket.put_if("a", b"1", tag="something") is False
    assert bucket.put_if("a", b"1", tag=None) is True
    assert bucket.put_if("a", b"2", tag=None) is False
    first = bucket.get("a")
    assert first is not None
    assert bucket.put_if("a", b"2", tag=first.tag) is True
    assert bucket.put_if("a", b"3", tag=first.tag) is False
    assert data(bucket, "a") == b"2"


def test_a_plain_write_or_a_delete_makes_an_old_tag_worthless(bucket: Bucket) -> None:
    bucket.put("a", b"1")
    first = bucket.get("a")
    assert first is not None
    bucket.put("a", b"2")
    assert bucket.put_if("a", b"3", tag=first.tag) is False
    bucket.delete("a")
    assert bucket.put_if("a", b"3", tag=first.tag) is False
    assert bucket.get("a") is None
    assert bucket.put_if("a", b"3", tag=None) is True


def test_of_sixteen_who_write_at_once_one_wins_each_round(url: str) -> None:
    others, rounds = 16, 15
    gate = threading.Barrier(others)

    def race(who: int) -> list[bool]:
        bucket = open_bucket(url, make=True)
        won: list[bool] = []
        for _ in range(rounds):
            seen = bucket.get("latest.json")
            gate.wait(HANG_S)
            won.append(
                bucket.put_if("latest.json", f"{len(won)} by {who}".encode(), tag=seen.tag if seen else None)
            )
            gate.wait(HANG_S)
        return won

    with ThreadPoolExecutor(others) as pool:
        results = list(pool.map(race, range(others)))
    assert [sum(won) for won in zip(*results, strict=True)] == [1] * rounds


def test_no_raise_of_a_counter_is_lost_between_processes(url: str, bucket: Bucket) -> None:
    raises = 40
    command = [sys.executable, "-c", COUNTER, url, str(raises)]
    both = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) for _ in range(2)
    ]
    for process in both:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    message = [process.communicate("go\n", timeout=HANG_S)[0] for process in both]
    assert message == [f"{raises}\n"] * 2
    assert json.loads(data(bucket, "latest.json") or b"") == {"count": 2 * raises}


def test_a_reader_sees_complete_objects_while_a_writer_writes_and_is_killed(
    url: str, bucket: Bucket, tmp_path: Path
) -> None:
    for turn in range(8):
        command = [sys.executable, "-c", WRITER, url, str(tmp_path / "file"), "runs/a/blob"]
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            for _ in range(2 + turn):
                assert_whole(bucket, tmp_path)
            writer.kill()
        assert_whole(bucket, tmp_path)
        assert keys(bucket) == ["runs/a/blob"]


def assert_whole(bucket: Bucket, tmp_path: Path) -> None:
    seen = data(bucket, "runs/a/blob")
    assert seen is not None
    assert_one_writing(seen)
    assert bucket.get_file("runs/a/blob", tmp_path / "copy")
    assert_one_writing((tmp_path / "copy").read_bytes())


def assert_one_writing(seen: bytes) -> None:
    turn = len(seen) - 3_000_000
    assert turn >= 0
    assert seen.count(bytes([97 + turn % 26])) == len(seen)


def test_a_dead_writer_keeps_nobody_waiting(url: str, bucket: Bucket, tmp_path: Path) -> None:
    command = [sys.executable, "-c", WRITER, url, str(tmp_path / "file"), "runs/a/blob"]
    for _ in range(3):
        with subprocess.Popen(command, stdout=subprocess.PIPE) as writer:
            assert writer.stdout is not None
            writer.stdout.readline()
            writer.kill()
        seen = bucket.get("runs/a/blob")
        assert seen is not None
        assert bucket.put_if("runs/a/blob", b"b" * 3_000_001, tag=seen.tag) is True


def test_deletes_and_writes_side_by_side_lose_nothing(bucket: Bucket) -> None:
    def work(who: int) -> None:
        for turn in range(25):
            bucket.put(f"runs/a/blobs/{who}-{turn}", b"x")
            bucket.delete(f"runs/a/blobs/{who}-{turn}")
        bucket.put(f"runs/a/blobs/{who}", b"x")

    # In a folder the last delete takes the folder along. minio does so too, and then refuses whoever writes
    # there: that is not ours.
    stays = [] if isinstance(bucket, FolderBucket) else ["runs/a/blobs/stays"]
    for key in stays:
        bucket.put(key, b"x")
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(4)))
    assert keys(bucket) == [*(f"runs/a/blobs/{who}" for who in range(4)), *stays]
