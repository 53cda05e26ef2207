"""Installing the agent on a machine: through the fake of Prime, over real SSH, up to its heartbeats at a
control plane.
"""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.market.ranking import rank
from prime_train.providers.install.agent_bundle import BRING_UP, pack
from prime_train.providers.install.push import AgentPusher, Recipe
from prime_train.providers.port import SshAddress
from prime_train.providers.prime.client import PrimeClient
from prime_train.providers.prime.pods import PrimePods, read_connection
from prime_train.providers.prime.settings import PrimeSettings
from prime_train.providers.ssh_client.keys import login_key
from prime_train.runs.wire import Bootstrap, Ticket
from prime_train.spec.spec import HardwareSpec
from prime_train.trainers.prime_rl.install import UV_ARCHIVES, UV_SHA256
from tests.agent.attempts import RUN_ID, demo_spec
from tests.fakes.control_plane import FakeControlPlane
from tests.fakes.http import ALWAYS, CutRequest
from tests.fakes.prime import FakePrime, needs_sshd
from tests.fakes.prime.client import create
from tests.fakes.prime.machines import WALLS

pytestmark = [needs_sshd, pytest.mark.skipif(sys.platform != "linux", reason="machines for rent have Linux")]

ROOT = Path(__file__).resolve().parents[2]
ATTEMPT = f"{RUN_ID}-e1"
HERE = Recipe(python=sys.executable, disks=("~",))
HARDWARE = HardwareSpec(gpus=("A100",), disk_gib=50)


@pytest.fixture(name="plane")
def _plane(tmp_path: Path) -> Iterator[FakeControlPlane]:
    """Return a control plane with a run that has no working tree: its agent sends heartbeats, and then
    reports that it cannot begin.
    """
    job = Bootstrap(
        run=RUN_ID,
        attempt=1,
        spec=demo_spec("--steps 1"),
        bucket_url=(tmp_path / "bucket").as_uri(),
        code_key="missing",
    )
    with FakeControlPlane(job, clock=lambda: int(time.time())) as plane:
        yield plane


@pytest.fixture(name="idle")
def _idle(plane: FakeControlPlane) -> FakeControlPlane:
    """Return a control plane whose agents keep running, because they get no job."""
    plane.fail(CutRequest(), times=ALWAYS)
    return plane


@pytest.fixture(name="fake")
def _fake(tmp_path: Path) -> Iterator[FakePrime]:
    with FakePrime(tmp_path / "prime") as running:
        running.add_ssh_key(login_key(tmp_path / "ssh", b"m" * 32).public)
        yield running


@pytest.fixture(name="pod")
def _pod(fake: FakePrime) -> SshAddress:
    pod_id = create(fake)
    found = read_connection(pod_id, fake.pod(pod_id).address)
    assert found is not None
    return found


@pytest.fixture(name="pusher")
def _pusher(tmp_path: Path) -> AgentPusher:
    return pusher_of(tmp_path)


def pusher_of(folder: Path, recipe: Recipe = HERE) -> AgentPusher:
    return AgentPusher(login_key(folder / "ssh", b"m" * 32), folder / "attempts", recipe=recipe)


def home(fake: FakePrime, pod: SshAddress) -> Path:
    found = fake.home_of(pod.pod_id)
    assert found is not None
    return found


def agents(folder: Path) -> list[int]:
    """Return the living agents with a ticket in the folder."""
    ticket = str(folder / ".prime-train" / ATTEMPT / "ticket.json")
    found = psutil.process_iter(["cmdline", "pid"])
    return [process.info["pid"] for process in found if ticket in (process.info["cmdline"] or ())]


def raised(action: Callable[[], object]) -> ExternalError:
    with pytest.raises(ExternalError) as caught:
        action()
    return caught.value


# ------------------------------------------------------------------------------------------------------------
# starting it


def test_an_agent_on_a_rented_machine_sends_heartbeats(
    fake: FakePrime, plane: FakeControlPlane, tmp_path: Path
) -> None:
    key = login_key(tmp_path / "ssh", b"m" * 32)
    pods = PrimePods(
        PrimeClient(PrimeSettings(fake.api_key, base_url=fake.url)),
        pusher_of(tmp_path),
        public_key=key.public,
    )
    pod = pods.create("pt-tiny-1-e1", rank(pods.offers(HARDWARE), HARDWARE).best[0], HARDWARE)
    pods.put_agent(pod, plane.ticket)

    assert plane.await_heartbeat(lambda heartbeat: True).attempt == 1
    disk = fake.home_of(pod.pod_id)
    assert disk is not None
    ticket = disk / ".prime-train" / ATTEMPT / "ticket.json"
    assert Ticket.model_validate_json(ticket.read_bytes()) == plane.ticket
    assert ticket.stat().st_mode & 0o777 == 0o600
    assert (disk / "prime-train" / ATTEMPT / "logs" / "agent.log").exists()


