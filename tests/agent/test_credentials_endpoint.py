"""Keys on loopback for the trainer's tools: found and requested again by AWS's own library, refused to all
other processes.
"""

import http.client
import json
import os
import socket
import stat
import subprocess
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from prime_agent.credentials_endpoint import AT_ONCE_MAX, OWN, PATH, KeyLoan, with_loan
from prime_train.runs.wire import PodKeys
from tests.waiting import HANG_S

NOW_S = 1_790_000_000.0
PLACE = {"AWS_REGION": "eu-central-1", "AWS_ENDPOINT_URL": "http://127.0.0.1:9", "PYTHON": "/usr/bin/python"}


@dataclass
class Ring:
    """The agent's keys, which a test can change."""

    number: int = 1
    valid_s: int = 3600

    def newest(self) -> PodKeys:
        return PodKeys(
            access_key_id=f"id-{self.number}",
            secret_access_key=f"secret-{self.number}",
            session_token=f"token-{self.number}",
            valid_s=self.valid_s,
        )


@dataclass
class Place:
    """A running endpoint, and how it is queried."""

    ring: Ring
    loan: KeyLoan

    @property
    def host(self) -> str:
        return urlsplit(self.loan.environment["AWS_CONTAINER_CREDENTIALS_FULL_URI"]).netloc

    @property
    def token(self) -> str:
        return Path(self.loan.environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"]).read_text()

    def ask(self, method: str = "GET", path: str = PATH, **headers: str) -> tuple[int, bytes]:
        sent = {"Authorization": self.token, "Host": self.host} | headers
        connection = http.client.HTTPConnection(self.host, timeout=HANG_S)
        try:
            connection.putrequest(method, path, skip_host=True)
            for name, value in sent.items():
                connection.putheader(name, value)
            connection.endheaders()
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()


@pytest.fixture
def here(tmp_path: Path) -> Place:
    ring = Ring()
    return Place(ring, KeyLoan(ring.newest, tmp_path, lambda: NOW_S))


def test_whoever_knows_the_token_gets_the_newest_keys_and_their_end(here: Place) -> None:
    status, body = here.ask()
    ends = datetime.fromtimestamp(NOW_S + 3600, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert (status, json.loads(body)) == (
        200,
        {"AccessKeyId": "id-1", "SecretAccessKey": "secret-1", "Token": "token-1", "Expiration": ends},
    )
    here.ring.number = 2
    assert json.loads(here.ask()[1])["SecretAccessKey"] == "secret-2"


@pytest.mark.parametrize(
    ("changed", "status"),
    [
        ({"Authorization": "guessed"}, 401),
        ({"Authorization": ""}, 401),
        ({"Authorization": "grün"}, 401),
        ({"Host": "evil.example"}, 403),
        ({"Host": "localhost:80"}, 403),
        ({"path": "/"}, 404),
        ({"path": f"{PATH}/"}, 404),
        ({"path": f"{PATH}?x=1"}, 404),
        ({"method": "POST"}, 501),
        ({"method": "OPTIONS"}, 501),
    ],
    ids=str,
)
def test_anybody_else_gets_nothing(here: Place, changed: dict[str, str], status: int) -> None:
    response = here.ask(**changed)
    assert response[0] == status
    assert b"secret-1" not in response[1]


def test_a_token_of_a_page_that_was_led_here_is_of_no_use(here: Place) -> None:
    """The browser sends the web page's own host name, although it resolves to loopback."""
    assert here.ask(Host=f"rebound.example:{here.host.partition(':')[2]}")[0] == 403


def test_keys_that_have_ended_are_not_given(here: Place) -> None:
    here.ring.valid_s = 0
    assert here.ask() == (503, b"")


def test_nobody_but_this_user_can_read_the_token(here: Place, tmp_path: Path) -> None:
    file = Path(here.loan.environment["AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"])
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [file.name]
    assert len(here.token) >= 40
    assert here.loan.secrets() == {"AWS_CONTAINER_AUTHORIZATION_TOKEN": here.token}


def test_an_agent_that_comes_after_another_has_a_token_of_its_own(here: Place, tmp_path: Path) -> None:
    first = here.token
    second = KeyLoan(here.ring.newest, tmp_path, lambda: NOW_S)
    assert here.token != first
    assert here.ask(Authorization=first)[0] == 200  # whoever was started by the first may still ask it
    assert Place(here.ring, second).ask()[0] == 200


def test_who_connects_and_says_nothing_holds_up_nobody(here: Place) -> None:
    name, port = here.host.split(":")
    silent = [socket.create_connection((name, int(port))) for _ in range(AT_ONCE_MAX - 1)]
    try:
        assert here.ask()[0] == 200
        for one in silent:
            one.settimeout(30)
            assert one.recv(1) == b""  # cut off
    finally:
        for one in silent:
            one.close()


def test_a_request_that_is_dripped_in_is_cut_off_as_a_whole(here: Place) -> None:
    name, port = here.host.split(":")
    with socket.create_connection((name, int(port))) as slow:
        slow.settimeout(0.2)
        ended = False
        for _ in range(200):
            try:
                slow.sendall(b"x")
                ended = slow.recv(1) == b""
            except TimeoutError:
                continue
            except OSError:
                ended = True
            if ended:
                break
        assert ended
    assert here.ask()[0] == 200


CHILD = """\
import sys, boto3
session = boto3.session.Session()
credentials = session.get_credentials()
print(credentials.method, session.region_name, session.client("s3").meta.endpoint_url, flush=True)
for line in sys.stdin:
    print(credentials.get_frozen_credentials().token, flush=True)
"""


def test_awss_own_library_finds_the_keys_by_itself_and_asks_again(tmp_path: Path) -> None:
    ring = Ring(valid_s=60)  # which it takes for as good as ended
    here = Place(ring, KeyLoan(ring.newest, tmp_path, time.time))
    machine = {name: value for name, value in os.environ.items() if not name.startswith("AWS_")}
    env = with_loan({**machine, "HOME": str(tmp_path), "AWS_EC2_METADATA_DISABLED": "true"}, here.loan, PLACE)
    with subprocess.Popen(
        [sys.executable, "-c", CHILD], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        assert child.stdout.readline().split() == ["container-role", "eu-central-1", "http://127.0.0.1:9"]
        for number in (1, 2, 3):
            here.ring.number = number
            child.stdin.write("\n")
            child.stdin.flush()
            assert child.stdout.readline() == f"token-{number}\n"
        child.stdin.close()
        assert child.wait(HANG_S) == 0


@pytest.mark.parametrize("name", OWN)
def test_who_has_keys_of_his_own_is_left_alone(here: Place, name: str) -> None:
    assert with_loan({name: "mine"}, here.loan, PLACE) == {name: "mine"}


def test_only_what_is_not_reported_is_reported(here: Place) -> None:
    known = {"PATH": "/bin", "AWS_REGION": "us-west-2", "AWS_ACCESS_KEY_ID": ""}
    environment = {"AWS_DEFAULT_REGION": "us-west-2", "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}
    assert with_loan(known, here.loan, PLACE) == {**known, **environment, **here.loan.environment}
    assert with_loan({"AWS_ENDPOINT_URL": "http://mine"}, here.loan, PLACE) == {
        "AWS_ENDPOINT_URL": "http://mine",
        "AWS_REGION": "eu-central-1",
        "AWS_DEFAULT_REGION": "eu-central-1",
        **here.loan.environment,
    }


def test_without_a_loan_nothing_changes() -> None:
    assert with_loan({"PATH": "/bin"}, None, PLACE) == {"PATH": "/bin"}
