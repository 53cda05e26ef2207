"""The fake's pods, reached with the real ssh: processes there live and die with the pod."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from tests.fakes.prime import POD_VARIABLE, SPOT, End, FakePrime, Plan, needs_sshd
from tests.fakes.prime.client import call, create, pod_body
from tests.waiting import await_true

pytestmark = needs_sshd

ROOT = Path(__file__).resolve().parents[3]
SSH_S_MAX = 60.0
MIB = 2**20


@dataclass(frozen=True)
class Login:
    """A key pair and a client that uses it, in a folder of its own."""

    key: Path

    @property
    def public_key(self) -> str:
        return self.key.with_suffix(".pub").read_text()

    def options(self, host_key: str = "") -> list[str]:
        """Return the options of ssh; they trust the given host key, or any."""
        known = self.key.with_name("known_hosts")
        known.write_text(f"pod {host_key}" if host_key else "")
        strict = "yes" if host_key else "no"
        settings = (
            f"UserKnownHostsFile={known}",
            "GlobalKnownHostsFile=none",
            f"StrictHostKeyChecking={strict}",
            "HostKeyAlias=pod",
        )
        words = [
            "-F",
            "none",
            "-i",
            str(self.key),
            "-o",
            "IdentitiesOnly=yes",
            "-o",
            "BatchMode=yes",
            "-o",
            "LogLevel=ERROR",
        ]
        return words + [word for setting in settings for word in ("-o", setting)]

    def run(
        self, connection: str, command: str, *, stdin: bytes = b"", host_key: str = ""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a command. `connection` as given by the API."""
        words = ["ssh", *self.options(host_key), *connection.split(), command]
        return subprocess.run(words, input=stdin, capture_output=True, timeout=SSH_S_MAX, check=False)


def new_login(folder: Path) -> Login:
    folder.mkdir()
    subprocess.run(
        ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / "key")],
        check=True,
        timeout=SSH_S_MAX,
    )
    return Login(folder / "key")


@pytest.fixture
def login(tmp_path: Path) -> Login:
    return new_login(tmp_path / "login")


@pytest.fixture
def fake(tmp_path: Path, login: Login) -> Iterator[FakePrime]:
    with FakePrime(tmp_path / "prime") as running:
        running.add_ssh_key(login.public_key)
        yield running


def connection(fake: FakePrime, pod_id: str) -> str:
    return str(call(fake, "GET", f"/pods/{pod_id}")["sshConnection"])


def seen_from_here(machine: int, number: bytes) -> int:
    """Return the number of a machine's process on this computer: the machine counts its own. `machine`: the
    number of what it runs in.
    """
    if sys.platform != "linux":
        return int(number)
    (pid,) = (
        child.pid
        for child in psutil.Process(machine).children(recursive=True)
        if f"NSpid:\t{child.pid}\t{int(number)}\n" in kernel_says(child.pid)
    )
    return pid


def kernel_says(pid: int) -> str:
    """Return what the kernel tells of a process; nothing if it has ended since it was listed, as helpers of a
    shell soon do.
    """
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/status").read_text()
    return ""


def machine_of(fake: FakePrime, pod_id: str) -> int:
    machine = fake.pod(pod_id).machine
    assert machine is not None
    return machine.pid


