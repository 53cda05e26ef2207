"""A pod of RunPod from its boot to its end, and what is concluded from each status."""

from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.providers.port import SshAddress
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.runpod.models import RunPodPod
from prime_train.providers.runpod.pods import ADDRESS_S_MAX, connection_of, pod_of
from prime_train.providers.runpod.provider import RunPodAccount, account_names
from prime_train.providers.runpod.settings import RunPodSettings, read_settings
from prime_train.runs.verdict import PodStatus
from prime_train.text.redaction import HIDDEN, redacted
from tests.adapters.pods_runpod.runpod_pods import client_of, guarded, pods_of, rent
from tests.adapters.rental_apis.shared import NAME, PUBLIC_KEY, TICKET, Pushed, raised, seen
from tests.fakes.http import ALWAYS, Response
from tests.fakes.runpod import ACCOUNT_ID, API_KEY, FakeRunPod, Status

OTHER_KEY = "rpa_" + "0TH3" * 8


def test_a_pod_boots_and_gets_its_agent_once_it_has_an_address(fake: FakeRunPod) -> None:
    fake.plan.boot_s = 100
    pushed = Pushed()
    pods = pods_of(fake, pusher=pushed)
    pod = rent(pods)
    for after_s in (0, 60):
        fake.advance(after_s)
        assert seen(pods, pod) is PodStatus.PENDING
        assert "booting" in str(raised(lambda: pods.put_agent(pod, TICKET)))
    fake.advance(60)
    assert seen(pods, pod) is PodStatus.ACTIVE
    pods.put_agent(pod, TICKET)
    assert pushed == [(SshAddress(pod.pod_id, "root", "127.0.0.1", 22022), TICKET)]
    assert pods.connection(pod.pod_id) == pushed[0][0]


def test_a_pod_without_a_public_port_gets_no_agent(fake: FakeRunPod) -> None:
    fake.plan.public_ip = False
    pods = pods_of(fake)
    pod = rent(pods)
    assert "no SSH address yet" in str(raised(lambda: pods.put_agent(pod, TICKET)))
    assert pods.connection(pod.pod_id) is None


def test_a_machine_without_a_public_address_is_given_up_within_minutes_and_not_at_the_limit_of_the_boot(
    fake: FakeRunPod,
) -> None:
    fake.plan.public_ip = False
    pods = pods_of(fake)
    pod = rent(pods)
    fake.advance(ADDRESS_S_MAX - 60)
    assert seen(pods, pod) is PodStatus.ACTIVE
    fake.advance(60)
    assert seen(pods, pod) is PodStatus.BROKEN


def test_a_machine_with_an_address_is_healthy_however_long_it_runs(fake: FakeRunPod) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.advance(10 * ADDRESS_S_MAX)
    assert seen(pods, pod) is PodStatus.ACTIVE


@pytest.mark.parametrize(
    ("end", "status", "listed"),
    [
        (Status.ERROR, PodStatus.BROKEN, True),
        (Status.TERMINATED, PodStatus.GONE, False),
        (None, None, False),
    ],
)
def test_an_end_is_reported_as_runpod_reports_it(
    fake: FakeRunPod, end: Status | None, status: PodStatus | None, listed: bool
) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.end(pod.pod_id, end)
    assert seen(pods, pod) is status
    assert bool(pods.list()) is listed
    assert raised(lambda: pods.put_agent(pod, TICKET))


def test_a_pod_that_has_exited_is_terminated_before_it_counts_as_gone(fake: FakeRunPod) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.end(pod.pod_id, Status.EXITED)
    assert [each.status for each in pods.list()] == [PodStatus.BROKEN]
    fake.fail(Response(503), method="DELETE", times=3)
    assert seen(pods, pod) is PodStatus.BROKEN
    assert fake.alive
    assert seen(pods, pod) is PodStatus.GONE
    assert not fake.alive
    assert pods.get(pod.pod_id) is None


def test_an_exited_pod_of_somebody_else_is_left_alone(fake: FakeRunPod) -> None:
    ours, theirs = pods_of(fake, mark=PodMark("ours")), pods_of(fake, mark=PodMark("theirs"))
    pod = rent(theirs)
    fake.end(pod.pod_id, Status.EXITED)
    assert seen(ours, pod) is PodStatus.BROKEN
    assert fake.alive
    assert ours.list() == []


