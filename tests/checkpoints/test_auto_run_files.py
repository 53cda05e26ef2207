"""A machine puts files into its checkpoint that other programs would run where people restore it."""

import tarfile
from pathlib import Path

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.checkpoints.catalog import point_of
from prime_train.checkpoints.export import export
from prime_train.checkpoints.manifest import left_out_of
from prime_train.checkpoints.restore import RestoreFailed, restore
from tests.agent.checkpoints.saving import on_disk, save, ship, uploader
from tests.builders import RUN_ID

KEPT = {"model.pth": b"w", "x/config": b"x", "x/objects/o": b"x", "x/refs/r": b"x", "COMPLETE": b"5\n"}
OF_GIT = {".git/config": b"[core]\n\tfsmonitor = evil", "a/.GIT/hooks/post-checkout": b"evil"}
OTHERS = {".envrc": b"evil", "x/HEAD": b"ref: refs/heads/main\n"}


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


def test_people_get_a_checkpoint_without_them_and_are_told_which(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    save(tmp_path / "old" / "tree", 5, KEPT | OF_GIT | OTHERS)
    manifest = ship(uploader(bucket, tmp_path / "old", files=[]))
    assert on_disk(restore(bucket, RUN_ID, point_of(manifest), tmp_path / "into")) == KEPT
    assert set(left_out_of(manifest)) == OF_GIT.keys() | OTHERS.keys()
    export(bucket, manifest, tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as tar:
        assert set(tar.getnames()) == {f"step_5/{path}" for path in KEPT}


def test_a_machine_of_the_run_gets_all_that_it_saved_but_for_git(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    save(tmp_path / "old" / "tree", 5, KEPT | OF_GIT | OTHERS)
    manifest = ship(uploader(bucket, tmp_path / "old", files=[]))
    assert (
        on_disk(restore(bucket, RUN_ID, point_of(manifest), tmp_path / "into", is_own=True)) == KEPT | OTHERS
    )


def test_a_checkpoint_of_nothing_else_is_refused(tmp_path: Path, bucket: FolderBucket) -> None:
    save(tmp_path / "old" / "tree", 5, OF_GIT)
    manifest = ship(uploader(bucket, tmp_path / "old", files=[], sentinel=None))
    with pytest.raises(RestoreFailed, match="nothing but files that programs would run"):
        restore(bucket, RUN_ID, point_of(manifest), tmp_path / "into")
