"""An agent's uploader of outputs on a working tree of the test's own."""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from functools import partial
from itertools import repeat
from pathlib import Path
from typing import Any

from prime_agent.checkpoints.uplink import Uplink
from prime_agent.deletions import DeletionCounter
from prime_agent.outputs.metrics_csv import MetricsCsv
from prime_agent.outputs.text_stream import TextStream
from prime_agent.outputs.uploader import OutputUploader
from prime_train.buckets.keys import output_manifest_key
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.chunks import fetch_blob
from prime_train.outputs.manifest import OutputManifest
from prime_train.trainers.of_spec import Progress
from tests.builders import RUN_ID, spec

LONG_AGO_S = 1_700_000_000


def identity_of(attempt: int) -> str:
    return f"{attempt:016x}"


def output_uploader(
    bucket: Bucket,
    work: Path,
    outputs: list[str],
    *,
    attempt: int = 1,
    steps: Iterator[int] | None = None,
    deletions: DeletionCounter | None = None,
    **changes: Any,
) -> OutputUploader:
    """Return an uploader whose trainer has just been started. `steps`: the newest step each time that the
    uploader asks for it.
    """
    work.mkdir(parents=True, exist_ok=True)
    made = OutputUploader(
        bucket,
        spec(outputs=outputs, **changes),
        work,
        run_id=RUN_ID,
        attempt=attempt,
        identity=identity_of(attempt),
        uplink=Uplink(time.monotonic),
        stopped=threading.Event(),
        newest_step=partial(next, steps or repeat(1)),
        clock=time.time,
        monotonic_s=time.monotonic,
        deletions=deletions,
    )
    made.disregard_present()
    return made


def write(work: Path, files: Mapping[str, bytes], *, at_s: int = LONG_AGO_S) -> None:
    """Write files that were last changed at `at_s`, so that they count as written."""
    for name, data in files.items():
        path = work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        os.utime(path, (at_s, at_s))


def text_stream(
    bucket: Bucket, path: Path, *, attempt: int = 1, secrets: Mapping[str, str] | None = None
) -> TextStream:
    return TextStream(
        bucket, path, run_id=RUN_ID, attempt=attempt, identity=identity_of(attempt), secrets=secrets or {}
    )


def manifest_in(bucket: Bucket, *, attempt: int = 1) -> OutputManifest:
    content = bucket.get(output_manifest_key(RUN_ID, attempt, identity_of(attempt)))
    assert content is not None
    return OutputManifest.model_validate_json(content.data)


def stored(bucket: Bucket, *, attempt: int = 1) -> Mapping[str, bytes]:
    """Return the newest version of each output in the bucket, every byte verified."""
    manifest = manifest_in(bucket, attempt=attempt)
    return {
        path: b"".join(bytes(fetch_blob(bucket, manifest.key_of(chunk), chunk)) for chunk in file.chunks)
        for path, file in manifest.newest().items()
    }


def leave(bucket: Bucket, disk: Path, attempt: int, files: dict[str, bytes], *, step: int) -> None:
    """Let an attempt upload these outputs, and a log and metrics."""
    made = output_uploader(
        bucket, disk / "work", ["results/**", "*.json"], attempt=attempt, steps=repeat(step)
    )
    write(disk / "work", files, at_s=LONG_AGO_S + attempt)
    assert made.upload(trainer_ended=True) == ""
    metrics = disk / "logs" / "metrics.csv"
    with closing(MetricsCsv(metrics, now_s=lambda: 1_700_000_000.0)) as table:
        table.add([Progress(number, 1 / number, None, {"lr": 0.5}) for number in (step - 1, step)])
    (disk / "logs" / "trainer.log").write_text(f"trained to step {step}\n")
    for path in (metrics, disk / "logs" / "trainer.log"):
        with closing(text_stream(bucket, path, attempt=attempt)) as stream:
            stream.upload(is_last=True)
