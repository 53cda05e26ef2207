"""What CI runs: the libraries of the trainers come while the tests run, once, and their failure is told."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.waiting import HANG_S

SCRIPT = Path(__file__).parents[1] / ".ci" / "run"
TOOLS = ("apt-get", "bwrap", "cc", "chromium", "go", "npm", "python3")
MAKE = """\
#!/bin/sh
echo "$1" >> called
echo "output of $1"
case "$(grep -c "^$1$" called) $1" in FAILING) exit 1 ;; esac
"""
GIB = 1024 * 1024


def ran(folder: Path, *, failing: str = "nothing", free_kib: int = 100 * GIB) -> tuple[int, str, list[str]]:
    """Return the exit code of CI, what it said, and which targets of make it called; FAILING is a pattern of
    a call's number and target.
    """
    programs = folder / "bin"
    programs.mkdir()
    for name in TOOLS:
        (programs / name).write_text("#!/bin/sh\n")
    (programs / "df").write_text(f"#!/bin/sh\necho header\necho disk 1 1 {free_kib} 1 /\n")
    (programs / "make").write_text(MAKE.replace("FAILING", failing))
    for program in programs.iterdir():
        program.chmod(0o755)
    (folder / ".ci").mkdir()
    shutil.copy(SCRIPT, folder / ".ci")
    env = {**os.environ, "PATH": f"{programs}:{os.environ['PATH']}"}
    done = subprocess.run(
        [folder / ".ci" / "run"], env=env, capture_output=True, text=True, timeout=HANG_S, check=False
    )
    called = folder / "called"
    return done.returncode, done.stdout + done.stderr, called.read_text().split() if called.exists() else []


def test_the_trainers_are_tested_after_all_others_with_libraries_that_were_installed_once(
    tmp_path: Path,
) -> None:
    code, said, called = ran(tmp_path)
    assert (code, called[0], sorted(called[1:3]), called[3:]) == (
        0,
        "tools",
        ["test", "trainers"],
        ["docs", "bench-quick", "test-trainers"],
    )
    assert "output of trainers" not in said


@pytest.mark.parametrize("target", ["tools", "trainers"])
def test_a_registry_may_fail_to_answer_once(target: str, tmp_path: Path) -> None:
    code, _, called = ran(tmp_path, failing=f"'1 {target}'")
    assert (code, called.count(target), called[-1]) == (0, 2, "test-trainers")


def test_tools_that_cannot_be_installed_fail_it_before_any_test(tmp_path: Path) -> None:
    code, said, called = ran(tmp_path, failing="*' tools'")
    assert (code, called) == (1, ["tools", "tools"]), said


def test_libraries_that_cannot_be_installed_fail_it_and_what_was_tried_is_shown(tmp_path: Path) -> None:
    code, said, called = ran(tmp_path, failing="*' trainers'")
    assert (code, called.count("trainers")) == (1, 2)
    assert "test-trainers" not in called
    assert said.count("output of trainers") == 2


@pytest.mark.parametrize("failing", ["*' test'", "*' docs'", "*' test-trainers'"])
def test_a_test_that_fails_fails_it(failing: str, tmp_path: Path) -> None:
    assert ran(tmp_path, failing=failing)[0] != 0


def test_a_disk_that_is_too_small_is_told_before_anything_is_run(tmp_path: Path) -> None:
    code, said, called = ran(tmp_path, free_kib=3 * GIB)
    assert (code, called) == (1, [])
    assert "the libraries of make test-trainers need 8192 MiB of disk" in said
    assert "3072 MiB left" in said
