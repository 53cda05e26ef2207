"""What a command on a local pod can see of its control plane's machine, with and without bubblewrap's walls."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from prime_train.adapters import bubblewrap
from prime_train.adapters.pods_local import DEFAULT_OFFERS, LocalPods, walls
from prime_train.adapters.pods_local.walls import Walls, allowed_environment
from prime_train.core.spec import HardwareSpec
from prime_train.core.verdict import Pod
from prime_train.core.wire import Ticket
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
        return LocalPods(self.home / "pods", agent_command=agent, walls=own if own is not None else self.walls)


@pytest.fixture
def operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Operator:
    here = Operator(tmp_path / "you")
    for folder in (here.user / ".ssh", here.user / ".aws", here.user / "data", here.home / "bucket"):
        folder.mkdir(parents=True)
    for file in (".ssh/id_ed25519", ".aws/credentials", ".netrc", ".prime-train/master.key", ".prime-train/control.sqlite", "data/rows"):
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
            text = said(operator.pods(f"cat /proc/*/environ | tr '\\0' '\\n'; kill -0 {other.pid} && echo reached; true"))
        finally:
            other.kill()
    assert "PRIME_TRAIN_POD=local-" in text
    assert not {"a-key-of-yours", "reached"} & {word.rpartition("=")[2] for word in text.split()}


@walled
def test_a_command_can_use_python_its_disk_the_bucket_and_the_data_of_its_operator(operator: Operator) -> None:
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
    pods = operator.pods(f'trap "echo noticed >{operator.user}/data/notice; exit 0" TERM; echo up; while :; do sleep 0.05; done')
    pod: Pod = pods.create("pt-tiny-1-e1", DEFAULT_OFFERS[0], HardwareSpec())
    pods.put_agent(pod, TICKET)
    await_true("the agent is up", lambda: (log := pods.logs(pod.pod_id)) is not None and "up" in log.read_text())
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


def test_without_bubblewrap_a_command_runs_without_walls_and_it_is_said(operator: Operator, monkeypatch: pytest.MonkeyPatch) -> None:
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
