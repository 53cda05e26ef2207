"""From the bucket to the trainer's folder: everything, byte by byte, or nothing."""

import shutil
from pathlib import Path

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.checkpoints.manifest import CHUNK_BYTES, Chunk, Manifest, ManifestFile, choose_resume
from prime_train.checkpoints.restore import RestoreFailed, restore
from prime_train.errors import TemporaryError
from prime_train.runs.resume_point import ResumePoint
from prime_train.spec.checkpoint_names import CheckpointNames
from prime_train.trainers.of_spec import trainer_for
from tests.agent.buckets import Counted, Cut
from tests.agent.checkpoints.saving import (
    NOW_S,
    contents,
    key_of,
    on_disk,
    point_of,
    save,
    save_dcp,
    ship,
    uploader,
    write,
)
from tests.builders import RUN_ID, digest, spec


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


@pytest.fixture
def saved(tmp_path: Path, bucket: FolderBucket) -> Manifest:
    save(tmp_path / "old" / "tree", 30)
    return ship(uploader(bucket, tmp_path / "old"))


@pytest.fixture
def into(tmp_path: Path) -> Path:
    return tmp_path / "new" / "tree" / "checkpoints"


def entries(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir()) if folder.exists() else []


def blob(root: Path, manifest: Manifest, path: str) -> Path:
    return root / "bucket" / key_of(next(file for file in manifest.files if file.path == path))


def test_a_checkpoint_comes_back_byte_by_byte_under_its_own_name(
    bucket: FolderBucket, saved: Manifest, into: Path, tmp_path: Path
) -> None:
    reports: list[tuple[int, int]] = []
    folder = restore(
        bucket, RUN_ID, point_of(saved), into, progress=lambda done, total: reports.append((done, total))
    )
    assert folder == into / "step_30"
    assert on_disk(folder) == contents(30)
    assert entries(into) == ["step_30"]
    assert entries(into.parent) == ["checkpoints"]
    assert reports[-1] == (saved.size, saved.size)
    original = tmp_path / "old" / "tree" / "checkpoints" / "step_30"
    for path in contents(30):
        assert int((folder / path).stat().st_mtime) == int((original / path).stat().st_mtime)


def test_a_distributed_checkpoint_comes_back_complete(
    bucket: FolderBucket, into: Path, tmp_path: Path
) -> None:
    original = save_dcp(tmp_path / "old" / "tree", 10)
    manifest = ship(uploader(bucket, tmp_path / "old", sentinel=None, files=[]))
    folder = restore(bucket, RUN_ID, point_of(manifest), into)
    assert on_disk(folder) == on_disk(original)
    again = uploader(bucket, tmp_path / "new", attempt=2, sentinel=None, files=[])
    assert [local.step for local in again.scan(NOW_S)] == [10], (
        "the trainer's own rules would not find it complete"
    )


def test_the_agent_finds_the_restored_folder_by_its_name(
    bucket: FolderBucket, saved: Manifest, into: Path
) -> None:
    made = spec()
    assert trainer_for(made).step_of(made, restore(bucket, RUN_ID, point_of(saved), into).name) == 30


@pytest.mark.parametrize("path", list(contents(30)))
@pytest.mark.parametrize("harm", ["flip", "short", "long", "missing"])
def test_a_damaged_blob_is_named_and_nothing_is_left_in_the_scanned_folder(
    bucket: FolderBucket, saved: Manifest, into: Path, tmp_path: Path, path: str, harm: str
) -> None:
    lies = blob(tmp_path, saved, path)
    data = lies.read_bytes()
    match harm:
        case "flip":
            lies.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
        case "short":
            lies.write_bytes(data[:-1])
        case "long":
            lies.write_bytes(data + b"x")
        case _:
            lies.unlink()
    with pytest.raises(RestoreFailed, match=path):
        restore(bucket, RUN_ID, point_of(saved), into)
    assert entries(into) == []
    lies.write_bytes(data)
    assert on_disk(restore(bucket, RUN_ID, point_of(saved), into)) == contents(30)


def test_every_damaged_file_is_named(
    bucket: FolderBucket, saved: Manifest, into: Path, tmp_path: Path
) -> None:
    blob(tmp_path, saved, "weights.npz").unlink()
    blob(tmp_path, saved, "state.json").write_bytes(b"{}")
    with pytest.raises(RestoreFailed, match=r"state\.json has 2 bytes.*weights\.npz is missing"):
        restore(bucket, RUN_ID, point_of(saved), into)


