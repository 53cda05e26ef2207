"""Verification of every byte in the bucket."""

import shutil
from pathlib import Path

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.checkpoints.manifest import CHUNK_BYTES, Manifest
from prime_train.checkpoints.verify import verify
from prime_train.errors import TemporaryError
from tests.agent.buckets import Counted
from tests.agent.checkpoints.saving import key_of, save, ship, uploader


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


@pytest.fixture
def saved(tmp_path: Path, bucket: FolderBucket) -> Manifest:
    save(tmp_path / "old" / "tree", 30)
    return ship(uploader(bucket, tmp_path / "old"))


def blob(root: Path, manifest: Manifest, path: str) -> Path:
    return root / "bucket" / key_of(next(file for file in manifest.files if file.path == path))


def test_a_complete_one_has_no_violations_and_all_of_it_was_read(
    bucket: FolderBucket, saved: Manifest
) -> None:
    reports: list[tuple[int, int]] = []
    counted = Counted(bucket)
    assert verify(counted, saved, progress=lambda done, total: reports.append((done, total))) == []
    assert counted.operations == len(saved.blobs())
    assert reports[-1] == (saved.size, saved.size)


def test_each_bad_file_is_named_with_what_is_wrong_in_the_order_of_the_manifest(
    bucket: FolderBucket, saved: Manifest, tmp_path: Path
) -> None:
    flipped = blob(tmp_path, saved, "weights.npz")
    data = flipped.read_bytes()
    flipped.write_bytes(bytes([data[0] ^ 128]) + data[1:])
    blob(tmp_path, saved, "optimizer.pt").unlink()
    blob(tmp_path, saved, "state.json").write_bytes(b"{}")
    found = {violation.path: violation.what for violation in verify(bucket, saved)}
    assert found["weights.npz"] == "has a different content than was saved"
    assert found["optimizer.pt"] == "is missing"
    assert found["state.json"].startswith("has 2 bytes in the bucket instead of")
    assert list(found) == [file.path for file in saved.files if file.path in found]


def test_a_chunk_of_a_large_file_is_named_by_its_place_and_read_once_however_often_it_is_listed(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    save(tmp_path / "old" / "tree", 5, {"large": bytes(2 * CHUNK_BYTES) + b"end", "COMPLETE": b"5\n"})
    manifest = ship(uploader(bucket, tmp_path / "old", files=[]))
    (large,) = [file for file in manifest.files if file.path == "large"]
    assert large.chunks[0] == large.chunks[1]
    counted = Counted(bucket)
    assert verify(counted, manifest) == []
    assert counted.operations == 3
    next((tmp_path / "bucket" / "runs").rglob(f"{large.chunks[0].digest}*")).unlink()
    violations = verify(bucket, manifest)
    assert [(violation.path, violation.what) for violation in violations] == [
        ("large (chunk 1 of 3)", "is missing"),
        ("large (chunk 2 of 3)", "is missing"),
    ]


def test_what_came_damaged_once_is_read_again(bucket: FolderBucket, saved: Manifest, tmp_path: Path) -> None:
    lies = blob(tmp_path, saved, "weights.npz")
    data = lies.read_bytes()
    lies.write_bytes(data[:-1])
    reads: list[str] = []

    def heal(name: str, key: str) -> None:
        if key.endswith(lies.name):
            reads.append(name)
            if len(reads) == 2:
                lies.write_bytes(data)

    assert verify(Counted(bucket, before=heal), saved) == []
    assert len(reads) == 2


def test_a_bucket_that_is_away_is_no_violation(bucket: FolderBucket, saved: Manifest, tmp_path: Path) -> None:
    shutil.move(tmp_path / "bucket", tmp_path / "unmounted")
    with pytest.raises(TemporaryError):
        verify(bucket, saved)
