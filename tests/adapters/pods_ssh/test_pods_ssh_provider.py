"""The list of machines, and the provider as a control plane uses it, with a real sshd."""

import getpass
import json
import os
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.market.ranking import rank
from prime_train.providers.configured import reading_context
from prime_train.providers.install.push import AgentPusher, Recipe
from prime_train.providers.kinds import PROVIDERS
from prime_train.providers.port import Portable, ProviderContext, SshAddress
from prime_train.providers.ssh.hosts import Host, HostKind, read_hosts
from prime_train.providers.ssh.provider import SshProvider
from prime_train.providers.ssh_client.keys import login_key
from prime_train.runs.verdict import PodStatus
from prime_train.runs.wire import Bootstrap, Ticket
from prime_train.spec.spec import HardwareSpec
from tests.adapters.rental_apis.shared import raised
from tests.agent.attempts import RUN_ID, demo_spec
from tests.fakes.control_plane import FakeControlPlane
from tests.fakes.http import ALWAYS, CutRequest
from tests.fakes.prime import needs_sshd
from tests.fakes.prime.machines import Machine
from tests.fakes.prime.ssh_wire import Cuts

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIDh3cgZ0Hx8n0kM5oTFNEBd9sS0Kk4wbq3o2p2kZqjJ6"
MASTER = b"m" * 32
HARDWARE = HardwareSpec(disk_gib=1)


def listed(folder: Path, text: str) -> dict[str, str]:
    (folder / "machines.yaml").write_text(text)
    return {"PRIME_TRAIN_SSH_HOSTS": "~/machines.yaml", "HOME": str(folder)}


def test_a_list_names_machines_with_their_gpus_prices_and_host_keys(tmp_path: Path) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "known_hosts").write_text(f"[192.0.2.9]:2222 {KEY}\n192.0.2.8 {KEY}\n")
    text = f"""
machines:
  - name: big
    address: me@192.0.2.7
    gpu: H100_80GB
    count: 8
    disk_gib: 2000
    usd_per_hour: 4.5
    host_keys: ["{KEY} root@big"]
  - {{name: pair, addresses: [192.0.2.8, "me@192.0.2.9:2222"], disk_gib: 100}}
  - {{name: six, address: "me@[2001:db8::1]:22", disk_gib: 100}}
"""
    assert read_hosts(listed(tmp_path, text)) == (
        HostKind("big", "H100_80GB", 8, 2000, 4.5, (Host("big", "me", "192.0.2.7", 22, (KEY,)),)),
        HostKind(
            "pair",
            "",
            0,
            100,
            0.0,
            (Host("pair", "root", "192.0.2.8", 22, (KEY,)), Host("pair-2", "me", "192.0.2.9", 2222, (KEY,))),
        ),
        HostKind("six", "", 0, 100, 0.0, (Host("six", "me", "2001:db8::1", 22, ()),)),
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("machines: []", "machines: Tuple should have at least 1 item"),
        ("machines: [{name: a, disk_gib: 1}]", "machine a has no address; write address: user@host"),
        (
            "machines: [{name: a, disk_gib: 1, address: '-oProxyCommand=x'}]",
            "'-oProxyCommand=x' is no address; write user@host",
        ),
        ("machines: [{name: a, disk_gib: 1, address: 'me@h:99999'}]", "is no address"),
        ("machines: [{name: a, disk_gib: 1, address: h, gpu: H100_80GB}]", "gpu and count belong together"),
        ("machines: [{name: A b, disk_gib: 1, address: h}]", "machines.0.name"),
        ("machines: [{name: a, address: h}]", "machines.0.disk_gib: Field required"),
        ("machines: [{name: a, disk_gib: 1, address: h, usd_per_hour: .nan}]", "machines.0.usd_per_hour"),
        (
            "machines: [{name: a, disk_gib: 1, address: h, gpus: 8}]",
            "machines.0.gpus: Extra inputs are not permitted",
        ),
        ("machines: [{name: a, disk_gib: 1, address: h, host_keys: [a b c]}]", "machines.0.host_keys.0"),
        (
            "machines: [{name: a, disk_gib: 1, address: h}, {name: b, disk_gib: 1, address: h}]",
            "two machines have the address h:22",
        ),
        (
            "machines: [{name: a, disk_gib: 1, addresses: [h, i]}, {name: a-2, disk_gib: 1, address: j}]",
            "two machines have the name a-2",
        ),
        ("machines: [", "is not YAML"),
        ("just text", "Input should be a valid dictionary"),
    ],
)
def test_a_list_that_cannot_be_used_says_where_and_why(tmp_path: Path, text: str, says: str) -> None:
    error = raised(lambda: read_hosts(listed(tmp_path, text)))
    assert isinstance(error, PermanentError)
    assert "machines.yaml" in str(error)
    assert says in str(error)


