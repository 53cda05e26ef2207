"""`prime-train run --from`: a run that starts from a checkpoint of another one, as its user sees it."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import Mark, blob_key, descendants_prefix, manifest_key, mark_key
from prime_train.checkpoints.catalog import Reader
from prime_train.checkpoints.manifest import Chunk, Manifest, ManifestFile
from tests.builders import digest
from tests.cli.documented import check
from tests.cli.runs.test_run import ended
from tests.cli.shell import CONFIG, Shell

GATED = CONFIG.replace("-m prime_train.demo.train", "gated.py BUCKET").replace(
    "sentinel: COMPLETE", "sentinel: COMPLETE, keep: 5"
)
GATE = """\
import sys
import time
from pathlib import Path

from prime_train.demo import train

bucket, save = Path(sys.argv.pop(1)), train.save_checkpoint


def save_and_wait(root, trainer):
    saved = save(root, trainer)
    while trainer.step == 10 and not list(bucket.glob("runs/*/manifests/000000000010-e1.json")):
        time.sleep(0.02)
    return saved


train.save_checkpoint = save_and_wait
sys.exit(train.main())
"""
"""A trainer that goes on after step 10 only when its checkpoint is in the bucket."""
LONG_AGO_S = 1_700_000_000


def followed(shell: Shell, *args: str) -> str:
    """Launch a run, follow it to its end, and return its id."""
    output = shell.ok("run", *args, "--follow")
    assert "finished at step 20" in output
    return output.split(" ", 1)[0]


def content(bucket: FolderBucket, run_id: str, step: int) -> dict[str, tuple[str, ...]]:
    """Return the digests of the files of a checkpoint."""
    manifest = next(one for one in Reader(bucket, run_id).catalog().complete() if one.step == step)
    return {file.path: tuple(chunk.digest for chunk in file.chunks) for file in manifest.files}


def blobs(bucket: FolderBucket, run_id: str) -> int:
    return len(Reader(bucket, run_id).catalog().blobs)


def grow_old(shell: Shell) -> None:
    """Make every object in the bucket so old that a clean-up may delete it."""
    for path in (shell.home / "bucket" / "runs").rglob("*"):
        if path.is_file():
            os.utime(path, (LONG_AGO_S, LONG_AGO_S))


def test_a_descendant_ends_with_the_bytes_of_its_source_and_the_content_lives_as_long_as_one_of_them_needs_it(
    shell: Shell,
) -> None:
    config = shell.config(GATED.replace("BUCKET", str(shell.home / "bucket")))
    shell.write("tree/gated.py", GATE)
    source = followed(shell, config)
    bucket = FolderBucket(shell.home / "bucket")
    descendant = followed(shell, config, "--name", "descendant", "--from", f"{source}@10")
    assert content(bucket, descendant, 20) == content(bucket, source, 20)
    status: dict[str, Any] = json.loads(shell.ok("status", descendant, "--json"))
    check("status RUN", status)
    assert status["started_from"] == [{"run": source, "step": 10}]
    assert f"step 10 of {source}" in shell.ok("status", descendant)
    assert f"step 10 of {source}" in Path(shell.ok("page", descendant).split()[0]).read_text()
    grow_old(shell)
    assert "to delete: 1 checkpoint and 0 chunks" in shell.ok(
        "checkpoints", source, "prune", "--keep", "1", "--yes"
    )
    assert bucket.stat(manifest_key(source, 10, 1)) is None
    assert "DAMAGED" not in shell.ok("checkpoints", descendant, "verify", "--all")
    assert content(bucket, descendant, 10)
    before = blobs(bucket, source)
    kept = "keep    step 10, from which the run was started: newest proven\n"
    assert kept in shell.ok("checkpoints", descendant, "prune", "--keep", "1", "--dry-run")
    bucket.put(mark_key(descendant, 20, 1, Mark.PROVEN), b"")  # as if an attempt had resumed from it
    shell.ok("checkpoints", descendant, "prune", "--keep", "1", "--yes")
    assert list(bucket.list(descendants_prefix(source))) == []
    assert "to delete: 0 checkpoints" in shell.ok("checkpoints", source, "prune", "--keep", "1", "--yes")
    assert blobs(bucket, source) < before
    assert "DAMAGED" not in shell.ok("checkpoints", source, "verify", "--all")


@pytest.fixture
def source(shell: Shell) -> str:
    """Return a run that waits for a machine and has, as if it had trained, a checkpoint of step 10 and an
    incomplete one of step 20.
    """
    run_id = launched(shell, shell.config())
    bucket = FolderBucket(shell.home / "bucket")
    for step in (10, 20):
        chunk = Chunk(digest=digest(step), size=4, stored=4)
        files = tuple(
            ManifestFile(path=name, size=4, chunks=(chunk,)) for name in ("COMPLETE", "weights.npz")
        )
        manifest = Manifest(run=run_id, attempt=1, step=step, created_s=1, folder=f"step_{step}", files=files)
        bucket.put(manifest.key, manifest.model_dump_json().encode())
        if step == 10:
            bucket.put(blob_key(run_id, digest(step)), b"1234")
    return run_id


def launched(shell: Shell, *args: str) -> str:
    return shell.ok("run", *args, "--quiet").strip()


@pytest.mark.parametrize(
    ("config", "start", "why"),
    [
        (CONFIG, "{run}@30", "has no checkpoint of step 30"),
        (CONFIG, "{run}@20", "step 20 of {run} is incomplete: 1 of its chunks are not in the bucket"),
        (CONFIG, "{run}@last", "is not a run or RUN@STEP"),
        (CONFIG, "@10", "is not a run or RUN@STEP"),
        (CONFIG, "none-1", "there is no run none-1"),
        (
            CONFIG.replace("steps: 20", "steps: 10"),
            "{run}",
            "trainer.steps is 10, so nothing is left to train",
        ),
        (
            CONFIG.replace("sentinel: COMPLETE", "pattern: 'ckpt-{{step}}'"),
            "{run}",
            "the trainer would look for ckpt-10",
        ),
        (CONFIG.replace("COMPLETE", "DONE"), "{run}", "it lacks a file that a checkpoint of this config has"),
        (
            CONFIG.replace(
                "command: python -m prime_train.demo.train", "kind: torchrun\n  command: train.py"
            ),
            "{run}",
            "kind command, and the config has kind torchrun",
        ),
    ],
)
def test_a_run_that_cannot_start_there_is_refused_before_anything_is_stored(
    shell: Shell, source: str, config: str, start: str, why: str
) -> None:
    before = sorted((shell.home / "bucket").rglob("*.json"))
    done = shell.run(
        "run", shell.config(config.replace("{{step}}", "{step}")), "--from", start.format(run=source)
    )
    assert done.returncode == 2, done.stdout + done.stderr
    assert why.format(run=source) in done.stderr
    assert "Traceback" not in done.stderr
    assert sorted((shell.home / "bucket").rglob("*.json")) == before
    assert len(json.loads(shell.ok("status", "--json"))) == 1


def test_a_run_starts_from_the_newest_complete_checkpoint_of_an_archived_run_and_its_lineage_is_shown(
    shell: Shell, source: str
) -> None:
    ended(shell, source)
    shell.ok("rm", source)
    first = launched(shell, shell.config(), "--name", "first", "--from", "small")
    assert f"the content of step 10 is kept for {first}" in shell.ok("checkpoints", source)
    (row,) = json.loads(shell.ok("checkpoints", first, "--json"))
    check("checkpoints list", [row])
    assert (row["step"], row["attempt"], row["blobs_of"], row["complete"]) == (10, 0, source, True)
    assert json.loads(shell.ok("status", first, "--json"))["step"] == 10
    dry = json.loads(shell.ok("run", shell.config(), "--from", first[:8], "--dry-run", "--json"))
    check("run --dry-run", dry)
    assert dry["starts_from"] == [{"run": first, "step": 10}, {"run": source, "step": 10}]
    second = launched(shell, shell.config(), "--from", f"{first}@10")
    assert f"step 10 of {first}, which started from step 10 of {source}" in shell.ok("status", second)


def test_another_control_plane_at_the_same_bucket_keeps_what_a_run_that_waits_for_a_machine_starts_from(
    shell: Shell, source: str
) -> None:
    waiting = launched(shell, shell.config(), "--name", "waiting", "--from", source)
    grow_old(shell)
    elsewhere = {
        "PRIME_TRAIN_HOME": str(shell.here / "other"),
        "PRIME_TRAIN_BUCKET": (shell.home / "bucket").as_uri(),
    }
    (shell.here / "other").mkdir()
    done = shell.run("checkpoints", source, "prune", "--keep", "1", "--yes", **elsewhere)
    assert done.returncode == 0, done.stderr
    assert [row["complete"] for row in json.loads(shell.ok("checkpoints", waiting, "--json"))] == [True]
