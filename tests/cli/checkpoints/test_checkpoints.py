"""`prime-train checkpoints` as its user sees it: with a bucket alone, and on the machine that has the run in
its store.
"""

import json
import os
import pty
import subprocess
import tarfile
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import blob_key, manifest_key, mark_key, spec_key
from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.catalog import read_manifest
from prime_train.checkpoints.commands.group import verb_first
from prime_train.cli.verbs import VERBS
from prime_train.exit_codes import Exit
from prime_train.runs.resume_point import ResumePoint
from prime_train.runs.run import RunState
from prime_train.stores.sqlite.store import SqliteStore
from tests.agent.checkpoints.saving import contents, key_of, on_disk, save, ship, uploader
from tests.buckets import keys_for, url_of
from tests.builders import RUN_ID, run, spec
from tests.chaos.history import CLOCK
from tests.cli.documented import check
from tests.cli.shell import PROGRAM, Shell
from tests.fakes.s3_servers import S3Server
from tests.waiting import HANG_S

STEPS = (10, 20, 30, 40)
LONG_AGO_S = 1_700_000_000
NAMES = [verb.word for verb in VERBS["Checkpoints"][0].verbs]


def fill(bucket: Bucket, disk: Path) -> None:
    """Store four checkpoints, and a spec that keeps two of them and every twentieth step."""
    made = uploader(bucket, disk, keep=10)
    for step in STEPS:
        save(disk / "tree", step)
        ship(made)
    says = spec(checkpoints={"keep": 2, "keep_every_steps": 20}).model_dump(mode="json")
    bucket.put(spec_key(RUN_ID), json.dumps({"commit": "", "spec": says}).encode())


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    """Return a bucket whose run is in no store."""
    bucket = FolderBucket(tmp_path / "bucket", make=True)
    fill(bucket, tmp_path / "pod")
    return bucket


@pytest.fixture
def url(tmp_path: Path, bucket: FolderBucket) -> str:
    return f"--bucket={(tmp_path / 'bucket').as_uri()}"


def blob_of(root: Path, bucket: Bucket, step: int, path: str) -> Path:
    manifest = read_manifest(bucket, manifest_key(RUN_ID, step, 1))
    assert manifest is not None
    return root / "bucket" / key_of(next(file for file in manifest.files if file.path == path))


def harm(root: Path, bucket: Bucket, step: int, path: str = "weights.npz") -> None:
    """Flip a bit of a file in the bucket, which keeps its size."""
    blob = blob_of(root, bucket, step, path)
    data = blob.read_bytes()
    blob.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))


def refused(shell: Shell, *args: str, code: int = 2) -> str:
    done = shell.run("checkpoints", *args)
    assert done.returncode == code, f"{args}: {done.returncode}\n{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    assert "bug in prime-train" not in done.stderr
    return done.stderr


# ------------------------------------------------------------------------------------------------------------
# how it is called


@pytest.mark.parametrize(
    ("output", "meant"),
    [
        ("a", "list a"),
        ("a --json", "list a --json"),
        ("--json a", "list a --json"),
        ("--bucket u a", "list a --bucket u"),
        ("a list", "list a"),
        ("a verify --step 3", "verify a --step 3"),
        ("verify a --step 3", "verify a --step 3"),
        ("a restore d --step 3", "restore a d --step 3"),
        ("a --bucket u restore d", "restore a --bucket u d"),
        ("--bucket=u a restore d", "restore a --bucket=u d"),
        ("- restore d", "restore - d"),
        ("verify verify", "verify verify"),
        ("a verfy", "verfy a"),
        ("a verify --help", "verify a --help"),
        ("verify --help", "verify --help"),
        ("a --help", "--help"),
        ("--help", "--help"),
        ("", ""),
    ],
)
def test_the_verb_stands_after_the_run(output: str, meant: str) -> None:
    assert verb_first(output.split(), NAMES) == meant.split()


def test_help_names_the_verbs_and_each_verb_its_own_options(shell: Shell) -> None:
    output = shell.ok("checkpoints", "--help")
    assert all(f"\n  {verb} " in output for verb in NAMES)
    assert "..." not in output.split("Commands:")[1]
    assert shell.ok("checkpoints", "x", "restore", "--help").startswith(
        "Usage: prime-train checkpoints RUN restore [OPTIONS] "
    )
    assert "Did you mean 'verify'" in refused(shell, "x", "verfy")
    assert "Missing argument 'RUN'" in refused(shell, "--json")


# ------------------------------------------------------------------------------------------------------------
# from the bucket alone


