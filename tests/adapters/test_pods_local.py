"""Local pods are real processes: after their end no process is left, and no unknown process runs."""

import json
import os
import secrets
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import psutil
import pytest

from prime_agent.effects import Leave
from prime_train.errors import NoCapacity, PermanentError, TemporaryError
from prime_train.market.ranking import rank
from prime_train.providers.local.pods import DEFAULT_OFFERS, POD_VARIABLE, LocalPods
from prime_train.providers.local.provider import LocalProvider
from prime_train.providers.port import ProviderContext
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Ticket
from prime_train.spec.spec import HardwareSpec
from tests.waiting import HANG_S, await_true

HARDWARE = HardwareSpec(disk_gib=1)
OFFER = DEFAULT_OFFERS[0]
NAME = "pt-tiny-1-e1"
TICKET = Ticket(run="tiny-1", attempt=1, url="http://127.0.0.1:1", key="0123abcd")
TOKEN = "TEST_LOCAL_PODS"

# An agent whose trainers try to get away: each process says who it is in a file of the disk.
ESCAPE_ARTIST = r"""
import os, signal, subprocess, sys
disk = sys.argv[sys.argv.index("--disk") + 1]
def say(who):
    with open(f"{disk}/{who}.pid-", "w") as file:
        file.write(str(os.getpid()))
    os.rename(f"{disk}/{who}.pid-", f"{disk}/{who}.pid")
def stubborn(who):
    for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)
    say(who)
    while True:
        signal.pause()
def away(who, clean):
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.setsid()
            if clean:
                code = "import os, sys, signal; open(sys.argv[1] + '-', 'w').write(str(os.getpid())); "
                code += "os.rename(sys.argv[1] + '-', sys.argv[1]); signal.pause()"
                os.execve(sys.executable, [sys.executable, "-S", "-c", code, f"{disk}/{who}.pid"], {})
            stubborn(who)
        os._exit(0)
    os.wait()
away("daemon", False)
away("daemon-with-a-clean-environment", True)
if os.fork() == 0:
    os.setsid()
    stubborn("session-leader")
stubborn("agent")
"""
ESCAPED = ("agent", "daemon", "daemon-with-a-clean-environment", "session-leader")

CONTROL_PLANE = """
import json, os, sys
from pathlib import Path
from prime_train.providers.local.pods import DEFAULT_OFFERS, LocalPods
from prime_train.spec.spec import HardwareSpec
from prime_train.runs.wire import Ticket
agent = [sys.executable, "-c", "import signal; signal.pause()"]
pods = LocalPods(Path(sys.argv[1]), agent_command=agent, environment=dict(os.environ))
pod = pods.create("pt-tiny-1-e1", DEFAULT_OFFERS[1], HardwareSpec())
pods.put_agent(pod, Ticket(run="tiny-1", attempt=1, url="", key="k"))
print(json.dumps([pod.pod_id, pod.created_s]), flush=True)
sys.stdin.read()
"""

# Rents pods in children of its own, each with a registry of its own. The n-th is killed at the n-th audit
# event of `create` (opening a file, starting a process ...), until one is not; then some are killed from
# outside while they rent one. Prints how many of the first.
KILLED_IN_CREATE = """
import os, signal, select, sys
from pathlib import Path
from prime_train.providers.local.pods import DEFAULT_OFFERS, LocalPods
from prime_train.spec.spec import HardwareSpec
def create(name):
    LocalPods(Path(sys.argv[1], name), environment=dict(os.environ)).create("pt-tiny-1-e1", DEFAULT_OFFERS[0], HardwareSpec())
def die_at(limit):
    seen = 0
    def hook(event, args):
        nonlocal seen
        seen += 1
        if seen == limit:
            os.kill(os.getpid(), signal.SIGKILL)
    sys.addaudithook(hook)
    create(f"event-{limit}")
    os._exit(0)
for limit in range(1, 2000):
    child = os.fork()
    if child == 0:
        die_at(limit)
    if os.waitpid(child, 0)[1] == 0:
        break
print(limit - 1)
for turn in range(20):
    child = os.fork()
    if child == 0:
        create(f"turn-{turn}")
        os._exit(0)
    select.select([], [], [], turn * 0.003)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
"""


