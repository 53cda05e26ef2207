"""Checkpoints that are files, several files with one number, links, or overwritten at each save."""

import os
from pathlib import Path
from typing import Any

import pytest

from prime_agent.checkpoints.local_disk_cleanup import free_disk_space
from prime_agent.checkpoints.units import Units
from prime_agent.checkpoints.uploader import Means, Uploader
from prime_agent.trainer.reached_steps import ReachedSteps
from prime_train.buckets.folder import FolderBucket
from prime_train.checkpoints.restore import CheckpointDamaged, restore
from prime_train.spec.checkpoint_names import CheckpointNames
from tests.agent.checkpoints.saving import NOW_S, download, point_of, ship, uploader_of
from tests.builders import RUN_ID, spec


def uploader(bucket: FolderBucket, disk: Path, means: Means | None = None, **checkpoints: Any) -> Uploader:
    return uploader_of(
        spec(checkpoints={"folder": "out", "settled_s": 30} | checkpoints), bucket, disk, means=means
    )


def put(disk: Path, name: str, content: bytes = b"weights") -> Path:
    path = disk / "tree" / "out" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    (tmp_path / "bucket").mkdir()
    return FolderBucket(tmp_path / "bucket")


def test_a_padded_file_is_stored_and_restored_under_its_own_name(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    put(tmp_path, "ckpt-000100.pt")
    manifest = ship(uploader(bucket, tmp_path, pattern="ckpt-{step}.pt"))
    assert (manifest.step, manifest.unit, manifest.folder, list(download(bucket, manifest))) == (
        100,
        "files",
        "ckpt-000100.pt",
        ["ckpt-000100.pt"],
    )
    into = tmp_path / "into"
    path = restore(bucket, RUN_ID, point_of(manifest), into, names=CheckpointNames("ckpt-{step}.pt"))
    assert path == into / "ckpt-000100.pt"
    assert [one.name for one in into.iterdir()] == ["ckpt-000100.pt"]
    assert path.read_bytes() == b"weights"


def test_two_names_with_one_number_are_told_and_neither_is_taken(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    put(tmp_path, "ckpt-100.pt")
    put(tmp_path, "ckpt-000100.pt")
    made = uploader(bucket, tmp_path, pattern="ckpt-{step}.pt")
    assert made.scan(NOW_S) == []
    assert [(one.name, "the same number" in one.reason) for one in made.refusals(NOW_S, above=0)] == [
        ("ckpt-000100.pt", True),
        ("ckpt-100.pt", True),
    ]


def test_a_group_waits_for_its_last_part_and_is_told_if_that_never_comes(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    made = uploader(bucket, tmp_path, pattern="G_{step}.pth", also=["D_{step}.pth"])
    put(tmp_path, "G_10.pth")
    assert made.scan(NOW_S) == []
    assert [(one.name, "no file D_{step}.pth" in one.reason) for one in made.refusals(NOW_S, above=0)] == [
        ("G_10.pth", True)
    ]
    put(tmp_path, "D_10.pth")
    manifest = ship(made)
    assert sorted(download(bucket, manifest)) == ["D_10.pth", "G_10.pth"]
    assert made.units() == {"D_10.pth", "G_10.pth"}
    assert made.refusals(NOW_S, above=10) == []


def test_a_manifest_whose_files_are_no_parts_of_the_checkpoint_is_not_restored(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    put(tmp_path, "ckpt-100.pt")
    manifest = ship(uploader(bucket, tmp_path, pattern="ckpt-{step}.pt"))
    odd = manifest.model_copy(
        update={"files": (*manifest.files, manifest.files[0].model_copy(update={"path": "train.py"}))}
    )
    bucket.put(manifest.key, odd.to_json())
    with pytest.raises(CheckpointDamaged, match=r"train\.py"):
        restore(
            bucket, RUN_ID, point_of(manifest), tmp_path / "into", names=CheckpointNames("ckpt-{step}.pt")
        )
    assert not (tmp_path / "into" / "train.py").exists()


def test_a_step_folder_that_is_a_link_to_another_disk_of_the_machine_is_taken(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    elsewhere = tmp_path / "elsewhere" / "step_10"
    elsewhere.mkdir(parents=True)
    (elsewhere / "weights").write_bytes(b"weights")
    (tmp_path / "tree" / "out").mkdir(parents=True)
    (tmp_path / "tree" / "out" / "step_10").symlink_to(elsewhere)
    assert download(bucket, ship(uploader(bucket, tmp_path))) == {"weights": b"weights"}


def test_a_link_out_of_the_machines_folder_is_told(tmp_path: Path, bucket: FolderBucket) -> None:
    (tmp_path / "tree" / "out").mkdir(parents=True)
    (tmp_path / "tree" / "out" / "step_10").symlink_to("/usr")
    made = uploader(bucket, tmp_path)
    assert made.scan(NOW_S) == []
    assert [
        (one.name, "outside the machine's folder" in one.reason) for one in made.refusals(NOW_S, above=0)
    ] == [("step_10", True)]


def test_a_file_is_complete_once_nobody_writes_it_or_a_copy_of_it(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    path, copy = put(tmp_path, "ckpt-10.pt"), put(tmp_path, "latest.pt", b"half")
    written = {os.stat(one).st_ino: (os.stat(one).st_dev, os.stat(one).st_ino) for one in (path, copy)}  # noqa: PTH116
    now_s = path.stat().st_mtime + 5
    open_files = set(written.values())
    means = Means(writers=lambda: frozenset(open_files), now_s=lambda: now_s)
    made = uploader(bucket, tmp_path, means, pattern="ckpt-{step}.pt")
    assert made.scan(int(now_s)) == []
    open_files.discard(written[path.stat().st_ino])
    assert made.scan(int(now_s)) == []
    open_files.clear()
    (local,) = made.scan(int(now_s))
    assert local.is_closed


@pytest.mark.parametrize("kind", ["text", "link"])
def test_a_folder_is_complete_once_what_names_the_newest_names_it(
    tmp_path: Path, bucket: FolderBucket, kind: str
) -> None:
    weights, latest = put(tmp_path, "step_20/weights"), tmp_path / "tree" / "out" / "latest"
    put(tmp_path, "step_20/optimizer")
    writing: set[tuple[int, int]] = set()
    now_s = weights.stat().st_mtime + 5
    made = uploader(bucket, tmp_path, Means(writers=lambda: frozenset(writing), now_s=lambda: now_s))
    assert made.scan(int(now_s)) == []
    for name in ("step_10", "step_20"):
        assert made.scan(int(now_s)) == []  # no pointer, or one to the checkpoint before
        latest.unlink(missing_ok=True)
        latest.symlink_to(name) if kind == "link" else latest.write_text(name)
    os.utime(latest, (now_s - 60, now_s - 60), follow_symlinks=False)
    assert made.scan(int(now_s)) == []  # it was written before the files
    os.utime(latest, (now_s - 1, now_s - 1), follow_symlinks=False)
    writing.add((weights.stat().st_dev, weights.stat().st_ino))
    assert made.scan(int(now_s)) == []
    writing.clear()
    (local,) = made.scan(int(now_s))
    assert (local.step, [pointer.kind for pointer in local.pointers]) == (20, [kind])
    assert set(download(bucket, made.upload(local, cancelled=lambda: False))) == {"weights", "optimizer"}


def test_each_version_of_a_file_that_is_overwritten_is_kept_under_the_step_reached_by_then(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    clock = {"now": 1000.0}
    reached = ReachedSteps(lambda: clock["now"])
    means = Means(writers=frozenset, reached=reached.at, now_s=lambda: clock["now"])
    made = uploader(bucket, tmp_path, means, pattern="last.pt")
    stored = {}
    for step in (10, 20):
        reached.add([step])
        path = put(tmp_path, "last.pt", b"version %d" % step)
        os.utime(path, (clock["now"], clock["now"]))
        assert made.scan(int(clock["now"])) == []  # lines that were printed before may still be on their way
        half = put(tmp_path, "last.pt", b"half of the ne")
        os.utime(half, (clock["now"] + 0.5, clock["now"] + 0.5))
        clock["now"] += 100
        (local,) = made.scan(int(clock["now"]))
        manifest = made.upload(local, cancelled=lambda: False)
        stored[manifest.step] = download(bucket, manifest)["last.pt"]
    assert stored == {10: b"version 10", 20: b"version 20"}


def test_an_overwritten_file_whose_step_is_not_known_is_told(tmp_path: Path, bucket: FolderBucket) -> None:
    put(tmp_path, "last.pt")
    made = uploader(bucket, tmp_path, pattern="last.pt")
    assert made.scan(NOW_S) == []
    assert "step is not known" in made.refusals(NOW_S, above=-1)[0].reason


def test_of_folders_that_change_at_each_launch_the_one_with_the_newest_save_counts(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    for run, content in (("exp", b"old"), ("exp2", b"new")):
        path = tmp_path / "tree" / "runs" / run / "weights" / "ckpt-10.pt"
        path.parent.mkdir(parents=True)
        path.write_bytes(content)
        os.utime(path, (1000 + len(run), 1000 + len(run)))
    manifest = ship(uploader(bucket, tmp_path, folder="runs/exp*/weights", pattern="ckpt-{step}.pt"))
    assert manifest.place == "runs/exp2/weights"
    assert download(bucket, manifest) == {"ckpt-10.pt": b"new"}


def test_the_last_version_of_an_overwritten_file_is_kept_though_no_step_was_reported_after_the_one_before(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    clock = {"now": 1000.0}
    reached = ReachedSteps(lambda: clock["now"])
    has_ended = False
    means = Means(
        writers=frozenset, reached=reached.at, now_s=lambda: clock["now"], gone_on=lambda step: has_ended
    )
    made = uploader(bucket, tmp_path, means, pattern="last.pt")
    reached.add([1000])
    newest = None
    for text in (b"weights of step 1000", b"half of the ne", b"averaged weights at the end"):
        path = put(tmp_path, "last.pt", text)
        os.utime(path, (clock["now"], clock["now"]))
        made.scan(int(clock["now"]))
        clock["now"] += 100
        for local in made.scan(int(clock["now"])):
            newest = made.upload(local, cancelled=lambda: False)
        assert newest is not None
        assert download(bucket, newest)["last.pt"] == b"weights of step 1000", (
            "a save that a crash cut off replaces nothing"
        )
    has_ended = True
    newest = ship(made)
    assert (newest.step, download(bucket, newest)["last.pt"]) == (1000, b"averaged weights at the end")
    assert made.scan(int(clock["now"])) == []


def test_a_file_that_all_saves_overwrite_goes_with_the_save_that_wrote_it(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    has_gone_on = False
    means = Means(gone_on=lambda step: has_gone_on, writers=frozenset)
    made = uploader(bucket, tmp_path, means, pattern="model_{step}.pt", also=["optim.pt"], settled_s=5)
    put(tmp_path, "model_100.pt", b"model 100")
    put(tmp_path, "optim.pt", b"optim 100")
    first = ship(made)
    put(tmp_path, "optim.pt", b"optim 200, which is longer")
    has_gone_on = True
    assert made.scan(NOW_S) == []
    put(tmp_path, "model_200.pt", b"model 200")
    second = ship(made)
    assert download(bucket, first) == {"model_100.pt": b"model 100", "optim.pt": b"optim 100"}
    assert download(bucket, second) == {
        "model_200.pt": b"model 200",
        "optim.pt": b"optim 200, which is longer",
    }


def test_a_full_disk_takes_no_file_from_the_checkpoints_that_share_it(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    names = CheckpointNames("model_{step}.pt", ("config.json",), folder="out")
    for step in (100, 200, 300):
        put(tmp_path, f"model_{step}.pt", b"x")
    put(tmp_path, "config.json", b"{}")
    units = Units(names, tmp_path / "tree")
    removed = free_disk_space(
        units=units, committed_step=300, keep_newest=1, max_disk_gib=1e-12, disk_path=tmp_path, share_max=1.0
    )
    assert removed == [100, 200]
    assert sorted(path.name for path in (tmp_path / "tree" / "out").iterdir()) == [
        "config.json",
        "model_300.pt",
    ]


@pytest.mark.parametrize(
    ("pattern", "name", "step"),
    [("model*{step}.pt", "model_10.pt", 10), ("*{step}.pt", "ckpt-1234.pt", 1234)],
)
def test_a_wildcard_takes_no_digit_of_the_number(pattern: str, name: str, step: int) -> None:
    assert CheckpointNames(pattern).step_of(name) == step