def test_an_agent_that_runs_is_left_alone(
    fake: FakePrime, pod: SshAddress, idle: FakeControlPlane, pusher: AgentPusher
) -> None:
    pusher(pod, idle.ticket)
    first = agents(home(fake, pod))
    pusher(pod, idle.ticket)
    assert len(first) == 1
    assert agents(home(fake, pod)) == first


def test_two_at_once_start_one_agent(
    fake: FakePrime, pod: SshAddress, idle: FakeControlPlane, tmp_path: Path
) -> None:
    with ThreadPoolExecutor(2) as threads:
        for done in [threads.submit(pusher_of(tmp_path), pod, idle.ticket) for _ in range(2)]:
            done.result()
    assert len(agents(home(fake, pod))) == 1


def test_an_agent_that_was_killed_is_started_again(
    fake: FakePrime, pod: SshAddress, idle: FakeControlPlane, pusher: AgentPusher
) -> None:
    pusher(pod, idle.ticket)
    (first,) = agents(home(fake, pod))
    psutil.Process(first).kill()
    pusher(pod, idle.ticket)
    (second,) = agents(home(fake, pod))
    assert second != first


def test_a_number_that_went_to_another_process_is_no_agent(
    fake: FakePrime, pod: SshAddress, idle: FakeControlPlane, pusher: AgentPusher
) -> None:
    folder = home(fake, pod) / ".prime-train" / ATTEMPT
    folder.mkdir(parents=True)
    (folder / "pid").write_text(f"{os.getpid()}\n")
    pusher(pod, idle.ticket)
    assert len(agents(home(fake, pod))) == 1


@pytest.mark.parametrize("after_bytes", [500, 4_000, 7_000, 10_000, 13_000, 16_000])
def test_a_push_that_was_cut_is_done_again(
    fake: FakePrime, pod: SshAddress, idle: FakeControlPlane, pusher: AgentPusher, after_bytes: int
) -> None:
    fake.cut_ssh(after_bytes=after_bytes)
    error = raised(lambda: pusher(pod, idle.ticket))
    assert isinstance(error, TemporaryError)
    assert idle.key not in str(error)
    assert fake.ssh_cuts == 1
    pusher(pod, idle.ticket)
    assert len(agents(home(fake, pod))) == 1


# ------------------------------------------------------------------------------------------------------------
# what is refused


def test_another_machine_gets_no_ticket(
    fake: FakePrime, pod: SshAddress, idle: FakeControlPlane, pusher: AgentPusher
) -> None:
    pusher(pod, idle.ticket)
    other = create(fake)
    elsewhere = read_connection(pod.pod_id, fake.pod(other).address)
    assert elsewhere is not None
    error = raised(lambda: pusher(elsewhere, idle.ticket))
    disk = fake.home_of(other)

    assert isinstance(error, PermanentError)
    assert "changed host key" in str(error)
    assert disk is not None
    assert list(disk.rglob("ticket.json")) == []


def test_an_agent_that_cannot_start_tells_why(
    pod: SshAddress, idle: FakeControlPlane, tmp_path: Path
) -> None:
    error = raised(lambda: pusher_of(tmp_path, replace(HERE, python="/nowhere/python"))(pod, idle.ticket))
    assert isinstance(error, TemporaryError)
    assert "the agent ended at once" in str(error)
    assert "/nowhere/python" in str(error)


def test_a_ticket_that_the_machine_repeats_is_not_reported(
    pod: SshAddress, idle: FakeControlPlane, tmp_path: Path
) -> None:
    gossip = tmp_path / "gossip"
    gossip.write_text('#!/bin/sh\nfor word in "$@"; do cat "$word"; done 2>/dev/null\n')
    gossip.chmod(0o755)
    error = raised(lambda: pusher_of(tmp_path, replace(HERE, python=str(gossip)))(pod, idle.ticket))
    assert '"key":"***"' in str(error)
    assert idle.key not in repr(error)
    assert error.__cause__ is None


def test_a_machine_without_a_disk_for_us_is_refused(
    pod: SshAddress, idle: FakeControlPlane, tmp_path: Path
) -> None:
    error = raised(
        lambda: pusher_of(tmp_path, replace(HERE, disks=("/proc/none", "/nowhere")))(pod, idle.ticket)
    )
    assert isinstance(error, PermanentError)
    assert "none of /proc/none /nowhere is a folder that can be written to" in str(error)


# ----------------------------------------------------------------------------------------------------------
# the script by itself