def test_a_list_says_what_is_complete_and_why_it_is_kept(
    shell: Shell, bucket: FolderBucket, url: str
) -> None:
    blob_of(shell.here, bucket, 30, "weights.npz").unlink()
    shell.ok("checkpoints", RUN_ID, "pin", "10", url)
    rows = {row["step"]: row for row in json.loads(shell.ok("checkpoints", RUN_ID, url, "--json"))}
    check("checkpoints list", list(rows.values()), complete=True)
    assert list(rows) == [40, 30, 20, 10]
    assert {step: (row["complete"], row["missing"]) for step, row in rows.items()}[30] == (False, 1)
    assert rows[40]["kept"] == "newest 2, every 20"
    assert (rows[10]["kept"], rows[10]["pinned"], rows[20]["pinned"]) == ("pinned", True, False)
    assert {row["committed"] for row in rows.values()} == {None}, "nobody is asked who knows"
    assert rows[40]["stored_bytes"] == rows[40]["size_bytes"]
    output = shell.ok("checkpoints", RUN_ID, url)
    assert "no: 1 chunks missing" in output
    assert "newest 2, every 20" in output
    assert not shell.home.exists(), "nothing of a control plane is made"


def test_a_list_says_which_checkpoints_a_trainer_could_resume_from(
    shell: Shell, bucket: FolderBucket, url: str
) -> None:
    bucket.put(mark_key(RUN_ID, 20, 1, "proven"), b"")
    bucket.put(mark_key(RUN_ID, 30, 1, "distrusted"), b"")
    rows = {row["step"]: row for row in json.loads(shell.ok("checkpoints", RUN_ID, url, "--json"))}
    assert [(row["step"], row["proven"], row["distrusted"]) for row in rows.values()] == [
        (40, False, False),
        (30, False, True),
        (20, True, False),
        (10, False, False),
    ]
    assert "newest proven" in rows[20]["kept"]
    assert "newest 2" not in (rows[30]["kept"] or "")
    output = shell.ok("checkpoints", RUN_ID, url)
    assert "proven" in output
    assert "not loadable" in output


def test_what_compression_saved_is_shown(shell: Shell) -> None:
    bucket = FolderBucket(shell.here / "bucket", make=True)
    save(shell.here / "tree", 10, {"moments.bin": bytes(3 * 2**20), "COMPLETE": b"10\n"})
    ship(uploader(bucket, shell.here, compress="zstd", files=[]))
    named = {"PRIME_TRAIN_BUCKET": (shell.here / "bucket").as_uri()}
    (row,) = json.loads(shell.run("checkpoints", RUN_ID, "--json", **named).stdout)
    assert row["stored_bytes"] < row["size_bytes"] / 100
    assert row["kept"] is None, "there is no spec to say so"
    assert "B (0%)" in shell.run("checkpoints", RUN_ID, **named).stdout


@pytest.mark.parametrize("columns", [40, 80])
def test_a_list_fits_the_terminal(shell: Shell, url: str, columns: int) -> None:
    output = shell.run("checkpoints", RUN_ID, url, COLUMNS=str(columns)).stdout
    assert all(f"{step} " in output for step in STEPS)
    assert max(map(len, output.splitlines())) <= columns


def test_verify_reads_the_newest_again_and_names_each_bad_file(
    shell: Shell, bucket: FolderBucket, url: str
) -> None:
    assert "step 40 of attempt 1: intact (5 files," in shell.ok("checkpoints", RUN_ID, "verify", url)
    harm(shell.here, bucket, 40)
    harm(shell.here, bucket, 40, "optimizer.pt")
    blob_of(shell.here, bucket, 20, "state.json").unlink()
    done = shell.run("checkpoints", RUN_ID, "verify", url)
    assert done.returncode == 1
    assert "step 40 of attempt 1: DAMAGED" in done.stdout
    assert "  weights.npz has a different content than was saved" in done.stdout
    assert "  optimizer.pt has a different content than was saved" in done.stdout
    assert shell.run("checkpoints", RUN_ID, "verify", "--step", "30", url).returncode == 0
    every = shell.run("checkpoints", RUN_ID, "verify", "--all", "--json", url)
    assert every.returncode == 1
    check("checkpoints verify", json.loads(every.stdout), complete=True)
    assert [(row["step"], row["intact"]) for row in json.loads(every.stdout)] == [
        (40, False),
        (30, True),
        (20, False),
        (10, True),
    ]
    assert json.loads(every.stdout)[2]["damaged"][0]["path"] == "state.json"


