"""Every command of docs/my-run-died.md, on a run that has really died."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.shell import Shell

PAGE = Path(__file__).parents[2] / "docs" / "my-run-died.md"
TRAINER = """\
import json, sys
from pathlib import Path

first = int(sys.argv[sys.argv.index("--resume-step") + 1]) if "--resume-step" in sys.argv else 0
with open("progress.jsonl", "a") as progress:
    for step in range(first + 100, 300, 100):
        print(json.dumps({"step": step, "loss": 1 / step}), file=progress, flush=True)
        folder = Path("out/checkpoints") / f"step_{step}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "weights").write_text("w" * step)
        (folder / "COMPLETE").touch()
print("ValueError: Error in row 300", file=sys.stderr, flush=True)
sys.exit(3)
"""
CONFIG = """\
name: mnist
trainer:
  command: python train.py
  steps: 400
  resume: --resume-step {step}
  progress: {kind: jsonl, file: progress.jsonl}
  stop_on: {exit_codes: [3]}
checkpoints: {folder: out/checkpoints, pattern: "step_{step}", sentinel: COMPLETE, every_steps: 100}
hardware: {open_files_min: 256, disk_gib: 1}
health: {heartbeat_s: 1, overdue_s: 20, silence_s: 60, settle_s: 5}
budget: {usd: 5, hours: 2}
"""
FOR_A_LIVING_RUN = {"stop RUN --now": "run mnist-"}
"""Commands that refuse a run that is over, with the words of the refusal."""


def commands() -> list[str]:
    lines = re.findall(r"^\$ prime-train (.*)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [shlex.join(shlex.split(line, comments=True)) for line in lines]


@pytest.fixture(scope="module", name="died")
def _died(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """Return a shell in the folder of a run whose trainer has failed after its checkpoint of step 200."""
    shell = Shell(tmp_path_factory.mktemp("died"))
    shell.write("train.py", TRAINER)
    shell.write(
        "train.log",
        "step 200\nTraceback (most recent call last):\nModuleNotFoundError: No module named 'x'\n",
    )
    shell.write("configs/mnist.yaml", CONFIG)
    done = shell.run("run", "configs/mnist.yaml", "--follow")
    assert done.returncode == 1, done.stdout + done.stderr
    assert [(run["state"], run["durable_step"]) for run in json.loads(shell.ok("status", "--json"))] == [
        ("failed", 200)
    ]
    return shell


@pytest.mark.parametrize("command", commands())
def test_a_command_of_the_page_works_on_a_run_that_died(command: str, died: Shell, tmp_path: Path) -> None:
    here = Shell(tmp_path / "here")
    shutil.copytree(died.here, here.here, symlinks=True)
    done = here.run(*shlex.split(command.replace("RUN", "mnist").replace("CONFIG", "configs/mnist.yaml")))
    if command in FOR_A_LIVING_RUN:
        assert (done.returncode, FOR_A_LIVING_RUN[command] in done.stderr) == (2, True), done.stderr
    else:
        assert done.returncode == 0, done.stdout + done.stderr


def test_the_page_names_the_commands_that_were_tried() -> None:
    assert {line.split()[0] for line in commands()} >= {
        "status",
        "diagnose",
        "logs",
        "resume",
        "checkpoints",
        "bundle",
    }
