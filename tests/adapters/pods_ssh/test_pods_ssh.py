"""Machines of one's own: who has one, what is left of a pod, and what is concluded from a machine that does
not answer.
"""

import os
import shlex
import subprocess
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import psutil
import pytest

from prime_agent.agent import owner_of
from prime_train.errors import NoCapacity, PermanentError, TemporaryError
from prime_train.market.ranking import rank
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.ssh.pods import SshPods
from prime_train.runs.offer import Offer
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.runs.wire import Bootstrap
from prime_train.spec.spec import HardwareSpec
from tests.adapters.pods_ssh.lab import Box, Lab
from tests.adapters.rental_apis.shared import NAME, TICKET, Pushed, raised

HARDWARE = HardwareSpec(gpus=("A100",), disk_gib=50)
ATTEMPT = "tiny-1-e1"


@pytest.fixture(name="lab")
def _lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)


def pods_of(lab: Lab, count: int = 1, **options: Any) -> SshPods:
    return SshPods([lab.kind("box", count)], lab.enter, options.pop("pusher", Pushed()), **options)


def rent(pods: SshPods, name: str = NAME) -> Pod:
    return pods.create(name, pods.offers(HARDWARE)[0], HARDWARE)


@pytest.fixture(name="box")
def _box(lab: Lab) -> Box:
    lab.kind("box")
    return lab.boxes["box"]


# ------------------------------------------------------------------------------------------------------------
# taking one


def test_a_free_machine_is_an_offer_at_its_price_and_a_taken_one_is_none(lab: Lab) -> None:
    pods = SshPods([lab.kind("box"), lab.kind("dear", 2, usd_per_hour=1.5)], lab.enter, Pushed())
    offers = pods.offers(HARDWARE)
    assert offers[0] == Offer(
        "ssh", "box", 0.0, spot=False, gpu="A100", gpu_count=1, disk_gib=1000, gpu_gb=80, stock="1 free"
    )
    assert [offer.offer_id for offer in rank(offers, HARDWARE).best] == ["box", "dear"]
    rent(pods)
    assert [(offer.offer_id, offer.usd_per_hour, offer.stock) for offer in pods.offers(HARDWARE)] == [
        ("dear", 1.5, "2 free")
    ]
    with pytest.raises(NoCapacity, match=r"above hardware\.usd_per_hour_max"):
        pods.create(NAME, pods.offers(HARDWARE)[0], HARDWARE.model_copy(update={"usd_per_hour_max": 1.0}))
    with pytest.raises(PermanentError, match="starts from no image"):
        pods.create(NAME, pods.offers(HARDWARE)[0], HARDWARE.model_copy(update={"image": "prime_rl"}))


def test_two_control_planes_never_take_the_same_machine_and_each_sees_its_own_pod_only(lab: Lab) -> None:
    planes = [pods_of(lab, 3, mark=PodMark(f"{number:08x}")) for number in range(6)]
    offer = planes[0].offers(HARDWARE)[0]

    def take(pods: SshPods) -> Pod | None:
        try:
            return pods.create(NAME, offer, HARDWARE)
        except NoCapacity:
            return None

    with ThreadPoolExecutor(6) as pool:
        taken = list(pool.map(take, planes))
    assert sum(pod is not None for pod in taken) == 3
    for pods, pod in zip(planes, taken, strict=True):
        assert [seen.pod_id for seen in pods.list()] == ([pod.pod_id] if pod is not None else [])
    assert len(planes[0].every()) == 3
    winner = next(pod for pod in taken if pod is not None)
    other = next(pods for pods, pod in zip(planes, taken, strict=True) if pod is not winner)
    with pytest.raises(PermanentError, match="another control plane's"):
        other.terminate(winner.pod_id)
    assert len(lab.alive) == 3


def test_a_machine_whose_answer_was_lost_is_found_by_the_name_of_its_attempt(lab: Lab, box: Box) -> None:
    pods = pods_of(lab, 2)
    offer = pods.offers(HARDWARE)[0]
    box.loses = 1
    assert type(raised(lambda: pods.create(NAME, offer, HARDWARE))) is TemporaryError
    (found,) = pods_of(lab, 2).list()
    assert found.name == NAME
    assert len(lab.alive) == 1, "the second machine was not taken as well"


def test_a_machine_that_cannot_be_logged_in_to_was_not_taken_and_the_next_one_is(lab: Lab, box: Box) -> None:
    pods = pods_of(lab, 2)
    offer = pods.offers(HARDWARE)[0]
    box.is_cut_off = True
    assert pods.create(NAME, offer, HARDWARE).pod_id.startswith("box-2.")
    with pytest.raises(NoCapacity, match=r"box box cannot be reached by SSH; box-2 is taken"):
        pods.create(NAME, offer, HARDWARE)


