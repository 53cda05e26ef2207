"""From the trainer's folder to the bucket: incomplete checkpoints never get there, and an interruption at any
point leaves a correct state.
"""

import json
import os
import shutil
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from prime_agent.checkpoints.blobs import Blobs
from prime_agent.checkpoints.retention import Retention, move_latest
from prime_agent.checkpoints.staging import set_aside
from prime_agent.checkpoints.uploader import Cancelled, LocalCheckpoint, Means, Vanished
from prime_agent.deletions import DeletionCounter
from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import blob_key, latest_key
from prime_train.buckets.port import Data, Stat
from prime_train.checkpoints.hashing import digest_of
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.retention import RetentionPolicy
from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.wire import Deletions
from tests.agent.buckets import Counted, Cut
from tests.agent.checkpoints.saving import (
    NOW_S,
    WITH_SENTINEL,
    blob_sizes,
    contents,
    cuts,
    download,
    key_of,
    manifests,
    newest,
    on_disk,
    point_of,
    save,
    save_dcp,
    ship,
    uploader,
    uploader_of,
    write,
)
from tests.builders import RUN_ID, digest, spec, stored_file
from tests.exhaustive import some_of
from tests.waiting import HANG_S


def never() -> bool:
    return False


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


def work(disk: Path) -> Path:
    return disk / "tree"


# ---------------------------------------------------------------- what is seen


def test_a_complete_checkpoint_reaches_the_bucket_byte_by_byte(tmp_path: Path, bucket: FolderBucket) -> None:
    save(work(tmp_path), 10)
    manifest = ship(uploader(bucket, tmp_path))
    assert (manifest.step, manifest.attempt, manifest.folder) == (10, 1, "step_10")
    assert newest(bucket) == manifest
    assert download(bucket, manifest) == contents(10)
    assert not list((tmp_path / "stage").iterdir())


def test_without_a_folder_or_with_strange_names_nothing_waits(tmp_path: Path, bucket: FolderBucket) -> None:
    made = uploader(bucket, tmp_path)
    assert made.scan(NOW_S) == []
    for name in ("step_10.bak", "old-step_10", "step_x", "tmp"):
        write(work(tmp_path) / "checkpoints" / name, contents(10))
    (work(tmp_path) / "checkpoints" / "step_11").write_text("a file")
    (work(tmp_path) / "checkpoints" / "step_12").symlink_to("/usr")
    assert made.scan(NOW_S) == []
    assert not made.saving(NOW_S)


def test_the_newest_complete_one_overtakes_those_that_wait(tmp_path: Path, bucket: FolderBucket) -> None:
    made = uploader(bucket, tmp_path)
    for step in (10, 20, 30):
        save(work(tmp_path), step)
    (work(tmp_path) / "checkpoints" / "step_30" / "COMPLETE").unlink()
    assert [local.step for local in made.scan(NOW_S)] == [20]
    ship(made)
    assert made.scan(NOW_S) == []
    assert [manifest.step for manifest in manifests(bucket)] == [20]


def test_what_was_restored_is_not_sent_back(tmp_path: Path, bucket: FolderBucket) -> None:
    save(work(tmp_path), 10)
    known = point_of(ship(uploader(bucket, tmp_path)))
    assert uploader(bucket, tmp_path, attempt=2, known=known).scan(NOW_S) == []


