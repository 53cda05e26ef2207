"""Uploads of outputs on a real disk, while somebody else writes, fails or plays tricks there."""

import os
from itertools import repeat
from pathlib import Path

import pytest

from prime_agent.deletions import DeletionCounter
from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import outputs_prefix
from prime_train.checkpoints.manifest import CHUNK_BYTES
from prime_train.runs.wire import Deletions
from tests.agent.buckets import Counted, Cut
from tests.agent.outputs.leaving_outputs import LONG_AGO_S, manifest_in, output_uploader, stored, write
from tests.builders import RUN_ID


@pytest.fixture
def bucket(tmp_path: Path) -> Counted:
    return Counted(FolderBucket(tmp_path / "bucket", make=True))


@pytest.fixture
def work(tmp_path: Path) -> Path:
    return tmp_path / "work"


def blobs(bucket: Counted) -> int:
    return sum("/blobs/" in stat.key for stat in bucket.list(outputs_prefix(RUN_ID)))


def test_only_what_changed_is_uploaded_again_and_three_versions_are_kept(bucket: Counted, work: Path) -> None:
    steps, deleted = iter((0, 0, 1, 2, 3, 4)), list[Deletions]()
    made = output_uploader(
        bucket, work, ["results/**"], steps=steps, deletions=DeletionCounter(deleted.append)
    )
    write(work, {"results/same.txt": b"same", "results/a.txt": b"0"})
    for step in range(5):
        write(work, {"results/a.txt": f"version {step}".encode()}, at_s=LONG_AGO_S + step)
        assert made.upload(trainer_ended=False) == ""
    assert stored(bucket) == {"results/same.txt": b"same", "results/a.txt": b"version 4"}
    versions = [(file.path, file.step) for file in manifest_in(bucket).files]
    assert versions == [
        ("results/a.txt", 4),
        ("results/a.txt", 3),
        ("results/a.txt", 2),
        ("results/same.txt", 0),
    ]
    assert blobs(bucket) == 4, "what only older versions consisted of is deleted"
    assert deleted[-1] == Deletions(output_bytes=2 * len(b"version 0"))
    before = bucket.operations
    assert made.upload(trainer_ended=True) == ""
    assert bucket.operations == before, "nothing has changed"


def test_an_output_has_the_step_at_which_it_was_read_and_not_that_at_which_its_upload_began(
    bucket: Counted, work: Path
) -> None:
    trained = [3]
    made = output_uploader(bucket, work, ["results/**"], steps=(trained[-1] for _ in repeat(None)))
    write(work, {"results/a.txt": b"of step 3", "results/b.txt": b"of step 3, too"})

    def train_on(name: str, key: str) -> None:
        if name == "put" and "/blobs/" in key:
            bucket.before = lambda name, key: None
            write(work, {"results/b.txt": b"now of step 8!"}, at_s=LONG_AGO_S)
            trained.append(8)

    bucket.before = train_on
    assert made.upload(trainer_ended=False) == ""
    assert stored(bucket)["results/b.txt"] == b"now of step 8!"
    assert [(file.path, file.step) for file in manifest_in(bucket).files] == [
        ("results/a.txt", 3),
        ("results/b.txt", 8),
    ]


def test_files_that_came_with_the_working_tree_are_no_outputs_until_they_are_written(
    bucket: Counted, work: Path
) -> None:
    write(work, {"data.csv": b"came with the tree", "old.csv": b"came with the tree"})
    made = output_uploader(bucket, work, ["*.csv"])
    write(work, {"data.csv": b"written by the trainer"}, at_s=LONG_AGO_S + 1)
    made.upload(trainer_ended=True)
    assert stored(bucket) == {"data.csv": b"written by the trainer"}


def test_a_checkpoint_is_not_uploaded_as_an_output(bucket: Counted, work: Path) -> None:
    made = output_uploader(bucket, work, ["checkpoints/**"])
    write(work, {"checkpoints/step_10/weights": b"w", "checkpoints/log.txt": b"l"})
    made.upload(trainer_ended=True)
    assert stored(bucket) == {"checkpoints/log.txt": b"l"}


def test_an_output_that_is_written_during_its_upload_is_uploaded_whole_later(
    bucket: Counted, work: Path
) -> None:
    made = output_uploader(bucket, work, ["big.bin"])
    write(work, {"big.bin": os.urandom(CHUNK_BYTES) + b"the old end"})
    new = os.urandom(CHUNK_BYTES) + b"the new end"

    def overwrite(name: str, key: str) -> None:
        if name == "put" and "/blobs/" in key:
            bucket.before = lambda name, key: None
            write(work, {"big.bin": new}, at_s=LONG_AGO_S + 1)

    bucket.before = overwrite
    made.upload(trainer_ended=False)
    assert stored(bucket)["big.bin"] != new
    assert made.upload(trainer_ended=False) == ""
    assert stored(bucket)["big.bin"] == new


def test_at_the_end_a_torn_output_is_refused_until_it_rests(bucket: Counted, work: Path) -> None:
    made = output_uploader(bucket, work, ["a.txt"])
    write(work, {"a.txt": b"the old text"})

    def overwrite(name: str, key: str) -> None:
        bucket.before = lambda name, key: None
        write(work, {"a.txt": b"the new text"}, at_s=LONG_AGO_S + 1)

    bucket.before = overwrite
    assert made.upload(trainer_ended=True) == "a.txt is still being written, although the trainer has ended"
    assert made.upload(trainer_ended=True) == ""
    assert stored(bucket) == {"a.txt": b"the new text"}
    assert blobs(bucket) == 1, "the blob of the torn version is deleted"


