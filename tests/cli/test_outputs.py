"""`prime-train outputs` and `tensorboard` as their user sees them: with a bucket alone, whatever machines
have written there.
"""

import json
import os
from pathlib import Path

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import output_manifest_key
from tests.agent.outputs.leaving_outputs import identity_of, leave, manifest_in
from tests.builders import RUN_ID
from tests.cli.documented import check
from tests.cli.shell import Shell

FIRST = {"results/a.txt": b"one\ntwo\n", "results/gone.bin": bytes(1000), "submission.json": b"{}"}
SECOND = {"results/a.txt": b"one\n2\n", "results/deep/new.txt": b"new\n"}


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    bucket = FolderBucket(tmp_path / "bucket", make=True)
    leave(bucket, tmp_path / "pod-1", 1, FIRST, step=100)
    leave(bucket, tmp_path / "pod-2", 2, SECOND, step=150)
    return bucket


@pytest.fixture
def url(tmp_path: Path, bucket: FolderBucket) -> str:
    return f"--bucket={(tmp_path / 'bucket').as_uri()}"


def refused(shell: Shell, *args: str, code: int = 2) -> str:
    done = shell.run(*args)
    assert done.returncode == code, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    assert "bug in prime-train" not in done.stderr
    return done.stderr


def on_disk(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()
    }


# ------------------------------------------------------------------------------------------------------------
# list


def test_the_newest_of_each_output_is_listed_then_logs_and_metrics(shell: Shell, url: str) -> None:
    rows = json.loads(shell.ok("outputs", RUN_ID, "--json", url))
    check("outputs list", rows, complete=True)
    assert [(row["path"], row["attempt"], row["step"], row["kind"]) for row in rows] == [
        ("results/a.txt", 2, 150, "output"),
        ("results/deep/new.txt", 2, 150, "output"),
        ("results/gone.bin", 1, 100, "output"),
        ("submission.json", 1, 100, "output"),
        ("trainer.log", 1, None, "log"),
        ("metrics.csv", 1, None, "metrics"),
        ("trainer.log", 2, None, "log"),
        ("metrics.csv", 2, None, "metrics"),
    ]
    text = shell.ok("outputs", RUN_ID, url, "--attempt", "1")
    assert "results/gone.bin" in text
    assert "deep" not in text


def test_a_run_that_left_nothing_or_does_not_exist_is_said_so(
    shell: Shell, bucket: FolderBucket, url: str
) -> None:
    bucket.put("runs/quiet-1/spec.json", b"{}")
    assert shell.ok("outputs", "quiet-1", url) == "quiet-1 has no outputs in the bucket\n"
    assert "there is nothing of a run other-1" in refused(shell, "outputs", "other-1", url)
    assert "attempt 7 of tiny-1 left no outputs" in refused(shell, "outputs", RUN_ID, "--attempt", "7", url)


# ------------------------------------------------------------------------------------------------------------
# get


def test_all_is_downloaded_and_what_is_there_is_not_fetched_again(shell: Shell, url: str) -> None:
    row = json.loads(shell.ok("outputs", RUN_ID, "get", "got", "--json", url))
    check("outputs get", row, complete=True)
    found = on_disk(shell.here / "got")
    events = [found.pop(f"_run/attempt-{number}/events.out.tfevents.prime-train") for number in (1, 2)]
    assert all(b"brain.Event:2" in content for content in events)
    for number, step in ((1, 100), (2, 150)):
        assert found.pop(f"_run/attempt-{number}/trainer.log") == f"trained to step {step}\n".encode()
        assert found.pop(f"_run/attempt-{number}/metrics.csv").startswith(b"step,time_s,loss,reward,lr\n")
    assert found == FIRST | SECOND | {"results/a.attempt-1.txt": FIRST["results/a.txt"]}, (
        "the newest lacks lines of the first attempt"
    )
    again = json.loads(shell.ok("outputs", RUN_ID, "get", "got", "--json", url))
    assert {file["path"] for file in again["files"] if file["is_new"]} == {
        file["path"] for file in row["files"] if file["path"][0] == "_"
    }


