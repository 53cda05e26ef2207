"""Outputs that a trainer appends to, on the machine of the next attempt."""

from collections.abc import Collection
from pathlib import Path

import pytest

from prime_agent.outputs.restore import resume_outputs
from prime_train.buckets.folder import FolderBucket
from prime_train.outputs.manifest import OutputManifest
from tests.agent.outputs.leaving_outputs import identity_of, leave
from tests.builders import RUN_ID

HEAD = "step,acc\n"


def rows(*steps: int) -> bytes:
    return (HEAD + "".join(f"{step},0.5\n" for step in steps)).encode()


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "bucket", make=True)


def resumed(
    bucket: FolderBucket, work: Path, *, step: int, attempt: int = 2, left_out: Collection[str] = ()
) -> dict[str, bytes]:
    work.mkdir(parents=True, exist_ok=True)
    found = resume_outputs(
        bucket, RUN_ID, work, lambda: None, step=step, attempt=attempt, left_out=lambda paths: left_out
    )
    return {path: (work / path).read_bytes() for path in found}


def test_the_rows_up_to_the_resumed_step_are_there_and_no_later_ones(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    leave(bucket, tmp_path / "one", 1, {"results/eval.csv": rows(10, 20, 30, 40, 50)}, step=50)
    assert resumed(bucket, tmp_path / "two", step=40) == {"results/eval.csv": rows(10, 20, 30, 40)}


def test_without_steps_in_the_file_the_version_of_the_resumed_step_is_taken_and_else_the_oldest(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    for step in (20, 40, 60):
        leave(bucket, tmp_path / "one", 1, {"results/notes.txt": b"x" * step}, step=step)
    assert resumed(bucket, tmp_path / "two", step=50) == {"results/notes.txt": b"x" * 40}
    assert resumed(bucket, tmp_path / "three", step=10) == {"results/notes.txt": b"x" * 20}


def test_a_third_attempt_gets_what_the_first_two_wrote_and_nothing_of_itself_or_later_ones(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    leave(bucket, tmp_path / "one", 1, {"results/eval.csv": rows(10, 20), "results/first.txt": b"1"}, step=20)
    leave(bucket, tmp_path / "two", 2, {"results/eval.csv": rows(10, 20, 30, 40)}, step=40)
    leave(bucket, tmp_path / "three", 3, {"results/eval.csv": rows(70)}, step=70)
    assert resumed(bucket, tmp_path / "next", step=30, attempt=3) == {
        "results/eval.csv": rows(10, 20, 30),
        "results/first.txt": b"1",
    }


def test_a_file_of_the_working_tree_that_was_changed_is_as_it_was_left_and_no_link_is_followed(
    bucket: FolderBucket, tmp_path: Path
) -> None:
    leave(bucket, tmp_path / "one", 1, {"results/eval.csv": rows(10)}, step=10)
    work, outside = tmp_path / "two", tmp_path / "outside.csv"
    (work / "results").mkdir(parents=True)
    outside.write_text("theirs")
    (work / "results" / "eval.csv").symlink_to(outside)
    assert resumed(bucket, work, step=10) == {"results/eval.csv": rows(10)}
    assert outside.read_text() == "theirs"


def test_what_the_trainer_must_not_find_is_left_out(bucket: FolderBucket, tmp_path: Path) -> None:
    leave(bucket, tmp_path / "one", 1, {"results/eval.csv": rows(10), "results/old.json": b"{}"}, step=10)
    assert resumed(bucket, tmp_path / "two", step=10, left_out=["results/old.json"]) == {
        "results/eval.csv": rows(10)
    }
    assert OutputManifest(run=RUN_ID, attempt=1, identity=identity_of(1)).newest() == {}
