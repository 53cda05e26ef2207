"""An instance of Vast.ai from its boot to its end, what is concluded from its states, the account, and the
pace of requests.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.providers.port import SshAddress
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.rental.rate_limit import RequestPace
from prime_train.providers.vast.client import LEAST_S
from prime_train.providers.vast.models import VastInstance
from prime_train.providers.vast.pods import UNHEARD_S_MAX, UnheardHosts, VastPods, connection_of
from prime_train.providers.vast.provider import VastAccount
from prime_train.providers.vast.settings import VastSettings, read_settings
from prime_train.providers.vast.statuses import pod_of
from prime_train.runs.verdict import Pod, PodStatus
from prime_train.text.redaction import HIDDEN, redacted
from tests.adapters.pods_vast.vast_pods import (
    HARDWARE,
    INSTANCE,
    LIST,
    client_of,
    first,
    guarded,
    pods_of,
    rent,
)
from tests.adapters.rental_apis.shared import NAME, PUBLIC_KEY, TICKET, Pushed, raised
from tests.builders import is_gone
from tests.fakes.http import ALWAYS, Response
from tests.fakes.vast import ACCOUNT_ID, API_KEY, FakeVast, Plan, Status, refused
from tests.fakes.vast.asks import asks

OTHER_KEY = "0bad" * 16


def seen(pods: VastPods, pod: Pod) -> PodStatus | None:
    found = pods.get(pod.pod_id)
    return found.status if found is not None else None


def test_an_instance_boots_and_gets_our_key_and_the_agent(fake: FakeVast) -> None:
    fake.plan.boot_s = 100
    pushed = Pushed()
    pods = pods_of(fake, pusher=pushed, public_key=PUBLIC_KEY)
    pod = rent(pods)
    for after_s in (0, 60):
        fake.advance(after_s)
        assert seen(pods, pod) is PodStatus.PENDING
        assert "booting" in str(raised(lambda: pods.put_agent(pod, TICKET)))
    assert fake.instance(pod.pod_id).ssh_keys == []
    fake.advance(60)
    assert seen(pods, pod) is PodStatus.ACTIVE
    for _ in range(2):
        pods.put_agent(pod, TICKET)
    assert pushed == 2 * [(SshAddress(pod.pod_id, "root", "192.0.2.45", 40_001), TICKET)]
    assert fake.instance(pod.pod_id).ssh_keys == [PUBLIC_KEY]
    assert sum(request.path.endswith("/ssh") for request in fake.requests) == 2


def test_a_key_that_another_process_has_attached_is_not_attached_again(fake: FakeVast) -> None:
    pod = rent(pods_of(fake))
    for _ in range(2):
        pods_of(fake, public_key=PUBLIC_KEY).put_agent(pod, TICKET)
    assert fake.instance(pod.pod_id).ssh_keys == [PUBLIC_KEY]
    assert fake.violations == []


def test_an_instance_that_does_not_take_the_key_yet_is_tried_again(fake: FakeVast) -> None:
    pushed = Pushed()
    pods = pods_of(fake, pusher=pushed, public_key=PUBLIC_KEY)
    pod = rent(pods)
    fake.fail(refused(400, "invalid_args", "not ready"), method="POST", path="/ssh$")
    assert isinstance(raised(lambda: pods.put_agent(pod, TICKET)), TemporaryError)
    assert pushed == []
    pods.put_agent(pod, TICKET)
    assert len(pushed) == 1


def test_without_a_public_port_the_instance_is_reached_by_the_proxy(fake: FakeVast) -> None:
    fake.plan = Plan(has_ports=False)
    pods = pods_of(fake)
    pod = rent(pods)
    assert pods.connection(pod.pod_id) == SshAddress(pod.pod_id, "root", "ssh5.vast.ai", 10_001)
    fake.instance(pod.pod_id).ssh_host = ""
    assert pods.connection(pod.pod_id) is None
    assert "no SSH address yet" in str(raised(lambda: pods.put_agent(pod, TICKET)))


@pytest.mark.parametrize(
    ("reported", "read"),
    [
        ({"public_ipaddr": "192.0.2.1 ", "ports": {"22/tcp": [{"HostPort": "4022"}]}}, ("192.0.2.1", 4022)),
        ({"public_ipaddr": "192.0.2.1", "ports": {"22/tcp": [7, {"HostPort": "4022"}]}}, ("192.0.2.1", 4022)),
        (
            {
                "public_ipaddr": "192.0.2.1",
                "ports": {"8080/tcp": [{"HostPort": "4022"}]},
                "ssh_host": "a.b",
                "ssh_port": 5,
            },
            ("a.b", 5),
        ),
        ({"public_ipaddr": "-oProxyCommand=x", "ports": {"22/tcp": [{"HostPort": "4022"}]}}, None),
        ({"public_ipaddr": "192.0.2.1", "ports": {"22/tcp": [{"HostPort": "70000"}]}}, None),
        ({"public_ipaddr": "192.0.2.1", "ports": [22]}, None),
        ({"ssh_host": "-oProxyCommand=x", "ssh_port": 5}, None),
        ({"ssh_host": "a.b", "ssh_port": 5.5}, None),
        ({}, None),
    ],
)
def test_only_an_address_that_is_one_is_used(
    reported: dict[str, object], read: tuple[str, int] | None
) -> None:
    found = connection_of(VastInstance.model_validate({"id": 7, **reported}))
    assert found == (SshAddress("7", "root", *read) if read else None)


PAUSED = {"intended_status": "stopped", "cur_state": "stopped", "next_state": "stopped"}


@pytest.mark.parametrize(
    ("states", "status"),
    [
        ({}, PodStatus.PENDING),
        ({"actual_status": "loading", "status_msg": "pulling"}, PodStatus.PENDING),
        ({"actual_status": "created", "status_msg": "x: OCI runtime create failed: y"}, PodStatus.BROKEN),
        ({"actual_status": "running", "status_msg": "x: OCI runtime create failed: y"}, PodStatus.ACTIVE),
        (
            {"actual_status": "loading", "status_msg": "failed to pull layer, retrying in 5 seconds"},
            PodStatus.PENDING,
        ),
        (
            {"actual_status": "loading", "status_msg": "a3ed95caeb02: Pull complete, 8ea2: Waiting"},
            PodStatus.PENDING,
        ),
        ({"actual_status": "running", "intended_status": "running"}, PodStatus.ACTIVE),
        (
            {"actual_status": "running", "intended_status": "stopped", "cur_state": "running"},
            PodStatus.ACTIVE,
        ),
        ({"actual_status": "running", **PAUSED}, PodStatus.BROKEN),
        ({"actual_status": "exited", "intended_status": "stopped", "cur_state": "running"}, PodStatus.BROKEN),
        ({"actual_status": "exited", "intended_status": "running"}, PodStatus.BROKEN),
        ({"actual_status": "unknown", "intended_status": "running"}, PodStatus.UNKNOWN),
        ({"actual_status": "offline", "intended_status": "running"}, PodStatus.UNKNOWN),
        ({"actual_status": "rebooting", "intended_status": "running"}, PodStatus.UNKNOWN),
        ({"actual_status": "something\x1b[31m new"}, PodStatus.UNKNOWN),
    ],
)
def test_each_combination_of_states_is_a_status_of_the_port(
    states: dict[str, object], status: PodStatus
) -> None:
    assert pod_of(VastInstance.model_validate({"id": 7, "label": NAME, **states})).status is status


@pytest.mark.parametrize(
    "said",
    [
        ": OCI runtime create failed: nvidia-container-cli: initialization error",
        "Error response from daemon: pull access denied for x, repository does not exist or may require "
        "'docker login'",
        "Error: write /var/lib/docker/tmp/GetImageBlob1: no space left on device",
        "Error, could not find docker image",
        "ERROR: manifest unknown",
        "manifest for x:y not found: manifest unknown",
        "no matching manifest for linux/arm64 in the manifest list entries",
        "docker: toomanyrequests: You have reached your pull rate limit.",
        "GPU error, unable to start instance",
        "exec /opt/entrypoint.sh: exec format error",
        'exec: "bash": executable file not found in $PATH',
        "failed to register layer: unexpected EOF",
        "denied: requested access to the resource is denied",
        "unauthorized: authentication required",
        "Bind for 0.0.0.0:40022 failed: port is already allocated",
    ],
)
def test_a_machine_whose_image_never_starts_is_given_up_at_once(said: str) -> None:
    for status in ("created", "loading", ""):
        rented = VastInstance.model_validate(
            {"id": 7, "label": NAME, "actual_status": status, "status_msg": said}
        )
        assert pod_of(rented).status is PodStatus.BROKEN


@pytest.mark.parametrize("status", ["offline", "unknown"])
def test_a_host_that_does_not_report_while_it_boots_is_given_up_after_a_while(
    fake: FakeVast, status: str
) -> None:
    pods = pods_of(fake, unheard=UnheardHosts(fake.now_s))
    pod = rent(pods)
    fake.end(pod.pod_id, Status(status))
    fake.advance(60)
    assert seen(pods, pod) is PodStatus.UNKNOWN
    fake.advance(UNHEARD_S_MAX)
    assert seen(pods, pod) is PodStatus.BROKEN


def test_a_host_that_reports_again_starts_anew() -> None:
    now_s = 0.0
    unheard = UnheardHosts(lambda: now_s)
    pod = Pod("7", NAME, PodStatus.UNKNOWN)
    for at_s, status in (
        (0, PodStatus.UNKNOWN),
        (200, PodStatus.PENDING),
        (210, PodStatus.UNKNOWN),
        (500, PodStatus.UNKNOWN),
    ):
        now_s = at_s
        assert unheard.judged(replace(pod, status=status)).status is status
    now_s = 210 + UNHEARD_S_MAX
    assert unheard.judged(pod).status is PodStatus.BROKEN


def test_an_outbid_instance_is_destroyed_before_it_counts_as_gone(fake: FakeVast) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.outbid(pod.pod_id)
    assert [each.status for each in pods.list()] == [PodStatus.BROKEN]
    fake.fail(Response(503), method="DELETE", times=3)
    assert seen(pods, pod) is PodStatus.BROKEN
    assert fake.alive
    assert seen(pods, pod) is PodStatus.GONE
    assert not fake.alive
    fake.resume(pod.pod_id)
    assert pods.get(pod.pod_id) is None


def test_a_paused_instance_of_somebody_else_is_left_alone(fake: FakeVast) -> None:
    ours, theirs = pods_of(fake, mark=PodMark("ours")), pods_of(fake, mark=PodMark("theirs"))
    pod = rent(theirs)
    fake.outbid(pod.pod_id)
    assert seen(ours, pod) is PodStatus.BROKEN
    assert fake.alive
    assert ours.list() == []


def test_a_list_of_many_pages_is_read_to_its_end(fake: FakeVast) -> None:
    pods = pods_of(fake)
    for number in range(60):
        fake.rented(asks(fake.hosts)[0], {"image": "x", "label": f"{NAME}{number}"}, ACCOUNT_ID)
    assert len(pods.list()) == 60
    assert len(fake.requests_to("GET", LIST)) == 3
    fake.fail(refused(500, "x", "y"), path=LIST, first=3, times=9)
    assert isinstance(raised(pods.list), TemporaryError)


@pytest.mark.parametrize(
    "pod_id", ["../../users/current", "1/ssh", "1?x", "", "0", "-1", "9" * 16, "1 ", "1%2f", "abc", "١"]
)
def test_no_id_becomes_a_part_of_a_url_that_it_must_not(fake: FakeVast, pod_id: str) -> None:
    pods = pods_of(fake)
    assert is_gone(pods.get(pod_id))
    assert pods.connection(pod_id) is None
    pods.terminate(pod_id)
    assert not fake.requests


# ------------------------------------------------------------------------------------------------------------
# the account


def test_the_balance_is_read_with_what_it_pays_for(fake: FakeVast) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    pods.list()
    fake.balance_usd = 12.5
    now_s = [0.0]
    account = VastAccount(
        client_of(fake), PodMark(), pods.burn_usd_per_hour, clock=lambda: now_s[0], wall=fake.now_s
    )
    funds = account.funds()
    assert funds is not None
    assert (funds.provider, funds.balance_usd) == ("vast", 12.5)
    assert funds.burn_usd_per_hour == pytest.approx(pod.usd_per_hour)
    fake.balance_usd = 3.0
    assert account.funds() == funds
    now_s[0] = 31.0
    again = account.funds()
    assert again is not None
    assert again.balance_usd == 3.0


def test_credit_is_what_is_left_where_the_account_has_any(fake: FakeVast) -> None:
    fake.fail(Response(200, b'{"id": 1, "balance": -0.04, "credit": 7.5}'), path="users")
    account = VastAccount(client_of(fake), PodMark(), lambda: 0.0)
    funds = account.funds()
    assert funds is not None
    assert funds.balance_usd == 7.5


def test_only_what_has_ended_some_time_ago_is_billed(fake: FakeVast) -> None:
    pods, others = pods_of(fake, mark=PodMark("ours")), pods_of(fake, mark=PodMark("theirs"))
    ended, running, late = (rent(pods, f"{NAME}{number}") for number in range(3))
    others.terminate(rent(others).pod_id)
    fake.advance(3600)
    pods.terminate(ended.pod_id)
    fake.advance(2000)
    pods.terminate(late.pod_id)
    now_s = [0.0]
    account = VastAccount(
        client_of(fake), PodMark("ours"), lambda: 0.0, clock=lambda: now_s[0], wall=fake.now_s
    )
    (bill,) = account.bills()
    assert (bill.pod_id, bill.name, bill.usd) == (ended.pod_id, f"{NAME}0", round(ended.usd_per_hour, 3))
    assert (bill.created_s, bill.ended_s) == (ended.created_s, ended.created_s + 3600)
    assert account.bills() == []
    now_s[0] = 601.0
    fake.advance(1800)
    assert {each.pod_id for each in account.bills()} == {ended.pod_id, late.pod_id}
    assert running.pod_id in {each.id for each in fake.alive}


def test_under_the_key_of_another_account_no_pod_is_gone_and_none_is_rented(
    fake: FakeVast, tmp_path: Path
) -> None:
    pod = rent(guarded(fake, tmp_path))
    assert (tmp_path / "account").read_text().strip() == str(ACCOUNT_ID)
    fake.keys[OTHER_KEY] = 815
    strange = guarded(fake, tmp_path, OTHER_KEY)
    for action in (
        lambda: strange.get(pod.pod_id),
        strange.list,
        lambda: rent(strange),
        lambda: strange.terminate(pod.pod_id),
    ):
        error = raised(action)
        assert isinstance(error, PermanentError)
        assert "PRIME_TRAIN_VAST_ACCOUNT=815" in str(error)
    assert len(fake.alive) == 1


def test_an_owner_who_cannot_be_asked_proves_no_pod_gone(fake: FakeVast, tmp_path: Path) -> None:
    pods = guarded(fake, tmp_path)
    fake.fail(Response(502), path="users", times=ALWAYS)
    assert isinstance(raised(lambda: pods.get("20000001")), TemporaryError)
    assert pods.list() == []


# ------------------------------------------------------------------------------------------------------------
# the pace


class Waits(list[float]):
    """Pauses that pass in the fake's time."""

    def __init__(self, fake: FakeVast) -> None:
        self._fake = fake

    def __call__(self, seconds: float) -> None:
        self.append(seconds)
        self._fake.advance(seconds)