@dataclass(frozen=True)
class Place:
    """A registry of pods. All processes of the pods carry `token` in their environment."""

    root: Path
    token: str

    def pods(
        self, agent: Sequence[str] = (sys.executable, "-c", "import signal; signal.pause()"), **more: str
    ) -> LocalPods:
        return LocalPods(
            self.root, agent_command=agent, environment={**os.environ, TOKEN: self.token, **more}
        )

    def processes(self) -> dict[int, str]:
        """Return the pod ids by pid, of all processes started by pods of this test."""
        found = {}
        for process in psutil.process_iter():
            try:
                environment = process.environ() if process.status() != psutil.STATUS_ZOMBIE else {}
            except psutil.Error:
                continue
            if environment.get(TOKEN) == self.token and POD_VARIABLE in environment:
                found[process.pid] = environment[POD_VARIABLE]
        return found

    def first_process(self, pod: Pod) -> int:
        return int(json.loads((self.root / pod.pod_id / "init.json").read_text())["pid"])

    def agent(self, pod: Pod) -> int:
        return int(json.loads((self.root / pod.pod_id / "agent.json").read_text())["pid"])


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> Iterator[Place]:
    place = Place(tmp_path / "pods", secrets.token_hex(8))
    yield place
    pods = place.pods()
    for pod_id in {*(pod.pod_id for pod in pods.list()), *place.processes().values()}:
        pods.terminate(pod_id)


def rent(pods: LocalPods) -> Pod:
    return pods.create(NAME, OFFER, HARDWARE)


def assert_nothing_is_left(place: Place) -> None:
    assert place.processes() == {}
    assert [path.name for path in place.root.iterdir() if path.name != ".create.lock"] == []


# ------------------------------------------------------------------------------------------------------------
# the end of a pod


@pytest.mark.parametrize("end", [LocalPods.terminate, LocalPods.preempt])
def test_no_process_gets_away(place: Place, end: Callable[[LocalPods, str], None]) -> None:
    pods = place.pods([sys.executable, "-c", ESCAPE_ARTIST])
    pod, other = rent(pods), rent(pods)
    pods.put_agent(pod, TICKET)
    disk = pods.disk(pod.pod_id)
    assert disk is not None
    files = [disk / f"{who}.pid" for who in ESCAPED]
    await_true("all processes are there", lambda: all(file.exists() for file in files))
    escaped = [psutil.Process(int(file.read_text())) for file in files]
    assert len({os.getsid(process.pid) for process in escaped}) == len(ESCAPED)
    end(pods, pod.pod_id)
    assert not any(process.is_running() and process.status() != psutil.STATUS_ZOMBIE for process in escaped)
    assert set(place.processes().values()) == {other.pod_id}
    assert not (place.root / pod.pod_id).exists()
    assert list(pods.list()) == [other]
    pods.terminate(other.pod_id)
    assert_nothing_is_left(place)


def test_a_pod_whose_first_process_was_killed_is_gone_and_leaves_nothing(place: Place) -> None:
    pods = place.pods()
    pod = rent(pods)
    pods.put_agent(pod, TICKET)
    assert len(place.processes()) == 2
    os.kill(place.first_process(pod), signal.SIGKILL)
    await_true("it is seen to be gone", lambda: pods.get(pod.pod_id) is None)
    assert_nothing_is_left(place)
    assert list(pods.list()) == []


