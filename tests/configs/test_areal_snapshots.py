"""Copies of AReaL's single recoverable state: only complete ones, and restored unchanged."""

import getpass
import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "configs" / "areal-gsm8k" / "snapshots.py"
TRAINER = """
print("(AReaL) 20260821-10:00:00.123 StatsLogger INFO: Epoch 1/10 Step 1/29 Train step 1/290 done.")
print("| ppo_actor/task_reward/avg | 0.0000e+00 |")
print("\\x1b[32mEpoch 1/10 Step 2/29 Train step 2/290 done.\\x1b[0m")
print("Epoch 1/10 Step 3/29 Train step 3/290 done.")
print("| ppo_actor/task_reward/avg | 7.6000e-01 |")
"""


@pytest.fixture(name="module")
def _module() -> Any:
    found = importlib.util.spec_from_file_location("snapshots", FILE)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def save(state: Path, global_step: int, *, at_s: int) -> None:
    """Save as AReaL does: shards, their index, and its resume information, one second after the other."""
    engine, info = state / "default" / "recover_checkpoint", state / "recover_info"
    for folder in (engine, info):
        folder.mkdir(parents=True, exist_ok=True)
    names = ("step_info", "saver_info", "evaluator_info", "stats_logger_info", "checkpoint_info")
    jsons = {info / f"{name}.json": json.dumps({"global_step": global_step}) for name in names}
    files = {engine / "__0_0.distcp": f"weights {global_step}", engine / ".metadata": "m", **jsons, info / "dataloader_info.pkl": "d"}
    for number, (path, text) in enumerate(files.items()):
        path.write_text(text)
        os.utime(path, (at_s + number, at_s + number))


def test_a_complete_state_is_copied_once_and_under_the_step_that_is_printed(tmp_path: Path, module: Any) -> None:
    state, into = tmp_path / "state", tmp_path / "checkpoints"
    into.mkdir()
    save(state, 9, at_s=1000)
    module.keep(state, into)
    module.keep(state, into)
    assert [path.name for path in into.iterdir()] == ["step_10"]
    save(state, 19, at_s=2000)
    assert (into / "step_10" / "default" / "recover_checkpoint" / "__0_0.distcp").read_text() == "weights 9"
    module.keep(state, into)
    assert {path.name for path in into.iterdir()} == {"step_10", "step_20"}
    assert (into / "step_20" / "COMPLETE").exists()


@pytest.mark.parametrize("path", ["default/recover_checkpoint/__0_0.distcp", "default/recover_checkpoint/.metadata"])
def test_a_state_that_is_being_written_is_none(tmp_path: Path, module: Any, path: str) -> None:
    save(tmp_path, 9, at_s=1000)
    assert module.step_of(tmp_path) == 10
    os.utime(tmp_path / path, (5000, 5000))
    assert module.step_of(tmp_path) is None


@pytest.mark.parametrize(
    "path", ["recover_info/dataloader_info.pkl", "recover_info/saver_info.json", "default/recover_checkpoint/.metadata"]
)
def test_a_state_without_one_of_its_parts_is_none(tmp_path: Path, module: Any, path: str) -> None:
    save(tmp_path, 9, at_s=1000)
    (tmp_path / path).unlink()
    assert module.step_of(tmp_path) is None


def run(tmp_path: Path, *args: str) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "train.py").write_text(TRAINER)
    own = ("--root", str(tmp_path / "root"), "--experiment", "gsm8k", "--trial", "grpo", "--into", str(tmp_path / "checkpoints"))
    command = [sys.executable, str(FILE), *own, "--", sys.executable, str(tmp_path / "train.py"), *args]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_steps_and_rewards_are_read_from_what_is_printed(tmp_path: Path) -> None:
    done = run(tmp_path)
    assert (done.returncode, "Train step 3/290 done." in done.stdout) == (0, True)
    rows = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert rows == [{"step": 1, "reward": 0.0}, {"step": 2}, {"step": 3, "reward": 0.76}]


def test_a_snapshot_is_put_back_where_areal_looks_for_it(tmp_path: Path, module: Any) -> None:
    made, into = tmp_path / "made", tmp_path / "checkpoints"
    into.mkdir()
    save(made, 119, at_s=1000)
    module.keep(made, into)
    assert run(tmp_path, "--snapshot", str(into / "step_120")).returncode == 0
    there = tmp_path / "root" / "checkpoints" / getpass.getuser() / "gsm8k" / "grpo"
    assert module.step_of(there) == 120
    assert not (there / "COMPLETE").exists()


def test_a_snapshot_that_is_not_complete_is_refused_before_areal_begins_anew(tmp_path: Path) -> None:
    (tmp_path / "step_3").mkdir()
    done = run(tmp_path, "--snapshot", str(tmp_path / "step_3"))
    assert (done.returncode, "is not whole" in done.stderr, "Train step" in done.stdout) == (1, True, False)
