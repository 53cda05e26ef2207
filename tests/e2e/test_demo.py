"""`make demo` as a person would see it: it loses its machine, finishes with the same weights, and leaves nothing behind."""

import json
import os
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import psutil
import pytest

from tests.e2e.plane import BIN, await_true


def left_behind(folder: Path) -> list[str]:
    """Command lines of processes whose temporary folder was ours."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("TMPDIR") == str(folder):
                found.append(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied):
            continue
    return found


def start(folder: Path, *options: str) -> subprocess.Popen[str]:
    env = {**os.environ, "TMPDIR": str(folder), "PYTHONUNBUFFERED": "1"}
    command = [str(BIN / "prime-train"), "demo", "--seconds-per-step", "0.05", "--out", str(folder / "out"), *options]
    return subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True)


@pytest.mark.slow
def test_the_demo_loses_its_machine_and_ends_with_the_weights_of_an_uninterrupted_run(tmp_path: Path) -> None:
    said = start(tmp_path).communicate(timeout=200)[0]
    plain = tmp_path / "plain"
    options = ["--steps", "300", "--save-every", "25", "--out", str(plain)]
    subprocess.run([sys.executable, "-m", "prime_train.demo.train", *options], check=True, capture_output=True, timeout=200)
    uninterrupted = str(json.loads((plain / "final.json").read_text())["sha256"])
    assert f"final weights\n  {uninterrupted}\n" in said, said
    assert re.search(r"e1 +lost", said), said
    assert re.search(r"e2 +succeeded", said), said
    assert "recomputed" in said
    page = (tmp_path / "out" / "demo.html").read_text()
    assert "succeeded" in page
    ET.fromstring((tmp_path / "out" / "demo.svg").read_text())
    await_true("no process is left", lambda: not left_behind(tmp_path), limit_s=20)


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGTERM])
def test_a_demo_that_is_interrupted_leaves_no_process_behind(tmp_path: Path, how: signal.Signals) -> None:
    demo = start(tmp_path)
    assert demo.stdout is not None
    for line in demo.stdout:
        if re.search(r"e1 +training", line):
            break
    os.kill(demo.pid, how)
    said = demo.communicate(timeout=60)[0]
    assert demo.returncode != 0
    assert "Traceback" not in said
    await_true("no process is left", lambda: not left_behind(tmp_path), limit_s=20)