def test_a_machine_without_what_is_needed_is_never_taken(lab: Lab, box: Box) -> None:
    box.change = lambda text: ""
    pods = pods_of(lab)
    assert "cannot be parsed" in str(raised(lambda: pods.offers(HARDWARE)))
    box.change = str
    offer = pods.offers(HARDWARE)[0]
    (box.home / ".prime-train").write_text("a file where a folder should be")
    with pytest.raises(NoCapacity, match="cannot be made"):
        pods.create(NAME, offer, HARDWARE)


# ------------------------------------------------------------------------------------------------------------
# a pod and its end


def marked(attempt: str, disk: Path) -> str:
    """Return the mark of the processes of an attempt that works on this disk."""
    run, _, number = attempt.rpartition("-e")
    return owner_of(cast(Bootstrap, SimpleNamespace(run=run, attempt=int(number))), disk)


@pytest.fixture(name="busy")
def _busy(box: Box, lab: Lab) -> Iterator[tuple[SshPods, Pod, list[psutil.Process], Path]]:
    """Return a pod with an agent and a trainer that left its session, beside processes and files of somebody
    else.
    """
    pods = pods_of(lab)
    pod = rent(pods)
    folder, disk = box.home / ".prime-train" / ATTEMPT, box.home / "data" / "prime-train" / ATTEMPT
    folder.mkdir(parents=True)
    disk.mkdir(parents=True)
    (folder / "ticket.json").write_text("{}")
    (folder / "disk").write_text(f"{disk}\n")
    (disk / "checkpoint").write_text("x" * 1000)
    (box.home / "data" / "mine").write_text("mine")
    other = box.home / ".prime-train" / "tiny-1-e11"
    other.mkdir()
    sleep = ("sh", "-c", "sleep 600; :")
    started = [
        subprocess.Popen([*sleep, "--ticket", str(folder / "ticket.json")], start_new_session=True),
        subprocess.Popen(
            sleep,
            env={**os.environ, "PRIME_TRAIN_CHILD": f"{marked(ATTEMPT, disk)}/trainer"},
            start_new_session=True,
        ),
        subprocess.Popen([*sleep, "--ticket", str(other / "ticket.json")], start_new_session=True),
        subprocess.Popen(
            sleep,
            env={**os.environ, "PRIME_TRAIN_CHILD": f"{marked('tiny-1-e11', disk)}/trainer"},
            start_new_session=True,
        ),
        subprocess.Popen(
            sleep,
            env={**os.environ, "PRIME_TRAIN_CHILD": f"{marked(ATTEMPT, box.home)}/trainer"},
            start_new_session=True,
        ),
    ]
    yield pods, pod, [psutil.Process(process.pid) for process in started], disk
    for process in started:
        process.kill()
        process.wait()


def ended(process: psutil.Process) -> bool:
    return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_the_end_of_a_pod_kills_its_processes_and_deletes_its_files_and_nothing_else(
    busy: tuple[SshPods, Pod, list[psutil.Process], Path], box: Box
) -> None:
    pods, pod, processes, disk = busy
    pods.terminate(pod.pod_id)
    assert [ended(process) for process in processes] == [True, True, False, False, False]
    assert not disk.exists()
    assert sorted(path.name for path in (box.home / ".prime-train").iterdir()) == [
        "host",
        "lock",
        "tiny-1-e11",
    ]
    assert (box.home / "data" / "mine").read_text() == "mine"
    assert pods.get(pod.pod_id) is None
    assert rent(pods).pod_id != pod.pod_id
    pods.terminate(pod.pod_id)
    assert [ended(process) for process in processes] == [True, True, False, False, False]
    assert len(pods.list()) == 1, "the next pod of the machine is not ended by the id of the last one"


def test_a_disk_that_is_not_the_attempts_is_not_deleted(
    busy: tuple[SshPods, Pod, list[psutil.Process], Path], box: Box
) -> None:
    pods, pod, _, _ = busy
    (box.home / ".prime-train" / ATTEMPT / "disk").write_text(str(box.home / "data"))
    pods.terminate(pod.pod_id)
    assert (box.home / "data" / "mine").exists()


