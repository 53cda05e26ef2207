"""Damage in the bucket is found while the machine still has the files, and mended from them."""

import shutil
import threading
import time
from pathlib import Path

import pytest

from prime_agent.checkpoints.rechecks.verification import Verification, reads_back
from prime_agent.checkpoints.uploader import Uploader
from prime_train.buckets.folder import FolderBucket
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.verify import verify
from prime_train.spec.choices import Verify
from tests.agent.checkpoints.saving import NOW_S, key_of, save, ship, uploader
from tests.waiting import await_true

FROZEN = "base/frozen.safetensors"


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


def verification(made: Uploader, stopped: threading.Event | None = None) -> Verification:
    return made.verification(stopped or threading.Event(), time.monotonic)


def flip(bucket: FolderBucket, manifest: Manifest, path: str) -> str:
    """Flip one bit of the stored form of a file; return its key."""
    key = key_of(next(file for file in manifest.files if file.path == path))
    content = bucket.get(key)
    assert content is not None
    bucket.put(key, content.data[:-1] + bytes([content.data[-1] ^ 1]))
    return key


def test_a_flipped_bit_that_checkpoints_share_is_mended_from_this_machines_file(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    made = uploader(bucket, tmp_path)
    stopped = threading.Event()
    reading = verification(made, stopped)
    save(tmp_path / "tree", 10)
    first = ship(made)
    flip(bucket, first, FROZEN)
    save(tmp_path / "tree", 20)
    second = ship(made)
    assert {file.path for file in verify(bucket, second)} == {FROZEN}, "what is there is not sent again"
    reading.start()
    reading.begin(second)
    await_true("the damage is mended", lambda: not verify(bucket, second))
    stopped.set()
    assert verify(bucket, first) == []


def test_what_this_checkpoint_alone_contains_is_not_read_back_while_training(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    made = uploader(bucket, tmp_path)
    save(tmp_path / "tree", 10)
    manifest = ship(made)
    flip(bucket, manifest, "weights.npz")
    reading = verification(made)
    reading._newest = manifest
    assert reading.shared(manifest) == 0
    assert len(verify(bucket, manifest)) == 1


def test_all_of_the_last_checkpoint_is_read_and_mended(tmp_path: Path, bucket: FolderBucket) -> None:
    made = uploader(bucket, tmp_path)
    save(tmp_path / "tree", 10)
    manifest = ship(made)
    for path in ("weights.npz", "optimizer.pt", FROZEN):
        flip(bucket, manifest, path)
    assert verification(made).whole(manifest) == ""
    assert verify(bucket, manifest) == []


def test_damage_that_cannot_be_mended_is_named_and_sent_anew_with_the_next_checkpoint(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    made = uploader(bucket, tmp_path)
    folder = save(tmp_path / "tree", 10)
    manifest = ship(made)
    flip(bucket, manifest, FROZEN)
    shutil.rmtree(folder)
    assert FROZEN in verification(made).whole(manifest)
    save(tmp_path / "tree", 20)
    assert verify(bucket, ship(made)) == []
    assert verify(bucket, manifest) == []


def test_a_file_that_the_trainer_overwrote_is_no_source(tmp_path: Path, bucket: FolderBucket) -> None:
    made = uploader(bucket, tmp_path)
    folder = save(tmp_path / "tree", 10)
    manifest = ship(made)
    flip(bucket, manifest, "optimizer.pt")
    size = (folder / "optimizer.pt").stat().st_size
    (folder / "optimizer.pt").write_bytes(b"\1" * size)
    assert "optimizer.pt" in verification(made).whole(manifest)


def test_the_last_checkpoint_can_be_uploaded_again_from_the_disk(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    made = uploader(bucket, tmp_path)
    save(tmp_path / "tree", 10)
    manifest = ship(made)
    key = flip(bucket, manifest, "weights.npz")
    made._blobs.distrust({file.digest for file in verify(bucket, manifest)})
    local = made.on_disk(10)
    assert local is not None
    assert local.is_again
    assert made.on_disk(20) is None
    again = made.upload(local, cancelled=lambda: False)
    assert (again.key, verify(bucket, again), key in again.blobs()) == (manifest.key, [], True)
    assert made.scan(NOW_S) == []


@pytest.mark.parametrize(
    ("wanted", "url", "does"),
    [
        (Verify.AUTO, "file:///b", True),
        (Verify.AUTO, "s3://bucket", False),
        (Verify.ALL, "s3://bucket", True),
        (Verify.LAST, "file:///b", False),
        (Verify.OFF, "file:///b", False),
    ],
)
def test_a_bucket_is_read_while_training_where_that_costs_nothing_or_is_wanted(
    wanted: Verify, url: str, does: bool
) -> None:
    assert reads_back(wanted, url) is does
