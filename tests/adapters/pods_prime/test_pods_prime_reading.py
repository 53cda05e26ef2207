"""Parsing of Prime's description of a pod: its status, and the address of its SSH server."""

import pytest

from prime_train.providers.port import SshAddress
from prime_train.providers.prime.models import PrimePod
from prime_train.providers.prime.pods import connection_of, pod_of, read_connection
from prime_train.providers.rental.parsing import second
from prime_train.runs.verdict import Pod, PodStatus


@pytest.mark.parametrize(
    ("reported", "read"),
    [
        ("root@192.0.2.1 -p 22", ("root", "192.0.2.1", 22)),
        ("ubuntu@192.0.2.1 -p 2222", ("ubuntu", "192.0.2.1", 2222)),
        ("ssh ubuntu@203.0.113.7 -p 2222", ("ubuntu", "203.0.113.7", 2222)),
        ("ssh -p 2222 ubuntu@host.example.org", ("ubuntu", "host.example.org", 2222)),
        ("ssh -p2222 ubuntu@host", ("ubuntu", "host", 2222)),
        ("  root@host  ", ("root", "host", 22)),
        ("root@[2001:db8::1] -p 22", ("root", "2001:db8::1", 22)),
        (["root@a -p 1", "root@b -p 2"], ("root", "a", 1)),
        ([None, "root@b -p 2"], ("root", "b", 2)),
    ],
)
def test_an_ssh_connection_is_read_in_every_form(reported: object, read: tuple[str, str, int]) -> None:
    assert read_connection("p1", reported) == SshAddress("p1", *read)


@pytest.mark.parametrize(
    "reported",
    [
        None,
        [None],
        [],
        "",
        "192.0.2.1",
        "root@",
        "root@host -p",
        "root@host -p 0",
        "root@host -p 70000",
        "root@host -p 22;id",
        "-oProxyCommand=id@host",
        "root@-oProxyCommand=id",
        "root@-host",
        "root@host$(id)",
        "root@" + "a" * 1000,
        7,
        {"host": "a"},
    ],
)
def test_what_is_no_connection_is_none_yet(reported: object) -> None:
    assert read_connection("p1", reported) is None


SSH_AT_2222 = [
    {"internal": "80", "external": "80", "usedBy": "WEB_SERVER"},
    {"internal": "22", "external": "2222", "usedBy": "SSH"},
]


@pytest.mark.parametrize("line", [None, [None], "", "  ", [], ["", None]])
@pytest.mark.parametrize("ip", ["192.0.2.1", ["192.0.2.1"], [None, " 192.0.2.1 "]])
def test_an_active_pod_without_an_ssh_line_is_reached_by_its_address_and_port_mapping(
    line: object, ip: object
) -> None:
    rented = PrimePod.model_validate(
        {"id": "p1", "status": "ACTIVE", "sshConnection": line, "ip": ip, "primePortMapping": SSH_AT_2222}
    )
    assert connection_of(rented) == SshAddress("p1", "root", "192.0.2.1", 2222)


@pytest.mark.parametrize(
    ("content", "read"),
    [
        ({"sshConnection": "ubuntu@ -p 22", "primePortMapping": SSH_AT_2222}, ("ubuntu", "192.0.2.1", 2222)),
        ({"sshConnection": "ssh ubuntu@ -p 2200"}, ("ubuntu", "192.0.2.1", 2200)),
        ({"sshConnection": "ubuntu@", "primePortMapping": []}, ("ubuntu", "192.0.2.1", 22)),
        (
            {"sshConnection": "ubuntu@192.0.2.9 -p 7", "primePortMapping": SSH_AT_2222},
            ("ubuntu", "192.0.2.9", 7),
        ),
        ({"primePortMapping": [{"external": 2222, "usedBy": "ssh"}]}, ("root", "192.0.2.1", 2222)),
        ({"ip": "[2001:db8::1]", "primePortMapping": SSH_AT_2222}, ("root", "2001:db8::1", 2222)),
    ],
)
def test_an_ssh_line_tells_what_it_can_and_the_other_fields_the_rest(
    content: dict[str, object], read: tuple[str, str, int]
) -> None:
    assert connection_of(PrimePod.model_validate({"id": "p1", "ip": "192.0.2.1"} | content)) == SshAddress(
        "p1", *read
    )