def test_ending_a_pod_whose_folder_was_deleted_by_hand_ends_its_processes(place: Place) -> None:
    pods = place.pods()
    pod = rent(pods)
    pods.put_agent(pod, TICKET)
    (place.root / pod.pod_id).rename(place.root.parent / "elsewhere")
    assert pods.get(pod.pod_id) is None
    pods.terminate(pod.pod_id)
    assert_nothing_is_left(place)


def test_a_disk_with_read_only_folders_goes_too(place: Place) -> None:
    pods = place.pods()
    pod = rent(pods)
    disk = pods.disk(pod.pod_id)
    assert disk is not None
    (disk / "a" / "b").mkdir(parents=True)
    (disk / "a" / "b" / "file").write_bytes(b"")
    (disk / "a" / "b").chmod(0o500)
    (disk / "a").chmod(0o500)
    pods.terminate(pod.pod_id)
    assert_nothing_is_left(place)


def test_with_notice_the_agent_is_notified_and_may_still_act(place: Place, tmp_path: Path) -> None:
    code = (
        "import signal, sys, pathlib; signal.signal(15, lambda *_: (pathlib.Path(sys.argv[1], "
        "'told').touch(), sys.exit())); "
    )
    code += "pathlib.Path(sys.argv[1], 'ready').touch(); signal.pause()"
    pods = place.pods([sys.executable, "-c", code, str(tmp_path)])
    for notice_s in (0, 60):
        pod = rent(pods)
        pods.put_agent(pod, TICKET)
        await_true("the agent is ready", (tmp_path / "ready").exists)
        pods.preempt(pod.pod_id, notice_s)
        assert (tmp_path / "told").exists() == (notice_s > 0)
        assert_nothing_is_left(place)
        (tmp_path / "ready").unlink()


def test_when_the_notice_is_over_an_agent_that_goes_on_is_killed(place: Place) -> None:
    pods = place.pods(["sh", "-c", "trap '' TERM; while :; do sleep 0.1; done"])
    pod = rent(pods)
    pods.put_agent(pod, TICKET)
    pods.preempt(pod.pod_id, 1)
    assert_nothing_is_left(place)


# ------------------------------------------------------------------------------------------------- the
# control plane comes and goes


def test_another_control_plane_finds_lists_and_ends_the_pods_of_a_killed_one(place: Place) -> None:
    command = [sys.executable, "-c", CONTROL_PLANE, str(place.root)]
    environment = {**os.environ, TOKEN: place.token}
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment, start_new_session=True
    ) as plane:
        assert plane.stdout is not None
        pod_id, created_s = json.loads(plane.stdout.readline())
        os.killpg(plane.pid, signal.SIGKILL)
    pods = place.pods()
    pod = Pod(pod_id, NAME, PodStatus.ACTIVE, created_s, DEFAULT_OFFERS[1].usd_per_hour)
    assert list(pods.list()) == [pod]
    assert pods.get(pod_id) == pod
    assert len(place.processes()) == 2
    pods.put_agent(pod, TICKET)
    assert len(place.processes()) == 2
    pods.terminate(pod_id)
    assert_nothing_is_left(place)


def test_a_control_plane_killed_anywhere_inside_create_leaves_nothing_that_is_not_listed(
    place: Place,
) -> None:
    command = [sys.executable, "-c", KILLED_IN_CREATE, str(place.root)]
    done = subprocess.run(
        command,
        env={**os.environ, TOKEN: place.token},
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
    )
    assert int(done.stdout) >= 20, "points inside create"
    planes = [LocalPods(root) for root in place.root.iterdir()]

    def listed() -> set[str]:
        return {pod.pod_id for pods in planes for pod in pods.list() if pod.name == NAME}

    await_true("every process is a listed pod's", lambda: set(place.processes().values()) <= listed())
    assert 2 <= len(listed()) < len(planes), "some were killed before the machine was started, and some after"
    for pods in planes:
        for pod in pods.list():
            pods.terminate(pod.pod_id)
    assert place.processes() == {}
    assert listed() == set()


