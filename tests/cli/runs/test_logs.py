"""`prime-train logs` of a run on a rented machine: its last lines, and following it through everything that
may happen.
"""

import base64
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from prime_train.buckets.keys import evidence_key
from prime_train.buckets.open import open_bucket
from tests.cli.forking import Process
from tests.cli.rented import Rented, rented
from tests.cli.shell import Shell
from tests.fakes.prime import needs_sshd
from tests.waiting import HANG_S

SCRIPT = Path(__file__).resolve().parents[3] / "src" / "prime_train" / "outputs" / "logs" / "remote_tail.sh"
linux = pytest.mark.skipif(sys.platform != "linux", reason="machines for rent have Linux")


@pytest.fixture(name="on")
def _on(shell: Shell) -> Iterator[Rented]:
    with rented(shell) as found:
        found.moved()
        yield found


def followed(on: Rented, until: str, *options: str) -> AbstractContextManager[Process]:
    return on.shell.started("logs", "tiny-1", "-f", *options, until=until, **on.env)


def await_said(on: Rented, text: str) -> None:
    end_s, pause = time.monotonic() + HANG_S, threading.Event()
    while text not in on.shell.output:
        assert time.monotonic() < end_s, f"never said {text!r}: {on.shell.output}"
        pause.wait(0.05)


def lines(on: Rented) -> list[str]:
    """Return the trainer's lines as they were displayed."""
    return [line for line in on.shell.output.splitlines() if line.startswith("line ")]


# ------------------------------------------------------------------------------------------------------------
# the last lines


@needs_sshd
def test_the_last_lines_come_from_the_machine(on: Rented) -> None:
    on.log("setup.log", "installed\n")
    on.log("trainer.log", "".join(f"line {number}\n" for number in range(100)))
    done = on.shell.run("logs", "tiny-1", "--lines", "3", **on.env)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-4:] == ["--- trainer.log of attempt 1", "line 97", "line 98", "line 99"]


@needs_sshd
def test_what_was_kept_is_shown_where_the_machine_cannot_be_reached(on: Rented) -> None:
    open_bucket((on.shell.home / "bucket").as_uri(), make=True).put(
        evidence_key("tiny-1", 1, "trainer.log"), b"line 1\nline 2\n"
    )
    on.fake.cut_ssh(after_bytes=100)
    done = on.shell.run("logs", "tiny-1", "--lines", "1", **on.env)
    assert done.returncode == 0, done.stderr
    assert "cannot be reached by SSH" in done.stderr
    assert done.stdout.splitlines()[-2:] == ["--- evidence/tiny-1/e1/trainer.log", "line 2"]


@needs_sshd
def test_a_machine_without_a_log_yet_has_none(on: Rented) -> None:
    done = on.shell.run("logs", "tiny-1", **on.env)
    assert done.returncode == 0, done.stderr
    assert "--- no log" in done.stdout


@needs_sshd
def test_lines_are_chosen_by_when_they_were_written_by_that_machines_clock_and_by_a_text(on: Rented) -> None:
    old = "".join(f"old {number}\n" for number in range(50))
    now_s = int(time.time())
    on.log("trainer.log", old + "".join(f"line {number}\n" for number in range(100)))
    on.log("trainer.log.times", f"{now_s - 7200} 0\n{now_s - 60} {len(old)}\n")

    def output(*options: str) -> list[str]:
        done = on.shell.run("logs", "tiny-1", *options, **on.env)
        assert done.returncode == 0, done.stderr
        assert done.stderr == ""
        return done.stdout.split("--- trainer.log of attempt 1\n")[1].splitlines()

    assert output("--since", "10m") == [f"line {number}" for number in range(100)]
    assert output("--since", "10m", "--lines", "2") == ["line 98", "line 99"]
    assert output("--since", "10s") == []
    assert output("--grep", "old 1", "--lines", "2") == ["old 18", "old 19"]
    assert output("--since", "1d", "-E", "--grep", "^(old|line) 4$") == ["old 4", "line 4"]
    assert output("--since", "1h", "-E", "--grep", "^(old|line) 4$") == ["line 4"]


# ------------------------------------------------------------------------------------------------------------
# followed


@needs_sshd
def test_a_text_is_looked_for_in_complete_lines_while_they_come(on: Rented) -> None:
    now_s = int(time.time())
    on.log("trainer.log", "loss 1\nline 0\nloss 2\n")
    on.log("trainer.log.times", f"{now_s - 7200} 0\n{now_s - 60} 7\n")
    with followed(on, "loss 2", "--grep", "loss", "--since", "1h"):
        on.log("trainer.log", "line 1\nlo")
        on.log("trainer.log", "ss 3\nline 2\nloss 4\n")
        await_said(on, "loss 4")
    assert [line for line in on.shell.output.splitlines() if line.startswith(("loss", "line"))] == [
        "loss 2",
        "loss 3",
        "loss 4",
    ]