def test_a_file_with_other_content_is_not_overwritten_unless_asked(shell: Shell, url: str) -> None:
    (shell.here / "got" / "results").mkdir(parents=True)
    (shell.here / "got" / "results" / "a.txt").write_text("mine")
    text = refused(shell, "outputs", RUN_ID, "get", "got", url)
    assert "other content in results/a.txt; nothing was written" in text
    assert "--replace" in text
    assert on_disk(shell.here / "got") == {"results/a.txt": b"mine"}
    shell.ok("outputs", RUN_ID, "get", "got", "--replace", url)
    assert (shell.here / "got" / "results" / "a.txt").read_bytes() == SECOND["results/a.txt"]


# ------------------------------------------------------------------------------------------------------- what
# a machine may write


def test_names_and_texts_of_a_machine_have_no_effect_on_the_terminal(
    shell: Shell, bucket: FolderBucket, tmp_path: Path, url: str
) -> None:
    leave(bucket, tmp_path / "pod-3", 3, {"results/\x1b[2J\n.txt": b"new \x1b]0;title\x07\n"}, step=200)
    for command in ((), ("diff",)):
        text = shell.ok("outputs", RUN_ID, *command, url)
        assert "\x1b" not in text
        assert "results/\\x1b[2J\\n.txt" in text


def test_a_manifest_that_is_not_valid_is_named_and_the_rest_is_downloaded(
    shell: Shell, bucket: FolderBucket, url: str
) -> None:
    key = output_manifest_key(RUN_ID, 2, identity_of(2))
    bucket.put(
        key,
        manifest_in(bucket, attempt=2).model_dump_json().replace("results/deep/new.txt", "../evil").encode(),
    )
    done = shell.run("outputs", RUN_ID, "get", "got/below", url)
    assert f"warning: {key} cannot be read" in done.stderr
    assert on_disk(shell.here / "got" / "below")["results/a.txt"] == FIRST["results/a.txt"], (
        "what the first attempt left is there"
    )
    assert not list(shell.here.rglob("evil*"))


# ------------------------------------------------------------------------------------------------------------
# diff


def test_the_last_attempt_is_compared_with_those_before(shell: Shell, url: str) -> None:
    text = shell.ok("outputs", RUN_ID, "diff", url)
    assert text.splitlines()[0] == "attempts up to 1 -> newest: 2 files differ"
    assert "--- results/a.txt (attempt 1, step 100)\n+++ results/a.txt (attempt 2, step 150)\n" in text
    assert "-two\n+2\n" in text
    assert "added    results/deep/new.txt" in text
    rows = json.loads(shell.ok("outputs", RUN_ID, "diff", "--json", url))
    check("outputs diff", rows, complete=True)
    assert json.loads(shell.ok("outputs", RUN_ID, "diff", "@100", "@149", "--json", url)) == []
    assert "'yesterday' is not a version" in refused(shell, "outputs", RUN_ID, "diff", "yesterday", url)


# ------------------------------------------------------------------------------------------------------------
# tensorboard


def test_event_files_are_written_for_each_attempt_and_the_command_that_shows_them_is_printed(
    shell: Shell, url: str
) -> None:
    row = json.loads(shell.ok("tensorboard", RUN_ID, "--out", "my events", "--json", url))
    check("tensorboard", row, complete=True)
    assert row["command"] == "tensorboard --logdir 'my events'"
    assert sorted(on_disk(shell.here / "my events")) == [
        f"{RUN_ID}/attempt-{number}/events.out.tfevents.prime-train" for number in (1, 2)
    ]


def test_tensorboard_is_started_if_it_is_installed(shell: Shell, url: str, tmp_path: Path) -> None:
    (tmp_path / "programs").mkdir()
    done = shell.run("tensorboard", RUN_ID, "--start", url, PATH=str(tmp_path / "programs"))
    assert done.returncode == 4
    assert "pip install tensorboard" in done.stderr
    program = tmp_path / "programs" / "tensorboard"
    program.write_text('#!/bin/sh\necho "started with $*"\n')
    program.chmod(0o755)
    done = shell.run(
        "tensorboard",
        RUN_ID,
        "--attempt",
        "2",
        "--start",
        url,
        PATH=f"{program.parent}{os.pathsep}{os.defpath}",
    )
    assert done.stdout.splitlines() == [
        f"tensorboard/{RUN_ID}/attempt-2/events.out.tfevents.prime-train: attempt 2",
        "started with --logdir tensorboard",
    ]