def test_a_manifest_that_cannot_be_read_is_a_finding_of_verify_all(
    shell: Shell, bucket: FolderBucket, url: str
) -> None:
    bucket.put(manifest_key(RUN_ID, 30, 1), b"{")
    done = shell.run("checkpoints", RUN_ID, "verify", "--all", url)
    assert done.returncode == 1
    assert "000000000030-e1.json: the manifest cannot be read" in done.stdout
    assert "cannot be read" in shell.run("checkpoints", RUN_ID, url).stderr


def test_restore_brings_the_newest_and_may_be_repeated(shell: Shell, url: str) -> None:
    assert "into/step_40: step 40 of attempt 1, 5 files" in shell.ok(
        "checkpoints", RUN_ID, "restore", "into", url
    )
    assert on_disk(shell.here / "into" / "step_40") == contents(40)
    row = json.loads(shell.ok("checkpoints", RUN_ID, "restore", "into", url, "--json"))
    check("checkpoints restore", row, complete=True)
    assert (row["folder"], row["step"], row["damaged"]) == ("into/step_40", 40, [])
    shell.ok("checkpoints", RUN_ID, "restore", "into", "--step", "10", url)
    shell.ok("checkpoints", RUN_ID, "restore", "into", "--before-step", "40", url)
    assert sorted(path.name for path in (shell.here / "into").iterdir()) == ["step_10", "step_30", "step_40"]


def test_a_damaged_newest_one_is_named_and_the_next_older_is_restored_instead(
    shell: Shell, bucket: FolderBucket, url: str
) -> None:
    harm(shell.here, bucket, 40)
    done = shell.run("checkpoints", RUN_ID, "restore", "into", url)
    assert done.returncode == 0
    assert "DAMAGED: step 40 is damaged in the bucket: weights.npz has a different content" in done.stderr
    assert "step 30 was restored INSTEAD of step 40" in done.stderr
    assert [path.name for path in (shell.here / "into").iterdir()] == ["step_30"]
    assert "nothing was restored: step 40 damaged" in refused(
        shell, RUN_ID, "restore", "into", "--step", "40", url, code=1
    )


def test_what_lies_there_is_not_overwritten_unasked(shell: Shell, url: str) -> None:
    mine = shell.write("into/step_40/mine", "precious")
    assert "into/step_40 already exists, but is not this checkpoint" in refused(
        shell, RUN_ID, "restore", "into", url
    )
    assert mine.read_text() == "precious"
    shell.ok("checkpoints", RUN_ID, "restore", "into", url, "--replace")
    assert on_disk(shell.here / "into" / "step_40") == contents(40)