@pytest.mark.parametrize(
    "content",
    [
        {"ip": "192.0.2.1"},
        {"ip": None, "primePortMapping": SSH_AT_2222},
        {"ip": [None], "primePortMapping": SSH_AT_2222},
        {"ip": "-oProxyCommand=id", "primePortMapping": SSH_AT_2222},
        {"ip": "a b", "primePortMapping": SSH_AT_2222},
        {"ip": {"v4": "192.0.2.1"}, "primePortMapping": SSH_AT_2222},
        {"ip": "192.0.2.1", "primePortMapping": {"usedBy": "SSH"}},
        {"ip": "192.0.2.1", "primePortMapping": [None, 7, {"usedBy": "SSH"}]},
        {"ip": "192.0.2.1", "primePortMapping": [{"external": "22;id", "usedBy": "SSH"}]},
        {"ip": "192.0.2.1", "primePortMapping": [{"external": "8888", "usedBy": "JUPYTER_NOTEBOOK"}]},
    ],
)
def test_an_address_without_an_ssh_port_or_a_port_without_an_address_is_no_connection_yet(
    content: dict[str, object],
) -> None:
    assert connection_of(PrimePod.model_validate({"id": "p1", "sshConnection": None} | content)) is None


@pytest.mark.parametrize(
    ("status", "installation", "progress", "means"),
    [
        ("PROVISIONING", "PENDING", None, PodStatus.PENDING),
        ("PENDING", None, None, PodStatus.PENDING),
        ("ACTIVE", "PENDING", 0, PodStatus.PENDING),
        ("ACTIVE", "ACTIVE", 50, PodStatus.PENDING),
        ("ACTIVE", "ACTIVE", 100, PodStatus.ACTIVE),
        ("ACTIVE", "FINISHED", None, PodStatus.ACTIVE),
        ("ACTIVE", None, None, PodStatus.ACTIVE),
        ("ACTIVE", "A_NEW_WORD", None, PodStatus.ACTIVE),
        ("ACTIVE", "ERROR", 100, PodStatus.BROKEN),
        ("TERMINATED", "FINISHED", 100, PodStatus.GONE),
        ("ERROR", "PENDING", None, PodStatus.BROKEN),
        ("STOPPED", "FINISHED", None, PodStatus.BROKEN),
        ("DELETING", "FINISHED", None, PodStatus.UNKNOWN),
        ("UNKNOWN", None, None, PodStatus.UNKNOWN),
        ("A_NEW_WORD", None, None, PodStatus.UNKNOWN),
        (None, None, None, PodStatus.UNKNOWN),
    ],
)
def test_only_a_machine_reported_to_be_terminated_is_gone(
    status: str | None, installation: str | None, progress: float | None, means: PodStatus
) -> None:
    rented = PrimePod(id="p", status=status, installation_status=installation, installation_progress=progress)
    assert pod_of(rented).status is means


def test_a_pod_that_tells_little_is_still_a_pod() -> None:
    content = {"id": "p", "name": None, "status": "ACTIVE", "sshConnection": [None], "aNewField": 1}
    assert pod_of(PrimePod.model_validate(content)) == Pod("p", "", PodStatus.ACTIVE)


def test_a_field_of_another_type_does_not_hide_the_pod() -> None:
    content = {
        "id": "p",
        "name": "pt-a-e1",
        "status": {"is": "ACTIVE"},
        "priceHr": "free",
        "createdAt": 7,
        "installationProgress": "half",
    }
    assert pod_of(PrimePod.model_validate(content)) == Pod("p", "pt-a-e1", PodStatus.UNKNOWN)


@pytest.mark.parametrize(
    ("text", "at_s"),
    [
        ("2026-08-19T12:00:00.123Z", 1787140800),
        ("2026-08-19T12:00:00", 1787140800),
        ("2026-08-19T14:00:00+02:00", 1787140800),
        ("yesterday", 0),
        ("", 0),
        (None, 0),
    ],
)
def test_times_without_a_zone_are_utc(text: str | None, at_s: int) -> None:
    assert second(text) == at_s