@pytest.mark.parametrize("status", ["RESTARTING", "", None, 7, "running\x1b[31m"])
def test_a_status_that_is_not_known_is_not_the_end(status: object) -> None:
    found = pod_of(RunPodPod.model_validate({"id": "abc", "name": NAME, "status": status}))
    assert found.status is PodStatus.UNKNOWN


def _port(ip: str, public: int) -> dict[str, object]:
    return {"private": 22, "public": public, "type": "tcp", "ip": ip}


@pytest.mark.parametrize(
    ("reported", "read"),
    [
        (
            {"ssh": {"direct": {"host": "192.0.2.1", "port": 34446, "username": "root"}}},
            ("root", "192.0.2.1", 34446),
        ),
        (
            {"ssh": {"direct": {"host": "192.0.2.1", "port": 34446, "username": None}}},
            ("root", "192.0.2.1", 34446),
        ),
        ({"ssh": {"proxy": {"host": "ssh.runpod.io", "port": 22, "username": "x"}, "direct": None}}, None),
        (
            {"runtime": {"ports": [{"private": 22, "public": 4022, "type": "tcp", "ip": "192.0.2.1"}]}},
            ("root", "192.0.2.1", 4022),
        ),
        (
            {"runtime": {"ports": [{"private": 8888, "public": 4022, "type": "http", "ip": "192.0.2.1"}]}},
            None,
        ),
        ({"runtime": {"ports": [{"private": 22, "public": None, "type": "tcp", "ip": None}]}}, None),
        ({"ssh": {"direct": {"host": "-oProxyCommand=x", "port": 22, "username": "root"}}}, None),
        ({"ssh": {"direct": {"host": "192.0.2.1", "port": 22, "username": "-oProxyCommand=x"}}}, None),
        ({"ssh": {"direct": {"host": "192.0.2.1", "port": 70000, "username": "root"}}}, None),
        ({"ssh": {"direct": {"host": "192.0.2.1", "port": 22.5, "username": "root"}}}, None),
        ({"ssh": "root@192.0.2.1", "runtime": [1]}, None),
        *(
            ({"runtime": {"ports": [{"private": 22, "public": 60022, "type": "tcp", "ip": private}]}}, None)
            for private in (
                "100.65.12.7",
                "10.0.0.4",
                "172.31.255.1",
                "192.168.1.9",
                "169.254.3.3",
                "fd00::7",
                "::ffff:10.0.0.4",
            )
        ),
        (
            {"runtime": {"ports": [_port("10.0.0.4", 60022), _port("192.0.2.1", 4022)]}},
            ("root", "192.0.2.1", 4022),
        ),
        (
            {
                "ssh": {"direct": {"host": "100.64.0.1", "port": 22}},
                "runtime": {"ports": [_port("172.32.0.1", 4022)]},
            },
            ("root", "172.32.0.1", 4022),
        ),
    ],
)
def test_only_a_direct_address_that_is_one_is_used(
    reported: dict[str, object], read: tuple[str, str, int] | None
) -> None:
    found = connection_of(RunPodPod.model_validate({"id": "abc", **reported}))
    assert found == (SshAddress("abc", *read) if read else None)


def test_pods_of_others_are_neither_listed_nor_counted_as_ours_but_paid_for(fake: FakeRunPod) -> None:
    ours, theirs = pods_of(fake, mark=PodMark("ours")), pods_of(fake, mark=PodMark("theirs"))
    mine, other = rent(ours), rent(theirs)
    assert [pod.pod_id for pod in ours.list()] == [mine.pod_id]
    assert ours.burn_usd_per_hour() == pytest.approx(mine.usd_per_hour + other.usd_per_hour)


# ------------------------------------------------------------------------------------------------------------
# the account


def test_the_balance_is_read_with_what_it_pays_for(fake: FakeRunPod) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.balance_usd = 12.5
    now_s = [0.0]
    account = RunPodAccount(client_of(fake), pods.burn_usd_per_hour, clock=lambda: now_s[0])
    funds = account.funds()
    assert funds is not None
    assert (funds.provider, funds.balance_usd) == ("runpod", 12.5)
    assert funds.burn_usd_per_hour == pytest.approx(pod.usd_per_hour)
    fake.balance_usd = 3.0
    assert account.funds() == funds
    now_s[0] = 31.0
    again = account.funds()
    assert again is not None
    assert again.balance_usd == 3.0
    assert account.bills() == []


