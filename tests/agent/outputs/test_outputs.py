"""Outputs, logs and metrics of whole attempts: the real agent as a process, a real bucket, machines that are
really killed.
"""

import csv
import io
import json
import os
import signal
import sys
from collections.abc import Mapping
from pathlib import Path

from prime_train.buckets.keys import output_manifest_key, outputs_prefix
from prime_train.checkpoints.chunks import fetch_blob
from prime_train.outputs.manifest import OutputManifest
from prime_train.spec.causes import Cause
from tests.agent.attempts import NO_CHECKPOINTS, RUN_ID, Attempt, attempt, demo_spec
from tests.agent.test_attempt import cause_of, the_exit
from tests.waiting import await_true


def outputs_of(here: Attempt) -> OutputManifest | None:
    job = here.plane.bootstrap
    content = here.bucket.get(output_manifest_key(RUN_ID, job.attempt, job.identity))
    return OutputManifest.model_validate_json(content.data) if content is not None else None


def files_of(here: Attempt) -> Mapping[str, bytes]:
    """Return the newest version of each output in the bucket, every byte verified."""
    manifest = outputs_of(here)
    if manifest is None:
        return {}
    return {
        path: b"".join(bytes(fetch_blob(here.bucket, manifest.key_of(chunk), chunk)) for chunk in file.chunks)
        for path, file in manifest.newest().items()
    }


def stream_of(here: Attempt, name: str) -> str:
    prefix = f"{outputs_prefix(RUN_ID, here.plane.bootstrap.attempt, here.plane.bootstrap.identity)}{name}/"
    pieces = [here.bucket.get(stat.key) for stat in here.bucket.list(prefix)]
    return b"".join(piece.data for piece in pieces if piece is not None).decode()


TRAINER = {"command": f"{sys.executable} train.py"}


def script(text: str) -> dict[str, bytes]:
    """Return the working tree of a trainer that runs these lines of Python; `say(step)` reports a step, and
    `write(path, text)` writes a file so that no upload, at whatever moment it comes, finds it half-written.
    """
    head = (
        "import json, os, pathlib, sys, time\n"
        "def say(step, **more):\n"
        "    with open('progress.jsonl', 'a') as file: file.write(json.dumps({'step': step, 'loss': 1 / "
        "step, **more}) + chr(10))\n"
        "def write(path, text):\n"
        "    path = pathlib.Path(path); path.parent.mkdir(parents=True, exist_ok=True)\n"
        "    part = pathlib.Path(path.name + '.part'); part.write_text(text); part.replace(path)\n"
    )
    return {"train.py": (head + text).encode()}


def test_a_run_that_succeeds_has_its_outputs_log_and_metrics_in_the_bucket(tmp_path: Path) -> None:
    files = script(
        "say(1, lr=0.5); write('results/a/first.json', '{}'); write('submission.json', 'x' * 1000); "
        "write('notes.txt', 'n')\n"
        "print('a line of the log', flush=True)\n"
        "say(2, lr=0.25); write('results/best.txt', 'the best')\n"
    )
    wanted = demo_spec(
        "",
        outputs=["results/**", "submission.json", "*.csv"],
        trainer=TRAINER | {"steps": 2},
        checkpoints=NO_CHECKPOINTS,
    )
    with attempt(tmp_path, wanted, files=files) as here:
        assert cause_of(the_exit(here)) is Cause.FINISHED
        assert files_of(here) == {
            "results/a/first.json": b"{}",
            "results/best.txt": b"the best",
            "submission.json": b"x" * 1000,
        }
        manifest = outputs_of(here)
        assert manifest is not None
        assert {file.step for file in manifest.files} == {2}
        assert stream_of(here, "trainer.log") == "a line of the log\n"
        rows = list(csv.DictReader(io.StringIO(stream_of(here, "metrics.csv"))))
        assert [(row["step"], row["loss"], row["lr"]) for row in rows] == [
            ("1", "1.0", "0.5"),
            ("2", "0.5", "0.25"),
        ]


def test_what_a_machine_that_is_killed_has_written_is_there_up_to_the_last_upload(tmp_path: Path) -> None:
    files = script(
        "for step in range(1, 10**6):\n"
        "    say(step); write('results/state.json', json.dumps({'step': step})); print('step', step, "
        "flush=True); time.sleep(0.05)\n"
    )
    wanted = demo_spec("", outputs=["results/**"], outputs_every_s=1, trainer=TRAINER)
    with attempt(tmp_path, wanted, files=files) as here:
        await_true(
            "two versions are there",
            lambda: (found := outputs_of(here)) is not None and len(found.files) >= 2,
        )
        await_true("the log is there", lambda: "step 30\n" in stream_of(here, "trainer.log"))
        os.kill(here.agent.pid, signal.SIGKILL)
        here.agent.wait()
        reached = json.loads(files_of(here)["results/state.json"])["step"]
        assert reached >= 2
        log = [int(line.split()[1]) for line in stream_of(here, "trainer.log").splitlines()]
        assert log == list(range(1, len(log) + 1)), "no line is missing or there twice"
        rows = list(csv.DictReader(io.StringIO(stream_of(here, "metrics.csv"))))
        assert [int(row["step"]) for row in rows] == list(range(1, len(rows) + 1))
        assert len(rows) >= 20
        manifest = outputs_of(here)
        assert manifest is not None
        assert len([file for file in manifest.files if file.path == "results/state.json"]) <= 3
