"""Export of a checkpoint as one archive: tar reads exactly what was saved, or there is no archive."""

import os
import subprocess
import tarfile
from pathlib import Path

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.checkpoints.archive import stage, unpack
from prime_train.checkpoints.export import AHEAD_MAX, KINDS, export
from prime_train.checkpoints.manifest import CHUNK_BYTES, Manifest
from prime_train.checkpoints.restore import CheckpointDamaged, RestoreFailed
from tests.agent.buckets import Counted, Cut
from tests.agent.checkpoints.saving import contents, key_of, on_disk, save, ship, uploader


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


@pytest.fixture
def saved(tmp_path: Path, bucket: FolderBucket) -> Manifest:
    save(tmp_path / "old" / "tree", 30)
    return ship(uploader(bucket, tmp_path / "old"))


@pytest.mark.parametrize("ending", list(KINDS))
def test_it_can_be_unpacked_again(tmp_path: Path, bucket: FolderBucket, saved: Manifest, ending: str) -> None:
    reports: list[tuple[int, int]] = []
    export(bucket, saved, tmp_path / f"a{ending}", progress=lambda done, total: reports.append((done, total)))
    with stage(tmp_path / "into", "a") as hidden:
        target = unpack(tmp_path / f"a{ending}", hidden).folder
    assert target == tmp_path / "into" / "step_30"
    assert on_disk(target) == contents(30)
    assert reports[-1] == (saved.size, saved.size)
    assert {int((target / file.path).stat().st_mtime) for file in saved.files} == {
        file.mtime_s for file in saved.files
    }


def test_tar_itself_reads_it(tmp_path: Path, bucket: FolderBucket, saved: Manifest) -> None:
    export(bucket, saved, tmp_path / "a.tar.gz")
    subprocess.run(["tar", "-xzf", "a.tar.gz"], cwd=tmp_path, check=True)
    assert on_disk(tmp_path / "step_30") == contents(30)


def test_a_file_of_many_chunks_comes_complete(tmp_path: Path, bucket: FolderBucket) -> None:
    large = os.urandom(CHUNK_BYTES) + bytes(2 * CHUNK_BYTES) + b"the end"
    save(tmp_path / "old" / "tree", 5, {"a": b"a", "large": large, "empty": b"", "COMPLETE": b"5\n"})
    manifest = ship(uploader(bucket, tmp_path / "old", files=[]))
    export(bucket, manifest, tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as tar:
        member = tar.extractfile("step_5/large")
        assert member is not None
        assert member.read() == large
        assert sorted(tar.getnames()) == ["step_5/COMPLETE", "step_5/a", "step_5/empty", "step_5/large"]


def test_more_files_than_are_fetched_ahead_come_each_with_its_own_content(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    files = {f"part-{number:02d}": f"{number} ".encode() * (1000 - number) for number in range(3 * AHEAD_MAX)}
    save(tmp_path / "old" / "tree", 5, files | {"COMPLETE": b"5\n"})
    export(bucket, ship(uploader(bucket, tmp_path / "old", files=[])), tmp_path / "a.tar")
    with stage(tmp_path / "into", "a") as hidden:
        assert on_disk(unpack(tmp_path / "a.tar", hidden).folder) == files | {"COMPLETE": b"5\n"}


@pytest.mark.parametrize("ending", [".tar", ".tar.zst"])
def test_a_damaged_one_is_named_and_leaves_no_archive(
    tmp_path: Path, bucket: FolderBucket, saved: Manifest, ending: str
) -> None:
    blob = tmp_path / "bucket" / key_of(next(file for file in saved.files if file.path == "weights.npz"))
    blob.write_bytes(blob.read_bytes()[:-1])
    (tmp_path / "out").mkdir()
    with pytest.raises(CheckpointDamaged, match=r"step 30 is damaged in the bucket: weights\.npz has"):
        export(bucket, saved, tmp_path / "out" / f"a{ending}")
    assert list((tmp_path / "out").iterdir()) == []


def test_a_bucket_that_goes_away_leaves_what_was_there_before(
    tmp_path: Path, bucket: FolderBucket, saved: Manifest
) -> None:
    (tmp_path / "a.tar").write_text("an older one")
    with pytest.raises(Cut):
        export(Counted(bucket, cut_at=3), saved, tmp_path / "a.tar")
    assert (tmp_path / "a.tar").read_text() == "an older one"
    assert not list(tmp_path.glob(".*"))


def test_a_place_that_cannot_be_written_is_a_failure(
    tmp_path: Path, bucket: FolderBucket, saved: Manifest
) -> None:
    with pytest.raises(RestoreFailed, match="cannot be written"):
        export(bucket, saved, tmp_path / "none" / "a.tar")
