"""The control plane on AWS, used as by a new user: deployed with the command, called by its address, checked,
deleted.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

import boto3
import pytest
import requests

from prime_train.advice import Advice
from prime_train.app.home import Home
from prime_train.aws.account import Account
from prime_train.aws.deployment import deployment
from prime_train.aws.doctor import ALARM, pods_check
from prime_train.aws.stack import Stack
from prime_train.buckets.keys import evidence_key
from prime_train.buckets.open import open_bucket
from prime_train.errors import PermanentError
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.run import Change, RunState
from prime_train.runs.store import RunRecord
from prime_train.runs.wire import Bootstrap, PodKeys, attempt_key
from prime_train.spec.access_run_secrets import DEFAULT
from prime_train.stores.remote import RemoteStore
from prime_train.webhook.requests import Request
from tests import builders as b
from tests.exhaustive import some_of
from tests.fakes.s3_servers import REGION
from tests.fakes.wandb import KEY, FakeWandb
from tests.lambdas.deployed import STACK, Deployed, output, prime_train
from tests.waiting import HANG_S, await_true
from tests.webhook import calls

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="the fake's machines have Linux"),
]


def now_s(here: Deployed) -> int:
    return int(requests.get(f"{here.url}/healthz", timeout=HANG_S).json()["now_s"])


def sent(here: Deployed, request: Request) -> requests.Response:
    headers = {"content-type": "application/json", **request.headers}
    return requests.request(
        request.method, here.url + request.path, data=request.body, headers=headers, timeout=HANG_S
    )


def training(here: Deployed) -> None:
    """Make sure that there is a run whose lease is open; an earlier test's sweep may have noticed that its
    machine does not exist.
    """
    new = calls.held()
    if here.store.load(b.RUN_ID) is None:
        calls.stored(here.store)

    def is_open() -> bool:
        before = here.store.load(b.RUN_ID)
        assert before is not None
        if before.lease.open:
            return True
        run = replace(new.run, version=before.run.version + 1)
        lease = replace(new.lease, version=before.lease.version + 1)
        # A watcher that still looks at the last one may write first.
        return here.store.save(Change(run, lease, lease_version=before.lease.version))

    await_true("a run trains", is_open)


def test_deploying_shows_what_comes_and_says_where_it_is(here: Deployed) -> None:
    rows = [line.split() for line in here.first_words.splitlines()]
    assert ["add", "Table", "DynamoDB::Table"] in rows
    assert ["add", "WatcherEachMinute", "Scheduler::Schedule"] in rows
    assert any(row[1:] == ["s", "Table", "made"] for row in rows)
    assert "PRIME_TRAIN_STORE=https://" in here.first_words
    assert here.key not in here.first_words
    assert len(bytes.fromhex(here.key)) == 32


def test_deploying_again_changes_nothing(here: Deployed) -> None:
    before = here.store.table_name
    again = output(here.env, "deploy", "--stack", STACK, "--yes", "--code", str(here.code))
    assert "nothing changes" in again
    assert f"table {before}" in again


def test_the_doctor_finds_it_well_once_it_has_watched(here: Deployed) -> None:
    here.watch(news=True)
    words = output(here.env, "doctor", "--stack", STACK)
    assert "wrong" not in words
    marks = {line[7:].partition(":")[0]: line[:5].strip() for line in words.splitlines()[1:]}
    assert f"stack {STACK}" in words.splitlines()[0]
    assert marks == dict.fromkeys(
        (
            "stack",
            "secret",
            "provider prime, by the secret's key",
            "webhook",
            "pods, by the role's keys",
            "bucket",
            "watcher",
            "alarms",
        ),
        "well",
    ) | {"W&B": "off"}


def test_a_provider_is_added_to_the_secret_and_the_doctor_asks_it_with_that_key(here: Deployed) -> None:
    to_aws = ("prime", "--to", "aws", "--stack", STACK)
    key = {"PRIME_API_KEY": here.fake.api_key, "PRIME_API_BASE_URL": here.fake.url}
    wrong = prime_train({**here.env, **key, "PRIME_API_KEY": "pit_" + "no" * 12}, "provider", "add", *to_aws)
    assert (wrong.returncode, "nothing was stored" in wrong.stderr) == (4, True)
    assert "deleted PRIME_API_KEY from the secret" in output(here.env, "provider", "remove", *to_aws)
    assert "lacks PRIME_API_KEY" in prime_train(here.env, "doctor", "--stack", STACK).stdout
    done = output({**here.env, **key}, "provider", "add", *to_aws)
    assert "the secret has new values of PRIME_API_KEY" in done
    assert here.fake.api_key not in done
    assert (
        "\nwell   provider prime, by the secret's key\n"
        in prime_train(here.env, "doctor", "--stack", STACK).stdout
    )
    assert (
        "there is no stack other"
        in prime_train(
            {**here.env, **key}, "provider", "add", "prime", "--to", "aws", "--stack", "other"
        ).stderr
    )


def test_a_heartbeat_goes_through_the_address_into_the_table(here: Deployed) -> None:
    training(here)
    at_s, master = now_s(here), bytes.fromhex(here.key)
    answer = sent(here, calls.ask("heartbeat", calls.heartbeat(8, step=7), master=master, at_s=at_s))
    assert (answer.status_code, answer.json()["outcome"], answer.json()["heartbeat_s"]) == (200, "ok", 11)
    held = here.store.load(b.RUN_ID)
    assert held is not None
    assert held.lease.heartbeat is not None
    assert (held.lease.seq, held.lease.heartbeat.step) == (8, 7)
    assert (
        sent(here, calls.ask("heartbeat", calls.heartbeat(8), master=master, at_s=at_s)).json()["outcome"]
        == "repeated"
    )
    assert (
        sent(
            here, calls.ask("heartbeat", calls.heartbeat(9), attempt=1, master=master, at_s=at_s)
        ).status_code
        == 422
    )
    stale = sent(
        here, calls.ask("heartbeat", calls.heartbeat(9, attempt=1), attempt=1, master=master, at_s=at_s)
    )
    assert (stale.status_code, stale.json()["outcome"]) == (409, "fenced")
    assert sent(here, calls.ask("heartbeat", calls.heartbeat(9), at_s=at_s)).status_code == 401


def test_a_machine_gets_its_secrets_but_none_of_the_control_planes(here: Deployed) -> None:
    at_s, master = now_s(here), bytes.fromhex(here.key)
    training(here)
    job = sent(here, calls.ask("bootstrap", master=master, at_s=at_s)).json()
    assert job["secrets"] == {"HF_TOKEN": "hf-secret-value"}
    assert job["bucket_keys"]["AWS_ENDPOINT_URL"] == here.cloud.url
    assert here.key not in str(job)


def test_a_machine_gets_keys_that_end_and_new_ones_when_it_asks(here: Deployed) -> None:
    training(here)
    at_s, master = now_s(here), bytes.fromhex(here.key)
    job = Bootstrap.model_validate_json(sent(here, calls.ask("bootstrap", master=master, at_s=at_s)).text)
    first, second = (
        job.keys,
        PodKeys.model_validate_json(sent(here, calls.ask("keys", master=master, at_s=at_s)).text),
    )
    assert first is not None
    assert set(job.bucket_keys) == {"AWS_REGION", "AWS_ENDPOINT_URL", "PYTHON"}
    assert first.session_token != second.session_token
    for number, keys in enumerate((first, second)):
        assert 3500 < keys.valid_s <= 3600
        bucket, key = (
            open_bucket(job.bucket_url, job.bucket_keys, keys.model_copy),
            evidence_key(job.run, job.attempt, f"{number}.log"),
        )
        bucket.put(key, b"written by its keys")
        stored = open_bucket(job.bucket_url, here.env).get(key)
        assert stored is not None
        assert stored.data == b"written by its keys"
        session = boto3.session.Session(
            keys.access_key_id, keys.secret_access_key, keys.session_token, region_name=REGION
        )
        who = session.client("sts", endpoint_url=here.cloud.url).get_caller_identity()["Arn"]
        assert (
            who
            == f"{here.outputs['PodRole'].replace(':iam:', ':sts:').replace(':role/', ':assumed-role/')}/pt-{job.run}-e{job.attempt}"
        )
        assert keys.secret_access_key not in here.logs()
        assert keys.session_token not in here.logs()


def test_nobody_but_the_attempt_of_now_gets_keys(here: Deployed) -> None:
    training(here)
    at_s, master = now_s(here), bytes.fromhex(here.key)
    fenced = sent(here, calls.ask("keys", attempt=1, master=master, at_s=at_s))
    others = sent(here, calls.ask("keys", signer=("other", calls.ATTEMPT), master=master, at_s=at_s))
    unknown = sent(here, calls.ask("keys", run="other", master=master, at_s=at_s))
    assert (fenced.status_code, others.status_code, unknown.status_code) == (409, 401, 409)
    assert not [answer for answer in (fenced, others, unknown) if "access_key" in answer.text]


def test_the_doctor_says_which_keys_machines_get(here: Deployed) -> None:
    deployed = deployment(Home.of(here.cloud.env), STACK)
    name, check = pods_check(deployed, {**here.outputs})
    assert (name, check()) == ("pods, by the role's keys", Advice())
    _, check = pods_check(deployed, {**here.outputs, "Webhook": "nothing-here"})
    with pytest.raises(PermanentError, match="nothing-here"):
        check()
    with secrets(here, PRIME_TRAIN_POD_AWS_ACCESS_KEY_ID="id"):
        name, check = pods_check(deployed, {**here.outputs})
        assert (name, "the secret lacks PRIME_TRAIN_POD_AWS_SECRET_ACCESS_KEY" in str(check())) == (
            "pods, by the role's keys",
            True,
        )


@pytest.mark.parametrize("master", some_of(["zz" * 32, "ab" * 32 + ",", "ab", ""], one_in=4))
def test_the_doctor_says_what_is_wrong_with_a_master_key_and_looks_at_the_rest(
    here: Deployed, master: str
) -> None:
    with secrets(here, PRIME_TRAIN_MASTER_KEY=master):
        done = prime_train(here.env, "doctor", "--stack", STACK)
    assert (done.returncode, done.stderr) == (1, "")
    reported = {line[7:].partition(":")[0]: line for line in done.stdout.splitlines()}
    assert reported["secret"].startswith("wrong  secret: ")
    assert "PRIME_TRAIN_MASTER_KEY" in reported["secret"]
    assert reported["webhook"].endswith(
        "not checked: the secret has no PRIME_TRAIN_MASTER_KEY that could sign a request"
    )
    assert {"watcher", "alarms"} <= set(reported)
    assert not master or master not in done.stdout


@pytest.mark.exhaustive
def test_a_value_that_is_no_text_is_named_and_replaced(here: Deployed) -> None:
    with secrets(here, OTHER_PORT=5, LIST=["a"]):
        done = prime_train(here.env, "doctor", "--stack", STACK)
        assert (done.returncode, done.stderr) == (1, "")
        assert "wrong  secret: the values of LIST, OTHER_PORT are not strings" in done.stdout
        assert f"prime-train deploy --stack {STACK} --secret LIST --secret OTHER_PORT" in done.stdout
        words = ["deploy", "--stack", STACK, "--yes", "--code", str(here.code), "--secret", "OTHER_PORT"]
        deployed = output({**here.env, "OTHER_PORT": "5"}, *words)
        assert "the secret has new values of OTHER_PORT;" in deployed
        assert (
            f"prime-train deploy --stack {STACK} --set RunSecrets={','.join((*DEFAULT, 'OTHER_PORT'))}\n"
            in deployed
        )
        left = Account(here.cloud.env).secret(here.outputs["Secret"])
        assert (left["OTHER_PORT"], left["LIST"]) == ("5", ["a"]), "what was not said stays as it is"
        words[-1] = "LIST"
        output({**here.env, "LIST": "a"}, *words)
        assert "\nwell   secret\n" in prime_train(here.env, "doctor", "--stack", STACK).stdout


@pytest.mark.exhaustive
def test_the_doctor_hears_the_stacks_own_alarms_and_no_others(here: Deployed) -> None:
    here.watch(news=True)
    cloudwatch = here.cloud.client("cloudwatch")
    (own,) = [
        name
        for name in Stack(here.cloud.client("cloudformation"), STACK).parts(ALARM)
        if "-ManyFences" in name
    ]
    other = own.replace(STACK, f"{STACK}-dev", 1)
    figures = {
        "MetricName": "Fences",
        "Namespace": "PrimeTrain",
        "Period": 60,
        "EvaluationPeriods": 1,
        "Threshold": 1.0,
    }
    cloudwatch.put_metric_alarm(
        AlarmName=other, ComparisonOperator="GreaterThanThreshold", Statistic="Sum", **figures
    )
    try:
        cloudwatch.set_alarm_state(AlarmName=other, StateValue="ALARM", StateReason="of another stack")
        assert "\nwell   alarms\n" in output(here.env, "doctor", "--stack", STACK)
        cloudwatch.set_alarm_state(AlarmName=own, StateValue="ALARM", StateReason="of this one")
        assert f"\nwrong  alarms: {own}\n" in prime_train(here.env, "doctor", "--stack", STACK).stdout
    finally:
        cloudwatch.delete_alarms(AlarmNames=[other])
        cloudwatch.set_alarm_state(AlarmName=own, StateValue="OK", StateReason="as before")


@pytest.mark.parametrize("path", ["/docs", "/openapi.json"])
def test_the_pages_for_people_are_there(here: Deployed, path: str) -> None:
    assert requests.get(here.url + path, timeout=HANG_S).status_code == 200


def test_the_link_that_an_operator_prints_opens_the_dashboard(here: Deployed) -> None:
    training(here)
    link = output(here.operator, "dashboard", b.RUN_ID).strip()
    assert link.startswith(f"{here.url}/runs/{b.RUN_ID}?token=")
    with requests.Session() as browser:
        opened = browser.get(link, timeout=HANG_S)
        assert opened.status_code == 200
        # over HTTP a browser would not send it
        kept = {"cookie": opened.headers["set-cookie"].partition(";")[0]}
        page = browser.get(f"{here.url}/runs/{b.RUN_ID}", headers=kept, timeout=HANG_S)
        assert f"<h1>{b.RUN_ID}" in page.text
        # A store, a bucket and a provider were there to be looked at.
        assert "Not checked" not in page.text
    assert requests.get(f"{here.url}/", timeout=HANG_S).status_code == 403


def test_too_large_a_body_is_refused(here: Deployed) -> None:
    answer = sent(here, Request("POST", f"/v1/runs/{b.RUN_ID}/2/heartbeat", {}, b" " * 70_000, 0))
    assert answer.status_code == 413


def test_no_secret_is_in_a_log(here: Deployed) -> None:
    sent(here, calls.ask("heartbeat", calls.heartbeat(10), master=bytes.fromhex(here.key), at_s=1))
    here.watch(news=True)
    words = here.logs()
    assert '"Sweeps": 1' in words, "the functions' own words are among them"
    for secret in (
        here.key,
        here.fake.api_key,
        "hf-secret-value",
        attempt_key(bytes.fromhex(here.key), b.RUN_ID, 2),
    ):
        assert secret not in words


def test_the_watcher_leaves_at_once_where_nothing_lives_and_tells_what_it_did(here: Deployed) -> None:
    done = here.watch(news=True)
    assert done["Sweeps"] == 1
    assert set(done) == {"Sweeps", "Steps", "Fences", "Errors", "UsdPerHour"}


def test_a_wrong_name_and_an_unset_secret_are_reported(here: Deployed) -> None:
    assert "is not a valid stack name" in prime_train(here.env, "doctor", "--stack", "../x").stderr
    assert (
        "the environment variable is not set here"
        in prime_train(here.env, "deploy", "--secret", "NOT_SET_ANYWHERE").stderr
    )
    missing = prime_train(here.env, "doctor", "--stack", "nothing-here")
    assert (missing.returncode, "there is no stack of this name" in missing.stdout) == (1, True)


def test_a_dry_run_leaves_nothing_behind(here: Deployed) -> None:
    words = output(here.env, "deploy", "--stack", "planned", "--dry-run", "--code", str(here.code))
    assert ["add", "Webhook", "Lambda::Function"] in [line.split() for line in words.splitlines()]
    assert words.endswith("nothing was changed: --dry-run\n")
    gone = prime_train(here.env, "destroy", "--stack", "planned", "--yes")
    assert (gone.returncode, "there is no stack planned" in gone.stderr) == (2, True)


def test_what_an_operator_changes_wakes_the_watcher(here: Deployed) -> None:
    here.watch(news=True)
    before = here.store.watch().version
    RemoteStore(here.url, bytes.fromhex(here.key)).wake(b.RUN_ID, now_s(here))
    await_true("the watcher was woken", lambda: here.store.watch().version > before)


def test_the_schedule_calls_the_watcher_each_minute(here: Deployed) -> None:
    scheduler = here.cloud.client("scheduler")
    schedule = scheduler.get_schedule(Name=f"{STACK}-watcher")
    assert (schedule["ScheduleExpression"], schedule["State"]) == ("rate(1 minute)", "ENABLED")
    assert schedule["Target"]["Arn"].endswith(f":function:{here.outputs['Watcher']}")


WATCHER = """
from prime_lambdas.watcher import handler
class Context:
    get_remaining_time_in_millis = staticmethod(lambda: 900_000)