def test_a_checkpoint_goes_through_an_archive_and_comes_back(
    shell: Shell, bucket: FolderBucket, url: str
) -> None:
    assert "a.tar.zst: step 30 of attempt 1" in shell.ok(
        "checkpoints", RUN_ID, "export", "a.tar.zst", "--step", "30", url
    )
    check(
        "checkpoints export",
        json.loads(shell.ok("checkpoints", RUN_ID, "export", "a.tar", "--json", url)),
        complete=True,
    )
    assert "a.tar.zst already exists" in refused(shell, RUN_ID, "export", "a.tar.zst", url)
    assert "use a name that ends in one of .tar," in refused(shell, RUN_ID, "export", "a.zip", url)
    shell.ok("checkpoints", "-", "restore", "into", "--archive", "a.tar.zst")
    assert on_disk(shell.here / "into" / "step_30") == contents(30)
    assert "already exists" in refused(shell, "-", "restore", "into", "--archive", "a.tar.zst")
    data = (shell.here / "a.tar.zst").read_bytes()
    (shell.here / "cut.tar.zst").write_bytes(data[: len(data) // 2])
    assert "is truncated" in refused(shell, "-", "restore", "other", "--archive", "cut.tar.zst", code=1)
    assert not (shell.here / "other").exists()
    assert "there is no archive" in refused(shell, "-", "restore", "other", "--archive", "none.tar")
    harm(shell.here, bucket, 40)
    assert "weights.npz has a different content" in refused(shell, RUN_ID, "export", "b.tar", url, code=1)
    assert not [path.name for path in shell.here.iterdir() if "b.tar" in path.name]


def test_prune_says_when_chunks_that_are_too_young_can_go(
    shell: Shell, bucket: FolderBucket, url: str
) -> None:
    made_s = 2_000_000_000  # longer ago than nothing: their hour is still to come
    for path in (shell.here / "bucket").rglob("blake3-*"):
        os.utime(path, (made_s, made_s))
    output = shell.ok("checkpoints", RUN_ID, "prune", "--dry-run", url)
    at = datetime.fromtimestamp(made_s + 3600, UTC)
    assert (
        f" more can be deleted after {at:%H:%M} UTC: newer chunks may belong to an upload in progress"
        in output
    )
    row = json.loads(shell.ok("checkpoints", RUN_ID, "prune", "--dry-run", "--json", url))
    check("checkpoints prune", row, complete=True)
    assert (row["later_s"], row["later_bytes"] > 0, row["chunks"]) == (made_s + 3600, True, 0)


def test_prune_shows_asks_and_takes_what_the_policy_does_not_keep(
    shell: Shell, bucket: FolderBucket, url: str
) -> None:
    for path in (shell.here / "bucket").rglob("blake3-*"):
        os.utime(path, (LONG_AGO_S, LONG_AGO_S))
    output = shell.ok("checkpoints", RUN_ID, "prune", "--dry-run", url)
    assert "keep    step 20 of attempt 1: every 20" in output
    assert "delete  step 10 of attempt 1" in output
    assert "to delete: 1 checkpoint and 4 chunks" in output
    assert "confirmation is needed" in refused(shell, RUN_ID, "prune", url)
    assert "but JSON output leaves no room for the question" in refused(shell, RUN_ID, "prune", url, "--json")
    assert len(json.loads(shell.ok("checkpoints", RUN_ID, url, "--json"))) == 4
    assert "deleted" in shell.ok("checkpoints", RUN_ID, "prune", "--yes", url)
    assert [row["step"] for row in json.loads(shell.ok("checkpoints", RUN_ID, url, "--json"))] == [40, 30, 20]
    assert "there is nothing to delete" in shell.ok("checkpoints", RUN_ID, "prune", "--yes", url)

    row = json.loads(
        shell.ok(
            "checkpoints",
            RUN_ID,
            "prune",
            "--yes",
            "--keep",
            "1",
            "--keep-every-steps",
            "1000",
            "--json",
            url,
        )
    )
    assert ([gone["step"] for gone in row["checkpoints"]], row["done"]) == ([20], True)
    assert [(kept["step"], kept["why"]) for kept in row["kept"]] == [(40, "newest 1"), (30, "newest two")]
    assert json.loads(shell.run("checkpoints", RUN_ID, "verify", "--all", "--json", url).stdout)[1]["intact"]


def test_prune_without_a_policy_wants_to_be_given_one(shell: Shell, bucket: FolderBucket, url: str) -> None:
    bucket.put(spec_key(RUN_ID), b"{")
    assert "set what to keep: --keep N" in refused(shell, RUN_ID, "prune", "--yes", url)
    assert "delete  step 20" in shell.ok("checkpoints", RUN_ID, "prune", "--dry-run", "--keep", "2", url)


def test_a_pin_holds_until_it_is_taken_out(shell: Shell, url: str) -> None:
    assert "step 10 of attempt 1 is pinned" in shell.ok("checkpoints", RUN_ID, "pin", "10", url)
    assert "keep    step 10 of attempt 1: pinned" in shell.ok(
        "checkpoints", RUN_ID, "prune", "--dry-run", url
    )
    assert "pinned steps: 10" in refused(shell, RUN_ID, "unpin", "20", url)
    assert json.loads(shell.ok("checkpoints", RUN_ID, "unpin", "10", "--json", url)) == {
        "step": 10,
        "attempts": [1],
        "pinned": False,
    }
    assert "delete  step 10" in shell.ok("checkpoints", RUN_ID, "prune", "--dry-run", url)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (
            ("restore", "into", "--step", "33"),
            2,
            "has no checkpoint of step 33|the nearest steps are 10, 20, 30, 40",
        ),
        (
            ("restore", "into", "--before-step", "10"),
            2,
            "no complete checkpoint before step 10|the oldest complete one is step 10",
        ),
        (
            ("restore", "into", "--step", "10", "--before-step", "20"),
            2,
            "--step and --before-step cannot be combined",
        ),
        (("restore", "taken/into"), 2, "taken is a file"),
        (("restore", "into", "--archive", "a.tar", "--step", "1"), 2, "--archive cannot be combined"),
        (("restore",), 2, "Missing argument 'DIR'"),
        (("verify", "--all", "--step", "10"), 2, "--all and --step cannot be combined"),
        (("pin", "33"), 2, "has no checkpoint of step 33"),
        (("export", "none/a.tar"), 2, "there is no folder"),
    ],
)
def test_a_wish_that_is_not_possible_is_reported_with_a_remedy(
    shell: Shell, url: str, args: tuple[str, ...], code: int, words: str
) -> None:
    shell.write("taken", "")
    output = refused(shell, RUN_ID, *args, url, code=code)
    assert all(word in output for word in words.split("|"))