def test_a_list_that_is_not_there_says_which_variable_names_it(tmp_path: Path) -> None:
    for environment in ({}, {"PRIME_TRAIN_SSH_HOSTS": str(tmp_path / "none.yaml")}):
        assert "PRIME_TRAIN_SSH_HOSTS" in str(raised(lambda: read_hosts(environment)))  # noqa: B023


def test_a_list_may_be_the_text_itself_and_what_is_wrong_with_it_is_told_without_it(tmp_path: Path) -> None:
    text = "machines:\n  - {name: a, address: h, disk_gib: 1}\n"
    assert read_hosts({"PRIME_TRAIN_SSH_HOSTS": text, "HOME": str(tmp_path)}) == read_hosts(
        listed(tmp_path, text)
    )
    error = raised(
        lambda: read_hosts({"PRIME_TRAIN_SSH_HOSTS": "machines:\n  - {name: a, address: hidden-word\n"})
    )
    assert isinstance(error, PermanentError)
    assert "PRIME_TRAIN_SSH_HOSTS, line 2, is not YAML" in str(error)
    assert "hidden-word" not in str(error)


def test_a_list_for_another_machine_is_one_line_with_the_host_keys_that_are_known_here(
    tmp_path: Path,
) -> None:
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".ssh" / "known_hosts").write_text(f"[192.0.2.9]:2222 {KEY}\n192.0.2.8 {KEY}\n")
    text = """
machines:
  - {name: pair, addresses: [192.0.2.8, "me@192.0.2.9:2222"], disk_gib: 100, usd_per_hour: 1.5, gpu: H100_80GB, count: 8}
  - {name: six, address: "me@[2001:db8::1]:22", disk_gib: 100, host_keys: [KEY]}
""".replace("KEY", KEY)
    here = listed(tmp_path, text)
    found = portable_of(here)
    elsewhere = dict(found.values)
    assert "\n" not in elsewhere["PRIME_TRAIN_SSH_HOSTS"]
    assert read_hosts({**elsewhere, "HOME": "/nowhere"}) == read_hosts(here)
    assert (found.hosts, found.logs_in) == (("192.0.2.8", "192.0.2.9", "2001:db8::1"), True)


def test_a_machine_whose_host_key_is_not_known_here_is_in_no_list_for_another_machine(tmp_path: Path) -> None:
    error = raised(lambda: portable_of(listed(tmp_path, "machines: [{name: a, address: h, disk_gib: 1}]")))
    assert isinstance(error, PermanentError)
    assert "the host key of a is not known here" in str(error)


def portable_of(environment: dict[str, str]) -> Portable:
    return SshProvider(reading_context(environment)).portable()


# ------------------------------------------------------------------------------------------------------------
# with a real sshd


@pytest.fixture(name="machine")
def _machine(tmp_path: Path) -> Iterator[Machine]:
    # The end of a machine kills what has its id, on the whole computer.
    machine = Machine(
        tmp_path / "machine", f"box-{token_hex(8)}", login_key(tmp_path / "ssh", MASTER).public, Cuts()
    )
    yield machine
    machine.destroy()