def test_requests_keep_the_intervals_that_vast_demands_and_none_is_refused(fake: FakeVast) -> None:
    fake.terms.least_s = {
        ("PUT", "/api/v0/asks/{id:int}"): 4.5,
        ("DELETE", "/api/v0/instances/{id:int}"): 3.0,
        ("GET", "/api/v0/instances/{id:int}"): 2.0,
        ("GET", "/api/v1/instances"): 1.0,
    }
    waits = Waits(fake)
    pods = pods_of(
        fake,
        client=client_of(
            fake, pace=RequestPace("Vast.ai", LEAST_S, clock=fake.now_s, pause=waits), clock=fake.now_s
        ),
    )
    offer = first(pods)
    for number in range(3):
        pod = pods.create(f"{NAME}{number}", offer, HARDWARE)
        pods.list()
        pods.terminate(pod.pod_id)
    assert {request.status for request in fake.requests} == {200}
    assert sum(waits) == pytest.approx(10.0)  # 1 s between two searches, 4.5 s between two orders


def test_a_request_whose_turn_is_far_off_is_not_sent_and_says_how_long(fake: FakeVast) -> None:
    waits: list[float] = []  # pauses that do not pass: as many threads wait at the same time
    pods = pods_of(
        fake,
        client=client_of(fake, pace=RequestPace("Vast.ai", LEAST_S, clock=fake.now_s, pause=waits.append)),
    )
    for _ in range(8):
        raised_or_none(pods)
    late = raised(lambda: pods.get("20000001"))
    assert isinstance(late, TemporaryError)
    assert late.delay_s == 16
    assert "one such request in 2 s" in str(late)


