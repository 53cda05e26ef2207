"""The demo, from its first line to the page that it leaves behind, and that it leaves nothing else."""

import json
import re
import signal
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import psutil
import pytest

from tests.cli.shell import Shell
from tests.exhaustive import some_of
from tests.waiting import HANG_S


def weights_without_prime_train(folder: Path) -> str:
    """Return the hash of the weights after the same training in one plain process."""
    options = ["--steps", "300", "--save-every", "25", "--out", str(folder)]
    subprocess.run(
        [sys.executable, "-m", "prime_train.demo.train", *options],
        check=True,
        capture_output=True,
        timeout=HANG_S,
    )
    return str(json.loads((folder / "final.json").read_text())["sha256"])


def left_behind(shell: Shell) -> list[str]:
    """Return the processes and folders left by a demo whose temporary folder is in `shell.here`."""
    found = [str(path) for path in shell.here.glob("prime-train-demo-*")]
    for process in psutil.process_iter():
        try:
            if str(shell.here) in process.environ().get("PRIME_TRAIN_HOME", "") or str(
                shell.here
            ) in " ".join(process.cmdline()):
                found.append(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


@pytest.mark.slow
def test_the_demo_loses_its_machine_and_ends_with_the_same_weights(shell: Shell) -> None:
    done = shell.run("demo", "--seconds-per-step", "0.03", "--out", "page", TMPDIR=str(shell.here))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the machine" in done.stdout or "machine preempted" in done.stdout
    hashes = re.findall(r"^(?:final weights|uninterrupted run)\n  ([0-9a-f]{64})$", done.stdout, re.MULTILINE)
    assert hashes == [weights_without_prime_train(shell.here / "plain")] * 2
    assert "NO " not in done.stdout
    assert all(
        word in done.stdout
        for word in ("Timeline", "Ledger", "provision", "recomputed", "teardown", "resumed from")
    )
    picture = ET.parse(shell.here / "page" / "demo.svg").getroot()
    words = {"".join(text.itertext()) for text in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert any(text.startswith("machine lost at step") for text in words)
    assert any(text.startswith("restored: resumed from step") for text in words)
    assert (shell.here / "page" / "demo.html").read_text().startswith("<!doctype html>")
    assert left_behind(shell) == []


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), some_of([(signal.SIGINT, 130), (signal.SIGTERM, 143)], one_in=2))
def test_a_demo_that_is_cut_short_leaves_nothing(shell: Shell, number: signal.Signals, code: int) -> None:
    with shell.started("demo", until="training at step", TMPDIR=str(shell.here)) as process:
        process.send_signal(number)
        assert process.wait(HANG_S) == code
    assert "Traceback" not in shell.output
    assert left_behind(shell) == []