def test_a_bucket_or_run_that_is_not_there_is_reported(shell: Shell, url: str) -> None:
    assert "there is no checkpoint of a run other" in refused(shell, "other", url)
    shell.ok("status")  # which makes a store without a run
    output = refused(shell, "other", url)
    assert "write the complete id" in output
    assert "no runs yet" not in output
    assert "there is no bucket at file:///none" in refused(shell, RUN_ID, "--bucket", "file:///none")
    assert not Path("/none").exists()
    assert "scheme 'https' is not known" in refused(shell, RUN_ID, "--bucket", "https://a/b", code=4)
    assert "names a bucket, but no object" in refused(
        shell, "-", "restore", "into", "--archive", "s3://bucket"
    )


# ------------------------------------------------------------------------------------------------------------
# over S3


def test_all_of_it_works_on_a_bucket_that_speaks_s3(shell: Shell, ministack: S3Server) -> None:
    keys = {"AWS_ACCESS_KEY_ID": ministack.access_key, "AWS_SECRET_ACCESS_KEY": ministack.secret_key}
    at = url_of(ministack, "cli")
    fill(open_bucket(at, keys_for(ministack)), shell.here / "pod")

    def ok(*args: str) -> str:
        done = shell.run("checkpoints", *args, **keys)
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert [row["step"] for row in json.loads(ok(RUN_ID, "--json", "--bucket", at))] == [40, 30, 20, 10]
    assert "intact" in ok(RUN_ID, "verify", "--bucket", at)
    ok(RUN_ID, "restore", "into", "--bucket", at)
    assert on_disk(shell.here / "into" / "step_40") == contents(40)
    ok(RUN_ID, "pin", "10", "--bucket", at)
    assert json.loads(ok(RUN_ID, "prune", "--yes", "--json", "--bucket", at))["checkpoints"] == []
    ok(RUN_ID, "unpin", "10", "--bucket", at)
    assert [
        gone["step"]
        for gone in json.loads(ok(RUN_ID, "prune", "--yes", "--json", "--bucket", at))["checkpoints"]
    ] == [10]
    with tarfile.open(shell.here / "hand.tar.gz", "w:gz") as tar:
        tar.add(shell.here / "into" / "step_40", "mine")
    open_bucket(at, keys_for(ministack)).put_file("by/hand.tar.gz", shell.here / "hand.tar.gz")
    ok("-", "restore", "unpacked", "--archive", at.replace("/cli?", "/cli/by/hand.tar.gz?"))
    assert on_disk(shell.here / "unpacked") == {f"mine/{path}": data for path, data in contents(40).items()}
    nowhere = shell.run("checkpoints", RUN_ID, "--bucket", at.replace("a-bucket", "no-such-bucket"), **keys)
    assert nowhere.returncode == 4
    assert "NoSuchBucket" in nowhere.stderr
    gone = shell.run(
        "checkpoints", "-", "restore", "un", "--archive", at.replace("/cli?", "/cli/none.tar?"), **keys
    )
    assert gone.returncode == 2
    assert "there is no cli/none.tar in the bucket" in gone.stderr
    assert not (shell.here / "un").exists()


# ------------------------------------------------------------------------------------------------------- with
# the run in the store


def known(shell: Shell, state: RunState, *, wandb: Mapping[str, str] | None = None, **changes: Any) -> None:
    """Return the home's bucket with the four checkpoints, and store their run."""
    fill(FolderBucket(shell.home / "bucket", make=True), shell.here / "pod")
    tracked = {"wandb": wandb} if wandb is not None else {}
    SqliteStore(shell.home / "control.sqlite").create(
        run(state, spec=spec(checkpoints={"keep": 1}, **tracked), **changes)
    )


