"""Where the metrics of a run are read when its machine is gone: what an attempt left at its end, or had
streamed until it was lost.
"""

import json
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from prime_agent.outputs.metrics_csv import MetricsCsv
from prime_train.app.home import Home
from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.keys import METRICS_EVIDENCE, evidence_key
from prime_train.environment import HOME
from prime_train.outputs.metrics import READ_BYTES_MAX, MetricsSource, of_run, progress_in
from prime_train.runs.run import RunState
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import Progress
from tests import builders as b
from tests.agent.outputs.leaving_outputs import identity_of, text_stream

PATTERN = {"kind": "regex", "pattern": r"step (?P<step>\d+)"}
HF = {"kind": "hf", "command": "train.py --output_dir {checkpoints}"}
JSONL = {"file": "progress.jsonl", "loss": "train/loss"}


@pytest.fixture
def bucket(tmp_path: Path) -> FolderBucket:
    return FolderBucket(tmp_path / "home" / "bucket", make=True)


def stream(bucket: FolderBucket, folder: Path, rows: list[Progress], *, attempt: int = 1) -> None:
    table = folder / f"attempt-{attempt}" / "metrics.csv"
    with closing(MetricsCsv(table)) as metrics:
        metrics.add(rows)
    with closing(text_stream(bucket, table, attempt=attempt)) as streamed:
        streamed.upload(is_last=False)


def found(
    tmp_path: Path, spec: RunSpec, *, attempts: int = 1, bytes_max: int = READ_BYTES_MAX
) -> tuple[MetricsSource, list[Progress]]:
    """Return the metrics of a run whose machines are gone."""
    made = b.run(RunState.FAILED, spec=spec)
    numbered = tuple(
        replace(made.attempts[0], number=n, identity=identity_of(n)) for n in range(1, attempts + 1)
    )
    run = replace(made, attempts=numbered)
    source = of_run(
        Home.of({HOME: str(tmp_path / "home")}).files(), b.record(run), pytest.fail, bytes_max=bytes_max
    )
    assert source is not None
    return source, progress_in(run, source)


@pytest.mark.parametrize(
    "trainer", [{"progress": PATTERN}, {"progress": JSONL}, HF], ids=["regex", "jsonl", "hf"]
)
def test_an_attempt_that_was_cut_off_has_the_metrics_that_it_streamed_whatever_its_trainer_writes(
    tmp_path: Path, bucket: FolderBucket, trainer: dict[str, Any]
) -> None:
    spec = b.spec(trainer=trainer)
    rows = [Progress(1, 2.5, 0.25), Progress(2, None, 0.5, {"lr": 0.1}), Progress(3, 1.5)]
    stream(bucket, tmp_path, rows)
    source, progress = found(tmp_path, spec)
    assert source.name == f"runs/{b.RUN_ID}/outputs/e1-{identity_of(1)}/metrics.csv"
    assert progress == rows
    assert json.loads(list(source.lines)[1])["lr"] == 0.1


def test_an_attempts_evidence_says_more_than_its_stream_but_not_than_a_newer_attempts_stream(
    tmp_path: Path, bucket: FolderBucket
) -> None:
    spec = b.spec(trainer={"progress": JSONL})
    stream(bucket, tmp_path, [Progress(1, 2.5)])
    bucket.put(evidence_key(b.RUN_ID, 1, METRICS_EVIDENCE), b'{"step": 2, "train/loss": 1.5}\n')
    assert found(tmp_path, spec)[1] == [Progress(2, 1.5)]
    stream(bucket, tmp_path, [Progress(7, 0.5)], attempt=2)
    assert found(tmp_path, spec, attempts=2)[1] == [Progress(7, 0.5)]
    assert found(tmp_path, spec, attempts=3)[1] == [Progress(7, 0.5)], (
        "the third was lost before its first step"
    )


def test_of_a_long_stream_the_end_is_read(tmp_path: Path, bucket: FolderBucket) -> None:
    rows = [Progress(n, 1 / n, None, {"lr": n / 100} if n > 500 else {}) for n in range(1, 1001)]
    stream(bucket, tmp_path, rows)
    _, progress = found(tmp_path, b.spec(trainer={"progress": PATTERN}), bytes_max=4096)
    assert 10 < len(progress) < 500
    assert progress == rows[-len(progress) :]