def test_checkpoints_that_came_with_the_working_tree_are_somebody_elses(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    foreign = save(work(tmp_path), 500)
    made = uploader(bucket, tmp_path)
    assert made.disregard_present() == (500,)
    (foreign / "optimizer.pt").unlink()
    assert made.scan(NOW_S) == []
    save(work(tmp_path), 10)
    assert [local.step for local in made.scan(NOW_S)] == [10]
    shutil.rmtree(foreign)
    again = save(work(tmp_path), 500)
    os.utime(again / "COMPLETE", (NOW_S - 5, NOW_S - 5))
    assert [local.step for local in made.scan(NOW_S)] == [500]


def test_a_save_under_way_is_seen_and_a_dead_one_is_not(tmp_path: Path, bucket: FolderBucket) -> None:
    made = uploader(bucket, tmp_path)
    started = save(work(tmp_path), 20, {"weights.npz": b"half"})
    wrote_s = int((started / "weights.npz").stat().st_mtime)
    save(work(tmp_path), 10)
    assert made.saving(wrote_s + 5)
    assert not made.saving(wrote_s + 3600)
    write(started, contents(20))
    assert not made.saving(wrote_s + 5)


# ---------------------------------------------------------------- cut off on disk


def test_a_save_cut_off_at_any_byte_is_never_uploaded(tmp_path: Path, bucket: FolderBucket) -> None:
    for number, files in enumerate(cuts(contents(30))):
        disk = tmp_path / str(number)
        if "COMPLETE" in files:
            continue  # the sentinel's own bytes mean nothing: when it is there, the others are whole
        folder = save(work(disk), 30, files)
        made = uploader(bucket, disk)
        assert made.scan(NOW_S) == [], sorted(files)
        with pytest.raises(Vanished):
            made.upload(LocalCheckpoint(30, folder), cancelled=never)
        shutil.rmtree(disk)
    assert manifests(bucket) == []


@pytest.mark.parametrize("cut", ["base/frozen.safetensors", "weights.npz", "optimizer.pt", "state.json"])
def test_a_truncated_file_beside_a_sentinel_is_never_uploaded(
    tmp_path: Path, bucket: FolderBucket, cut: str
) -> None:
    complete = contents(30)[cut]
    for length in {*range(30), *range(len(complete) - 30, len(complete) - 1), len(complete) // 2}:
        # The sentinel comes first here, and the trainer dies soon after: time alone would call it settled.
        files = {"COMPLETE": b"30\n"} | contents(30) | {cut: complete[:length]}
        folder = save(work(tmp_path), 30, files)
        made = uploader(bucket, tmp_path)
        assert made.scan(NOW_S) == [], length
        with pytest.raises(Vanished):
            made.upload(LocalCheckpoint(30, folder), cancelled=never)
        shutil.rmtree(folder)
    assert manifests(bucket) == []


def test_weights_in_a_bin_file_are_checked_if_torch_wrote_it_and_other_bin_files_are_not(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    weights = contents(30)["optimizer.pt"]
    save(work(tmp_path), 30, {"pytorch_model.bin": weights[: len(weights) // 2]} | contents(30))
    assert uploader(bucket, tmp_path).scan(NOW_S) == []
    save(work(tmp_path), 40, {"pytorch_model.bin": weights, "tokens.bin": b"any other format"} | contents(40))
    assert [local.step for local in uploader(bucket, tmp_path).scan(NOW_S)] == [40]


@pytest.mark.parametrize("name", ["model.safetensors.index.json", "pytorch_model.bin.index.json"])
def test_a_missing_file_that_an_index_names_is_noticed(
    tmp_path: Path, bucket: FolderBucket, name: str
) -> None:
    index = json.dumps({"weight_map": {"a": "base/frozen.safetensors", "b": "two.safetensors"}}).encode()
    folder = save(work(tmp_path), 30, {name: index} | contents(30))
    assert uploader(bucket, tmp_path).scan(NOW_S) == []
    write(folder, {"two.safetensors": contents(1)["base/frozen.safetensors"]})
    assert len(uploader(bucket, tmp_path).scan(NOW_S)) == 1


def test_a_distributed_checkpoint_cut_off_anywhere_is_never_uploaded(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    rules: dict[str, Any] = {"sentinel": None, "files": [], "settled_s": 1}
    folder = save_dcp(work(tmp_path), 10)
    assert len(uploader(bucket, tmp_path, **rules).scan(NOW_S)) == 1
    for name in (
        "trainer/.metadata",
        "trainer/__0_0.distcp",
        "trainer/__1_0.distcp",
        "orchestrator/progress.pt",
    ):
        path = folder / name
        complete, times = path.read_bytes(), (path.stat().st_atime, path.stat().st_mtime)
        for length in (0, 1, len(complete) // 2, len(complete) - 1, None):
            path.unlink() if length is None else path.write_bytes(complete[:length])
            if length is not None:
                os.utime(path, times)
            missing_unnamed = length is None and name == "orchestrator/progress.pt"
            assert len(uploader(bucket, tmp_path, **rules).scan(NOW_S)) == missing_unnamed, (name, length)
        path.write_bytes(complete)
        os.utime(path, times)
    assert download(bucket, ship(uploader(bucket, tmp_path, **rules))) == on_disk(folder)


# ---------------------------------------------------------------- cut off on the way


def attempt(disk: Path, bucket: FolderBucket, cut_at: int | None, *, late: bool) -> int:
    """Resume from step 10, upload step 20 through a bucket that fails at that operation, then again without a
    failure. Return the number of operations.
    """
    counted = Counted(bucket, cut_at=cut_at, late=late)
    made = uploader(counted, disk, attempt=2, known=point_of(manifests(bucket)[0]), keep=1)
    try:
        ship(made)
    except Cut:
        left = newest(bucket)
        assert left is not None
        assert download(bucket, left) == contents(left.step), "complete, but wrong"
        counted.cut_at = None
        waiting = made.scan(NOW_S)
        made.committed(made.upload(waiting[0], cancelled=never) if waiting else left, NOW_S)
    return counted.operations


@pytest.mark.parametrize("late", some_of([False, True], one_in=2))
def test_an_upload_cut_at_any_operation_leaves_the_truth_and_can_be_repeated(
    tmp_path: Path, late: bool
) -> None:
    operations = None
    cut_at = None
    while operations is None or (cut_at or 0) < operations:
        cut_at = None if operations is None else (cut_at or 0) + 1
        disk = tmp_path / str(cut_at)
        bucket = FolderBucket(disk / "bucket", make=True)
        save(work(disk), 10)
        ship(uploader(bucket, disk, keep=1))
        save(work(disk), 20)
        done = attempt(disk, bucket, cut_at, late=late)
        operations = operations or done
        found = newest(bucket)
        assert found is not None
        assert found.step == 20
        assert download(bucket, found) == contents(20)
        assert latest(bucket) == (2, 20)
        assert 10 in {manifest.step for manifest in manifests(bucket)}, "the resume point is gone"
        shutil.rmtree(disk)


def test_a_blob_that_arrived_short_is_noticed(tmp_path: Path, bucket: FolderBucket) -> None:
    class Lossy(Counted):
        def list(self, prefix: str) -> Iterator[Stat]:
            return (replace(stat, size=stat.size - 1) for stat in super().list(prefix))

    save(work(tmp_path), 10)
    made = uploader(Lossy(bucket), tmp_path)
    with pytest.raises(TemporaryError, match="in the bucket differ from what was sent"):
        made.upload(made.scan(NOW_S)[0], cancelled=never)
    assert manifests(bucket) == []
    assert len(made.scan(NOW_S)) == 1


class Forgetful(Counted):
    """A bucket that acknowledges the first manifests that are put, and does not have them."""

    forgets = 0

    def put(self, key: str, data: Data) -> None:
        if self.forgets and "/manifests/" in key:
            self.forgets -= 1
            self.keys_put.append(key)
        else:
            super().put(key, data)


def test_a_manifest_that_the_bucket_acknowledged_and_lost_is_written_again(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    save(work(tmp_path), 10)
    forgetful = Forgetful(bucket)
    forgetful.forgets = 2
    manifest = ship(uploader(forgetful, tmp_path))
    assert newest(bucket) == manifest


def test_a_checkpoint_whose_manifest_the_bucket_never_keeps_is_not_uploaded(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    save(work(tmp_path), 10)
    forgetful = Forgetful(bucket)
    forgetful.forgets = 1000
    made = uploader(forgetful, tmp_path)
    with pytest.raises(TemporaryError, match="3 times, but does not have it"):
        made.upload(made.scan(NOW_S)[0], cancelled=never)
    assert made.uploaded_step is None
    forgetful.forgets = 0
    manifest = ship(made)
    assert newest(bucket) == manifest


def test_a_manifest_that_is_lost_before_its_commit_is_written_again(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    save(work(tmp_path), 10)
    made = uploader(bucket, tmp_path)
    manifest = made.upload(made.scan(NOW_S)[0], cancelled=never)
    bucket.delete(manifest.key)
    made.confirm(manifest)
    assert newest(bucket) == manifest


def test_a_retry_does_not_send_again_what_arrived(tmp_path: Path, bucket: FolderBucket) -> None:
    save(work(tmp_path), 10)

    def fail(name: str, key: str) -> None:
        if name == "put" and "/manifests/" in key:
            raise Cut("at the manifest")

    counted = Counted(bucket, before=fail)
    made = uploader(counted, tmp_path)
    with pytest.raises(Cut):
        made.upload(made.scan(NOW_S)[0], cancelled=never)
    sent, counted.before = len(counted.keys_put), lambda name, key: None
    ship(made)
    assert sent == len(contents(10))
    assert len(counted.keys_put) == sent + 1


def test_a_cancelled_upload_leaves_no_manifest(tmp_path: Path, bucket: FolderBucket) -> None:
    save(work(tmp_path), 10)
    requested: list[int] = []
    counted = Counted(bucket)
    for answers in range(12):
        made = uploader(counted, tmp_path)
        requested.clear()

        def cancelled(limit: int = answers) -> bool:
            requested.append(1)
            return len(requested) > limit

        local = made.scan(NOW_S)[0]
        try:
            made.upload(local, cancelled=cancelled)
        except Cancelled:
            assert manifests(bucket) == []
            assert not list((tmp_path / "stage").glob("upload-*"))
            continue
        assert answers >= len(contents(10))
        assert newest(bucket) is not None
        return
    pytest.fail("never asked few enough times to finish")


# ---------------------------------------------------------------- the trainer meanwhile


def test_a_checkpoint_set_aside_survives_the_trainers_clean_up(tmp_path: Path, bucket: FolderBucket) -> None:
    folder = save(work(tmp_path), 10)

    def remove(name: str, key: str) -> None:
        shutil.rmtree(folder, ignore_errors=True)

    made = uploader(Counted(bucket, before=remove), tmp_path)
    manifest = made.upload(made.scan(NOW_S)[0], cancelled=never)
    assert not folder.exists()
    assert download(bucket, manifest) == contents(10)


def test_a_checkpoint_that_the_trainer_removes_after_it_was_seen_is_uploaded_all_the_same(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    folder = save(work(tmp_path), 10)
    made = uploader(bucket, tmp_path)
    assert len(made.scan(NOW_S)) == 1
    shutil.rmtree(folder.parent)
    (again,) = made.scan(NOW_S)
    assert made.is_removed()
    assert download(bucket, made.upload(again, cancelled=never)) == contents(10)
    assert made.scan(NOW_S) == []
    assert list((tmp_path / "stage").iterdir()) == []


def test_one_that_is_being_removed_is_uploaded_as_it_was_when_it_was_complete(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    folder = save(work(tmp_path), 10)
    made = uploader(bucket, tmp_path, files=[])
    made.scan(NOW_S)
    (folder / "optimizer.pt").unlink()  # the sentinel is still there
    assert download(bucket, made.upload(made.scan(NOW_S)[0], cancelled=never)) == contents(10)


def test_of_several_that_wait_only_the_newest_is_held(tmp_path: Path, bucket: FolderBucket) -> None:
    made = uploader(bucket, tmp_path)
    for step in (10, 20, 30):
        folder = save(work(tmp_path), step)
        assert [local.step for local in made.scan(NOW_S)] == [step]
        shutil.rmtree(folder)
    assert [path.name for path in (tmp_path / "stage").rglob("step_*")] == ["step_30"]
    assert made.begun_step() == 0


def test_one_whose_held_files_the_trainer_has_written_into_is_not_uploaded_from_them(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    folder = save(work(tmp_path), 10)
    made = uploader(bucket, tmp_path)
    made.scan(NOW_S)
    with (folder / "weights.npz").open("ab") as file:
        file.write(b"more")
    shutil.rmtree(folder)
    assert made.scan(NOW_S) == []


def test_a_checkpoint_that_was_begun_and_is_not_complete_is_known_of(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    folder = save(work(tmp_path), 10)
    (folder / "COMPLETE").unlink()
    made = uploader(bucket, tmp_path)
    assert (made.scan(NOW_S), made.begun_step(), made.is_removed()) == ([], 10, False)


def test_one_removed_before_it_was_set_aside_has_vanished(tmp_path: Path, bucket: FolderBucket) -> None:
    folder = save(work(tmp_path), 10)
    made = uploader(bucket, tmp_path, in_place=True)
    local = made.scan(NOW_S)[0]
    (folder / "optimizer.pt").unlink()
    shutil.rmtree(folder)
    with pytest.raises(Vanished):
        made.upload(local, cancelled=never)
    assert manifests(bucket) == []


def test_one_that_changes_while_it_is_set_aside_has_vanished(tmp_path: Path) -> None:
    folder = write(tmp_path / "step_10", {f"shard-{number}": b"x" for number in range(1000)})
    started, stop = threading.Event(), threading.Event()

    def go_on_writing() -> None:
        for number in range(1_000_000):
            if stop.is_set():
                return
            (folder / f"late-{number}").touch()
            started.set()

    writer = threading.Thread(target=go_on_writing)
    writer.start()
    try:
        assert started.wait(timeout=HANG_S)
        with pytest.raises(Vanished, match="changed while"):
            set_aside(folder, tmp_path / "stage", copy=False)
    finally:
        stop.set()
        writer.join(timeout=HANG_S)


def test_a_copy_is_not_changed_by_a_save_in_place(tmp_path: Path, bucket: FolderBucket) -> None:
    folder = save(work(tmp_path), 10)

    def overwrite(name: str, key: str) -> None:
        (folder / "weights.npz").write_bytes(b"the next save has begun")

    made = uploader(Counted(bucket, before=overwrite), tmp_path, in_place=True)
    manifest = made.upload(made.scan(NOW_S)[0], cancelled=never)
    assert download(bucket, manifest) == contents(10)
    assert made.scan(NOW_S) == []


def test_a_save_in_place_that_was_not_declared_never_becomes_a_manifest(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    folder = save(work(tmp_path), 10)
    os.utime(folder / "weights.npz", (1_000_000, 1_000_000))

    def overwrite(name: str, key: str) -> None:
        if name == "put" and "/blobs/" in key:
            (folder / "weights.npz").write_bytes(contents(10)["weights.npz"][::-1])

    made = uploader(Counted(bucket, before=overwrite), tmp_path)
    with pytest.raises(Vanished, match="in_place"):
        made.upload(made.scan(NOW_S)[0], cancelled=never)
    assert manifests(bucket) == []
    for key in blob_sizes(bucket):
        content = bucket.get(key)
        assert content is not None
        assert key.endswith(digest_of(content.data)), "what lies under a hash has a different content"


def test_a_link_to_a_file_is_sent_as_a_file_and_one_to_a_folder_elsewhere_is_refused(
    tmp_path: Path, bucket: FolderBucket, caplog: pytest.LogCaptureFixture
) -> None:
    base = write(tmp_path / "cache", {"base.bin": b"weights of the base model"})
    folder = save(
        work(tmp_path), 10, {name: data for name, data in contents(10).items() if name != "COMPLETE"}
    )
    (folder / "base.bin").symlink_to(base / "base.bin")
    write(folder, {"COMPLETE": b"10\n"})
    manifest = ship(uploader(bucket, tmp_path))
    assert download(bucket, manifest)["base.bin"] == b"weights of the base model"
    later = save(work(tmp_path), 20)
    (later / "cache").symlink_to(tmp_path.parent)
    made = uploader(bucket, tmp_path, known=point_of(manifest))
    assert made.scan(NOW_S) == []
    assert not made.saving(NOW_S)
    assert "link to a folder" in caplog.text
    assert [
        (one.name, "outside the machine's folder" in one.reason) for one in made.refusals(NOW_S, above=0)
    ] == [("step_20", True)]
    assert made.disregard_present() == (20,)


def test_names_that_a_manifest_cannot_hold_are_refused(tmp_path: Path, bucket: FolderBucket) -> None:
    save(work(tmp_path), 10, {"odd\\name": b"x"} | contents(10))
    made = uploader(bucket, tmp_path)
    with pytest.raises(PermanentError, match="manifest"):
        made.upload(made.scan(NOW_S)[0], cancelled=never)


# ---------------------------------------------------------------- sent once


def test_what_the_committed_checkpoint_holds_is_not_sent_again(tmp_path: Path, bucket: FolderBucket) -> None:
    save(work(tmp_path), 10)
    counted = Counted(bucket)
    made = uploader(counted, tmp_path)
    ship(made)
    before = counted.bytes_put
    save(work(tmp_path), 20)
    manifest = ship(made)
    base = next(file for file in manifest.files if file.path.startswith("base/"))
    assert counted.keys_put.count(key_of(base)) == 1
    assert counted.bytes_put - before < base.size


def test_what_was_resumed_from_is_not_sent_again_and_what_others_left_is(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    save(work(tmp_path), 10)
    first = uploader(bucket, tmp_path)
    known = point_of(ship(first))
    # A zombie's blobs lie in the bucket too, and nobody has verified them.
    save(work(tmp_path), 20)
    first.upload(first.scan(NOW_S)[0], cancelled=never)
    weights = next(file for file in manifests(bucket)[-1].files if file.path == "weights.npz")
    FolderBucket(tmp_path / "bucket", make=True).put(key_of(weights), b"?" * weights.size)
    counted = Counted(bucket)
    manifest = ship(uploader(counted, tmp_path, attempt=2, known=known))
    assert [key for key in counted.keys_put if "frozen" in key] == []
    assert len([key for key in counted.keys_put if "/blobs/" in key]) == len(manifest.files) - 1
    assert download(bucket, manifest) == contents(20)


def test_a_known_blob_that_is_gone_is_sent_again(tmp_path: Path, bucket: FolderBucket) -> None:
    save(work(tmp_path), 10)
    made = uploader(bucket, tmp_path)
    first = ship(made)
    base = next(file for file in first.files if file.path.startswith("base/"))
    bucket.delete(key_of(base))
    save(work(tmp_path), 20)
    assert download(bucket, ship(made)) == contents(20)


# ---------------------------------------------------------------- after the commit


def latest(bucket: FolderBucket) -> tuple[int, int]:
    content = bucket.get(latest_key(RUN_ID))
    assert content is not None
    facts = json.loads(content.data)
    return facts["attempt"], facts["step"]


@given(st.lists(st.tuples(st.integers(1, 4), st.integers(0, 5)), min_size=1, max_size=6))
@settings(deadline=None, max_examples=40)
def test_latest_never_goes_back(
    tmp_path_factory: pytest.TempPathFactory, moves: list[tuple[int, int]]
) -> None:
    bucket = FolderBucket(tmp_path_factory.mktemp("bucket"), make=True)
    for number, (attempt, step) in enumerate(moves):
        move_latest(bucket, listing(step, attempt), NOW_S)
        assert latest(bucket) == max(moves[: number + 1])


def test_two_who_move_latest_at_once_leave_the_later_one(tmp_path: Path, bucket: FolderBucket) -> None:
    barrier = threading.Barrier(4)

    def move(attempt: int) -> None:
        barrier.wait(timeout=HANG_S)
        move_latest(bucket, listing(10, attempt), NOW_S)

    threads = [threading.Thread(target=move, args=(attempt,)) for attempt in (1, 2, 3, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=HANG_S)
    assert latest(bucket) == (4, 10)


def test_latest_moved_by_a_later_attempt_in_between_stays(tmp_path: Path, bucket: FolderBucket) -> None:
    def overtake(name: str, key: str) -> None:
        if name == "put_if":
            move_latest(bucket, listing(5, 2), NOW_S)

    assert not move_latest(Counted(bucket, before=overtake), listing(10, 1), NOW_S)
    assert latest(bucket) == (2, 5)


def test_a_latest_that_nobody_can_read_is_replaced(bucket: FolderBucket) -> None:
    bucket.put(latest_key(RUN_ID), b"not json")
    assert move_latest(bucket, listing(10, 1), NOW_S)
    assert latest(bucket) == (1, 10)


def listing(step: int, attempt: int, blobs: tuple[int, ...] = ()) -> Manifest:
    files = tuple(stored_file(f"f{number}", number, size=number + 1) for number in blobs)
    return Manifest(run=RUN_ID, attempt=attempt, step=step, created_s=1, folder=f"step_{step}", files=files)


def lay(bucket: FolderBucket, root: Path, made: Manifest, missing: int | None) -> None:
    bucket.put(made.key, made.model_dump_json().encode())
    for file in made.files:
        key = key_of(file)
        if missing is None or key != blob_key(RUN_ID, digest(missing)):
            bucket.put(key, b"x" * file.size)
            os.utime(root / key, (1, 1))


@given(
    made=st.lists(
        st.tuples(st.integers(0, 8), st.integers(1, 3), st.lists(st.integers(0, 6), max_size=3, unique=True)),
        min_size=1,
        max_size=7,
        unique_by=lambda row: row[:2],
    ),
    keep=st.integers(1, 3),
    committed=st.integers(0, 9),
    pinned=st.integers(0, 6),
    missing=st.none() | st.integers(0, 6),
)
@settings(deadline=None, max_examples=60)
def test_clean_up_leaves_a_complete_checkpoint_and_the_resume_point(
    tmp_path_factory: pytest.TempPathFactory,
    made: list[tuple[int, int, list[int]]],
    keep: int,
    committed: int,
    pinned: int,
    missing: int | None,
) -> None:
    root = tmp_path_factory.mktemp("bucket")
    bucket = FolderBucket(root, make=True)
    for step, attempt, blobs in made:
        lay(bucket, root, listing(step, attempt, tuple(blobs)), missing)
    before, best = manifests(bucket), newest(bucket)
    pin = point_of(before[pinned % len(before)])
    prune(bucket, keep=keep, committed_step=committed, pinned=pin)
    after = {manifest.key for manifest in manifests(bucket)}
    assert pin.key in after
    assert newest(bucket) == best
    assert {manifest.key for manifest in before if manifest.step >= committed} <= after
    lost = {blob_key(RUN_ID, digest(missing))} if missing is not None else set()
    assert (
        set(blob_sizes(bucket)) >= {key for manifest in manifests(bucket) for key in manifest.blobs()} - lost
    )


def prune(
    bucket: FolderBucket,
    *,
    keep: int,
    committed_step: int,
    pinned: ResumePoint | None = None,
    took_s: int = 0,
) -> None:
    blobs = Blobs(bucket, RUN_ID, lambda: NOW_S)
    retention = Retention(
        bucket, blobs, RUN_ID, policy=RetentionPolicy(keep), pinned=pinned, clock=lambda: NOW_S + took_s
    )
    retention.prune(committed_step=committed_step, committed_s=NOW_S)


def test_old_checkpoints_go_and_their_blobs_after_them(tmp_path: Path, bucket: FolderBucket) -> None:
    counted = Counted(bucket)
    made = uploader(counted, tmp_path, keep=2)
    for step in (10, 20, 30, 40):
        save(work(tmp_path), step)
        ship(made)
    assert [manifest.step for manifest in manifests(bucket)] == [30, 40]
    assert len(blob_sizes(bucket)) == len({key for manifest in manifests(bucket) for key in manifest.blobs()})
    first_blob = next(number for number, key in enumerate(counted.keys_deleted) if "/blobs/" in key)
    assert "/manifests/" in counted.keys_deleted[first_blob - 1]
    assert latest(bucket) == (1, 40)


def test_the_agent_counts_what_retention_deletes(tmp_path: Path, bucket: FolderBucket) -> None:
    told: list[Deletions] = []
    kept_two = spec(checkpoints=WITH_SENTINEL | {"keep": 2})
    made = uploader_of(kept_two, bucket, tmp_path, means=Means(deletions=DeletionCounter(told.append)))
    for step in (10, 20, 30, 40):
        save(work(tmp_path), step)
        before = blob_sizes(bucket)
        ship(made)
    assert (told[-1].checkpoints, told[-1].newest_step) == (2, 20)
    assert before
    assert told[-1].chunk_bytes > 0
    assert told[-1].local == 0


def test_an_incomplete_checkpoint_does_not_count_as_the_one_that_is_kept(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    for step in (1, 2, 3):
        lay(bucket, tmp_path / "bucket", listing(step, 1, (step,)), None)
    bucket.delete(blob_key(RUN_ID, digest(3)))
    prune(bucket, keep=1, committed_step=3)
    left = newest(bucket)
    assert left is not None
    assert left.step == 2
    assert [manifest.step for manifest in manifests(bucket)] == [2, 3]


def test_a_clean_up_that_takes_too_long_is_given_up(tmp_path: Path, bucket: FolderBucket) -> None:
    for step in (1, 2, 3):
        lay(bucket, tmp_path / "bucket", listing(step, 1, (step,)), None)
    prune(bucket, keep=1, committed_step=3, took_s=61)
    assert len(manifests(bucket)) == 3
    prune(bucket, keep=1, committed_step=3, took_s=60)
    assert len(manifests(bucket)) == 1


def test_blobs_of_a_manifest_that_cannot_be_read_stay(
    tmp_path: Path, bucket: FolderBucket, caplog: pytest.LogCaptureFixture
) -> None:
    for step in (1, 2):
        lay(bucket, tmp_path / "bucket", listing(step, 1, (step,)), None)
    bucket.put(listing(1, 1).key, b"{")
    prune(bucket, keep=1, committed_step=2)
    assert len(blob_sizes(bucket)) == 2
    assert "cannot be read" in caplog.text


def test_a_clean_up_spares_what_an_upload_under_way_relies_on(tmp_path: Path, bucket: FolderBucket) -> None:
    made = uploader(bucket, tmp_path, keep=1)
    held = Counted(bucket)
    for step in (10, 20):
        save(work(tmp_path), step)
        last = ship(made)
    # Step 30 is the content of step 10 again, whose manifest has gone by now; while it is sent, another
    # commit cleans up.
    save(work(tmp_path), 30, contents(10))
    made._bucket = held
    made._blobs._bucket = held
    cleaned = threading.Event()

    def clean(name: str, key: str) -> None:
        if name == "put" and "/manifests/" in key and not cleaned.is_set():
            cleaned.set()
            made.committed(last, NOW_S + 10_000)

    held.before = clean
    manifest = made.upload(made.scan(NOW_S)[0], cancelled=never)
    assert cleaned.is_set()
    assert download(bucket, manifest) == contents(10)


def test_errors_are_those_of_the_port(tmp_path: Path) -> None:
    class Down(Counted):
        def put(self, key: str, data: Data) -> None:
            raise TemporaryError("the bucket is away")

    save(work(tmp_path), 10)
    made = uploader(Down(FolderBucket(tmp_path / "bucket", make=True)), tmp_path)
    with pytest.raises(ExternalError, match="away"):
        made.upload(made.scan(NOW_S)[0], cancelled=never)
    assert len(made.scan(NOW_S)) == 1
