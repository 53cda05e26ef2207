"""A command whose script no machine can have is not launched."""

import subprocess
from pathlib import Path

import pytest

from prime_train.launch.code.archive import CodeSnapshot
from prime_train.launch.launch_config import missing_script
from prime_train.spec.spec import RunSpec
from tests.cli.inside import Inside


@pytest.fixture
def shell(tmp_path: Path) -> Inside:
    return Inside(tmp_path)


def test_a_missing_script_refuses_the_launch_and_says_where_it_was_looked_for(
    shell: Inside, tmp_path: Path
) -> None:
    done = shell.run("run", "--usd", "5", "--", "python", "missing.py", "--lr", "1e-3")
    assert done.returncode == 1
    assert f"missing.py is not in {tmp_path}, the folder that is packed" in done.stdout + done.stderr
    assert "write that command under setup" in done.stdout + done.stderr
    assert shell.ok("status", "--json").strip() == "[]"


def test_a_script_that_the_set_up_makes_is_launched(shell: Inside) -> None:
    made = ("--set", "setup=['cp /opt/other.py missing.py']")
    assert "is queued" in shell.ok("run", "--usd", "5", *made, "--", "python", "missing.py")


def test_a_script_that_git_ignores_is_not_on_the_machine_either(shell: Inside, tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    shell.write(".gitignore", "mine.py\n")
    shell.write("mine.py", "print(1)\n")
    done = shell.run("run", "--usd", "5", "--", "python", "mine.py")
    assert (done.returncode, "mine.py is not in" in done.stdout + done.stderr) == (1, True)


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("python train.py", False),
        ("python ./train.py --out x.py", False),
        ("python sub/train.py", True),
        ("torchrun --nproc-per-node 2 other.py", True),
        ("sh run.sh", True),
        ("./run.sh", True),
        ("python -m package --script other.py", False),
        ("python -c 'import other' other.py", False),
        ("cd areal && python other.py", False),
        ("python /opt/other.py", False),
        ("python $HOME/other.py", False),
        ("python ../other.py", False),
        ("python3 '{checkpoints}/other.py'", False),
        ("./trainer --steps 5", False),
    ],
)
def test_only_what_is_surely_missing_is_refused(command: str, missing: bool, tmp_path: Path) -> None:
    spec = RunSpec.model_validate({"name": "lm", "trainer": {"command": command}, "budget": {"usd": 5}})
    found = missing_script(spec, CodeSnapshot(tmp_path, (("train.py", 9),)), "lm.yaml", "")
    assert (found is not None) is missing