def test_a_pod_is_nobodys_child_and_leads_its_session(place: Place) -> None:
    pods = place.pods()
    before = {child.pid for child in psutil.Process().children(recursive=True)}
    pod = rent(pods)
    pods.put_agent(pod, TICKET)
    assert {child.pid for child in psutil.Process().children(recursive=True)} == before
    first = place.first_process(pod)
    assert os.getsid(first) == os.getpgid(first) == first
    assert psutil.Process(place.agent(pod)).ppid() == first


def test_watchers_that_end_pods_while_others_make_and_list_them_never_fail(place: Place) -> None:
    made = threading.Event()

    def make(_: int) -> None:
        pods = place.pods()
        for _ in range(6):
            try:
                pods.put_agent(rent(pods), TICKET)
            except TemporaryError as error:
                assert "did not start" in str(error) or "gone" in str(error) or "No such" in str(error)  # noqa: PT017 - others end them

    def end(_: int) -> None:
        pods = place.pods()
        while not made.is_set() or pods.list():
            for pod in pods.list():
                pods.get(pod.pod_id)
                pods.terminate(pod.pod_id)

    with ThreadPoolExecutor(4) as pool:
        enders = [pool.submit(end, number) for number in range(2)]
        list(pool.map(make, range(2)))
        made.set()
        for ender in enders:
            ender.result()
    assert_nothing_is_left(place)


# ------------------------------------------------------------------------------------------------------------
# the agent


def test_the_agent_gets_a_ticket_only_its_owner_can_read_and_a_disk(place: Place) -> None:
    code = (
        "import json, sys; print(json.dumps(sys.argv[1:]), open(sys.argv[2]).read(), flush=True); "
        "print('trouble', file=sys.stderr)"
    )
    pods = place.pods([sys.executable, "-c", code])
    pod = rent(pods)
    pods.put_agent(pod, TICKET)
    await_true("the agent has ended", lambda: pods.agent_exit(pod.pod_id) is not None)
    disk, log = pods.disk(pod.pod_id), pods.logs(pod.pod_id)
    assert disk is not None
    assert log is not None
    first, second = log.read_text().splitlines()
    arguments, end = json.JSONDecoder().raw_decode(first)
    assert arguments == ["--ticket", str(disk / "ticket.json"), "--disk", str(disk)]
    assert Ticket.model_validate_json(first[end:]) == TICKET
    assert second == "trouble"
    assert stat.S_IMODE((disk / "ticket.json").stat().st_mode) == 0o600


def test_an_agent_that_ended_by_itself_is_not_started_again(place: Place) -> None:
    pods = place.pods(["sh", "-c", "echo turn; exit 7"])
    pod = rent(pods)
    assert pods.agent_exit(pod.pod_id) is None
    pods.put_agent(pod, TICKET)
    await_true("the agent has ended", lambda: pods.agent_exit(pod.pod_id) == 7)
    pods.put_agent(pod, TICKET)
    log = pods.logs(pod.pod_id)
    assert log is not None
    assert log.read_text() == "turn\n"
    assert pods.list() == [pod]


def test_a_start_whose_answer_was_lost_starts_no_second_agent(place: Place) -> None:
    pods = place.pods()
    pod = rent(pods)
    pods.put_agent(pod, TICKET)
    agent = place.agent(pod)
    (place.root / pod.pod_id / "agent.json").unlink()
    pods.put_agent(pod, TICKET)
    assert place.agent(pod) == agent
    assert set(place.processes()) == {agent, place.first_process(pod)}


