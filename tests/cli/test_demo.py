"""The demo, from its first line to the page it leaves behind, and that it leaves nothing else."""

import re
import signal
import xml.etree.ElementTree as ET

import psutil
import pytest

from tests.cli.shell import Shell


def left_behind(shell: Shell) -> list[str]:
    """Processes and folders of a demo whose temporary folder is in `shell.here`."""
    found = [str(path) for path in shell.here.glob("prime-train-demo-*")]
    for process in psutil.process_iter():
        try:
            if str(shell.here) in process.environ().get("PRIME_TRAIN_HOME", "") or str(shell.here) in " ".join(process.cmdline()):
                found.append(" ".join(process.cmdline()))
        except (psutil.NoSuchProcess, psutil.AccessDenied, psutil.ZombieProcess):
            continue
    return found


@pytest.mark.slow
def test_the_demo_loses_its_machine_and_ends_with_the_same_weights(shell: Shell) -> None:
    done = shell.run("demo", "--seconds-per-step", "0.03", "--out", "page", TMPDIR=str(shell.here))
    assert done.returncode == 0, done.stdout + done.stderr
    assert "the machine" in done.stdout or "machine taken away" in done.stdout
    hashes = re.findall(r"^(?:final weights|uninterrupted run)\n  ([0-9a-f]{64})$", done.stdout, re.MULTILINE)
    assert len(hashes) == 2
    assert len(set(hashes)) == 1
    assert "NO " not in done.stdout
    assert all(word in done.stdout for word in ("Timeline", "Ledger", "provision", "recomputed", "teardown", "resumed from"))
    picture = ET.parse(shell.here / "page" / "demo.svg").getroot()
    words = {"".join(text.itertext()) for text in picture.iter("{http://www.w3.org/2000/svg}text")}
    assert any(text.startswith("machine lost at step") for text in words)
    assert any(text.startswith("restored: on from step") for text in words)
    assert (shell.here / "page" / "demo.html").read_text().startswith("<!doctype html>")
    assert left_behind(shell) == []


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_demo_that_is_cut_short_leaves_nothing(shell: Shell, number: signal.Signals, code: int) -> None:
    with shell.started("demo", until="training at step", TMPDIR=str(shell.here)) as process:
        process.send_signal(number)
        assert process.wait(60) == code
    assert "Traceback" not in shell.said
    assert left_behind(shell) == []