def raised_or_none(pods: VastPods) -> None:
    assert pods.get("20000001") is None


@pytest.mark.parametrize(
    ("answer", "delay_s"),
    [
        (Response(429, b"API requests too frequent: endpoint threshold=2.0", "text/plain"), 2),
        (Response(429, b'{"detail": "API requests too frequent endpoint threshold=4.5"}'), 4.5),
        (Response(429, b"API requests too frequent", "text/plain", {"Retry-After": "40"}), 40),
        (Response(429, b"API requests too frequent", "text/plain"), 5),
    ],
)
def test_after_a_429_requests_of_its_kind_wait_and_no_others(
    fake: FakeVast, answer: Response, delay_s: float
) -> None:
    pods = pods_of(fake, client=client_of(fake, clock=fake.now_s))
    pod = rent(pods)
    fake.fail(answer, method="GET", path=INSTANCE)
    raised(lambda: pods.get(pod.pod_id))
    asked = len(fake.requests)
    paused = raised(lambda: pods.get(pod.pod_id))
    assert isinstance(paused, TemporaryError)
    assert paused.delay_s == delay_s
    assert len(fake.requests) == asked
    assert [each.pod_id for each in pods.list()] == [pod.pod_id]
    fake.advance(delay_s)
    assert pods.get(pod.pod_id) == pod


