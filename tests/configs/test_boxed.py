"""Single files become checkpoint folders: only complete ones, under their step."""

import importlib.util
import json
import os
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

BOX = Path(__file__).parents[2] / "configs" / "boxed" / "box.py"
TRAINER = """
import sys, zipfile, os
os.makedirs("out", exist_ok=True)
for step in (5, 10):
    with zipfile.ZipFile(f"out/checkpoint_step{step}.pt", "w") as file:
        file.writestr("data", "x" * step)
    print(f" 10%|#   | {step}/100 [00:01<00:09]", end="\\r", file=sys.stderr)
print("argv", *sys.argv[1:])
sys.exit(int(os.environ.get("CODE", "0")))
"""


def box(tmp_path: Path, *args: str, before: tuple[str, ...] = (), **env: str) -> "subprocess.CompletedProcess[str]":
    (tmp_path / "train.py").write_text(TRAINER)
    own = ("--files", "out/checkpoint_step{step}.pt", "--into", str(tmp_path / "checkpoints"), *before)
    command = [sys.executable, str(BOX), *own, "--", sys.executable, "train.py", *args]
    return subprocess.run(command, cwd=tmp_path, env=os.environ | env, capture_output=True, text=True, check=False)


def boxed(folder: Path) -> dict[str, list[str]]:
    return {path.name: sorted(file.name for file in path.iterdir()) for path in folder.iterdir()} if folder.is_dir() else {}


@pytest.fixture(name="module")
def _module() -> Any:
    found = importlib.util.spec_from_file_location("box", BOX)
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_files_become_folders_and_the_trainers_code_is_passed_on(tmp_path: Path) -> None:
    done = box(tmp_path, "--size", "125m", CODE="3")
    assert done.returncode == 3
    assert "argv --size 125m" in done.stdout
    assert boxed(tmp_path / "checkpoints") == {"step_5": ["COMPLETE", "checkpoint.pt"], "step_10": ["COMPLETE", "checkpoint.pt"]}
    assert zipfile.is_zipfile(tmp_path / "checkpoints" / "step_10" / "checkpoint.pt")


def test_steps_go_on_from_where_an_earlier_attempt_ended(tmp_path: Path) -> None:
    done = box(tmp_path, "--box-after", "1000", "+load=x", before=("--progress", r"(\d+)/\d+ \["))
    assert "argv +load=x\n" in done.stdout
    assert set(boxed(tmp_path / "checkpoints")) == {"step_1005", "step_1010"}
    rows = [json.loads(line) for line in (tmp_path / "progress.jsonl").read_text().splitlines()]
    assert rows == [{"step": 1005}, {"step": 1010}]
    assert "10/100 [" in done.stderr


def test_other_ranks_become_the_command(tmp_path: Path) -> None:
    assert box(tmp_path, RANK="1").returncode == 0
    assert boxed(tmp_path / "checkpoints") == {}


def test_a_file_is_taken_once_it_no_longer_grows_and_is_complete(tmp_path: Path, module: Any) -> None:
    out, into = tmp_path / "out", tmp_path / "checkpoints"
    out.mkdir()
    complete = tmp_path / "whole.pt"
    with zipfile.ZipFile(complete, "w") as file:
        file.writestr("data", "x" * 100)
    boxes = module.Boxes(str(out / "step_{step}"), into, 0)
    (out / "step_7").write_bytes(complete.read_bytes()[:60])
    (out / "step_7_all_preds.0").write_bytes(b"x")
    boxes.move()
    boxes.move()
    assert boxed(into) == {}
    (out / "step_7").write_bytes(complete.read_bytes())
    boxes.move()
    assert boxed(into) == {}
    boxes.move()
    assert boxed(into) == {"step_7": ["COMPLETE", "checkpoint"]}
    assert [path.name for path in out.iterdir()] == ["step_7_all_preds.0"]


@pytest.mark.parametrize(
    "args", [("--files", "out/x.pt", "--into", "c", "--", "true"), ("--files", "{step}", "--into", "c"), ("--", "true")]
)
def test_what_it_cannot_do_is_reported(tmp_path: Path, args: tuple[str, ...]) -> None:
    done = subprocess.run([sys.executable, str(BOX), *args], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, "error:" in done.stderr, "Traceback" in done.stderr) == (2, True, False)