SYSTEM = (
    "sh",
    "cat",
    "cp",
    "gzip",
    "mkdir",
    "mv",
    "rm",
    "sha256sum",
    "tar",
    "tr",
    "grep",
    "tail",
    "cut",
    "sleep",
    "flock",
    "setsid",
    "nohup",
    "id",
)


class Bare:
    """A machine's home folder and its programs: a few of the system's, and scripts that replace others."""

    def __init__(self, folder: Path, **programs: str) -> None:
        self.home, self._bin = folder / "home", folder / "bin"
        self.home.mkdir()
        self._bin.mkdir()
        for name in SYSTEM:
            found = next(path for path in (Path("/usr/bin", name), Path("/bin", name)) if path.exists())
            (self._bin / name).symlink_to(found)
        for name, script in programs.items():
            (self._bin / name).write_text(f"#!/bin/sh\n{script}\n")
            (self._bin / name).chmod(0o755)

    def up(
        self, *disks: str, python: str = "", changes: Callable[[str], str] = lambda script: script
    ) -> subprocess.CompletedProcess[str]:
        words = ["/bin/sh", "-s", "--", "up", ATTEMPT, "digest", python, "/nowhere", *disks]
        environment = {"HOME": str(self.home), "PATH": str(self._bin)}
        return subprocess.run(
            words,
            input=changes(BRING_UP.read_text()),
            env=environment,
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
        )


def test_a_machine_with_an_old_python_and_no_way_to_another_is_refused(tmp_path: Path) -> None:
    old = 'case $1 in --version) echo "Python 3.10.12" ;; *) exit 1 ;; esac'
    done = Bare(tmp_path, python3=old).up("~")
    assert done.returncode == 78
    assert done.stdout == (
        "the agent needs uv, or Python 3.11 or later with venv; this machine has Python 3.10.12, and no curl "
        "to fetch uv\n"
    )


def test_a_python_that_only_the_images_path_leads_to_is_found(tmp_path: Path) -> None:
    machine, image = Bare(tmp_path), tmp_path / "opt" / "conda" / "bin"
    (tmp_path / "home" / ".prime-train").mkdir()
    (tmp_path / "bin" / "sed").symlink_to(shutil.which("sed") or "/bin/sed")
    image.mkdir(parents=True)
    (image / "python3").write_text(f'#!/bin/sh\necho "$0" >>{tmp_path}/asked\n[ "$1" = -c ]\n')
    (image / "python3").chmod(0o755)
    script = (ROOT / "src" / "prime_train" / "providers" / "install" / "bring_up.sh").read_text()
    # The first process has the image's PATH, and what it starts here has a session's.
    session = (
        f'PATH={tmp_path / "bin"} HOME={machine.home} /bin/sh -s -- up {ATTEMPT} digest "" '
        "/nowhere "
        '"~"; exit $?'
    )
    walls = [str(shutil.which("bwrap")), *WALLS, "--", "/bin/sh", "-c", session]
    done = subprocess.run(
        walls, input=script, env={"PATH": str(image)}, text=True, capture_output=True, check=False
    )
    assert (done.returncode, done.stdout) == (75, "python3 could make no venv\n"), done.stderr
    assert (tmp_path / "asked").read_text().splitlines() == [str(image / "python3")] * 2


def test_an_installation_that_failed_is_begun_anew(tmp_path: Path) -> None:
    # The first word says what is asked of it; it makes the folder that is its last word.
    uv = (
        'echo "$1" >>"$HOME/asked"; case $1 in venv) for last; do :; done; mkdir "$last" ;; *) exit 2 ;; esac'
    )
    machine = Bare(tmp_path, uv=uv)
    for _ in range(2):
        done = machine.up("~")
        assert (done.returncode, done.stdout) == (75, "uv could not install the agent\n")
    assert (machine.home / "asked").read_text().split() == ["venv", "pip"] * 2


def archive_of_uv(folder: Path) -> Path:
    """Return an archive like those of uv's releases, with a program that notes what is asked of it."""
    program = folder / "uv-any-unknown-linux-musl" / "uv"
    program.parent.mkdir()
    program.write_text('#!/bin/sh\necho "$1" >>"$HOME/asked"\nexit 2\n')
    program.chmod(0o755)
    archive = folder / "fetched.tar.gz"
    with tarfile.open(archive, "w:gz") as file:
        file.add(program.parent, program.parent.name)
    return archive


# What it is given last is the address, and before that the file to write to.
CURL = 'for last; do before=$to to=$file file=$last; done; exec cp {archive} "$to"'