def test_a_machine_whose_agent_says_that_the_money_is_spent_ends_by_itself_and_says_when(
    place: Place,
) -> None:
    pods = place.pods(["sh", "-c", f"read order < order; exit {int(Leave.SPENT)}"])
    pod = rent(pods)
    disk = pods.disk(pod.pod_id)
    assert disk is not None
    os.mkfifo(disk / "order")
    pods.put_agent(pod, TICKET)
    (disk / "order").write_text("end\n")
    await_true("the machine has ended", lambda: not place.processes())
    seen = pods.get(pod.pod_id)
    assert seen is not None
    assert seen.status is PodStatus.GONE
    assert seen.ended_s is not None
    assert pod.created_s <= seen.ended_s
    assert pods.get(pod.pod_id) == seen
    assert pods.list() == []
    assert_nothing_is_left(place)


def test_an_agent_that_was_killed_has_the_signal_as_its_code(place: Place) -> None:
    pods = place.pods()
    pod = rent(pods)
    pods.put_agent(pod, TICKET)
    os.kill(place.agent(pod), signal.SIGKILL)
    await_true("the agent has ended", lambda: pods.agent_exit(pod.pod_id) == -signal.SIGKILL)
    assert pods.get(pod.pod_id) == pod


def test_an_agent_that_cannot_be_started_is_refused_and_may_be_tried_again(place: Place) -> None:
    pod = rent(place.pods())
    with pytest.raises(PermanentError, match="no/such/agent"):
        place.pods(["/no/such/agent"]).put_agent(pod, TICKET)
    place.pods(["sh", "-c", "exit 0"]).put_agent(pod, TICKET)
    await_true("the agent has ended", lambda: place.pods().agent_exit(pod.pod_id) == 0)


def test_a_machine_starts_without_the_secrets_of_its_control_plane(tmp_path: Path) -> None:
    code = """
import os, sys
from pathlib import Path
from prime_train.providers.local.pods import DEFAULT_OFFERS, LocalPods
from prime_train.spec.spec import HardwareSpec
from prime_train.runs.wire import Ticket
pods = LocalPods(Path(sys.argv[1]), agent_command=["sh", "-c", "env"])
pod = pods.create("pt-tiny-1-e1", DEFAULT_OFFERS[0], HardwareSpec())
pods.put_agent(pod, Ticket(run="tiny-1", attempt=1, url="", key="k"))
while pods.agent_exit(pod.pod_id) is None:
    pass
print(pods.logs(pod.pod_id).read_text())
pods.terminate(pod.pod_id)
"""
    kept_back = [
        "HF_TOKEN",
        "AWS_SECRET_ACCESS_KEY",
        "AWS_ACCESS_KEY_ID",
        "WANDB_API_KEY",
        "DB_PASSWORD",
        "PRIME_TRAIN_MASTER",
        "apikey",
    ]
    kept_back += [
        "DATABASE_URL",
        "SSH_AUTH_SOCK",
        "KUBECONFIG",
        "AWS_PROFILE",
        "PRIME_TRAIN_HOME",
        "DOCKER_HOST",
        "CUDA_SECRET",
        "WHATEVER",
    ]
    handed_on = [
        "TOKENIZERS_PARALLELISM",
        "CUDA_VISIBLE_DEVICES",
        "https_proxy",
        "NCCL_DEBUG",
        "HF_HUB_CACHE",
        "LC_TIME",
    ]
    environment = {
        **os.environ,
        **dict.fromkeys([*kept_back, *handed_on], "value-of-it"),
        "HOME": "value-of-it",
    }
    environment["PIP_INDEX_URL"] = "https://me:secret@index.example.org/#value-of-it"
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)],
        env=environment,
        capture_output=True,
        text=True,
        timeout=HANG_S,
        check=True,
    )
    names = [line.partition("=")[0] for line in done.stdout.splitlines() if line.endswith("=value-of-it")]
    assert sorted(names) == sorted(handed_on)


# ------------------------------------------------------------------------------------------------------------
# the registry


def test_the_path_of_the_registry_may_be_long_and_strange(tmp_path: Path) -> None:
    place = Place(tmp_path / ("a long name " * 10) / "ü'\"$(x)" / "pods", secrets.token_hex(8))
    pods = place.pods()
    pod = rent(pods)
    pods.put_agent(pod, TICKET)
    assert len(place.processes()) == 2
    pods.terminate(pod.pod_id)
    assert_nothing_is_left(place)


