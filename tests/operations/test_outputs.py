"""Outputs in a bucket that machines have written, some of them hostile, and a folder that others write to."""

from pathlib import Path

import pytest

from prime_train.app.home import Home
from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import output_manifest_key, outputs_prefix
from prime_train.environment import HOME
from prime_train.errors import UsageError
from prime_train.outputs.diff import diff, lines_of_change
from prime_train.outputs.event_files import write_event_files
from prime_train.outputs.get import get
from prime_train.outputs.lookup import RunOutputs, outputs_of, rows_of
from tests.agent.outputs.leaving_outputs import (
    LONG_AGO_S,
    identity_of,
    leave,
    manifest_in,
    output_uploader,
    write,
)
from tests.builders import RUN_ID

FIRST = {"results/a.txt": b"one\ntwo\n", "results/gone.bin": bytes(1000), "submission.json": b"{}"}
SECOND = {"results/a.txt": b"one\n2\n", "results/deep/new.txt": b"new\n"}


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    bucket = FolderBucket(tmp_path / "bucket", make=True)
    leave(bucket, tmp_path / "pod-1", 1, FIRST, step=100)
    leave(bucket, tmp_path / "pod-2", 2, SECOND, step=150)
    return bucket


def found(tmp_path: Path) -> RunOutputs:
    return outputs_of(
        Home.of({HOME: str(tmp_path / "home")}).stored_runs((tmp_path / "bucket").as_uri()), RUN_ID
    )


