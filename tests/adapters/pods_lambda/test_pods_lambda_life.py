"""An instance of Lambda Cloud from its boot to its end, what is concluded from each status, the account, and
the pace of requests.
"""

from pathlib import Path

import pytest

from prime_train.errors import PermanentError, TemporaryError
from prime_train.providers.lambda_cloud.client import LEAST_S
from prime_train.providers.lambda_cloud.models import LambdaInstance
from prime_train.providers.lambda_cloud.pods import pod_of
from prime_train.providers.lambda_cloud.settings import LambdaSettings, read_settings
from prime_train.providers.port import SshAddress
from prime_train.providers.rental.pod_names import PodMark
from prime_train.providers.rental.rate_limit import RequestPace
from prime_train.runs.verdict import PodStatus
from prime_train.text.redaction import HIDDEN, redacted
from tests.adapters.pods_lambda.lambda_pods import (
    HARDWARE,
    INSTANCES,
    KEYS,
    LAUNCH,
    TERMINATE,
    client_of,
    first,
    guarded,
    pods_of,
    rent,
)
from tests.adapters.rental_apis.shared import NAME, TICKET, Pushed, raised, seen
from tests.fakes.http import ALWAYS, Response
from tests.fakes.lambda_cloud import API_KEY, FakeLambdaCloud, Status, error

OTHER_KEY = "secret_other_" + "0a" * 16 + "." + "0th" * 10


def test_an_instance_boots_and_gets_its_agent_once_it_has_an_address(fake: FakeLambdaCloud) -> None:
    fake.plan.boot_s = 100
    pushed = Pushed()
    pods = pods_of(fake, pusher=pushed)
    pod = rent(pods)
    assert seen(pods, pod) is PodStatus.PENDING
    assert "booting" in str(raised(lambda: pods.put_agent(pod, TICKET)))
    fake.advance(100)
    assert seen(pods, pod) is PodStatus.ACTIVE
    pods.put_agent(pod, TICKET)
    assert pushed == [(SshAddress(pod.pod_id, "ubuntu", "192.0.2.10", 22), TICKET)]
    assert pods.connection(pod.pod_id) == pushed[0][0]


@pytest.mark.parametrize("ip", ["", "-oProxyCommand=x", "192.0.2.1 -x"])
def test_an_address_that_is_none_is_not_used(fake: FakeLambdaCloud, ip: str) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.instance(pod.pod_id).ip = ip
    assert "no SSH address yet" in str(raised(lambda: pods.put_agent(pod, TICKET)))
    assert pods.connection(pod.pod_id) is None


@pytest.mark.parametrize(
    ("end", "status", "listed"),
    [
        (Status.UNHEALTHY, PodStatus.BROKEN, True),
        (Status.TERMINATING, PodStatus.UNKNOWN, True),
        (Status.TERMINATED, PodStatus.GONE, False),
        (Status.PREEMPTED, PodStatus.GONE, False),
        (None, None, False),
    ],
)
def test_an_end_is_reported_as_lambda_cloud_reports_it(
    fake: FakeLambdaCloud, end: Status | None, status: PodStatus | None, listed: bool
) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.end(pod.pod_id, end)
    assert bool(pods.list()) is listed
    assert raised(lambda: pods.put_agent(pod, TICKET))
    assert seen(pods, pod) is status


def test_a_terminated_instance_is_gone_only_when_it_has_ended(fake: FakeLambdaCloud) -> None:
    fake.plan.end_s = 60
    pods = pods_of(fake)
    pod = rent(pods)
    pods.terminate(pod.pod_id)
    assert seen(pods, pod) is PodStatus.UNKNOWN
    fake.advance(60)
    assert pods.get(pod.pod_id) is None
    pods.terminate(pod.pod_id)


