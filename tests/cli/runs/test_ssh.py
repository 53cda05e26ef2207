"""`prime-train ssh` as a user calls it: against a real sshd on a rented machine, and in a pod of this
machine.
"""

import os
import pty
import socket
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.runs.run import RunState
from prime_train.stores.sqlite.store import SqliteStore
from tests import builders as b
from tests.cli.rented import Rented, rented
from tests.cli.shell import PROGRAM, Shell
from tests.fakes.prime import needs_sshd
from tests.fakes.prime.client import create
from tests.waiting import HANG_S

LOCAL_POD = "local-0123456789abcdef"


@pytest.fixture(name="on")
def _on(shell: Shell) -> Iterator[Rented]:
    with rented(shell) as found:
        found.moved()
        yield found


def run(on: Rented, *words: str, **env: str) -> subprocess.CompletedProcess[str]:
    return on.shell.run("ssh", *words, **(on.env | env))


# ------------------------------------------------------------------------------------------------------------
# a rented machine


@needs_sshd
def test_a_line_is_run_in_the_agents_folder_by_the_shell_there(on: Rented) -> None:
    done = run(on, "tiny-1", "--", "pwd; echo $((6 * 7)) | cat; exit 7")
    assert (done.stdout.split(), done.returncode) == ([str(on.disk), "42"], 7), done.stderr


@needs_sshd
def test_words_arrive_as_they_are(on: Rented) -> None:
    done = run(on, "tiny-1", "--", "printf", "%s|", "a b", "$HOME", "it's", "-l")
    assert (done.stdout, done.returncode) == ("a b|$HOME|it's|-l|", 0), done.stderr


@needs_sshd
def test_a_port_of_the_machine_is_forwarded_here(on: Rented) -> None:
    """A server there that says one word, asked from here while the command runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    with socket.create_server(("127.0.0.1", 0)) as there:
        env = on.shell.env | on.env
        words = [
            PROGRAM,
            "ssh",
            "tiny-1",
            "-L",
            f"{port}:localhost:{there.getsockname()[1]}",
            "--",
            "echo ready; cat",
        ]
        with subprocess.Popen(
            words, env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            assert process.stdout.readline() == "ready\n"
            with socket.create_connection(("127.0.0.1", port), timeout=HANG_S) as here:
                there.settimeout(HANG_S)
                answering, _ = there.accept()
                answering.sendall(b"tensorboard")
                answering.close()
                assert here.recv(100) == b"tensorboard"
            process.stdin.close()
            assert process.wait(HANG_S) == 0


@pytest.mark.parametrize(
    "text",
    [
        "6006",
        "0:localhost:6006",
        "6006:localhost:70000",
        "6006:/tmp/socket",
        "-oProxyCommand=x",
        "6006:a b:1",
    ],
)
def test_what_is_no_port_is_refused_before_anything_is_asked(shell: Shell, text: str) -> None:
    done = shell.run("ssh", "tiny-1", "-L", text)
    assert (done.returncode, "is not a port to forward" in done.stderr) == (2, True), done.stderr


@needs_sshd
def test_a_person_gets_a_terminal(on: Rented) -> None:
    ours, theirs = pty.openpty()
    env = on.shell.env | on.env
    process = subprocess.Popen(
        [PROGRAM, "ssh", "tiny-1"],
        env=env,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    os.write(ours, b"echo in-$(tty)-; pwd; exit 5\n")
    output = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:  # Linux's way to say that nobody holds the other end
            break
        output += piece
    os.close(ours)
    assert process.wait(HANG_S) == 5, output
    assert b"in-/dev/" in output
    assert str(on.disk).encode() in output


@needs_sshd
def test_another_machine_at_the_address_is_not_logged_in_to(on: Rented) -> None:
    """The file has the pinned key of the earlier machine."""
    other = create(on.fake)
    machine = on.fake.pod(other).machine
    assert machine is not None
    kind, key, *_ = machine.host_key().split()
    on.known_hosts.write_text(f"{on.pod_id} {kind} {key}\n")
    done = run(on, "tiny-1", "--", "true")
    assert done.returncode == 255
    assert "Host key verification failed" in done.stderr


@needs_sshd
def test_a_machine_nobody_has_logged_in_to_yet_is_still_booting(shell: Shell) -> None:
    with rented(shell) as found:
        found.moved(pinned=False)
        done = run(found, "tiny-1", "--", "true")
    assert done.returncode == 3
    assert "is still booting" in done.stderr
    assert "prime-train status tiny-1" in done.stderr


@needs_sshd
def test_without_the_program_it_is_reported_what_to_install(on: Rented) -> None:
    done = run(on, "tiny-1", PATH=str(on.shell.here))
    assert done.returncode == 4
    assert "the program ssh is not installed" in done.stderr


@needs_sshd
def test_without_a_key_for_the_provider_it_is_reported_what_to_set(on: Rented) -> None:
    done = on.shell.run("ssh", "tiny-1", PRIME_API_KEY="", PRIME_TRAIN_PROVIDER="")
    assert done.returncode == 2
    assert "rented from prime, which is not set up here" in done.stderr
    assert "PRIME_API_KEY" in done.stderr


# --------------------------------------------------------------------------------------------------------
# none, or on this one


def stored(shell: Shell, state: RunState, pod_id: str | None = None) -> None:
    shell.home.mkdir()
    made = b.run(state)
    if pod_id is not None:
        made = replace(made, attempts=(replace(made.attempts[0], pod_id=pod_id),))
    assert SqliteStore(shell.home / "control.sqlite").create(made)


@pytest.mark.parametrize("state", [RunState.QUEUED, RunState.SUCCEEDED, RunState.LAUNCHING])
def test_a_run_without_a_machine_says_how_it_stands(shell: Shell, state: RunState) -> None:
    stored(shell, state)
    done = shell.run("ssh", "tiny-1", "--", "true")
    assert done.returncode == 2
    assert f"tiny-1 has no machine now, it is {state.value}" in done.stderr


def test_a_pod_of_this_machine_is_a_shell_in_its_folder(shell: Shell) -> None:
    stored(shell, RunState.TRAINING, LOCAL_POD)
    disk = shell.home / "pods" / LOCAL_POD / "disk"
    disk.mkdir(parents=True)
    done = shell.run("ssh", "tiny", "--", "pwd; exit 7")
    assert (Path(done.stdout.strip()), done.returncode) == (disk, 7), done.stderr
    assert "trains on this machine" in shell.run("ssh", "tiny", "-L", "6006:localhost:6006").stderr
    output = subprocess.run(
        [PROGRAM, "ssh", "tiny"],
        input="pwd",
        env=shell.env | {"SHELL": "/bin/sh"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert output.stdout.strip() == str(disk)


def test_a_run_that_is_not_there_is_refused(shell: Shell) -> None:
    stored(shell, RunState.QUEUED)
    done = shell.run("ssh", "tiny-2")
    assert done.returncode == 2
    assert "did you mean tiny-1?" in done.stderr