def on_disk(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


# ------------------------------------------------------------------------------------------------------------
# what is listed


@pytest.mark.parametrize("path", ["../evil", "/tmp/evil", "results/../../evil"])
def test_a_manifest_with_a_path_that_leads_out_of_the_folder_is_not_read(
    tmp_path: Path, bucket: FolderBucket, path: str
) -> None:
    key = output_manifest_key(RUN_ID, 2, identity_of(2))
    bucket.put(
        key, manifest_in(bucket, attempt=2).model_dump_json().replace("results/deep/new.txt", path).encode()
    )
    assert list(found(tmp_path).unread) == [key]
    assert {version.manifest.attempt for version in found(tmp_path).newest().values()} == {1}


def test_a_manifest_that_claims_to_be_of_another_attempt_is_not_read(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    key = output_manifest_key(RUN_ID, 3, identity_of(3))
    bucket.put(key, manifest_in(bucket, attempt=2).model_dump_json().encode())
    assert list(found(tmp_path).unread) == [key]


def test_objects_that_are_no_outputs_are_left_out(tmp_path: Path, bucket: FolderBucket) -> None:
    for name in (
        "e3-short/manifest.json",
        f"e3-{identity_of(3)}/secrets.log/000000001",
        f"e3-{identity_of(3)}/trainer.log/x",
    ):
        bucket.put(outputs_prefix(RUN_ID) + name, b"x")
    assert {one.number for one in found(tmp_path).attempts} == {1, 2}


def test_two_attempts_with_one_number_do_not_mix(tmp_path: Path, bucket: FolderBucket) -> None:
    text = manifest_in(bucket, attempt=2).model_dump_json().replace(identity_of(2), "f" * 16)
    bucket.put(output_manifest_key(RUN_ID, 2, "f" * 16), text.encode())
    outputs = found(tmp_path)
    assert [outputs.folder_of(one) for one in outputs.attempts] == [
        "attempt-1",
        f"attempt-2-{'f' * 16}",
        f"attempt-2-{identity_of(2)}",
    ]
    assert outputs.newest()["results/a.txt"].manifest.identity == identity_of(2), (
        "the one that has written last"
    )


def test_an_attempt_that_left_nothing_is_an_error_that_names_those_that_did(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    with pytest.raises(UsageError, match="attempt 7 of tiny-1 left no outputs") as error:
        rows_of(found(tmp_path), attempt=7)
    assert str(error.value.fix) == "these did: 1, 2"


# ------------------------------------------------------------------------------------------------------------
# where it is written


@pytest.mark.parametrize("target", ["results", "results/deep", "_run"])
def test_a_link_in_the_target_folder_is_not_followed(
    tmp_path: Path, bucket: FolderBucket, target: str
) -> None:
    outside, link = tmp_path / "outside", tmp_path / "got" / target
    outside.mkdir()
    link.parent.mkdir(parents=True)
    link.symlink_to(outside)
    with pytest.raises(UsageError, match="not a folder"):
        get(found(tmp_path), tmp_path / "got", replace=True)
    assert not list(outside.iterdir())


def test_a_link_in_the_place_of_a_file_is_not_written_to(tmp_path: Path, bucket: FolderBucket) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("mine")
    (tmp_path / "got" / "results").mkdir(parents=True)
    (tmp_path / "got" / "results" / "a.txt").symlink_to(outside)
    with pytest.raises(UsageError, match="exists and is not a file"):
        get(found(tmp_path), tmp_path / "got", replace=True)
    assert outside.read_text() == "mine"


def test_a_damaged_output_is_named_and_no_part_of_it_is_left(tmp_path: Path, bucket: FolderBucket) -> None:
    chunk = manifest_in(bucket, attempt=2).newest()["results/a.txt"].chunks[0]
    bucket.put(manifest_in(bucket, attempt=2).key_of(chunk), b"x" * chunk.stored)
    with pytest.raises(UsageError, match=r"results/a.txt is damaged in the bucket"):
        get(found(tmp_path), tmp_path / "got")
    assert "results/a.txt" not in on_disk(tmp_path / "got")
    assert not [path for path in on_disk(tmp_path / "got") if path.endswith(".part")]


def test_a_part_an_attempt_or_a_step_is_downloaded(tmp_path: Path, bucket: FolderBucket) -> None:
    get(found(tmp_path), tmp_path / "one", attempt=1, patterns=["results/**"])
    assert on_disk(tmp_path / "one") == {
        path: data for path, data in FIRST.items() if path.startswith("results/")
    }
    get(found(tmp_path), tmp_path / "two", step=120, patterns=["*.json", "results/a.txt"])
    assert on_disk(tmp_path / "two") == {"submission.json": b"{}", "results/a.txt": b"one\ntwo\n"}
    with pytest.raises(UsageError, match=r"has no output that matches \*.xyz"):
        get(found(tmp_path), tmp_path / "none", patterns=["*.xyz"])
    assert not (tmp_path / "none").exists()


# ------------------------------------------------------------------------------------------------------------
# what differs


def test_rows_that_the_newest_version_lacks_are_written_beside_it(tmp_path: Path) -> None:
    bucket = FolderBucket(tmp_path / "bucket", make=True)
    first, second = b"step,acc\n10,0.1\n50,0.5\n", b"step,acc\n60,0.6\n70,0.7\n120,0.9\n"
    leave(bucket, tmp_path / "pod-1", 1, {"results/eval.csv": first, "results/best.json": b"{}"}, step=50)
    leave(bucket, tmp_path / "pod-2", 2, {"results/eval.csv": second, "results/best.json": b"[]"}, step=120)
    written = {
        file.path: file.part_of
        for file in get(found(tmp_path), tmp_path / "here", patterns=["results/**"]).files
    }
    assert written == {
        "results/best.json": "",
        "results/eval.csv": "",
        "results/eval.attempt-1.csv": "results/eval.csv",
    }
    here = on_disk(tmp_path / "here")
    assert (here["results/eval.csv"], here["results/eval.attempt-1.csv"]) == (second, first)


def test_rows_that_were_made_again_after_a_resume_are_not_written_beside_it(tmp_path: Path) -> None:
    bucket = FolderBucket(tmp_path / "bucket", make=True)
    leave(bucket, tmp_path / "pod-1", 1, {"results/eval.csv": b"step,acc\n10,0.1\n50,0.5\n"}, step=50)
    leave(bucket, tmp_path / "pod-2", 2, {"results/eval.csv": b"step,acc\n10,0.1\n50,0.4\n60,0.6\n"}, step=60)
    (only,) = get(found(tmp_path), tmp_path / "here", patterns=["results/**"]).files
    assert (only.path, only.attempt) == ("results/eval.csv", 2)


def test_two_attempts_are_compared(tmp_path: Path, bucket: FolderBucket) -> None:
    assert [(row["path"], row["kind"]) for row in diff(found(tmp_path), "1", "2").rows] == [
        ("results/a.txt", "changed"),
        ("results/deep/new.txt", "added"),
        ("results/gone.bin", "removed"),
        ("submission.json", "removed"),
    ]
    with pytest.raises(UsageError, match="attempt 9 of tiny-1 left no outputs"):
        diff(found(tmp_path), "9@10")


def test_a_single_attempts_outputs_are_compared_with_their_versions_before(tmp_path: Path) -> None:
    made = output_uploader(
        FolderBucket(tmp_path / "bucket", make=True), tmp_path / "work", ["*.txt"], steps=iter((1, 1, 2, 2))
    )
    for step, text in ((1, "old\n"), (2, "new\n")):
        write(tmp_path / "work", {"a.txt": text.encode(), "same.txt": b"same\n"}, at_s=LONG_AGO_S + step)
        made.upload(trainer_ended=True)
    compared = diff(found(tmp_path))
    (change,) = compared.changes
    assert (compared.before, compared.after) == ("previous version of each output", "newest")
    assert lines_of_change(found(tmp_path), change) == [
        "--- a.txt (attempt 1, step 1)",
        "+++ a.txt (attempt 1, step 2)",
        "@@ -1 +1 @@",
        "-old",
        "+new",
    ]


def test_without_metrics_there_are_no_event_files_and_no_folder_is_made(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    for stat in list(bucket.list(outputs_prefix(RUN_ID))):
        if "/metrics.csv/" in stat.key:
            bucket.delete(stat.key)
    with pytest.raises(UsageError, match="tiny-1 has no metrics"):
        write_event_files(found(tmp_path), tmp_path / "events")
    assert not (tmp_path / "events").exists()


def test_a_git_folder_and_other_files_that_programs_run_are_not_written_and_are_named(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    key = output_manifest_key(RUN_ID, 2, identity_of(2))
    for name in ("results/.git/config", "results/.vscode/tasks.json"):
        bucket.put(
            key,
            manifest_in(bucket, attempt=2).model_dump_json().replace("results/deep/new.txt", name).encode(),
        )
        done = get(found(tmp_path), tmp_path / "got", replace=True)
        assert list(done.left_out) == [name]
        assert not [path for path in on_disk(tmp_path / "got") if ".git/" in path or ".vscode/" in path]
        bucket.put(
            key,
            manifest_in(bucket, attempt=2).model_dump_json().replace(name, "results/deep/new.txt").encode(),
        )
