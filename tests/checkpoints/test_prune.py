"""What a clean-up deletes from the bucket, and what it keeps."""

import os
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import blob_key, manifest_key, pin_key
from prime_train.checkpoints.catalog import Reader
from prime_train.checkpoints.prune import Pruning, carry_out, plan
from prime_train.checkpoints.retention import RetentionPolicy
from prime_train.checkpoints.verify import verify
from prime_train.runs.resume_point import BLOB_GRACE_S
from tests.agent.buckets import Counted, Cut
from tests.agent.checkpoints.saving import NOW_S, manifests, save, ship, uploader
from tests.builders import RUN_ID, digest

STEPS = (10, 20, 30, 40)


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    bucket = FolderBucket(tmp_path / "bucket", make=True)
    made = uploader(bucket, tmp_path / "old", keep=10)
    for step in STEPS:
        save(tmp_path / "old" / "tree", step)
        ship(made)
    return bucket


def planned(
    bucket: FolderBucket,
    *,
    keep: int = 1,
    committed_step: int = 40,
    pinned: tuple[str, ...] = (),
    now_s: int = NOW_S,
) -> Pruning:
    return plan(
        Reader(bucket, RUN_ID).catalog(),
        RetentionPolicy(keep),
        committed_step=committed_step,
        pinned=pinned,
        now_s=now_s,
    )


def left(bucket: FolderBucket) -> list[int]:
    """Return the listed steps; each checkpoint must be complete."""
    for manifest in manifests(bucket):
        assert verify(bucket, manifest) == []
    return [manifest.step for manifest in manifests(bucket)]


def test_old_checkpoints_go_with_what_only_they_had(bucket: FolderBucket) -> None:
    before = sum(stat.size for stat in bucket.list(""))
    pruning = planned(bucket, keep=2)
    assert [kept.step for kept in pruning.checkpoints] == [10, 20]
    manifest_bytes = sum(stat.size for kept in pruning.checkpoints if (stat := bucket.stat(kept.key)))
    carry_out(bucket, pruning, remove=bucket.delete)
    assert left(bucket) == [30, 40]
    assert before - sum(stat.size for stat in bucket.list("")) == pruning.bytes + manifest_bytes
    assert planned(bucket, keep=2) == Pruning(RUN_ID, (), (), 0), "done again, there is nothing to do"


def test_what_is_not_committed_pinned_or_restored_stays(bucket: FolderBucket) -> None:
    bucket.put(pin_key(RUN_ID, 10, 1), b"")
    pruning = planned(bucket, committed_step=30, pinned=(manifest_key(RUN_ID, 20, 1),))
    assert pruning.checkpoints == ()
    carry_out(bucket, planned(bucket, committed_step=30), remove=bucket.delete)
    assert left(bucket) == [10, 30, 40]


def test_a_cut_at_any_operation_harms_nothing_that_stays_and_the_next_one_finishes(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    counted = Counted(bucket, cut_at=4)
    with pytest.raises(Cut):
        carry_out(counted, planned(bucket), remove=counted.delete)
    assert left(bucket) == [40], "the three manifests go first"
    rest = planned(bucket)
    assert rest.checkpoints == ()
    carry_out(bucket, rest, remove=bucket.delete)
    listed = {key for manifest in manifests(bucket) for key in manifest.blobs()}
    assert {
        path.relative_to(tmp_path / "bucket").as_posix()
        for path in (tmp_path / "bucket" / "runs" / RUN_ID / "blobs").iterdir()
    } == listed


def test_blobs_of_an_upload_under_way_are_left_alone(bucket: FolderBucket, tmp_path: Path) -> None:
    key = blob_key(RUN_ID, digest(1))
    bucket.put(key, b"on its way")
    written_s = 1_900_000_000
    os.utime(tmp_path / "bucket" / key, (written_s, written_s))
    assert key not in planned(bucket, now_s=written_s + BLOB_GRACE_S - 1).blobs
    assert key in planned(bucket, now_s=written_s + BLOB_GRACE_S).blobs


def test_no_blob_goes_while_a_manifest_cannot_be_read(bucket: FolderBucket) -> None:
    bucket.put(manifest_key(RUN_ID, 20, 1), b"{")
    pruning = planned(bucket)
    assert [kept.step for kept in pruning.checkpoints] == [10, 30]
    assert (pruning.blobs, pruning.bytes) == ((), 0)
    assert manifest_key(RUN_ID, 20, 1) in pruning.blobs_kept


def test_one_that_takes_too_long_is_given_up(bucket: FolderBucket) -> None:
    calls: list[None] = []

    def too_late() -> bool:
        calls.append(None)
        return len(calls) > 2

    carry_out(bucket, replace(planned(bucket), blobs_kept=""), remove=bucket.delete, too_late=too_late)
    assert left(bucket) == [30, 40]