handler({"news": True}, Context())
"""


@contextmanager
def secrets(here: Deployed, **more: object) -> Iterator[None]:
    """Set these values in the stack's secret during the block."""
    client, name = here.cloud.client("secretsmanager"), here.outputs["Secret"]
    before = client.get_secret_value(SecretId=name)["SecretString"]
    client.put_secret_value(SecretId=name, SecretString=json.dumps(json.loads(before) | more))
    try:
        yield
    finally:
        client.put_secret_value(SecretId=name, SecretString=before)


def environment(here: Deployed) -> dict[str, str]:
    """Return the environment of a function."""
    places = {
        "STORE": f"dynamodb://{here.outputs['Table']}?region={REGION}",
        "BUCKET": f"s3://{here.outputs['Bucket']}",
    }
    given = places | {"SECRET": here.outputs["Secret"], "URL": here.url, "PROVIDER": "prime"}
    return {**os.environ, **here.cloud.env, **{f"PRIME_TRAIN_{name}": value for name, value in given.items()}}


def tracked(at_s: int) -> RunRecord:
    """Return a run that has trained for 20 minutes, and sends heartbeats."""
    attempt = b.new_attempt(
        1,
        launched_s=at_s - 1300,
        agent_put_s=at_s - 1290,
        first_heartbeat_s=at_s - 1280,
        first_step_s=at_s - 1200,
    )
    run = b.run(
        RunState.TRAINING,
        run_id="tracked-1",
        spec=b.spec(wandb={"project": "train"}),
        attempts=(attempt,),
        created_s=at_s - 1400,
    )
    return b.record(run, heartbeat_s=at_s)


