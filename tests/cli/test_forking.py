"""A command that is forked does what it does when it is started."""

import os
import signal
import subprocess
from pathlib import Path

import pytest

from tests.cli import forking
from tests.cli.shell import PROGRAM, Shell
from tests.waiting import HANG_S

pytestmark = pytest.mark.skipif(not forking.forks(os.environ), reason="commands are forked on Linux only")


@pytest.mark.parametrize(
    "words",
    ["--version", "status --json", "status none", "run none.yaml", "validate none.yaml", "none", "--help"],
)
def test_output_and_exit_code_are_those_of_a_process_that_was_started(shell: Shell, words: str) -> None:
    started = subprocess.run(
        [PROGRAM, *words.split()], cwd=shell.here, env=shell.env, capture_output=True, text=True, check=False
    )
    forked = forking.run(words.split(), cwd=shell.here, env=shell.env, errors="strict")
    assert (forked.returncode, forked.stdout, forked.stderr) == (
        started.returncode,
        started.stdout,
        started.stderr,
    )


def test_it_has_the_callers_environment_and_folder_and_nothing_of_an_earlier_call(
    shell: Shell, tmp_path: Path
) -> None:
    shell.ok("run", shell.config())
    with shell.started("serve", "--port", "0", "--no-watch", until="serving ", ONE="1") as process:
        its = Path("/proc") / str(process.pid)
        assert [(its / "fd" / str(number)).readlink() for number in range(3)] == [
            Path(os.devnull),
            *[tmp_path / "said.log"] * 2,
        ]
        assert (its / "cwd").readlink() == tmp_path
        assert process.poll() is None
        assert len(shell.ok("status").splitlines()) == 2
    assert process.returncode == 0
    assert "no runs yet" in shell.run("status", PRIME_TRAIN_HOME=str(tmp_path / "other")).stdout


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 0), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_a_signal_ends_it_as_one_that_was_started(shell: Shell, number: signal.Signals, code: int) -> None:
    with shell.started("serve", "--port", "0", "--no-watch", until="serving ") as process:
        process.send_signal(number)
        assert process.wait(HANG_S) == code


def test_who_waits_no_longer_is_told_so(shell: Shell) -> None:
    with (
        shell.started("serve", "--port", "0", "--no-watch", until="serving ") as process,
        pytest.raises(subprocess.TimeoutExpired),
    ):
        process.wait(0.01)