def test_a_preempted_instance_is_terminated_before_it_counts_as_gone(fake: FakeLambdaCloud) -> None:
    pods = pods_of(fake)
    pod = rent(pods)
    fake.end(pod.pod_id, Status.PREEMPTED)
    fake.fail(Response(503), path=TERMINATE)
    assert seen(pods, pod) is PodStatus.BROKEN
    assert fake.alive
    assert seen(pods, pod) is PodStatus.GONE
    assert not fake.alive
    assert pods.get(pod.pod_id) is None


def test_a_preempted_instance_of_somebody_else_is_left_alone(fake: FakeLambdaCloud) -> None:
    ours, theirs = pods_of(fake, mark=PodMark("ours")), pods_of(fake, mark=PodMark("theirs"))
    pod = rent(theirs)
    fake.end(pod.pod_id, Status.PREEMPTED)
    assert seen(ours, pod) is PodStatus.GONE
    assert fake.alive
    assert ours.list() == []


@pytest.mark.parametrize("status", ["restarting", "", None, 7, "active\x1b[31m"])
def test_a_status_that_is_not_known_is_not_the_end(status: object) -> None:
    assert (
        pod_of(LambdaInstance.model_validate({"id": "abc", "name": NAME, "status": status})).status
        is PodStatus.UNKNOWN
    )


@pytest.mark.parametrize(
    "tags",
    [None, 7, [7], [{"key": "prime-train:created", "value": "yesterday"}], [{"key": "prime-train:created"}]],
)
def test_tags_that_cannot_be_read_hide_nothing(tags: object) -> None:
    pod = pod_of(LambdaInstance.model_validate({"id": "abc", "name": NAME, "status": "active", "tags": tags}))
    assert (pod.name, pod.created_s, pod.status) == (NAME, 0, PodStatus.ACTIVE)


# ------------------------------------------------------------------------------------------------------------
# the account


def test_under_the_key_of_another_account_nothing_is_gone_and_nothing_rented(
    fake: FakeLambdaCloud, tmp_path: Path
) -> None:
    pods = guarded(fake, tmp_path)
    assert pods.list() == []
    pod = rent(pods)
    assert (tmp_path / "account").read_text().strip() == f"ssh-key:{1:032x}"
    fake.accounts = {API_KEY: "one", OTHER_KEY: "two"}
    fake.end(pod.pod_id, None)
    assert guarded(fake, tmp_path).get(pod.pod_id) is None
    strange = guarded(fake, tmp_path, OTHER_KEY)
    assert isinstance(raised(lambda: strange.get(pod.pod_id)), TemporaryError)
    assert isinstance(raised(lambda: strange.terminate(pod.pod_id)), TemporaryError)
    for _ in range(2):
        error = raised(lambda: rent(strange))
        assert isinstance(error, PermanentError)
        assert f"PRIME_TRAIN_LAMBDA_ACCOUNT=ssh-key:{2:032x}" in str(error)
    assert isinstance(raised(lambda: strange.get(pod.pod_id)), PermanentError)
    assert len(fake.instances) == 1


def test_an_account_that_cannot_be_asked_proves_nothing_gone(fake: FakeLambdaCloud, tmp_path: Path) -> None:
    pods = guarded(fake, tmp_path)
    fake.fail(Response(502), path=KEYS, times=ALWAYS)
    assert isinstance(raised(lambda: pods.get("0" * 32)), TemporaryError)
    assert pods.list() == []


# ------------------------------------------------------------------------------------------------------------
# the pace


class Waits(list[float]):
    """Pauses that pass in the fake's time."""

    def __init__(self, fake: FakeLambdaCloud) -> None:
        self._fake = fake

    def __call__(self, seconds: float) -> None:
        self.append(seconds)
        self._fake.advance(seconds)