@pytest.mark.parametrize("late", [False, True])
def test_an_upload_that_is_cut_off_anywhere_goes_on_and_lists_nothing_that_is_missing(
    tmp_path: Path, late: bool
) -> None:
    inner = FolderBucket(tmp_path / "bucket", make=True)
    files = {"results/a": b"a" * 100, "results/b": b"b" * 100}
    for cut_at in range(1, 20):
        work = tmp_path / f"{cut_at}-{late}"
        bucket = Counted(inner, cut_at=cut_at, late=late)
        made = output_uploader(bucket, work, ["results/**"], attempt=cut_at)
        write(work, files)
        try:
            made.upload(trainer_ended=True)
        except Cut:
            bucket.cut_at = None
            made.upload(trainer_ended=True)
        else:
            return
        assert stored(inner, attempt=cut_at) == files
    raise AssertionError("it was cut off every time")


def test_what_is_too_large_is_named_and_the_rest_is_uploaded(bucket: Counted, work: Path) -> None:
    made = output_uploader(bucket, work, ["*.bin"], output_file_gib_max=2**-20, outputs_gib_max=2e-6)
    write(work, {"large.bin": bytes(1025), "a.bin": b"a" * 900, "b.bin": b"b" * 901, "c.bin": b"c" * 902})
    problem = made.upload(trainer_ended=True)
    assert "large.bin has 1025 bytes, more than output_file_gib_max" in problem
    assert "c.bin: with it the outputs have 2703 bytes, more than outputs_gib_max (2e-06 GiB)" in problem
    assert stored(bucket) == {"a.bin": b"a" * 900, "b.bin": b"b" * 901}


def test_links_and_pipes_bring_nothing_from_outside_of_the_working_tree(
    bucket: Counted, work: Path, tmp_path: Path
) -> None:
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret.txt").write_text("secret")
    made = output_uploader(bucket, work, ["results/**", "folder/**", "*.txt"])
    write(work, {"results/a.txt": b"a", "elsewhere/b.txt": b"b"})
    (work / "results" / "link.txt").symlink_to(tmp_path / "outside" / "secret.txt")
    (work / "results" / "up.txt").symlink_to("../../outside/secret.txt")
    (work / "results" / "loop.txt").symlink_to("loop.txt")
    (work / "folder").symlink_to(tmp_path / "outside")
    (work / "inside.txt").symlink_to("elsewhere/b.txt")
    os.mkfifo(work / "results" / "pipe.txt")
    assert made.upload(trainer_ended=True) == ""
    assert stored(bucket) == {"results/a.txt": b"a", "inside.txt": b"b"}


def test_a_folder_that_becomes_a_link_to_outside_after_it_was_searched_is_not_followed(
    bucket: Counted, work: Path, tmp_path: Path
) -> None:
    made = output_uploader(bucket, work, ["results/**"])
    write(work, {"results/a.txt": b"a"})
    write(tmp_path / "outside", {"a.txt": b"s"})

    def swap(name: str, key: str) -> None:
        bucket.before = lambda name, key: None
        (work / "results").rename(work / "moved")
        (work / "results").symlink_to(tmp_path / "outside")

    bucket.before = swap
    problem = made.upload(trainer_ended=True)
    assert "results/a.txt cannot be read" in problem
    assert not [stat for stat in bucket.list(outputs_prefix(RUN_ID)) if "/blobs/" in stat.key]


def test_a_name_that_cannot_be_a_path_elsewhere_is_named_harmlessly(bucket: Counted, work: Path) -> None:
    made = output_uploader(bucket, work, ["out*/**"])
    write(work, {"out/good.txt": b"g", "out/new\nline\x1b[2J.txt": b"n"})
    (work / "out" / "back\\slash").write_bytes(b"b")
    Path(os.fsdecode(os.fsencode(work / "out") + b"/not-utf-8-\xff")).write_bytes(b"x")
    problem = made.upload(trainer_ended=True)
    assert problem.isprintable()
    assert problem.isascii()
    assert "is not named in UTF-8; rename it" in problem
    assert "back" in problem
    assert stored(bucket) == {"out/good.txt": b"g", "out/new\nline\x1b[2J.txt": b"n"}


@pytest.mark.parametrize("name", [b"bad-\xff", b"new\nline"])
def test_a_name_that_is_not_utf_8_is_named_harmlessly_where_it_cannot_be_read(
    bucket: Counted, work: Path, name: bytes
) -> None:
    made = output_uploader(bucket, work, ["out/**"])
    (work / "out").mkdir(parents=True)
    Path(os.fsdecode(os.fsencode(work / "out") + b"/" + name)).symlink_to("x" * 300)
    problem = made.upload(trainer_ended=True)
    assert "cannot be read: File name too long" in problem
    assert problem.isprintable()
    assert problem.encode().decode() == problem, "a heartbeat can carry it"


def test_a_manifest_that_another_program_broke_is_an_error_and_not_overwritten(
    bucket: Counted, work: Path
) -> None:
    made = output_uploader(bucket, work, ["*.txt"])
    key = f"{outputs_prefix(RUN_ID, 1, f'{1:016x}')}manifest.json"
    bucket.inner.put(key, b'{"run": "other"}')
    write(work, {"a.txt": b"a"})
    with pytest.raises(Exception, match="manifest of outputs in the bucket cannot be read"):
        made.upload(trainer_ended=True)
    content = bucket.get(key)
    assert content is not None
    assert content.data == b'{"run": "other"}'