def test_a_key_that_may_not_ask_for_the_balance_is_told_once_in_a_while(fake: FakeRunPod) -> None:
    fake.terms.graphql_refusal = "access denied\x1b[31m"
    account = RunPodAccount(client_of(fake), lambda: 0.0, clock=lambda: 0.0)
    for _ in range(3):
        error = raised(account.funds)
    assert "access denied [31m" in str(error)
    assert len(fake.requests_to("POST", "/graphql")) == 1
    assert list(account_names(client_of(fake))) == []


@pytest.mark.parametrize("answer", [Response(404, b"<html>no route</html>"), Response(410)])
def test_without_graphql_machines_are_rented_and_found_gone_all_the_same(
    fake: FakeRunPod, tmp_path: Path, answer: Response
) -> None:
    fake.fail(answer, path="graphql", times=ALWAYS)
    pods = guarded(fake, tmp_path)
    pod = rent(pods)
    fake.end(pod.pod_id, None)
    assert pods.get(pod.pod_id) is None
    assert "no GraphQL" in str(raised(RunPodAccount(client_of(fake), lambda: 0.0).funds))


def test_under_the_key_of_another_account_no_pod_is_gone_and_none_is_rented(
    fake: FakeRunPod, tmp_path: Path
) -> None:
    pod = rent(guarded(fake, tmp_path))
    assert (tmp_path / "account").read_text().strip() == ACCOUNT_ID
    fake.keys = {OTHER_KEY: "user_of_somebody_else"}
    fake.end(pod.pod_id, None)
    strange = guarded(fake, tmp_path, OTHER_KEY)
    for action in (lambda: strange.get(pod.pod_id), strange.list, lambda: rent(strange)):
        error = raised(action)
        assert isinstance(error, PermanentError)
        assert "PRIME_TRAIN_RUNPOD_ACCOUNT=user_of_somebody_else" in str(error)
    assert len(fake.pods) == 1


def test_an_owner_who_cannot_be_asked_proves_no_pod_gone(fake: FakeRunPod, tmp_path: Path) -> None:
    pods = guarded(fake, tmp_path)
    fake.fail(Response(502), path="graphql", times=ALWAYS)
    assert isinstance(raised(lambda: pods.get("0001m2n4k6p8")), TemporaryError)
    assert pods.list() == []


# ------------------------------------------------------------------------------------------------------------
# settings


def test_the_settings_are_those_of_runpods_own_client() -> None:
    assert read_settings({"RUNPOD_API_KEY": " k "}) == RunPodSettings(
        "k", "https://api.runpod.io", ("SECURE", "COMMUNITY")
    )
    given = {
        "RUNPOD_API_KEY": "k",
        "RUNPOD_API_BASE_URL": "http://127.0.0.1:9/v2/",
        "PRIME_TRAIN_RUNPOD_CLOUD": "Secure",
    }
    assert read_settings(given) == RunPodSettings("k", "http://127.0.0.1:9", ("SECURE",))
    assert "secret" not in repr(RunPodSettings("secret"))


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({}, "set RUNPOD_API_KEY"),
        ({"RUNPOD_API_KEY": "a b"}, "invalid characters; check RUNPOD_API_KEY"),
        ({"RUNPOD_API_KEY": "kéy"}, "invalid characters; check RUNPOD_API_KEY"),
        (
            {"RUNPOD_API_KEY": "k", "RUNPOD_API_BASE_URL": "api.runpod.io"},
            "must look like https://host; check RUNPOD_API_BASE_URL",
        ),
        ({"RUNPOD_API_KEY": "k", "RUNPOD_API_BASE_URL": "http://api.runpod.io"}, "unencrypted; write https"),
        ({"RUNPOD_API_KEY": "k", "PRIME_TRAIN_RUNPOD_CLOUD": "spot"}, "set it to secure or community"),
    ],
)
def test_settings_that_cannot_work_are_refused(environment: dict[str, str], reason: str) -> None:
    error = raised(lambda: read_settings(environment))
    assert isinstance(error, PermanentError)
    assert reason in str(error)


def test_a_key_of_runpod_is_recognised_as_a_secret() -> None:
    assert redacted(f"RUNPOD_API_KEY={API_KEY} and more") == f"RUNPOD_API_KEY={HIDDEN} and more"


def test_no_answer_repeats_the_key(fake: FakeRunPod) -> None:
    fake.fail(
        replace(Response(400), body=f'{{"title": "x", "status": 400, "detail": "key {API_KEY}"}}'.encode()),
        method="GET",
    )
    assert API_KEY not in str(raised(pods_of(fake, public_key=PUBLIC_KEY).list))