def test_requests_keep_the_pace_that_is_allowed_and_none_is_refused(fake: FakeLambdaCloud) -> None:
    fake.limits.request_s, fake.limits.launch_s = 1.0, 12.0
    waits = Waits(fake)
    pods = pods_of(
        fake, client=client_of(fake, pace=RequestPace("Lambda Cloud", LEAST_S, clock=fake.now_s, pause=waits))
    )
    offer = first(pods)
    for number in range(3):
        pods.create(f"{NAME}{number}", offer, HARDWARE)
        pods.list()
    assert {request.status for request in fake.requests} == {200}
    assert max(waits) <= 12
    # the third launch is 24 s after the first, before which there are three requests, and a list follows
    assert sum(waits) == 28


def test_a_launch_whose_turn_is_far_off_is_not_sent_and_says_how_long(fake: FakeLambdaCloud) -> None:
    waits: list[float] = []  # pauses that do not pass: as many threads wait at the same time
    pods = pods_of(
        fake,
        client=client_of(
            fake, pace=RequestPace("Lambda Cloud", {"launch": 12.0}, clock=fake.now_s, pause=waits.append)
        ),
    )
    offer = first(pods)
    pods.create(f"{NAME}1", offer, HARDWARE)
    pods.create(f"{NAME}2", offer, HARDWARE)
    late = raised(lambda: pods.create(f"{NAME}3", offer, HARDWARE))
    assert isinstance(late, TemporaryError)
    assert (late.delay_s, waits) == (24, [12])
    assert "one such request in 12 s" in str(late)
    assert len(fake.requests_to("POST", LAUNCH)) == 2
    pods.list()


@pytest.mark.parametrize(("headers", "delay_s"), [({"Retry-After": "40"}, 40), ({}, 1)])
def test_after_a_429_only_machines_are_given_back_until_the_pause_ends(
    fake: FakeLambdaCloud, headers: dict[str, str], delay_s: float
) -> None:
    pods = pods_of(fake, client=client_of(fake, clock=fake.now_s))
    pod = rent(pods)
    fake.fail(error(429, "global/rate-limited", headers=headers), path=INSTANCES)
    raised(pods.list)
    asked = len(fake.requests)
    paused = raised(pods.list)
    assert isinstance(paused, TemporaryError)
    assert paused.delay_s == delay_s
    assert len(fake.requests) == asked
    pods.terminate(pod.pod_id)
    assert not fake.alive
    fake.advance(delay_s)
    assert pods.list() == []


# ------------------------------------------------------------------------------------------------------------
# settings


def test_the_settings_are_read_from_the_environment() -> None:
    assert read_settings({"LAMBDA_API_KEY": " k "}) == LambdaSettings("k", "https://cloud.lambda.ai")
    given = {"LAMBDA_API_KEY": "k", "LAMBDA_API_BASE_URL": "http://127.0.0.1:9/api/v1/"}
    assert read_settings(given) == LambdaSettings("k", "http://127.0.0.1:9")
    assert "secret" not in repr(LambdaSettings("secret"))


@pytest.mark.parametrize(
    ("environment", "reason"),
    [
        ({}, "set LAMBDA_API_KEY"),
        ({"LAMBDA_API_KEY": "a b"}, "invalid characters; check LAMBDA_API_KEY"),
        (
            {"LAMBDA_API_KEY": "k", "LAMBDA_API_BASE_URL": "cloud.lambda.ai"},
            "must look like https://host; check LAMBDA_API_BASE_URL",
        ),
        (
            {"LAMBDA_API_KEY": "k", "LAMBDA_API_BASE_URL": "http://cloud.lambda.ai"},
            "unencrypted; write https",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(environment: dict[str, str], reason: str) -> None:
    refused = raised(lambda: read_settings(environment))
    assert isinstance(refused, PermanentError)
    assert reason in str(refused)


def test_a_key_of_lambda_cloud_is_recognised_as_a_secret_and_never_repeated(fake: FakeLambdaCloud) -> None:
    assert redacted(f"the key {API_KEY} and more") == f"the key {HIDDEN} and more"
    fake.fail(error(400, "global/invalid-parameters", f"key {API_KEY}"), method="GET")
    assert API_KEY not in str(raised(pods_of(fake).list))
