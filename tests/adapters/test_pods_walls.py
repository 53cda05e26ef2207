"""What a command on a local pod can see of its control plane's machine, with and without bubblewrap's
walls.
"""

import os
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from prime_train import bubblewrap
from prime_train.providers.local import walls
from prime_train.providers.local.pods import DEFAULT_OFFERS, LocalPods
from prime_train.providers.local.walls import Walls, allowed_environment
from prime_train.runs.verdict import Pod
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec
from tests.waiting import await_true

TICKET = Ticket(run="tiny-1", attempt=1, url="", key="k")
NOBODYS = "http://index.example.org/simple"


@dataclass(frozen=True)
class Operator:
    """An operator's home folder with keys in it, and the home of a control plane in there."""

    user: Path

    @property
    def home(self) -> Path:
        return self.user / ".prime-train"

    @property
    def walls(self) -> Walls:
        return Walls(self.home, (self.home / "bucket").as_uri())

    def pods(self, command: str, own: Walls | None = None) -> LocalPods:
        agent = ["/bin/sh", "-c", command, "agent"]
        return LocalPods(
            self.home / "pods", agent_command=agent, walls=own if own is not None else self.walls
        )


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    here = Operator(tmp_path / "you")
    for folder in (here.user / ".ssh", here.user / ".aws", here.user / "data", here.home / "bucket"):
        folder.mkdir(parents=True)
    for file in (
        ".ssh/id_ed25519",
        ".aws/credentials",
        ".netrc",
        ".prime-train/master.key",
        ".prime-train/control.sqlite",
        "data/rows",
    ):
        (here.user / file).write_text("a-key-of-yours\n")
    monkeypatch.setenv("HOME", str(here.user))
    return here


walled = pytest.mark.skipif(bool(Walls(Path("/"), "").why_none), reason="bubblewrap does not work here")


def said(pods: LocalPods) -> str:
    """Rent a pod, and return what its agent printed before it ended."""
    pod = pods.create("pt-tiny-1-e1", DEFAULT_OFFERS[0], HardwareSpec())
    pods.put_agent(pod, TICKET)
    await_true("the agent has ended", lambda: pods.agent_exit(pod.pod_id) is not None)
    log = pods.logs(pod.pod_id)
    assert log is not None
    text = log.read_text()
    pods.terminate(pod.pod_id)
    return text


@walled
def test_a_command_finds_no_key_of_its_operator(operator: Operator) -> None:
    files = [path for path in operator.user.rglob("*") if path.is_file() and path.name != "rows"]
    text = said(operator.pods("; ".join(f"cat {path}" for path in files) + f"; ls -A {operator.home}"))
    assert "a-key-of-yours" not in text
    assert {*text.split()} >= {"bucket", "pods"}
    assert "master.key" not in text.splitlines()


@walled
def test_a_command_sees_no_other_process_and_reads_no_environment_of_one(operator: Operator) -> None:
    secret = {**os.environ, "MASTER_OF_OTHERS": "a-key-of-yours"}
    with subprocess.Popen(["/bin/sleep", "600"], env=secret) as other:
        try:
            text = said(
                operator.pods(
                    f"cat /proc/*/environ | tr '\\0' '\\n'; kill -0 {other.pid} && echo reached; true"
                )
            )
        finally:
            other.kill()
    assert "PRIME_TRAIN_POD=local-" in text
    assert not {"a-key-of-yours", "reached"} & {word.rpartition("=")[2] for word in text.split()}


@walled
def test_a_command_can_use_python_its_disk_the_bucket_and_the_data_of_its_operator(
    operator: Operator,
) -> None:
    python = f'{sys.executable} -c "import prime_agent.main, torch_is_optional" 2>&1 | tail -1'
    reads = f"cat {operator.user}/data/rows; id -u; grep CapEff /proc/self/status"
    writes = f'echo new >{operator.user}/data/more; echo blob >{operator.home}/bucket/blob; echo x >"$HOME/x"'
    script = f"{reads}; {writes}; {python}"
    text = said(operator.pods(script))
    assert "a-key-of-yours" in text
    assert "No module named 'torch_is_optional'" in text, "the agent itself can be imported"
    assert f"{os.getuid()}\n" in text
    assert "CapEff:\t0000000000000000" in text
    assert (operator.user / "data" / "more").read_text() == "new\n"
    assert (operator.home / "bucket" / "blob").read_text() == "blob\n"


@walled
def test_a_notice_reaches_the_agent_inside_of_the_walls(operator: Operator) -> None:
    pods = operator.pods(
        f'trap "echo noticed >{operator.user}/data/notice; exit 0" TERM; echo up; while :; do sleep 0.05; '
        "done"
    )
    pod: Pod = pods.create("pt-tiny-1-e1", DEFAULT_OFFERS[0], HardwareSpec())
    pods.put_agent(pod, TICKET)
    await_true(
        "the agent is up", lambda: (log := pods.logs(pod.pod_id)) is not None and "up" in log.read_text()
    )
    pods.preempt(pod.pod_id, notice_s=60)
    assert (operator.user / "data" / "notice").read_text() == "noticed\n"
    assert pods.get(pod.pod_id) is None
    assert pods.list() == []