def is_over(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def marked(pod_id: str) -> list[int]:
    """Return the living processes with the pod's variable."""
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get(POD_VARIABLE) == pod_id and not is_over(process.pid):
                found.append(process.pid)
        except (psutil.Error, OSError):
            continue
    return found


def test_a_command_runs_in_the_pods_own_folder(fake: FakePrime, login: Login) -> None:
    pod_id = create(fake)
    ran = login.run(connection(fake, pod_id), 'cat > sent; pwd; echo "$HOME"; exit 7', stdin=b"some bytes")
    home = fake.home_of(pod_id)
    assert home is not None
    assert (ran.returncode, ran.stdout.decode().split()) == (7, [str(home), str(home)])
    assert (home / "sent").read_bytes() == b"some bytes"


def test_files_are_copied_as_they_are(fake: FakePrime, login: Login, tmp_path: Path) -> None:
    pod_id = create(fake)
    (tmp_path / "file").write_bytes(os.urandom(3 * MIB))
    at, _, port = connection(fake, pod_id).split()
    words = ["scp", "-q", *login.options(), "-P", port, str(tmp_path / "file"), f"{at}:copied"]
    subprocess.run(words, check=True, timeout=SSH_S_MAX)
    home = fake.home_of(pod_id)
    assert home is not None
    assert (home / "copied").read_bytes() == (tmp_path / "file").read_bytes()


def test_only_the_key_that_was_named_opens_the_pod(fake: FakePrime, login: Login, tmp_path: Path) -> None:
    other = new_login(tmp_path / "other")
    pod_id = create(fake, sshKeyId=fake.add_ssh_key(other.public_key))
    assert other.run(connection(fake, pod_id), "true").returncode == 0
    refused = login.run(connection(fake, pod_id), "true")
    assert refused.returncode == 255
    assert b"Permission denied" in refused.stderr


def test_each_pod_has_a_host_key_of_its_own(fake: FakePrime, login: Login) -> None:
    pods = [create(fake), create(fake)]
    machines = [fake.pod(pod_id).machine for pod_id in pods]
    first, second = (machine.host_key() for machine in machines if machine is not None)
    assert login.run(connection(fake, pods[0]), "true", host_key=first).returncode == 0
    assert login.run(connection(fake, pods[0]), "true", host_key=second).returncode == 255


@pytest.mark.parametrize(
    "escape",
    [
        pytest.param("sleep 600", id="a child of the session"),
        pytest.param("setsid nohup sleep 600", id="a session of its own"),
        pytest.param("setsid env -i /bin/sleep 600", id="one without its environment"),
    ],
)
@pytest.mark.skipif(sys.platform != "linux", reason="only Linux gives orphans to whom we choose")
def test_whatever_runs_on_a_pod_dies_with_it(fake: FakePrime, login: Login, escape: str) -> None:
    pod_id = create(fake, SPOT)
    home = fake.home_of(pod_id)
    ran = login.run(connection(fake, pod_id), f"{escape} </dev/null >/dev/null 2>&1 & echo $!")
    pid = seen_from_here(machine_of(fake, pod_id), ran.stdout)
    assert not is_over(pid)
    fake.preempt(pod_id)
    assert is_over(pid)
    assert marked(pod_id) == []
    assert home is not None
    assert not home.exists()


def test_a_background_process_outlives_its_connection(fake: FakePrime, login: Login) -> None:
    pod_id = create(fake)
    ran = login.run(connection(fake, pod_id), "setsid nohup sleep 600 </dev/null >/dev/null 2>&1 & echo $!")
    assert login.run(connection(fake, pod_id), f"kill -0 {int(ran.stdout)}").returncode == 0


def test_pods_are_apart(fake: FakePrime, login: Login) -> None:
    lost, kept = create(fake), create(fake)
    login.run(connection(fake, kept), "echo kept > file")
    where = connection(fake, lost)
    call(fake, "DELETE", f"/pods/{lost}")
    assert login.run(where, "true").returncode == 255
    assert login.run(connection(fake, kept), "cat file").stdout == b"kept\n"


def test_an_empty_wallet_takes_the_machine_too(fake: FakePrime, login: Login) -> None:
    fake.balance_usd = 0.1
    pod_id = create(fake, SPOT)
    said = login.run(
        connection(fake, pod_id), "setsid nohup sleep 600 </dev/null >/dev/null 2>&1 & echo $!"
    ).stdout
    pid = seen_from_here(machine_of(fake, pod_id), said)
    fake.advance(3600)
    assert is_over(pid)
    assert fake.home_of(pod_id) is None


def test_a_transfer_is_cut_where_it_was_ordered(fake: FakePrime, login: Login) -> None:
    pod_id = create(fake)
    home = fake.home_of(pod_id)
    assert home is not None
    ports: list[int] = []
    fake.cut_ssh(after_bytes=MIB, then=ports.append)
    cut = login.run(connection(fake, pod_id), "cat > file", stdin=os.urandom(4 * MIB))
    assert cut.returncode == 255
    assert fake.ssh_cuts == len(ports) == 1
    # How much of it the pod's sshd has handed on before it saw the end is chance; none of it may be more than
    # came through.
    assert not (home / "file").exists() or (home / "file").stat().st_size < MIB
    assert login.run(connection(fake, pod_id), "cat > file", stdin=bytes(4 * MIB)).returncode == 0
    assert (home / "file").stat().st_size == 4 * MIB


def test_a_disk_outlives_the_pods_it_was_on(fake: FakePrime, login: Login) -> None:
    body = {"disk": {"size": 100, "dataCenterId": "FIN-01"}, "provider": {"type": "datacrunch"}}
    disk_id = call(fake, "POST", "/disks/", body=body)["id"]
    first = call(fake, "POST", "/pods/", body=pod_body(SPOT, disks=[disk_id]))["id"]
    assert login.run(connection(fake, first), "echo here > workspace/file").returncode == 0
    fake.preempt(first, End.MISSING)
    second = call(fake, "POST", "/pods/", body=pod_body(SPOT, disks=[disk_id]))["id"]
    assert login.run(connection(fake, second), "cat workspace/file").stdout == b"here\n"


def test_by_a_running_clock_a_pod_comes_up_by_itself(tmp_path: Path, login: Login) -> None:
    with FakePrime(tmp_path / "running", running=True) as fake:
        fake.add_ssh_key(login.public_key)
        fake.plan = Plan(provision_s=0.1, install_s=0.1)
        pod_id = create(fake)
        await_true("the machine is up", lambda: fake.home_of(pod_id))
        assert login.run(connection(fake, pod_id), "echo up").stdout == b"up\n"


STARTED = """
import sys
from pathlib import Path
from tests.fakes.prime import FakePrime
from tests.fakes.prime.client import create
with FakePrime(Path(sys.argv[1])) as fake:
    fake.add_ssh_key(sys.argv[2])
    pod = fake.pod(create(fake))
    print(pod.pod_id, pod.machine.pid, pod.address, flush=True)
    input()
"""


def test_a_pod_ends_when_the_test_is_killed(tmp_path: Path, login: Login) -> None:
    words = [sys.executable, "-c", STARTED, str(tmp_path / "killed"), login.public_key]
    with subprocess.Popen(words, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as test:
        assert test.stdout is not None
        pod_id, machine, *address = test.stdout.readline().decode().split()
        said = login.run(
            " ".join(address), "setsid nohup sleep 600 </dev/null >/dev/null 2>&1 & echo $!"
        ).stdout
        pid = seen_from_here(int(machine), said)
        test.send_signal(signal.SIGKILL)
    await_true("the machine has ended", lambda: is_over(int(machine)))
    assert is_over(pid)
    assert marked(pod_id) == []
    assert not (tmp_path / "killed" / "pods" / pod_id).exists()