def test_where_nothing_else_is_there_uv_is_fetched_to_a_place_of_its_own(tmp_path: Path) -> None:
    archive = archive_of_uv(tmp_path)
    digest = hashlib.sha256(archive.read_bytes()).hexdigest()
    machine = Bare(tmp_path, curl=CURL.format(archive=archive), uname="echo x86_64")
    done = machine.up(
        "~", changes=lambda script: re.sub(r"(UV_SHA256_x86_64=)\w+", rf"\g<1>{digest}", script)
    )
    assert (done.returncode, done.stdout) == (75, "uv could make no venv with Python 3.11 or later\n")
    assert (machine.home / "asked").read_text() == "venv\n"
    assert (machine.home / ".prime-train" / "bin" / "uv").exists()


def test_what_is_fetched_as_uv_is_not_run_if_it_has_another_hash(tmp_path: Path) -> None:
    machine = Bare(tmp_path, curl=CURL.format(archive=archive_of_uv(tmp_path)), uname="echo aarch64")
    done = machine.up("~")
    assert (done.returncode, done.stdout) == (
        75,
        "this machine has no Python and no uv, and what was fetched as uv has another hash\n",
    )
    assert not (machine.home / "asked").exists()


def test_the_agent_and_prime_rl_are_installed_by_the_same_uv() -> None:
    script = BRING_UP.read_text()
    assert re.findall(r"^UV_SHA256_(\w+)=(\w+)$", script, re.MULTILINE) == list(UV_SHA256.items())
    assert f"\nUV_ARCHIVES={UV_ARCHIVES}\n" in script


def test_uv_that_cannot_be_fetched_is_tried_later(tmp_path: Path) -> None:
    done = Bare(tmp_path, curl="exit 6", uname="echo x86_64").up("~")
    assert (done.returncode, done.stdout) == (
        75,
        "this machine has no Python and no uv, and uv could not be fetched\n",
    )


def test_the_disk_with_the_most_room_is_taken_and_kept(tmp_path: Path) -> None:
    small, large = tmp_path / "small", tmp_path / "large"
    small.mkdir()
    large.mkdir()
    sizes = (
        f'case $2 in *small) echo "/dev/a 9 1 $(cat {tmp_path}/free) 1% /a" ;; *) echo "/dev/b 9 1 '
        "2000 "
        '1% /b" ;; esac'
    )
    machine = Bare(tmp_path, df=sizes)
    for free_kib in ("1000", "3000"):
        (tmp_path / "free").write_text(free_kib)
        machine.up(str(small), str(large), "/nowhere", python="/nowhere/python")
        assert (large / "prime-train" / ATTEMPT / "agent.lock").exists()
        assert list(small.iterdir()) == []


def test_half_of_the_script_does_nothing(tmp_path: Path) -> None:
    lines = (ROOT / "src" / "prime_train" / "providers" / "install" / "bring_up.sh").read_text().splitlines()
    words = ["/bin/sh", "-s", "--", "up", ATTEMPT, "digest", "", "/nowhere", "~"]
    subprocess.run(words, input="\n".join(lines[:-1]), env={"HOME": str(tmp_path)}, text=True, check=True)
    assert list(tmp_path.iterdir()) == []


# ------------------------------------------------------------------------------------------------------------
# the wheel


def test_the_wheel_is_installed_by_pip_and_makes_itself_again(tmp_path: Path) -> None:
    parcel = pack()
    for name, data in parcel.files.items():
        (tmp_path / name).write_bytes(data)
    (wheel,) = tmp_path.glob("*.whl")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--target",
        str(tmp_path / "there"),
        str(wheel),
    ]
    subprocess.run(pip, check=True)
    program = (
        "import prime_agent.main, prime_train.providers.install.agent_bundle as p; "
        "print(prime_agent.main.__file__, p.pack().digest)"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "there")}
    message = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert message.split() == [str(tmp_path / "there" / "prime_agent" / "main.py"), parcel.digest]
    assert parcel.files["runtime.txt"] == (ROOT / "requirements" / "runtime.txt").read_bytes()


@pytest.mark.exhaustive
def test_a_control_plane_that_was_installed_from_its_wheel_can_send_the_agent(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=ROOT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    pip = [
        sys.executable,
        "-m",
        "pip",
        "install",
        "--quiet",
        "--no-index",
        "--no-deps",
        "--target",
        str(tmp_path / "there"),
        str(wheel),
    ]
    subprocess.run(pip, check=True)
    program = (
        "from prime_train.providers.install.agent_bundle import pack; p = pack(); print(*p.files, "
        "len(p.files['runtime.txt']))"
    )
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "there")}
    message = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert message.split() == [
        wheel.name,
        "runtime.txt",
        str((ROOT / "requirements" / "runtime.txt").stat().st_size),
    ]
