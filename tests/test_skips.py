"""A complete test run fails if a test is skipped for an unlisted reason."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.exhaustive import some_of
from tests.skips import ALLOWED, COMPLETE
from tests.waiting import HANG_S

SKIPPING = "import pytest\n\ndef test_one():\n    pass\n\ndef test_two():\n    pytest.skip({reason!r})\n"


def ran(folder: Path, reason: str, *words: str, complete: bool = True) -> subprocess.CompletedProcess[str]:
    (folder / "test_it.py").write_text(SKIPPING.format(reason=reason))
    root = Path(__file__).parents[1]
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTEST_", COMPLETE))}
    env |= {"PYTHONPATH": str(root)} | ({COMPLETE: "1"} if complete else {})
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "tests.skips",
        "-p",
        "no:cacheprovider",
        *words,
        "test_it.py",
    ]
    return subprocess.run(
        command, cwd=folder, env=env, capture_output=True, text=True, timeout=HANG_S, check=False
    )


@pytest.mark.parametrize(
    "words",
    some_of([pytest.param((), id="in one process"), pytest.param(("-n", "2"), id="in workers")], one_in=2),
)
def test_a_skip_for_a_reason_that_is_not_listed_fails_a_complete_run_and_is_named(
    words: tuple[str, ...], tmp_path: Path
) -> None:
    done = ran(tmp_path, "there is no minio here", *words)
    assert done.returncode == 1, done.stdout
    assert "test_it.py::test_two: Skipped: there is no minio here" in done.stdout


def test_a_listed_reason_passes(tmp_path: Path) -> None:
    assert ran(tmp_path, next(iter(ALLOWED))).returncode == 0


def test_elsewhere_a_skip_is_a_skip(tmp_path: Path) -> None:
    assert ran(tmp_path, "there is no minio here", complete=False).returncode == 0
