"""The checkpoints of a run, listed from the bucket alone."""

from pathlib import Path

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import manifest_key, manifest_prefix, pin_key
from prime_train.checkpoints.catalog import Reader, point_of, read_manifest
from prime_train.checkpoints.retention import RetentionPolicy
from tests.agent.buckets import Counted
from tests.agent.checkpoints.saving import NOW_S, key_of, save, ship, uploader
from tests.builders import RUN_ID


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    """Return a bucket with the checkpoints of steps 10, 20 and 30."""
    bucket = FolderBucket(tmp_path / "bucket", make=True)
    made = uploader(bucket, tmp_path / "old", keep=10)
    for step in (10, 20, 30):
        save(tmp_path / "old" / "tree", step)
        ship(made)
    return bucket


def test_the_newest_comes_first_and_all_is_complete(bucket: FolderBucket) -> None:
    catalog = Reader(bucket, RUN_ID).catalog()
    assert [manifest.step for manifest in catalog.manifests] == [30, 20, 10]
    assert catalog.complete() == list(catalog.manifests)
    assert catalog.unread == ()
    assert catalog.pinned == frozenset()


def test_one_that_lacks_a_blob_is_listed_and_not_complete(bucket: FolderBucket) -> None:
    first = Reader(bucket, RUN_ID).catalog().manifests[0]
    gone = key_of(next(file for file in first.files if file.path == "weights.npz"))
    bucket.delete(gone)
    catalog = Reader(bucket, RUN_ID).catalog()
    assert catalog.missing(catalog.manifests[0]) == (gone,)
    assert [manifest.step for manifest in catalog.complete()] == [20, 10]
    kept = {kept.step: kept.complete for kept in catalog.kept(RetentionPolicy(1))}
    assert kept == {30: False, 20: True, 10: True}


def test_a_blob_of_another_size_is_a_missing_one(bucket: FolderBucket) -> None:
    first = Reader(bucket, RUN_ID).catalog().manifests[0]
    bucket.put(key_of(first.files[0]), b"short")
    assert [manifest.step for manifest in Reader(bucket, RUN_ID).catalog().complete()] == [20, 10]


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"version": 1}'])
def test_a_manifest_that_cannot_be_read_is_named(bucket: FolderBucket, content: bytes) -> None:
    bucket.put(manifest_key(RUN_ID, 20, 1), content)
    catalog = Reader(bucket, RUN_ID).catalog()
    assert [manifest.step for manifest in catalog.manifests] == [30, 10]
    assert catalog.unread == (manifest_key(RUN_ID, 20, 1),)


def test_a_manifest_under_anothers_key_counts_for_neither(bucket: FolderBucket) -> None:
    content = bucket.get(manifest_key(RUN_ID, 30, 1))
    assert content is not None
    bucket.put(manifest_key(RUN_ID, 40, 1), content.data)
    catalog = Reader(bucket, RUN_ID).catalog()
    assert [manifest.step for manifest in catalog.manifests] == [30, 20, 10]
    assert catalog.unread == (manifest_key(RUN_ID, 40, 1),)


def test_what_is_no_manifest_is_passed_over(bucket: FolderBucket) -> None:
    bucket.put(f"{manifest_prefix(RUN_ID)}notes.txt", b"mine")
    assert Reader(bucket, RUN_ID).catalog().unread == ()


def test_a_pin_holds_the_checkpoint_of_its_step_and_attempt(bucket: FolderBucket) -> None:
    bucket.put(pin_key(RUN_ID, 10, 1), b"")
    bucket.put(pin_key(RUN_ID, 20, 7), b"")
    assert Reader(bucket, RUN_ID).catalog().pinned == {manifest_key(RUN_ID, 10, 1)}


def test_manifests_are_read_once_as_long_as_they_stay_the_same(bucket: FolderBucket, tmp_path: Path) -> None:
    counted = Counted(bucket)
    reader = Reader(counted, RUN_ID)
    first = reader.catalog()
    before = counted.operations
    assert reader.catalog() == first
    assert counted.operations - before == 5, "the five listings only"
    save(tmp_path / "new" / "tree", 40)
    ship(
        uploader(
            bucket, tmp_path / "new", attempt=2, known=point_of(first.manifests[0]), keep=10, now_s=NOW_S
        )
    )
    assert [manifest.step for manifest in reader.catalog().manifests] == [40, 30, 20, 10]


def test_a_run_of_which_there_is_nothing_has_an_empty_catalog(bucket: FolderBucket) -> None:
    catalog = Reader(bucket, "other").catalog()
    assert (catalog.manifests, catalog.blobs, catalog.complete()) == ((), {}, [])
    assert read_manifest(bucket, manifest_key("other", 1, 1)) is None