def test_capacity_can_be_taken_away_by_a_file(place: Place) -> None:
    pods = place.pods()
    one = rent(pods)
    (place.root / "capacity.json").write_text(json.dumps({OFFER.offer_id: 1}))
    with pytest.raises(NoCapacity, match=OFFER.offer_id):
        rent(pods)
    assert OFFER.offer_id not in [offer.offer_id for offer in pods.offers(HARDWARE)]
    (place.root / "capacity.json").write_text(json.dumps({OFFER.offer_id: 2}))
    assert {pod.pod_id for pod in (one, rent(pods))} == {pod.pod_id for pod in pods.list()}


def test_a_disk_is_as_large_as_what_is_free(place: Place) -> None:
    free_gib = psutil.disk_usage(str(place.root.parent)).free / 2**30
    assert all(abs(offer.disk_gib - free_gib) < 5 for offer in place.pods().offers(HARDWARE))


def test_what_a_killed_control_plane_left_half_made_or_half_deleted_is_swept(place: Place) -> None:
    old, young = place.root / ".new-local-0000000000000001", place.root / ".new-local-0000000000000002"
    for folder in (old / "disk", young / "disk", place.root / ".gone-local-0000000000000003" / "disk"):
        folder.mkdir(parents=True)
    os.utime(old, (time.time() - 7200,) * 2)
    pods = place.pods()
    assert list(pods.list()) == []
    pods.terminate(rent(pods).pod_id)
    assert sorted(path.name for path in place.root.iterdir()) == [".create.lock", young.name]


def test_a_folder_without_a_complete_record_is_no_pod_and_is_cleared(place: Place) -> None:
    for number, text in enumerate(["", "{", "[]", '{"name": "x"}', '{"name": 1, "more": 2}']):
        folder = place.root / f"local-{number:016x}"
        folder.mkdir(parents=True)
        (folder / "pod.json").write_text(text)
    pods = place.pods()
    assert list(pods.list()) == []
    pods.terminate(rent(pods).pod_id)
    assert_nothing_is_left(place)


def test_a_registry_that_cannot_be_made_is_refused_by_name(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    pods = LocalPods(tmp_path / "file" / "pods")
    for call in (lambda: pods.create(NAME, OFFER, HARDWARE), lambda: pods.offers(HARDWARE)):
        with pytest.raises(PermanentError, match=str(tmp_path / "file")):
            call()


def provider(root: Path) -> LocalProvider:
    return LocalProvider(
        ProviderContext(root, {}, b"key", lambda connection, ticket: None, lambda: "", lambda: "")
    )


def test_a_machine_with_gpus_can_be_described_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    row = {"usd_per_hour": 0, "spot": True, "gpu": "H100_80GB", "gpu_count": 8}
    (tmp_path / "pods" / "offers.json").write_text(json.dumps({"mine": row}))
    (offer,) = provider(tmp_path).pods().offers(HARDWARE)
    assert (offer.offer_id, offer.gpu, offer.gpu_count) == ("mine", "H100_80GB", 8)
    assert rank([offer], HardwareSpec(gpus=("H100_80GB",), count=8, disk_gib=1)).best


@pytest.mark.parametrize(
    "content", [{"mine": {}}, {"mine": 3}, {"mine": {"usd_per_hour": "cheap", "spot": True}}]
)
def test_what_is_no_offer_is_refused_by_the_name_of_its_file(content: object, tmp_path: Path) -> None:
    (tmp_path / "pods").mkdir()
    (tmp_path / "pods" / "offers.json").write_text(json.dumps(content))
    with pytest.raises(PermanentError, match=r"offers\.json contains something that is no offer"):
        provider(tmp_path)