def test_no_pod_ends_while_an_agent_is_installed_on_its_machine(lab: Lab, box: Box) -> None:
    pods = pods_of(lab)
    pod = rent(pods)
    box.edit = lambda script: script.replace(b"INSTALL_S_MAX=40", b"INSTALL_S_MAX=0")
    lock = shlex.quote(str(box.home / ".prime-train" / "lock"))
    holds = f"exec 9>{lock}; flock 9; echo; read -r _"
    with subprocess.Popen(["sh", "-c", holds], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as holder:
        assert holder.stdout is not None
        holder.stdout.readline()
        with pytest.raises(TemporaryError, match="an agent is just being installed"):
            pods.terminate(pod.pod_id)
        assert len(pods.list()) == 1
        holder.kill()
    pods.terminate(pod.pod_id)
    assert pods.list() == []


def test_a_machine_that_started_again_runs_nothing_and_is_cleared_before_its_pod_is_gone(
    busy: tuple[SshPods, Pod, list[psutil.Process], Path], box: Box
) -> None:
    pods, pod, _, disk = busy
    box.start_again()
    assert pods.list() == []
    assert pods.offers(HARDWARE) == []
    seen = pods.get(pod.pod_id)
    assert seen is not None
    assert seen.status is PodStatus.GONE
    assert not disk.exists()
    assert not box.taken_by
    assert pods.get(pod.pod_id) is None


def test_what_started_again_and_cannot_be_cleared_is_broken_and_keeps_its_machine(lab: Lab, box: Box) -> None:
    pods = pods_of(lab)
    pod = rent(pods)
    box.start_again()
    (box.home / ".prime-train" / "lock").mkdir()
    seen = pods.get(pod.pod_id)
    assert seen is not None
    assert seen.status is PodStatus.BROKEN
    assert box.taken_by


def test_a_pod_of_another_control_plane_whose_machine_started_again_is_left_to_it(lab: Lab, box: Box) -> None:
    ours, theirs = pods_of(lab, mark=PodMark("ours")), pods_of(lab, mark=PodMark("theirs"))
    pod = rent(theirs)
    box.start_again()
    ours.get(pod.pod_id)
    assert box.taken_by


# ------------------------------------------------------------------------------------------------------------
# a machine in silence


def test_a_machine_that_does_not_answer_is_unknown_and_neither_gone_nor_ended(lab: Lab, box: Box) -> None:
    pushed = Pushed()
    pods = pods_of(lab, 2, pusher=pushed)
    pod = rent(pods)
    pods.put_agent(pod, TICKET)
    assert [(address.host, address.host_keys) for address, _ in pushed] == [
        ("box", pods.connection(pod.pod_id).host_keys)  # type: ignore[union-attr]
    ]
    box.is_cut_off = True
    for fresh in (pods, pods_of(lab, 2)):
        seen = fresh.get(pod.pod_id)
        assert seen is not None
        assert (seen.name, seen.status) == (NAME, PodStatus.UNKNOWN)
    assert [(seen.pod_id, seen.status) for seen in pods.list()] == [(pod.pod_id, PodStatus.UNKNOWN)]
    for action in (lambda: pods.terminate(pod.pod_id), lambda: pods.put_agent(pod, TICKET)):
        assert isinstance(raised(action), TemporaryError)
    box.is_cut_off = False
    assert pods.get(pod.pod_id) == pod
    assert list(pods.list()) == [pod]


def test_where_no_machine_answers_nothing_is_listed_and_nothing_offered(lab: Lab, box: Box) -> None:
    pods = pods_of(lab)
    box.is_cut_off = True
    for action in (pods.list, lambda: pods.offers(HARDWARE)):
        error = raised(action)
        assert isinstance(error, TemporaryError)
        assert "none of the 1 machines answers: box cannot be reached by SSH" in str(error)


@pytest.mark.parametrize(
    "change", [lambda text: text[:-5], lambda text: "", lambda text: "machine free", lambda text: f"x{text}"]
)
def test_an_answer_that_was_cut_frees_no_machine(lab: Lab, box: Box, change: Callable[[str], str]) -> None:
    pods = pods_of(lab, 2)
    pod = rent(pods)
    box.change = change
    seen = pods.get(pod.pod_id)
    assert seen is not None
    assert seen.status is PodStatus.UNKNOWN
    assert raised(lambda: pods.terminate(pod.pod_id))


def test_a_greeting_before_the_answer_changes_nothing(lab: Lab, box: Box) -> None:
    box.change = lambda text: f"Welcome to box\n\n{text}"
    pods = pods_of(lab)
    assert pods.get(rent(pods).pod_id) is not None


def test_of_a_machine_that_is_no_longer_listed_nothing_is_concluded(lab: Lab) -> None:
    pod = rent(pods_of(lab))
    others = SshPods([lab.kind("other")], lab.enter, Pushed())
    for action in (lambda: others.get(pod.pod_id), lambda: others.terminate(pod.pod_id)):
        error = raised(action)
        assert isinstance(error, TemporaryError)
        assert "machine box is not in the list of machines any more" in str(error)
    assert others.connection(pod.pod_id) is None


def test_a_control_plane_that_machines_cannot_reach_takes_none(lab: Lab) -> None:
    pods = pods_of(lab, closed="rented machines could not reach the bucket")
    assert isinstance(raised(lambda: pods.offers(HARDWARE)), PermanentError)


def test_a_machine_whose_host_key_is_not_known_is_not_logged_in_to(lab: Lab, box: Box) -> None:
    kind = lab.kind("box")
    unknown = type(kind.hosts[0])("box", "me", "box", 22, ())
    pods = SshPods([type(kind)("box", "", 0, 10, 0.0, (unknown,))], lab.enter, Pushed())
    assert "the host key of box is not known" in str(raised(lambda: pods.offers(HARDWARE)))
    assert box.logins == 0