def test_a_restore_cut_at_any_operation_shows_nothing_and_goes_on_where_it_stopped(
    bucket: FolderBucket, saved: Manifest, tmp_path: Path
) -> None:
    complete = Counted(bucket)
    restore(complete, RUN_ID, point_of(saved), tmp_path / "probe" / "checkpoints")
    for late in (False, True):
        for cut_at in range(1, complete.operations + 1):
            into = tmp_path / f"{late}{cut_at}" / "checkpoints"
            counted = Counted(bucket, cut_at=cut_at, late=late)
            with pytest.raises(Cut):
                restore(counted, RUN_ID, point_of(saved), into)
            assert entries(into) == []
            assert on_disk(restore(bucket, RUN_ID, point_of(saved), into)) == contents(30)


def test_what_is_already_there_and_right_is_not_fetched_again(
    bucket: FolderBucket, saved: Manifest, into: Path, tmp_path: Path
) -> None:
    blob(tmp_path, saved, "weights.npz").rename(tmp_path / "kept")
    with pytest.raises(RestoreFailed):
        restore(bucket, RUN_ID, point_of(saved), into)
    (tmp_path / "kept").rename(blob(tmp_path, saved, "weights.npz"))
    counted = Counted(bucket)
    folder = restore(counted, RUN_ID, point_of(saved), into)
    assert counted.operations == 2, "the manifest and the one file that was missing"
    restore(counted, RUN_ID, point_of(saved), into)
    assert counted.operations == 3, "the manifest only"
    assert on_disk(folder) == contents(30)


def test_another_checkpoint_of_that_name_is_replaced(
    bucket: FolderBucket, saved: Manifest, into: Path
) -> None:
    write(into / "step_30", {"weights.npz": b"another run's", "COMPLETE": b"30\n", "more": b"x"})
    assert on_disk(restore(bucket, RUN_ID, point_of(saved), into)) == contents(30)
    assert entries(into.parent) == ["checkpoints"]


def test_a_file_too_many_makes_it_another_checkpoint(
    bucket: FolderBucket, saved: Manifest, into: Path
) -> None:
    folder = restore(bucket, RUN_ID, point_of(saved), into)
    write(folder, {"orphan.bin": b"x"})
    assert on_disk(restore(bucket, RUN_ID, point_of(saved), into)) == contents(30)


def test_a_checkpoint_folder_that_is_a_link_to_a_disk_is_followed(
    bucket: FolderBucket, saved: Manifest, into: Path, tmp_path: Path
) -> None:
    (tmp_path / "big" / "disk").mkdir(parents=True)
    into.parent.mkdir(parents=True)
    into.symlink_to(tmp_path / "big" / "disk")
    assert on_disk(restore(bucket, RUN_ID, point_of(saved), into)) == contents(30)
    assert entries(tmp_path / "big" / "disk") == ["step_30"]


def test_a_manifest_that_is_missing_or_not_this_one_is_refused(
    bucket: FolderBucket, saved: Manifest, into: Path
) -> None:
    gone = ResumePoint(step=31, attempt=1, key=saved.key.replace("30-e1", "31-e1"))
    with pytest.raises(RestoreFailed, match="no manifest"):
        restore(bucket, RUN_ID, gone, into)
    with pytest.raises(RestoreFailed, match="is of run"):
        restore(bucket, RUN_ID, ResumePoint(step=29, attempt=1, key=saved.key), into)
    with pytest.raises(RestoreFailed, match="is of run"):
        restore(bucket, "other", point_of(saved), into)
    bucket.put(saved.key, saved.model_dump_json().encode()[:-20])
    with pytest.raises(RestoreFailed, match="cannot be read"):
        restore(bucket, RUN_ID, point_of(saved), into)
    for folder in ("a/b", ".", ".git", ".ssh", "-rf", "a\x1b]0;b\x07"):
        bucket.put(saved.key, saved.model_copy(update={"folder": folder}).model_dump_json().encode())
        with pytest.raises(
            RestoreFailed,
            match=r"the folder .* (not the name|not a relative|with a dot|with a dash|control character)",
        ):
            restore(bucket, RUN_ID, point_of(saved), into)
    assert entries(into) == []


