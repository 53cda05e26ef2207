"""SSH against a real sshd: what works, what is refused, and what is reported when a connection ends."""

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.providers.port import SshAddress
from prime_train.providers.prime.pods import read_connection
from prime_train.providers.ssh_client.keys import LoginKey, login_key
from prime_train.providers.ssh_client.known_hosts import KnownHosts
from prime_train.providers.ssh_client.shell import OUTPUT_BYTES_MAX, Shell, connect
from tests.fakes.prime import POD_VARIABLE, FakePrime, needs_sshd
from tests.fakes.prime.client import create
from tests.waiting import await_true

pytestmark = needs_sshd

MIB = 2**20
SECRET = b"a secret that must not be told"


@pytest.fixture(name="key")
def _key(tmp_path: Path) -> LoginKey:
    return login_key(tmp_path / "ssh", b"m" * 32)


@pytest.fixture(name="hosts")
def _hosts(tmp_path: Path) -> KnownHosts:
    return KnownHosts(tmp_path / "attempt" / "known_hosts")


@pytest.fixture(name="fake")
def _fake(tmp_path: Path, key: LoginKey) -> Iterator[FakePrime]:
    with FakePrime(tmp_path / "prime") as running:
        running.add_ssh_key(key.public)
        yield running


@pytest.fixture(name="pod")
def _pod(fake: FakePrime) -> SshAddress:
    return connection_of(fake, create(fake))


@pytest.fixture(name="shell")
def _shell(pod: SshAddress, key: LoginKey, hosts: KnownHosts) -> Iterator[Shell]:
    with connect(pod, key, hosts) as shell:
        yield shell


def connection_of(fake: FakePrime, pod_id: str) -> SshAddress:
    found = read_connection(pod_id, fake.pod(pod_id).address)
    assert found is not None
    return found


def home(fake: FakePrime, pod: SshAddress) -> Path:
    found = fake.home_of(pod.pod_id)
    assert found is not None
    return found


def log_of(fake: FakePrime, pod: SshAddress) -> str:
    """Return the log of the pod's sshd."""
    machine = fake.pod(pod.pod_id).machine
    assert machine is not None
    return machine.log()


def busy(pod: SshAddress) -> list[int]:
    """Return the processes that still run on the pod, except its sshd."""
    found = []
    for process in psutil.process_iter(["name"]):
        with suppress(psutil.Error, OSError):
            if process.environ().get(POD_VARIABLE) == pod.pod_id and not process.info["name"].startswith(
                "sshd"
            ):
                found.append(process.pid)
    return found


def raised(action: Callable[[], object]) -> ExternalError:
    with pytest.raises(ExternalError) as caught:
        action()
    return caught.value


def enter(pod: SshAddress, key: LoginKey, hosts: KnownHosts, **options: float) -> None:
    with connect(pod, key, hosts, **options) as shell:
        shell.run("true")


# ------------------------------------------------------------------------------------------------------------
# the key


