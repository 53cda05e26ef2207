"""A bundle of a run with several attempts, and of checkpoints with files of every kind."""

import csv
import json
import os
import subprocess
import tarfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from prime_agent.outputs.metrics_csv import MetricsCsv
from prime_train.control_plane.wiring.home import HOME, Home
from prime_train.core.keys import code_key
from prime_train.core.manifest import CHUNK_BYTES
from prime_train.core.run import Run, RunState
from prime_train.operations.bundle.verify import verify_bundle
from prime_train.operations.bundle.write import WrittenBundle, write_bundle
from prime_train.trainers import Progress
from tests import builders as b
from tests.agent.checkpoints.saving import save, ship, uploader
from tests.agent.outputs.leaving_outputs import identity_of, text_stream


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home.of({HOME: str(tmp_path / "home")})
    home.make_bucket()
    home.bucket().put(code_key(b.RUN_ID), b"the code as it was uploaded")
    return home


def stored(home: Home, run: Run) -> Run:
    assert home.store().create(run)
    return run


def written(home: Home, file: Path, *, with_weights: bool = False) -> tuple[WrittenBundle, Path]:
    """Write the bundle, verify it, and return it with the folder that tar unpacks it to."""
    made = write_bundle(home, b.RUN_ID, file, with_weights=with_weights)
    found = verify_bundle(file)
    assert (found.flaws, found.run, found.step, found.with_weights) == ((), b.RUN_ID, made.step, with_weights)
    assert found.files == len(made.files)
    with tarfile.open(file) as tar:
        tar.extractall(file.parent, filter="data")
    return made, file.parent / b.RUN_ID


def test_the_metrics_are_those_of_all_attempts_and_identities_are_left_out(home: Home, tmp_path: Path) -> None:
    made = b.run(RunState.FAILED, attempt=2)
    run = stored(home, replace(made, attempts=tuple(replace(one, identity=identity_of(one.number)) for one in made.attempts)))
    for number, rows in ((1, [Progress(1, 3.0), Progress(2, 2.5)]), (2, [Progress(2, 2.25, None, {"lr": 0.5}), Progress(3, 2.0)])):
        table = tmp_path / f"attempt-{number}" / "metrics.csv"
        with closing(MetricsCsv(table)) as metrics:
            metrics.add(rows)
        with closing(text_stream(home.bucket(), table, attempt=number)) as streamed:
            streamed.upload(is_last=True)
    _, folder = written(home, tmp_path / "a.tar.gz")
    with (folder / "metrics.csv").open(newline="") as file:
        found = [(row["attempt"], row["step"], row["loss"], row["lr"]) for row in csv.DictReader(file)]
    assert found == [("1", "1", "3.0", ""), ("1", "2", "2.5", ""), ("2", "2", "2.25", "0.5"), ("2", "3", "2.0", "")]
    assert "step 3: 2" in (folder / "curves" / "loss.svg").read_text()
    about = json.loads((folder / "run.json").read_text())
    assert [one["number"] for one in about["attempts"]] == [1, 2]
    assert not [one for one in run.attempts if one.identity in (folder / "run.json").read_text()]


def test_files_of_a_checkpoint_are_verified_whatever_their_size_and_name(home: Home, tmp_path: Path) -> None:
    stored(home, b.run(RunState.SUCCEEDED))
    large = os.urandom(CHUNK_BYTES) + bytes(CHUNK_BYTES) + b"the end"
    names = {"a": b"a", "large": large, "empty": b"", "two\nlines": b"2", "deep/" * 30 + "down": b"d", "COMPLETE": b"5\n"}
    save(tmp_path / "old" / "tree", 5, names)
    ship(uploader(home.bucket(), tmp_path / "old", files=[]))
    made, folder = written(home, tmp_path / "a.tar.gz", with_weights=True)
    assert made.step == 5
    assert (folder / "checkpoint" / "step_5" / "large").read_bytes() == large
    assert (folder / "checkpoint" / "step_5" / "two\nlines").read_bytes() == b"2"
    subprocess.run(["sha256sum", "--quiet", "--strict", "-c", "SHA256SUMS"], cwd=folder, check=True)


def test_the_files_of_an_ended_run_are_the_same_in_every_bundle_but_for_the_page(home: Home, tmp_path: Path) -> None:
    stored(home, b.run(RunState.SUCCEEDED))
    first, second = (write_bundle(home, b.RUN_ID, tmp_path / f"{name}.tar.gz") for name in ("a", "b"))
    assert first.files == second.files
    with tarfile.open(first.file) as one, tarfile.open(second.file) as other:
        assert [(member.name, member.mtime, member.mode) for member in one] == [
            (member.name, member.mtime, member.mode) for member in other
        ]