# ------------------------------------------------------------------------------------------------------------
# settings


def test_the_settings_are_those_of_vasts_own_client() -> None:
    assert read_settings({"VAST_API_KEY": " k "}) == VastSettings("k", "https://console.vast.ai", 1.1)
    given = {"VAST_API_KEY": "k", "VAST_URL": "http://127.0.0.1:9/api/", "PRIME_TRAIN_VAST_BID": "1.25"}
    assert read_settings(given) == VastSettings("k", "http://127.0.0.1:9", 1.25)
    assert "secret" not in repr(VastSettings("secret"))


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({}, "set VAST_API_KEY"),
        ({"VAST_API_KEY": "a b"}, "invalid characters; check VAST_API_KEY"),
        ({"VAST_API_KEY": "k", "VAST_URL": "console.vast.ai"}, "must look like https://host; check VAST_URL"),
        ({"VAST_API_KEY": "k", "VAST_URL": "http://console.vast.ai"}, "unencrypted; write https"),
        ({"VAST_API_KEY": "k", "PRIME_TRAIN_VAST_BID": "0.9"}, "from 1 to 3"),
        ({"VAST_API_KEY": "k", "PRIME_TRAIN_VAST_BID": "nan"}, "from 1 to 3"),
        ({"VAST_API_KEY": "k", "PRIME_TRAIN_VAST_BID": "10 %"}, "PRIME_TRAIN_VAST_BID is '10 %'"),
    ],
)
def test_settings_that_cannot_work_are_refused(environment: dict[str, str], reason: str) -> None:
    error = raised(lambda: read_settings(environment))
    assert isinstance(error, PermanentError)
    assert reason in str(error)


def test_a_key_of_vast_is_recognised_as_a_secret_and_never_repeated(fake: FakeVast) -> None:
    assert redacted(f"VAST_API_KEY={API_KEY} and more") == f"{HIDDEN} and more"
    fake.fail(refused(400, "invalid_args", f"key {API_KEY}"), method="GET")
    assert API_KEY not in str(raised(pods_of(fake).list))
