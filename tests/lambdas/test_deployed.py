"""The control plane on AWS, tried as a new user would: deployed with our own command, called by its address, looked at, taken away."""

import sys
from collections.abc import Iterator

import pytest
import requests

from prime_train.adapters.store_remote import RemoteStore
from prime_train.core.wire import attempt_key
from prime_train.webhook import Request
from tests import builders as b
from tests.e2e.plane import await_true
from tests.lambdas.deployed import STACK, Deployed, deployed, prime_train, said
from tests.webhook import asking

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform != "linux", reason="the fake's machines have Linux")]


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployed]:
    with deployed(tmp_path_factory.mktemp("deployed")) as it:
        yield it


def now_s(here: Deployed) -> int:
    return int(requests.get(f"{here.url}/healthz", timeout=30).json()["now_s"])


def sent(here: Deployed, request: Request) -> requests.Response:
    headers = {"content-type": "application/json", **request.headers}
    return requests.request(request.method, here.url + request.path, data=request.body, headers=headers, timeout=30)


def training(here: Deployed) -> None:
    """There is a run whose lease is open. (No sweep comes between, or its lost machine would be noticed.)"""
    if here.store.load(b.RUN_ID) is None:
        asking.stored(here.store)


def test_deploying_shows_what_comes_and_says_where_it_is(here: Deployed) -> None:
    assert "add     Table (AWS::DynamoDB::Table)" in here.first_words
    assert "add     WatcherEachMinute (AWS::Scheduler::Schedule)" in here.first_words
    assert "PRIME_TRAIN_STORE=https://" in here.first_words
    assert here.key not in here.first_words
    assert len(bytes.fromhex(here.key)) == 32


def test_deploying_again_changes_nothing(here: Deployed) -> None:
    before = here.store.table_name
    again = said(here.env, "deploy", "--stack", STACK, "--yes", "--code", str(here.code))
    assert "nothing changes" in again
    assert f"table {before}" in again


def test_the_doctor_finds_it_well_once_it_has_watched(here: Deployed) -> None:
    here.watch(news=True)
    words = said(here.env, "doctor", "--stack", STACK)
    assert "wrong" not in words
    assert [line.split()[1] for line in words.splitlines()] == ["stack", "secret", "webhook", "watcher", "alarms"]


def test_a_beat_goes_through_the_address_into_the_table(here: Deployed) -> None:
    training(here)
    at_s, master = now_s(here), bytes.fromhex(here.key)
    answer = sent(here, asking.ask("beat", asking.beat(8, step=7), master=master, at_s=at_s))
    assert (answer.status_code, answer.json()["verdict"], answer.json()["beat_s"]) == (200, "ok", 11)
    held = here.store.load(b.RUN_ID)
    assert held is not None
    assert held.lease.beat is not None
    assert (held.lease.seq, held.lease.beat.step) == (8, 7)
    assert sent(here, asking.ask("beat", asking.beat(8), master=master, at_s=at_s)).json()["verdict"] == "repeated"
    assert sent(here, asking.ask("beat", asking.beat(9), epoch=1, master=master, at_s=at_s)).status_code == 422
    stale = sent(here, asking.ask("beat", asking.beat(9, epoch=1), epoch=1, master=master, at_s=at_s))
    assert (stale.status_code, stale.json()["verdict"]) == (409, "fenced")
    assert sent(here, asking.ask("beat", asking.beat(9), at_s=at_s)).status_code == 401


def test_a_machine_gets_its_secrets_but_none_of_the_control_planes(here: Deployed) -> None:
    at_s, master = now_s(here), bytes.fromhex(here.key)
    training(here)
    job = sent(here, asking.ask("bootstrap", master=master, at_s=at_s)).json()
    assert job["secrets"] == {"HF_TOKEN": "hf-secret-value"}
    assert job["bucket_keys"]["AWS_ENDPOINT_URL"] == here.cloud.url
    assert here.key not in str(job)


@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
def test_the_pages_for_people_are_there(here: Deployed, path: str) -> None:
    assert requests.get(here.url + path, timeout=30).status_code == 200


def test_too_large_a_body_is_refused(here: Deployed) -> None:
    answer = sent(here, Request("POST", f"/v1/runs/{b.RUN_ID}/2/beat", {}, b" " * 70_000, 0))
    assert answer.status_code == 413


def test_no_secret_is_in_a_log(here: Deployed) -> None:
    sent(here, asking.ask("beat", asking.beat(10), master=bytes.fromhex(here.key), at_s=1))
    here.watch(news=True)
    words = here.logs()
    for secret in (here.key, here.fake.api_key, "hf-secret-value", attempt_key(bytes.fromhex(here.key), b.RUN_ID, 2)):
        assert secret not in words


def test_the_watcher_leaves_at_once_where_nothing_lives_and_tells_what_it_did(here: Deployed) -> None:
    done = here.watch(news=True)
    assert done["Sweeps"] == 1
    assert set(done) == {"Sweeps", "Steps", "Fences", "Errors", "UsdPerHour"}


def test_a_wrong_name_and_an_unset_secret_are_told(here: Deployed) -> None:
    assert "is no name for a stack" in prime_train(here.env, "doctor", "--stack", "../x").stderr
    assert "that variable is not set here" in prime_train(here.env, "deploy", "--secret", "NOT_SET_ANYWHERE").stderr
    missing = prime_train(here.env, "doctor", "--stack", "nothing-here")
    assert (missing.returncode, "there is none" in missing.stdout) == (1, True)


def test_a_dry_run_leaves_nothing_behind(here: Deployed) -> None:
    words = said(here.env, "deploy", "--stack", "planned", "--dry-run", "--code", str(here.code))
    assert "add     Webhook (AWS::Lambda::Function)" in words
    gone = prime_train(here.env, "destroy", "--stack", "planned", "--yes")
    assert (gone.returncode, "there is no stack planned" in gone.stderr) == (2, True)


def test_what_an_operator_changes_wakes_the_watcher(here: Deployed) -> None:
    here.watch(news=True)
    before = here.store.watch().version
    RemoteStore(here.url, bytes.fromhex(here.key)).wake(b.RUN_ID, now_s(here))
    await_true("the watcher was woken", lambda: here.store.watch().version > before)


def test_the_schedule_calls_the_watcher_each_minute(here: Deployed) -> None:
    scheduler = here.cloud.client("scheduler")
    (one,) = scheduler.list_schedules()["Schedules"]
    schedule = scheduler.get_schedule(Name=one["Name"])
    assert (schedule["ScheduleExpression"], schedule["State"]) == ("rate(1 minute)", "ENABLED")
    assert schedule["Target"]["Arn"].endswith(f":function:{here.outputs['Watcher']}")
