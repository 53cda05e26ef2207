"""Logs in the bucket: every line once and in order, whatever happens to the file, the agent and the bucket,
and no secret.
"""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from prime_agent.outputs.text_stream import PIECE_BYTES, TextStream
from prime_agent.trainer.logs import BoundedLog
from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import stream_prefix
from prime_train.buckets.port import Bucket
from tests.agent.buckets import Counted, Cut
from tests.agent.outputs.leaving_outputs import identity_of, text_stream
from tests.builders import RUN_ID

SECRETS = {"TOKEN": "a-secret-of-two\nlines-in-it", "WORD": "correct-horse"}


@pytest.fixture
def bucket(tmp_path: Path) -> Counted:
    return Counted(FolderBucket(tmp_path / "bucket", make=True))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trainer.log"


@pytest.fixture
def made(bucket: Counted, path: Path) -> Iterator[TextStream]:
    with closing(text_stream(bucket, path)) as made:
        yield made


def text_in(bucket: Bucket) -> str:
    pieces = [
        bucket.get(stat.key) for stat in bucket.list(stream_prefix(RUN_ID, 1, identity_of(1), "trainer.log"))
    ]
    return b"".join(piece.data for piece in pieces if piece is not None).decode()


def append(path: Path, text: str) -> None:
    with path.open("a") as file:
        file.write(text)


def test_what_is_added_is_uploaded_and_an_unfinished_line_waits_for_its_end(
    made: TextStream, bucket: Counted, path: Path
) -> None:
    made.upload(is_last=False)
    assert text_in(bucket) == ""
    append(path, "one\ntw")
    made.upload(is_last=False)
    assert text_in(bucket) == "one\n"
    append(path, "o\nthr")
    made.upload(is_last=False)
    assert text_in(bucket) == "one\ntwo\n"
    made.upload(is_last=True)
    assert text_in(bucket) == "one\ntwo\nthr"


def test_a_long_log_is_stored_in_few_objects(made: TextStream, bucket: Counted, path: Path) -> None:
    lines = [f"line {number:06d}\n" for number in range(60_000)]
    for start in range(0, len(lines), 10_000):
        append(path, "".join(lines[start : start + 10_000]))
        made.upload(is_last=False)
    assert text_in(bucket) == "".join(lines)
    pieces = list(bucket.list(stream_prefix(RUN_ID, 1, identity_of(1), "trainer.log")))
    assert len(pieces) <= sum(map(len, lines)) // PIECE_BYTES + 1


def test_a_log_that_is_rotated_is_uploaded_without_a_gap(
    made: TextStream, bucket: Counted, path: Path
) -> None:
    log = BoundedLog(path, bytes_max=1000)
    lines = [f"line {number:04d}\n" for number in range(500)]
    for start in range(0, len(lines), 120):
        for line in lines[start : start + 120]:
            log.write(line.encode())
        made.upload(is_last=False)
    log.close()
    assert text_in(bucket) == "".join(lines)


def test_a_restarted_agent_goes_on_where_the_last_one_stopped(bucket: Counted, path: Path) -> None:
    for number in range(4):
        append(path, f"line {number}\nunfinished {number} ")
        with closing(text_stream(bucket, path)) as made:
            made.upload(is_last=number == 3)
    assert text_in(bucket) == path.read_text()


@pytest.mark.parametrize("late", [False, True])
def test_a_bucket_that_fails_loses_and_doubles_nothing(
    made: TextStream, bucket: Counted, path: Path, late: bool
) -> None:
    bucket.late = late
    for number in range(6):
        append(path, f"line {number}\n")
        bucket.cut_at = bucket.operations + 1 if number % 2 else None
        if bucket.cut_at is None:
            made.upload(is_last=False)
        else:
            with pytest.raises(Cut):
                made.upload(is_last=False)
    bucket.cut_at = None
    made.upload(is_last=True)
    assert text_in(bucket) == path.read_text()


@pytest.mark.parametrize("secret", SECRETS)
def test_no_part_of_a_secret_is_uploaded_wherever_it_is_cut(tmp_path: Path, secret: str) -> None:
    text = f"before\nthe key: {SECRETS[secret]} and after\n"
    for cut in range(len(text)):
        bucket, path = (
            FolderBucket(tmp_path / f"bucket-{cut}", make=True),
            tmp_path / f"{cut}" / "trainer.log",
        )
        path.parent.mkdir()
        with closing(text_stream(bucket, path, secrets=SECRETS)) as made:
            append(path, text[:cut])
            made.upload(is_last=False)
            assert not any(part in text_in(bucket) for part in SECRETS[secret].split("\n"))
            append(path, text[cut:])
            made.upload(is_last=False)
        assert text_in(bucket) == f"before\nthe key: <{secret}> and after\n"