def provider_of(folder: Path, machine: Machine, *, host_key: str = "", **options: Any) -> SshProvider:
    entry = {
        "name": "box",
        "address": f"{getpass.getuser()}@127.0.0.1:{machine.port}",
        "disk_gib": 10,
        "host_keys": [host_key or machine.host_key().strip()],
    }
    master = options.pop("master", MASTER)
    pusher = AgentPusher(
        login_key(folder / "ssh", master),
        folder / "attempts",
        recipe=Recipe(python=sys.executable, disks=("~",)),
    )
    return SshProvider(
        ProviderContext(
            folder,
            listed(folder, json.dumps({"machines": [entry]})),
            master,
            install=pusher,
            public_key=lambda: "ssh-ed25519 AAAA prime-train",
            unreachable_reason=lambda: "this machine cannot be reached",
            **options,
        )
    )


@needs_sshd
def test_an_agent_is_put_on_a_machine_of_ones_own_and_ended_with_its_pod(
    tmp_path: Path, machine: Machine
) -> None:
    job = Bootstrap(
        run=RUN_ID,
        attempt=1,
        spec=demo_spec("--steps 1"),
        bucket_url=(tmp_path / "bucket").as_uri(),
        code_key="missing",
    )
    with FakeControlPlane(job, clock=lambda: int(time.time())) as plane:
        plane.fail(CutRequest(), times=ALWAYS)  # its agents keep running, because they get no job
        provider = provider_of(tmp_path, machine)
        assert PROVIDERS["ssh"].implementation == f"{SshProvider.__module__}:{SshProvider.__name__}"
        assert [offer.stock for offer in provider.offers(HARDWARE)] == ["1 free"]
        assert provider.unreachable_reason() == ""
        pods = provider.pods()
        pod = pods.create(f"pt-{RUN_ID}-e1", rank(pods.offers(HARDWARE), HARDWARE).best[0], HARDWARE)
        ticket = plane.ticket
        pods.put_agent(pod, ticket)
        folder = machine.disk / ".prime-train" / f"{RUN_ID}-e1"
        agent = int((folder / "pid").read_text())
        os.kill(agent, 0)
        assert Ticket.model_validate_json((folder / "ticket.json").read_bytes()) == ticket
        assert [seen.pod_id for seen in pods.list()] == [pod.pod_id]
        address = provider.connection(pod.pod_id)
        assert isinstance(address, SshAddress)
        assert address.host_keys == (" ".join(machine.host_key().split()[:2]),)
        pods.terminate(pod.pod_id)
        with suppress(FileNotFoundError, ProcessLookupError):
            assert not Path(f"/proc/{agent}/cmdline").read_bytes()  # none is left once a process is ending
        assert not folder.exists()
        assert not (machine.disk / "prime-train" / f"{RUN_ID}-e1").exists()
        assert pods.get(pod.pod_id) is None


@needs_sshd
def test_nothing_is_sent_to_a_machine_with_another_host_key(tmp_path: Path, machine: Machine) -> None:
    pods = provider_of(tmp_path, machine, host_key=KEY).pods()
    error = raised(lambda: pods.offers(HARDWARE))
    assert "shows a host key that is not the known one" in str(error)
    assert "Accepted" not in machine.log()


@needs_sshd
def test_a_machine_that_does_not_know_the_key_says_which_line_it_needs(
    tmp_path: Path, machine: Machine
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    pods = provider_of(other, machine, master=b"x" * 32).pods()
    error = raised(lambda: pods.offers(HARDWARE))
    assert isinstance(error, TemporaryError)
    assert "append this line to ~/.ssh/authorized_keys there: ssh-ed25519 AAAA prime-train" in str(error)


@needs_sshd
def test_a_machine_that_was_switched_off_is_unknown(tmp_path: Path, machine: Machine) -> None:
    provider = provider_of(tmp_path, machine)
    pods = provider.pods()
    pod = pods.create(f"pt-{RUN_ID}-e1", pods.offers(HARDWARE)[0], HARDWARE)
    (machine.disk / ".ssh" / "authorized_keys").unlink(missing_ok=True)
    (machine.disk.parent / "authorized_keys").unlink(missing_ok=True)
    seen = pods.get(pod.pod_id)
    assert seen is not None
    assert seen.status is PodStatus.UNKNOWN
