"""Content that runs share: a descendant starts from another run's checkpoint, and no clean-up of either takes
what the other needs.
"""

import shutil
from pathlib import Path

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import blob_key, blob_prefix, descendant_key, descendants_prefix, manifest_key
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import Reader, read_manifest
from prime_train.checkpoints.descendants import ABANDONED_S, remove_record, unneeded_records
from prime_train.checkpoints.manifest import CHUNK_BYTES, Chunk, Manifest, ManifestFile
from prime_train.checkpoints.prune import carry_out, plan
from prime_train.checkpoints.restore import CheckpointDamaged, restore
from prime_train.checkpoints.retention import RetentionPolicy
from prime_train.checkpoints.verify import verify
from prime_train.errors import UsageError
from prime_train.launch.start import hold
from prime_train.runs.resume_point import BLOB_GRACE_S
from tests.agent.buckets import Counted
from tests.agent.checkpoints.saving import NOW_S, contents, on_disk, save, ship, uploader
from tests.builders import RUN_ID, digest

DESCENDANT, NEXT = "descendant-1", "next-1"


@pytest.fixture(scope="module")
def uploaded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a bucket with checkpoints of steps 10, 20 and 30."""
    folder = tmp_path_factory.mktemp("uploaded")
    made = uploader(FolderBucket(folder / "bucket", make=True), folder / "old", keep=10)
    for step in (10, 20, 30):
        save(folder / "old" / "tree", step)
        ship(made)
    return folder / "bucket"


@pytest.fixture
def bucket(uploaded: Path, tmp_path: Path) -> FolderBucket:
    shutil.copytree(uploaded, tmp_path / "bucket")
    return FolderBucket(tmp_path / "bucket")


def manifest_of(bucket: Bucket, run_id: str, step: int, attempt: int = 1) -> Manifest:
    manifest = read_manifest(bucket, manifest_key(run_id, step, attempt))
    assert manifest is not None
    return manifest


def prune(bucket: Bucket, run_id: str = RUN_ID, *, keep: int = 1, seen: Bucket | None = None) -> None:
    """Delete all but the newest checkpoint, as the run's agent or `prune` would. `seen`: the bucket as its
    list is read.
    """
    pruning = plan(
        Reader(seen or bucket, run_id).catalog(), RetentionPolicy(keep), committed_step=30, now_s=NOW_S
    )
    carry_out(bucket, pruning, remove=bucket.delete)


def is_intact(bucket: Bucket, run_id: str, step: int = 10) -> bool:
    return verify(bucket, manifest_of(bucket, run_id, step, 0)) == []


def unneeded(
    bucket: Bucket, *, now_s: int = NOW_S, stored: tuple[str, ...] = (DESCENDANT, NEXT)
) -> list[str]:
    return list(unneeded_records(bucket, RUN_ID, is_stored=lambda run_id: run_id in stored, now_s=now_s))


def test_a_descendant_restores_the_bytes_of_its_source_also_when_the_source_has_pruned_them(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    started = hold(bucket, manifest_of(bucket, RUN_ID, 10), DESCENDANT)
    prune(bucket)
    assert [manifest.step for manifest in Reader(bucket, RUN_ID).catalog().manifests] == [30]
    assert [manifest.step for manifest in Reader(bucket, DESCENDANT).catalog().complete()] == [10]
    assert on_disk(restore(bucket, DESCENDANT, started.point, tmp_path / "machine")) == contents(10)
    counted = Counted(bucket)
    reader = Reader(counted, RUN_ID)
    first, operations = reader.catalog(), counted.operations
    assert (reader.catalog(), counted.operations - operations) == (first, 5), (
        "five listings, and the record is not read again"
    )
    prune(bucket)
    assert is_intact(bucket, DESCENDANT), (
        "nor does a second clean-up, which no longer sees the source's own manifest"
    )


def test_a_descendant_deletes_nothing_of_its_source(bucket: FolderBucket) -> None:
    before = {stat.key for stat in bucket.list(blob_prefix(RUN_ID))}
    hold(bucket, manifest_of(bucket, RUN_ID, 10), DESCENDANT)
    bucket.put(blob_key(DESCENDANT, digest(1)), b"left by an upload")
    prune(bucket, DESCENDANT)
    assert {stat.key for stat in bucket.list(blob_prefix(RUN_ID))} == before
    assert list(bucket.list(blob_prefix(DESCENDANT))) == []


def launched_during(bucket: FolderBucket, moment: int) -> bool | None:
    """Launch a descendant right before operation number `moment` of a clean-up. Return whether the launch
    succeeded, in which case its descendant must be intact, or None if there were fewer operations.
    """
    outcome: list[bool] = []
    theirs = manifest_of(bucket, RUN_ID, 10)

    def before(name: str, key: str) -> None:
        if counted.operations == moment and not outcome:
            try:
                outcome.append(hold(bucket, theirs, DESCENDANT) is not None)
            except UsageError:
                outcome.append(False)

    counted = Counted(bucket, before=before)
    prune(counted)
    if outcome == [True]:
        assert is_intact(bucket, DESCENDANT)
    elif outcome:
        assert list(bucket.list(descendants_prefix(RUN_ID))) == [], (
            "a launch that was refused leaves no record"
        )
        assert list(bucket.list(f"runs/{DESCENDANT}/")) == []
    return outcome[0] if outcome else None


def test_a_launch_at_any_moment_of_a_clean_up_is_refused_or_keeps_its_content(
    uploaded: Path, tmp_path: Path
) -> None:
    found = []
    for moment in range(24):
        shutil.copytree(uploaded, tmp_path / str(moment))
        found.append(launched_during(FolderBucket(tmp_path / str(moment)), moment))
    refused = found.index(False)
    assert (found[0], refused) == (True, found.count(True)), (
        "launched up to a moment, and refused from then on"
    )


@pytest.mark.parametrize("moment", range(1, 5))
def test_a_clean_up_at_any_moment_of_a_launch_takes_nothing_from_the_descendant(
    bucket: FolderBucket, moment: int
) -> None:
    theirs, outdated = (
        manifest_of(bucket, RUN_ID, 10),
        plan(Reader(bucket, RUN_ID).catalog(), RetentionPolicy(1), committed_step=30, now_s=NOW_S),
    )

    def before(name: str, key: str) -> None:
        if counted.operations == moment - 1:
            carry_out(bucket, outdated, remove=bucket.delete)

    counted = Counted(bucket, before=before)
    try:
        hold(counted, theirs, DESCENDANT)
    except UsageError:
        assert list(bucket.list(descendants_prefix(RUN_ID))) == []
    else:
        assert is_intact(bucket, DESCENDANT)


def test_content_is_kept_for_the_last_of_two_descendants(bucket: FolderBucket) -> None:
    for descendant in (DESCENDANT, NEXT):
        hold(bucket, manifest_of(bucket, RUN_ID, 10), descendant)
    prune(bucket)
    bucket.delete(manifest_key(DESCENDANT, 10, 0))
    assert unneeded(bucket) == [descendant_key(RUN_ID, DESCENDANT, 10)]
    remove_record(bucket, RUN_ID, descendant_key(RUN_ID, DESCENDANT, 10))
    prune(bucket)
    assert is_intact(bucket, NEXT)
    before = len(Reader(bucket, RUN_ID).catalog().blobs)
    remove_record(bucket, RUN_ID, descendant_key(RUN_ID, NEXT, 10))
    prune(bucket)
    assert len(Reader(bucket, RUN_ID).catalog().blobs) == before - 4, "all of step 10 but the frozen file"


def test_a_descendant_of_an_ancestor_uses_the_content_where_it_is(bucket: FolderBucket) -> None:
    hold(bucket, manifest_of(bucket, RUN_ID, 10), DESCENDANT)
    second = hold(bucket, manifest_of(bucket, DESCENDANT, 10, 0), NEXT)
    assert second.blobs_of == RUN_ID
    prune(bucket)
    remove_record(bucket, RUN_ID, descendant_key(RUN_ID, DESCENDANT, 10))
    prune(bucket)
    assert is_intact(bucket, NEXT)


def test_the_record_of_a_launch_is_kept_while_it_may_still_go_on_and_collected_when_it_was_interrupted(
    bucket: FolderBucket,
) -> None:
    manifest = manifest_of(bucket, RUN_ID, 10).for_descendant(DESCENDANT)
    record = descendant_key(RUN_ID, DESCENDANT, 10)
    bucket.put(record, manifest.model_dump_json(exclude_none=True).encode())
    written_s = next(stat.written_s for stat in bucket.list(record))
    assert unneeded(bucket, now_s=written_s + BLOB_GRACE_S - 1) == []
    assert unneeded(bucket, now_s=written_s + BLOB_GRACE_S) == [record], "no manifest was written"
    bucket.put(manifest.key, manifest.model_dump_json(exclude_none=True).encode())
    assert unneeded(bucket, now_s=written_s + ABANDONED_S - 1, stored=()) == []
    assert unneeded(bucket, now_s=written_s + ABANDONED_S) == [], (
        "a run that waits for a machine is in the store"
    )
    assert unneeded(bucket, now_s=written_s + ABANDONED_S, stored=()) == [record], "the run was never stored"


def test_a_record_that_cannot_be_read_keeps_every_chunk(bucket: FolderBucket) -> None:
    bucket.put(descendant_key(RUN_ID, DESCENDANT, 10), b"{}")
    before = {stat.key for stat in bucket.list(blob_prefix(RUN_ID))}
    pruning = plan(Reader(bucket, RUN_ID).catalog(), RetentionPolicy(1), committed_step=30, now_s=NOW_S)
    assert "cannot be read" in pruning.blobs_kept
    prune(bucket)
    assert {stat.key for stat in bucket.list(blob_prefix(RUN_ID))} == before


def test_content_that_was_deleted_by_hand_is_an_error_that_names_whose_it_was(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    started = hold(bucket, manifest_of(bucket, RUN_ID, 10), DESCENDANT)
    for stat in list(bucket.list(f"runs/{RUN_ID}/")):
        bucket.delete(stat.key)
    with pytest.raises(CheckpointDamaged, match=r"run tiny-1 has its content.*is missing"):
        restore(bucket, DESCENDANT, started.point, tmp_path / "machine")
    assert not list((tmp_path / "machine").glob("*"))


@pytest.mark.parametrize(("attempt", "blobs_of"), [(1, RUN_ID), (0, ""), (0, DESCENDANT)])
def test_no_machine_can_claim_the_content_of_another_run(
    bucket: FolderBucket, attempt: int, blobs_of: str
) -> None:
    claimed = manifest_of(bucket, RUN_ID, 10).model_dump() | {
        "run": DESCENDANT,
        "attempt": attempt,
        "blobs_of": blobs_of,
    }
    with pytest.raises(ValueError, match="only a manifest of attempt 0"):
        Manifest.model_validate(claimed)


def test_a_descendant_of_47_gb_is_two_small_objects_and_two_listings(tmp_path: Path) -> None:
    bucket = FolderBucket(tmp_path / "bucket", make=True)
    chunks = tuple(
        Chunk(digest=digest(number), size=CHUNK_BYTES, stored=CHUNK_BYTES) for number in range(2800)
    )
    files = (ManifestFile(path="weights", size=CHUNK_BYTES * len(chunks), chunks=chunks),)
    theirs = Manifest(run=RUN_ID, attempt=1, step=10, created_s=1, folder="step_10", files=files)
    bucket.put(theirs.key, theirs.model_dump_json().encode())
    (tmp_path / "bucket" / blob_prefix(RUN_ID)).mkdir(parents=True)
    for key in theirs.blobs():
        with (tmp_path / "bucket" / key).open("xb") as file:
            file.truncate(CHUNK_BYTES)
    assert theirs.size > 46e9
    calls: list[str] = []
    counted = Counted(bucket, before=lambda name, key: calls.append(name))
    hold(counted, theirs, DESCENDANT)
    assert sorted(calls) == ["get", "list", "put", "put"], (
        "one listing here, and one where the checkpoint is chosen"
    )
    assert counted.bytes_put < 1_000_000
    assert [manifest.step for manifest in Reader(bucket, DESCENDANT).catalog().complete()] == [10]