def test_a_manifest_of_a_machine_that_was_taken_over_puts_no_folder_of_its_choice_on_disk(
    bucket: FolderBucket, saved: Manifest, into: Path
) -> None:
    for folder, pattern in (("step_31", "step_{step}"), ("bin", None), ("step_30", "checkpoint-{step}")):
        bucket.put(saved.key, saved.model_copy(update={"folder": folder}).model_dump_json().encode())
        with pytest.raises(RestoreFailed, match=f"has the folder '{folder}', expected"):
            restore(
                bucket, RUN_ID, point_of(saved), into, names=CheckpointNames(pattern) if pattern else None
            )
    assert entries(into) == entries(into.parent) == []
    bucket.put(saved.key, saved.model_dump_json().encode())
    assert (
        restore(bucket, RUN_ID, point_of(saved), into, names=CheckpointNames("step_{step}"))
        == into / "step_30"
    )


def test_a_manifest_that_a_replaced_machine_writes_anew_after_it_was_chosen_is_not_restored(
    bucket: FolderBucket, saved: Manifest, into: Path
) -> None:
    chosen = choose_resume([saved], saved.blobs(), attempt=1, previous=None)
    assert chosen is not None
    bucket.put(saved.key, saved.model_copy(update={"files": saved.files[:1]}).model_dump_json().encode())
    with pytest.raises(RestoreFailed, match="was changed after it was chosen"):
        restore(bucket, RUN_ID, chosen, into)
    bucket.put(saved.key, saved.model_dump_json(indent=1).encode())
    assert restore(bucket, RUN_ID, chosen, into) == into / "step_30"


def test_a_link_that_somebody_put_where_the_restore_works_is_not_followed(
    bucket: FolderBucket, saved: Manifest, into: Path, tmp_path: Path
) -> None:
    into.mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (into.parent / ".prime-train-restore-30-e1").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(RestoreFailed, match="is not a folder that you own"):
        restore(bucket, RUN_ID, point_of(saved), into)
    assert entries(tmp_path / "elsewhere") == []


def test_two_files_that_are_one_on_a_disk_that_ignores_case_are_not_mixed(
    bucket: FolderBucket, saved: Manifest, into: Path
) -> None:
    alike = saved.files[0].model_copy(update={"path": saved.files[0].path.swapcase()})
    bucket.put(
        saved.key, saved.model_copy(update={"files": (*saved.files, alike)}).model_dump_json().encode()
    )
    into.mkdir(parents=True)
    begun = into.parent / ".prime-train-restore-30-e1" / saved.files[0].path
    begun.parent.mkdir(parents=True)
    begun.touch()
    other = into.parent / ".prime-train-restore-30-e1" / alike.path
    other.parent.mkdir(parents=True, exist_ok=True)
    other.hardlink_to(begun)  # as such a disk shows them
    with pytest.raises(RestoreFailed, match="would be the same file on this disk"):
        restore(bucket, RUN_ID, point_of(saved), into)


def test_a_checkpoint_larger_than_the_disk_is_refused_before_a_byte_is_fetched(
    bucket: FolderBucket, saved: Manifest, into: Path
) -> None:
    chunk = Chunk(digest=digest(1), size=CHUNK_BYTES, stored=1)
    large = ManifestFile(path="large", size=CHUNK_BYTES * 40_000, chunks=(chunk,) * 40_000)
    huge = saved.model_copy(update={"files": (large, *saved.files)})
    bucket.put(saved.key, huge.model_dump_json().encode())
    counted = Counted(bucket)
    with pytest.raises(RestoreFailed, match="not enough disk space"):
        restore(counted, RUN_ID, point_of(saved), into)
    assert counted.operations == 1


def test_a_place_that_cannot_be_written_is_a_failure_and_no_crash(
    bucket: FolderBucket, saved: Manifest, into: Path
) -> None:
    into.parent.parent.mkdir(parents=True)
    into.parent.write_text("a file where the working tree should be")
    with pytest.raises(RestoreFailed, match="cannot be written"):
        restore(bucket, RUN_ID, point_of(saved), into)


def test_a_bucket_that_is_away_is_no_damage(
    bucket: FolderBucket, saved: Manifest, into: Path, tmp_path: Path
) -> None:
    shutil.move(tmp_path / "bucket", tmp_path / "unmounted")
    with pytest.raises(TemporaryError):
        restore(bucket, RUN_ID, point_of(saved), into)
    (tmp_path / "unmounted").rename(tmp_path / "bucket")
    assert on_disk(restore(bucket, RUN_ID, point_of(saved), into)) == contents(30)