def test_the_key_pair_is_made_once_for_its_owner_only(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as threads:
        found = {
            key.public for key in threads.map(lambda _: login_key(tmp_path / "ssh", b"m" * 32), range(8))
        }
    file = tmp_path / "ssh" / "id_ed25519"
    derived = subprocess.run(
        ["ssh-keygen", "-y", "-f", str(file)], capture_output=True, check=True
    ).stdout.decode()

    assert [public.split()[:2] for public in found] == [derived.split()[:2]]
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["id_ed25519"]


def test_a_file_that_is_no_key_is_left_alone_and_not_reported(tmp_path: Path) -> None:
    (tmp_path / "id_ed25519").write_bytes(SECRET)
    error = raised(lambda: login_key(tmp_path, b"m" * 32))

    assert isinstance(error, PermanentError)
    assert "id_ed25519 is not an Ed25519 key" in str(error)
    assert SECRET.decode() not in str(error)
    assert (tmp_path / "id_ed25519").read_bytes() == SECRET


def test_the_private_half_is_not_in_what_is_printed(key: LoginKey, tmp_path: Path) -> None:
    lines = (tmp_path / "ssh" / "id_ed25519").read_text().splitlines()
    assert not [line for line in lines if line in repr(key)]
    assert key.public in repr(key)


# ------------------------------------------------------------------------------------------------------------
# commands and files


def test_a_command_tells_its_code_and_what_it_printed(shell: Shell) -> None:
    message = shell.run("cat; echo wrong >&2; exit 7", stdin=b"in, ")
    assert (message.code, message.text) == (7, "in, wrong\n")


def test_of_a_flood_the_end_is_kept(shell: Shell) -> None:
    message = shell.run("yes | head -c 1000000; echo the end")
    assert len(message.text) == OUTPUT_BYTES_MAX
    assert message.tail.endswith("the end")


def test_a_command_need_not_read_what_it_is_given(shell: Shell) -> None:
    assert shell.run("exit 3", stdin=bytes(8 * MIB)).code == 3


def test_a_command_that_does_not_end_is_given_up(shell: Shell) -> None:
    error = raised(lambda: shell.run("sleep 600", stdin=SECRET, limit_s=0.3))
    assert isinstance(error, TemporaryError)
    assert "no answer in 0.3 s" in str(error)
    assert isinstance(raised(lambda: shell.run("true")), TemporaryError)


def test_a_file_arrives_complete_and_for_its_owner_only(
    fake: FakePrime, pod: SshAddress, shell: Shell
) -> None:
    data, steps = os.urandom(3 * MIB + 5), list[int]()
    shell.put("a folder/with 'quotes'/file", data, progress=steps.append)
    file = home(fake, pod) / "a folder" / "with 'quotes'" / "file"

    assert file.read_bytes() == data
    assert file.stat().st_mode & 0o777 == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["file"]
    assert steps == sorted(steps)
    assert steps[-1] == len(data)


def test_a_file_that_was_cut_leaves_the_old_one(
    fake: FakePrime, pod: SshAddress, key: LoginKey, hosts: KnownHosts
) -> None:
    def put(data: bytes) -> None:
        with connect(pod, key, hosts) as shell:
            shell.put("file", data)

    put(b"old")
    fake.cut_ssh(after_bytes=MIB)
    error = raised(lambda: put(SECRET * 200_000))
    assert isinstance(error, TemporaryError)
    assert SECRET.decode() not in str(error)
    assert fake.ssh_cuts == 1
    await_true("the machine has seen the end", lambda: not busy(pod))
    assert [path.name for path in home(fake, pod).iterdir()] == ["file"]
    assert (home(fake, pod) / "file").read_bytes() == b"old"
    put(bytes(2 * MIB))
    assert (home(fake, pod) / "file").read_bytes() == bytes(2 * MIB)


def test_a_file_that_cannot_be_written_is_refused_with_the_reason(shell: Shell) -> None:
    error = raised(lambda: shell.put("/dev/null/file", SECRET))
    assert isinstance(error, PermanentError)
    assert "/dev/null/file cannot be written: " in str(error)
    assert SECRET.decode() not in str(error)


def test_what_is_fetched_is_complete_and_without_what_was_complained(shell: Shell) -> None:
    fetched = shell.fetch("echo wrong >&2; head -c 300000 /dev/zero; exit 7", bytes_max=MIB)
    assert (fetched.code, fetched.data) == (7, bytes(300_000))


def test_what_is_more_than_was_requested_is_given_up(shell: Shell) -> None:
    error = raised(lambda: shell.fetch("cat /dev/zero", bytes_max=MIB))
    assert isinstance(error, PermanentError)
    assert "more than 1048576 bytes" in str(error)


def test_what_is_followed_comes_as_it_is_reported(fake: FakePrime, pod: SshAddress, shell: Shell) -> None:
    received, pieces = (
        bytearray(),
        shell.follow(
            "cat; until [ -e go ]; do sleep 0.05; done; echo gone; exec sleep 600", stdin=b"in\n", look_s=0.05
        ),
    )
    for piece in pieces:
        received += piece
        if not piece and bytes(received) == b"in\n":
            (home(fake, pod) / "go").touch()
        if received.endswith(b"gone\n"):
            break
    assert bytes(received) == b"in\ngone\n"


@pytest.mark.parametrize(
    ("command", "words"), [("sleep 600", "nothing was received for 0.3 s"), ("echo", "the connection ended")]
)
def test_silence_and_an_end_are_the_end_of_following(shell: Shell, command: str, words: str) -> None:
    error = raised(lambda: list(shell.follow(command, look_s=0.05, silence_s=0.3)))
    assert isinstance(error, TemporaryError)
    assert words in str(error)


# ------------------------------------------------------------------------------------------------------------
# who is there


def test_another_machine_at_the_address_is_sent_nothing(
    fake: FakePrime, pod: SshAddress, key: LoginKey, hosts: KnownHosts
) -> None:
    other = connection_of(fake, create(fake))
    enter(pod, key, hosts)
    error = raised(lambda: enter(replace(pod, port=other.port), key, hosts))

    assert isinstance(error, PermanentError)
    assert "changed host key" in str(error)
    assert "publickey" in log_of(fake, pod)
    assert "publickey" not in log_of(fake, other)
    enter(pod, key, hosts)
    enter(other, key, hosts)


def test_a_pod_is_known_once_somebody_has_logged_in(
    pod: SshAddress, key: LoginKey, hosts: KnownHosts
) -> None:
    assert not hosts.knows(pod.pod_id)
    enter(pod, key, hosts)
    assert hosts.knows(pod.pod_id)
    assert not hosts.knows(f"{pod.pod_id}x")


def test_what_is_pinned_is_read_by_openssh(
    pod: SshAddress, key: LoginKey, hosts: KnownHosts, tmp_path: Path
) -> None:
    enter(pod, key, hosts)
    options = (
        f"UserKnownHostsFile={tmp_path / 'attempt' / 'known_hosts'}",
        f"HostKeyAlias={pod.pod_id}",
        "StrictHostKeyChecking=yes",
    )
    words = [word for option in (*options, "BatchMode=yes", "IdentitiesOnly=yes") for word in ("-o", option)]
    ssh = [
        "ssh",
        "-F",
        "none",
        "-i",
        str(tmp_path / "ssh" / "id_ed25519"),
        *words,
        "-p",
        str(pod.port),
        f"{pod.user}@{pod.host}",
        "echo in",
    ]
    assert subprocess.run(ssh, capture_output=True, check=True).stdout == b"in\n"


def test_a_machine_that_does_not_know_the_key_yet_is_retried(
    pod: SshAddress, hosts: KnownHosts, tmp_path: Path
) -> None:
    error = raised(lambda: enter(pod, login_key(tmp_path / "another", b"n" * 32), hosts))
    assert isinstance(error, TemporaryError)
    assert "refuses the SSH key" in str(error)


def test_a_port_where_nobody_listens_is_retried(pod: SshAddress, key: LoginKey, hosts: KnownHosts) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    error = raised(lambda: enter(replace(pod, port=port), key, hosts))
    assert isinstance(error, TemporaryError)
    assert "Connection refused" in str(error)


def test_a_host_that_is_not_known_is_retried(pod: SshAddress, key: LoginKey, hosts: KnownHosts) -> None:
    assert isinstance(raised(lambda: enter(replace(pod, host="nowhere.invalid"), key, hosts)), TemporaryError)


def test_a_server_that_says_nothing_is_given_up(pod: SshAddress, key: LoginKey, hosts: KnownHosts) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        silent = replace(pod, port=server.getsockname()[1])
        error = raised(lambda: enter(silent, key, hosts, handshake_s=0.3))
    assert isinstance(error, TemporaryError)
    assert "no answer in 0.3 s" in str(error)


def test_a_server_that_hangs_up_is_retried(pod: SshAddress, key: LoginKey, hosts: KnownHosts) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def hang_up() -> None:
            server.accept()[0].close()

        hanging_up = threading.Thread(target=hang_up)
        hanging_up.start()
        error = raised(lambda: enter(replace(pod, port=server.getsockname()[1]), key, hosts))
        hanging_up.join()
    assert isinstance(error, TemporaryError)