def test_a_run_of_the_store_is_found_by_the_start_of_its_id_and_judged_by_its_commits(shell: Shell) -> None:
    known(shell, RunState.SUCCEEDED, durable_step=30)
    rows = json.loads(shell.ok("checkpoints", RUN_ID[:3], "--json"))
    assert {row["step"]: row["committed"] for row in rows} == {40: False, 30: True, 20: True, 10: True}
    assert {row["step"]: row["kept"] for row in rows} == {
        40: "not committed",
        30: "newest 1",
        20: None,
        10: None,
    }
    assert "not committed" in shell.ok("checkpoints", RUN_ID[:3])
    shell.ok("checkpoints", RUN_ID[:3], "restore", "into")
    assert on_disk(shell.here / "into" / "step_40") == contents(40)


def test_what_an_attempt_restores_is_not_pruned_while_the_run_goes_on(shell: Shell) -> None:
    point = ResumePoint(step=20, attempt=1, key=manifest_key(RUN_ID, 20, 1))
    known(shell, RunState.STARTING, attempt=2, durable_step=40, resume=point)
    output = shell.ok("checkpoints", RUN_ID, "prune", "--yes")
    assert "keep    step 20 of attempt 1: resumed from" in output
    assert "keep    step 40 of attempt 1: newest 1" in output
    assert [row["step"] for row in json.loads(shell.ok("checkpoints", RUN_ID, "--json"))] == [40, 20]


def test_what_a_person_prunes_is_in_the_history_and_wakes_the_watcher_that_tells_the_tracker(
    shell: Shell,
) -> None:
    known(shell, RunState.SUCCEEDED, durable_step=40, wandb={"project": "p"}, next_check_s=None)
    shell.ok("checkpoints", RUN_ID, "prune", "--yes")
    store = SqliteStore(shell.home / "control.sqlite")
    (line,) = [line for line in store.history(RUN_ID) if line.kind == "deleted"]
    assert line.text.startswith(
        "a person pruned: 3 checkpoints, up to step 30, deleted from the bucket, because the newest 1 are "
        "kept"
    )
    record = store.load(RUN_ID)
    assert record is not None
    assert (record.run.deleted.checkpoints, record.run.cleanup_s is not None) == (3, True)
    shell.ok("checkpoints", RUN_ID, "prune", "--yes")
    assert len([line for line in store.history(RUN_ID) if line.kind == "deleted"]) == 1


def test_chunks_of_an_upload_under_way_are_not_removed_by_a_laptop_whose_clock_is_ahead(shell: Shell) -> None:
    known(shell, RunState.TRAINING, durable_step=40)
    under_way = blob_key(RUN_ID, f"blake3-{'ab' * 32}")
    FolderBucket(shell.home / "bucket").put(under_way, b"a chunk of step 50")
    (shell.here / "ahead").write_text("86400")
    clock = {"PYTHONPATH": str(CLOCK), "PT_CLOCKS": json.dumps({"prime-train": str(shell.here / "ahead")})}
    output = shell.run("checkpoints", RUN_ID, "prune", "--yes", **clock)
    assert output.returncode == 0, output.stderr
    assert "newer chunks may belong to an upload in progress" in output.stdout
    assert (shell.home / "bucket" / under_way).exists()


# ------------------------------------------------------------------------------------------------------------
# on a terminal


def on_terminal(shell: Shell, *args: str, typed: str = "", code: Exit = Exit.OK) -> str:
    """Return what a terminal shows after `typed` was typed; the command ends with `code`."""
    master, slave = pty.openpty()
    env = shell.env | {"TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.Popen(
        [PROGRAM, *args],
        cwd=shell.here,
        env=env,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        start_new_session=True,
    )
    os.close(slave)
    os.write(master, typed.encode())
    shown = b""
    with suppress(OSError):  # which is how a terminal says that nobody is left
        while part := os.read(master, 65536):
            shown += part
    os.close(master)
    assert process.wait(HANG_S) == code, shown
    return shown.decode()


def test_a_terminal_shows_how_far_it_is_and_is_queried_before_anything_goes(
    shell: Shell, bucket: FolderBucket, url: str
) -> None:
    shown = on_terminal(shell, "checkpoints", RUN_ID, "restore", "into", url)
    assert "step 40" in shown
    assert "KiB" in shown
    assert "verified" in shown
    assert "Delete them? [y/N]" in on_terminal(
        shell, "checkpoints", RUN_ID, "prune", url, typed="n\n", code=Exit.USAGE
    )
    assert bucket.stat(manifest_key(RUN_ID, 10, 1)) is not None
    assert "deleted" in on_terminal(shell, "checkpoints", RUN_ID, "prune", url, typed="y\n")
    assert bucket.stat(manifest_key(RUN_ID, 10, 1)) is None
    assert "\x1b" not in shell.run("checkpoints", RUN_ID, "restore", "into", url).stderr