@needs_sshd
def test_new_lines_come_as_they_are_written_through_rotation_and_the_next_log(on: Rented) -> None:
    on.log("setup.log", "installed\n")
    with followed(on, "installed") as process:
        on.log("trainer.log", "line 1\nline 2 ö")
        await_said(on, "line 2 ö")
        on.log("trainer.log", "\nline 3\n")
        (on.disk / "logs" / "trainer.log").rename(on.disk / "logs" / "trainer.log.1")
        on.log("trainer.log", "line 4\n")
        await_said(on, "line 4")
        assert lines(on) == ["line 1", "line 2 ö", "line 3", "line 4"]
        assert "--- setup.log of attempt 1" in on.shell.output
        assert "--- trainer.log of attempt 1" in on.shell.output
        process.send_signal(signal.SIGINT)
        assert process.wait(HANG_S) == 130


@needs_sshd
def test_a_lost_connection_is_made_anew_and_nothing_is_shown_twice(on: Rented) -> None:
    on.log("trainer.log", "line 0\n")
    on.fake.cut_ssh(after_bytes=12_000)
    with followed(on, "line 0"):
        for number in range(1, 2000):
            on.log("trainer.log", f"line {number} {os.urandom(20).hex()}\n")
        await_said(on, "line 1999")
        await_said(on, "--- reached")
    assert on.fake.ssh_cuts == 1
    assert "retrying" in on.shell.output
    assert [int(line.split()[1]) for line in lines(on)] == list(range(2000))


@needs_sshd
def test_a_run_that_moves_is_followed_to_its_next_machine(on: Rented) -> None:
    on.log("trainer.log", "line 1\n")
    with followed(on, "line 1", "--lines", "1"):
        on.fake.preempt(on.pod_id)
        on.moved()
        on.log("trainer.log", "line 2\nline 3\n")
        await_said(on, "line 3")
    assert lines(on) == ["line 1", "line 2", "line 3"]
    assert "--- trainer.log of attempt 2" in on.shell.output


@needs_sshd
def test_it_waits_for_a_machine_that_is_not_up_yet(shell: Shell) -> None:
    with rented(shell) as found:
        found.moved(pinned=False)
        with followed(found, "the machine has not started yet"):
            found.moved()
            found.log("trainer.log", "line 1\n")
            await_said(found, "line 1")


@needs_sshd
def test_the_end_of_a_run_ends_it_with_what_was_kept_of_the_rest(on: Rented) -> None:
    on.log("trainer.log", "line 1\n")
    with followed(on, "line 1") as process:
        open_bucket((on.shell.home / "bucket").as_uri(), make=True).put(
            evidence_key("tiny-1", 1, "trainer.log"), b"line 0\nline 1\nline 2\n"
        )
        on.ended()
        assert process.wait(HANG_S) == 0
    assert lines(on) == ["line 1", "line 2"]


# ------------------------------------------------------------------------------------------------------- the
# script by itself


class Look:
    """The script on a home with an attempt, queried until it has no more output."""

    def __init__(self, home: Path) -> None:
        self.home, self.logs = home, home / "disk" / "logs"
        self.logs.mkdir(parents=True)
        (home / ".prime-train" / "tiny-1-e1").mkdir(parents=True)
        (home / ".prime-train" / "tiny-1-e1" / "disk").write_text(f"{home / 'disk'}\n")
        self.place = ("", "0", "0")

    def __call__(self, lines: str = "all") -> str:
        command = ["sh", "-s", "--", "tiny-1-e1", lines, *self.place]
        env = {"HOME": str(self.home), "PATH": os.environ["PATH"]}
        output = bytearray()
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=env) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(SCRIPT.read_bytes())
            process.stdin.close()
            for line in process.stdout:
                if line == b"-\n":
                    break
                name, inode, offset, text = line.decode().split()
                data = base64.b64decode(text)
                self.place = (name, inode, str(int(offset) + len(data)))
                output += data
            process.terminate()
        return output.decode()


@pytest.fixture(name="look")
def _look(tmp_path: Path) -> Look:
    return Look(tmp_path)


@linux
def test_the_script_begins_near_the_end_and_goes_on_where_it_was(look: Look) -> None:
    log = look.logs / "trainer.log"
    log.write_text("1\n2\n3\n")
    assert look("2") == "2\n3\n"
    with log.open("a") as file:
        file.write("4\n")
    assert look("2") == "4\n"
    assert look("2") == ""


@linux
def test_the_script_reads_a_rotated_file_to_its_end_and_then_the_new_one(look: Look) -> None:
    log = look.logs / "trainer.log"
    log.write_text("1\n")
    assert look() == "1\n"
    with log.open("a") as file:
        file.write("2\n")
    log.rename(look.logs / "trainer.log.1")
    log.write_text("3\n")
    assert look() == "2\n3\n"


@linux
def test_the_script_begins_a_file_that_was_emptied_anew(look: Look) -> None:
    log = look.logs / "trainer.log"
    log.write_text("1\n2\n")
    assert look() == "1\n2\n"
    with log.open("w") as file:
        file.write("3\n")
    assert look() == "3\n"


@linux
def test_the_script_sends_what_is_long_in_pieces(look: Look) -> None:
    text = "".join(f"{number}\n" for number in range(60_000))
    (look.logs / "trainer.log").write_text(text)
    assert look() == text


@linux
def test_the_script_waits_for_an_agent_and_for_its_log(look: Look) -> None:
    assert look() == ""
    (look.home / ".prime-train" / "tiny-1-e1" / "disk").rename(look.home / "gone")
    assert look() == ""