def ended(here: Deployed, run_id: str) -> bool:
    """End the run, without terminating a machine. Return False if a watcher was faster repeatedly."""
    held = here.store.load(run_id)
    assert held is not None
    over = replace(held.run, state=RunState.CANCELLED, next_check_s=None, version=held.run.version + 1)
    closed = replace(held.lease, open=False, version=held.lease.version + 1)
    return here.store.save(Change(over, closed, lease_version=held.lease.version))


@pytest.mark.exhaustive
def test_a_deployed_watcher_asks_w_and_b(here: Deployed) -> None:
    with FakeWandb() as fake, secrets(here, WANDB_API_KEY=KEY, WANDB_BASE_URL=fake.url):
        calls.stored(here.store, tracked(now_s(here)))
        said_of_it = []

        def is_noted() -> bool:
            """Run a watcher, and return whether the notice is recorded."""
            here.store.wake("tracked-1", now_s(here))
            done = subprocess.run(
                [sys.executable, "-c", WATCHER],
                env=environment(here),
                capture_output=True,
                text=True,
                check=True,
            )
            said_of_it.append(done.stdout + done.stderr)
            held = here.store.load("tracked-1")
            return held is not None and held.run.noted_s(AlertKind.UNTRACKED) is not None

        await_true("what W&B does not know is noted", is_noted)
        assert {"Viewer", "Run"} <= set(fake.requested)
        assert KEY not in "".join(said_of_it)
    await_true("nothing lives after this", lambda: ended(here, "tracked-1"))


def test_the_doctor_says_whether_w_and_b_is_on(here: Deployed) -> None:
    with FakeWandb() as fake:
        with secrets(here, WANDB_API_KEY=KEY, WANDB_BASE_URL=fake.url):
            assert "\nwell   W&B\n" in output(here.env, "doctor", "--stack", STACK)
        with secrets(here, WANDB_API_KEY="b" * 40, WANDB_BASE_URL=fake.url):
            wrong = prime_train(here.env, "doctor", "--stack", STACK)
        assert (wrong.returncode, "\nwrong  W&B: W&B refused: invalid API key\n" in wrong.stdout) == (1, True)
