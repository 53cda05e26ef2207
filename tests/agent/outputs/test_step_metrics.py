"""Which metrics a checkpoint's manifest contains: those of its own step, however late it is uploaded."""

import sys
import textwrap
from pathlib import Path

import pytest

import prime_agent.trainer.step_metrics
from prime_agent.trainer.step_metrics import Metrics, StepMetrics
from prime_train.buckets.keys import manifest_key
from prime_train.checkpoints.catalog import read_manifest
from prime_train.trainers.of_spec import Progress
from tests.agent.attempts import RUN_ID, attempt, demo_spec
from tests.waiting import await_true

LATE = """
    import json, os, pathlib, time

    def say(step, reward):
        with open("progress.jsonl", "a") as file:
            file.write(json.dumps({"step": step, "loss": 1.0 / step, "reward": reward}) + "\\n")

    def save(step):
        folder = pathlib.Path(f"checkpoints/step_{step}")
        folder.mkdir(parents=True)
        (folder / "weights").write_text(f"weights {step}")
        return folder

    for step in range(1, 6):
        say(step, 0.1)
    say(6, 9.0)
    best = save(6)
    for step in range(7, 10):
        say(step, 0.1)
    while not os.path.exists("go"):
        time.sleep(0.01)
    (best / "COMPLETE").touch()
    while not os.path.exists("end"):
        time.sleep(0.01)
    (save(9) / "COMPLETE").touch()
"""


def test_the_best_checkpoint_bears_the_reward_of_its_own_step_and_not_of_the_step_at_which_it_is_uploaded(
    tmp_path: Path,
) -> None:
    wanted = demo_spec(
        "",
        trainer={"command": f"{sys.executable} train.py", "steps": 9},
        checkpoints={"folder": "checkpoints", "keep": 1, "keep_best": 1},
    )
    with attempt(tmp_path, wanted, files={"train.py": textwrap.dedent(LATE).encode()}) as here:
        here.plane.await_heartbeat(lambda heartbeat: heartbeat.step == 9)
        (here.disk / "work" / "go").touch()
        here.plane.await_commit(6)
        best = read_manifest(here.bucket, manifest_key(RUN_ID, 6, 1))
        assert best is not None
        assert (best.reward, best.loss) == (9.0, 1 / 6)
        (here.disk / "work" / "end").touch()
        assert here.wait() == 0
        last = read_manifest(here.bucket, manifest_key(RUN_ID, 9, 1))
        assert last is not None
        assert (last.reward, last.loss) == (0.1, 1 / 9)
        await_true("the best one is still there", lambda: read_manifest(here.bucket, best.key) == best)


def test_a_checkpoint_bears_the_newest_values_reported_since_the_one_before_it(tmp_path: Path) -> None:
    metrics = StepMetrics(tmp_path / "metrics.jsonl")
    metrics.add(
        [
            Progress(5, reward=7.0),
            Progress(6, loss=0.6),
            Progress(7, loss=0.7),
            Progress(8),
            Progress(9, loss=0.9),
        ]
    )
    assert metrics.at(8, after=4) == Metrics(loss=0.7, reward=7.0, finite=True)
    assert metrics.at(8, after=5) == Metrics(loss=0.7, finite=True)
    assert metrics.at(5, after=0) == Metrics(reward=7.0)
    assert metrics.at(12, after=9) == Metrics()


def test_what_is_reported_again_of_a_step_takes_the_place_of_what_was_reported_first(tmp_path: Path) -> None:
    metrics = StepMetrics(tmp_path / "metrics.jsonl")
    metrics.add([Progress(3, loss=0.5), Progress(3, reward=1.0), Progress(3, loss=0.4)])
    assert metrics.at(3, after=2) == Metrics(loss=0.4, reward=1.0, finite=True)


def test_an_agent_that_is_started_again_still_knows_the_metrics_of_earlier_steps(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    StepMetrics(path).add([Progress(6, loss=0.5, reward=9.0), Progress(7, loss=0.4, reward=0.1)])
    with path.open("a") as file:
        file.write('{"step": 8, "lo')
    assert StepMetrics(path).at(6, after=0) == Metrics(loss=0.5, reward=9.0, finite=True)
    again = StepMetrics(path)
    assert again.at(8, after=7) == Metrics()
    again.add([Progress(9, loss=0.3)])
    assert StepMetrics(path).at(9, after=8) == Metrics(loss=0.3, finite=True)


def test_neither_memory_nor_disk_grows_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prime_agent.trainer.step_metrics, "STEPS_MAX", 10)
    path = tmp_path / "metrics.jsonl"
    metrics = StepMetrics(path)
    for step in range(1, 101):
        metrics.add([Progress(step, loss=float(step))])
    assert len(path.read_text().splitlines()) <= 20
    assert (metrics.at(100, after=0).loss, metrics.at(90, after=0).loss) == (100.0, None)
    assert StepMetrics(path).at(100, after=0).loss == 100.0


def test_a_disk_that_cannot_be_written_loses_nothing_that_is_remembered(tmp_path: Path) -> None:
    metrics = StepMetrics(tmp_path / "no" / "such" / "folder")
    metrics.add([Progress(1, loss=0.5)])
    assert metrics.at(1, after=0) == Metrics(loss=0.5, finite=True)


def lost(step: int) -> Progress:
    return Progress(step, not_finite=frozenset({"loss"}))


def test_a_checkpoint_says_from_which_step_on_its_loss_was_not_finite(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    metrics = StepMetrics(path)
    metrics.add([Progress(5, 1.0, learning_rate=0.1), *(lost(step) for step in (6, 7, 8))])
    assert metrics.at(5, after=0) == Metrics(loss=1.0, finite=True, learning_rate=0.1)
    assert metrics.at(8, after=5) == Metrics(finite=False, not_finite_since=6)
    assert metrics.at(12, after=8) == Metrics(finite=False, not_finite_since=6)
    assert StepMetrics(path).at(8, after=5) == Metrics(finite=False, not_finite_since=6)


def test_an_older_finite_loss_does_not_stand_for_one_that_is_not(tmp_path: Path) -> None:
    metrics = StepMetrics(tmp_path / "metrics.jsonl")
    metrics.add([Progress(5, 1.0), lost(6)])
    assert metrics.at(8, after=4).loss is None


def test_a_single_step_without_a_finite_loss_is_over_with_the_next_one(tmp_path: Path) -> None:
    metrics = StepMetrics(tmp_path / "metrics.jsonl")
    metrics.add([Progress(5, 1.0), lost(6), Progress(7, 0.9)])
    assert metrics.at(8, after=4) == Metrics(loss=0.9, finite=True)