@walled
def test_nothing_of_a_walled_pod_is_left_when_it_is_ended(operator: Operator) -> None:
    pods = operator.pods("sleep 600 & setsid sleep 600 & exec sleep 600")
    pod = pods.create("pt-tiny-1-e1", DEFAULT_OFFERS[0], HardwareSpec())
    pods.put_agent(pod, TICKET)
    pods.terminate(pod.pod_id)
    assert list((operator.home / "pods").glob("*local-*")) == []


def test_without_bubblewrap_a_command_runs_without_walls_and_it_is_said(
    operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bubblewrap, "NAME", "a-program-that-is-not-here")
    walls._why_none.cache_clear()
    try:
        pods = operator.pods('echo here "$HOME"')
        assert pods.why_no_walls == "bubblewrap is not installed"
        assert said(pods).startswith(f"here {operator.home}/pods/local-")
    finally:
        walls._why_none.cache_clear()


def test_a_pod_inherits_no_variable_that_is_not_on_the_list() -> None:
    kept = {
        "PATH": "/bin",
        "LANG": "C",
        "https_proxy": "http://proxy:3128",
        "CUDA_HOME": "/cuda",
        "NCCL_DEBUG": "INFO",
        "PIP_INDEX_URL": NOBODYS,
    }
    dropped = {
        "PRIME_TRAIN_MASTER_KEY": "k",
        "PRIME_API_KEY": "k",
        "DATABASE_URL": "postgres://me:secret@db",
        "SSH_AUTH_SOCK": "/tmp/agent",
        "NCCL_API_KEY": "k",
        "CUDA_TOKEN": "k",
        "UV_INDEX_URL": "https://me:secret@index.example.org/simple",
        "HOME": "/home/you",
    }
    assert allowed_environment({**kept, **dropped}) == kept


@contextmanager
def listening(path: Path) -> Iterator[Path]:
    """Listen at a socket as a program outside of the walls does that takes orders there."""
    with socket.socket(socket.AF_UNIX) as outside:
        outside.bind(str(path))
        outside.listen()
        yield path


@pytest.fixture
def short() -> Iterator[Path]:
    """Return a folder below /tmp whose name leaves room for that of a socket, which has 107 characters at
    most.
    """
    with tempfile.TemporaryDirectory(dir="/tmp", prefix="pt-") as folder:
        yield Path(folder)


@walled
def test_no_program_outside_takes_orders_by_a_socket(
    operator: Operator, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    user = short / "you"
    for folder in (user / "data", user / "runtime" / "bus", short / "tmux-0"):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(user))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(user / "runtime"))
    paths = (short / "tmux-0" / "default", user / "data" / "mux", user / "runtime" / "bus" / "s")
    connect = "import socket,sys; socket.socket(socket.AF_UNIX).connect(sys.argv[1]); print('reached')"
    try_all = "; ".join(f'{sys.executable} -c "{connect}" {path} 2>&1 | tail -1' for path in paths)
    with ExitStack() as stack:
        for path in paths:
            stack.enter_context(listening(path))
        text = said(operator.pods(f"{try_all}; ls -A /run; ls {user}"))
        assert "reached" in said(
            LocalPods(operator.home / "open", agent_command=["/bin/sh", "-c", try_all, "agent"])
        ), "without walls they are"
    assert "reached" not in text
    assert text.split()[-2:] == ["data", "runtime"], "the folders of the user themselves are there"
    assert not {"docker.sock", "dbus", "screen", "user"} & {*text.split()}


@walled
@pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")
def test_a_command_cannot_copy_the_master_key_out_through_tmux(operator: Operator, short: Path) -> None:
    sock, taken = short / "mux", operator.home / "bucket" / "taken"
    start = ["tmux", "-S", str(sock), "-f", "/dev/null", "new-session", "-d", "sleep 600"]
    subprocess.run(start, check=True, env={"PATH": os.environ["PATH"], "HOME": str(short)})
    try:
        command = f"tmux -S {sock} run-shell 'cp {operator.home}/master.key {taken}'"
        assert (
            "no server running" in (text := said(operator.pods(f"{command} 2>&1; echo done")))
            or "error connecting" in text
        )
        assert not taken.exists()
    finally:
        subprocess.run(["tmux", "-S", str(sock), "kill-server"], check=True)


@walled
@pytest.mark.parametrize("place", ["/tmp", "/var/tmp", '"$TMPDIR"'])
def test_what_is_temporary_is_the_pods_own_and_goes_with_it(
    operator: Operator, short: Path, place: str
) -> None:
    mark = f"pt-{os.getpid()}-mark"
    text = said(operator.pods(f"ls -A {place}; echo x >{place}/{mark} && echo written"))
    assert text.split()[-1] == "written"
    assert short.name not in text.split(), "nothing of others is there"
    assert not any(
        Path(folder, mark).exists() for folder in ("/tmp", "/var/tmp", os.environ.get("TMPDIR", "/tmp"))
    )


@walled
def test_a_command_can_still_look_up_names(operator: Operator) -> None:
    text = said(operator.pods("cat /etc/resolv.conf /etc/hosts >/dev/null && echo both"))
    assert text == "both\n"
