"""All assumptions of the control plane about AWS, checked with AWS on loopback as far as possible, and with
an account if one is named.

    PRIME_TRAIN_TESTS_AWS=ACCOUNT/REGION .venv/bin/python -m pytest -m aws -n 0 tests/lambdas/test_account.py

with keys where AWS's tools find them. It prints its cost before it begins, and deletes everything at the end.
"""

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import boto3
import pytest
import requests
from botocore.exceptions import ClientError

from prime_train.buckets.keys import blob_prefix, latest_key, manifest_key, run_prefix, spec_key
from prime_train.runs.run import Change, RunState
from prime_train.runs.wire import PodKeys
from prime_train.webhook.requests import Request
from tests import builders as b
from tests.lambdas.deployed import Deployed, prime_train
from tests.lambdas.site import PREFIX, Place, Site, environment, site
from tests.lambdas.test_template import resources
from tests.waiting import HANG_S
from tests.webhook import calls

NAMED = "PRIME_TRAIN_TESTS_AWS"
COST = """
This makes a stack {name}* in account {account}, region {region}, and deletes it: about ten minutes, and less than one cent
(a secret and some alarms for an hour at most, a few hundred requests). Should it be killed, docs/aws.md says how to find what it left.
"""
LOOK_S = 5.0
ALARMS = sum(each["Type"] == "AWS::CloudWatch::Alarm" for each in resources().values())


@pytest.fixture(
    params=[
        pytest.param("loopback", marks=pytest.mark.slow),
        pytest.param("account", marks=[pytest.mark.aws, pytest.mark.timeout(3600)]),
    ]
)
def there(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Site]:
    if request.param == "loopback":
        here: Deployed = request.getfixturevalue("here")
        place = Place({**here.env, "PRIME_TRAIN_HOME": str(tmp_path)}, here.code, here)
    else:
        place = _named(request, tmp_path)
    with site(place) as it:
        yield it


def _named(request: pytest.FixtureRequest, home: Path) -> Place:
    """Return the account that the user has named, after showing the cost."""
    account, _, region = os.environ.get(NAMED, "").partition("/")
    if not region or "aws" not in request.config.getoption("markexpr"):
        pytest.skip(f"an account is asked only with -m aws and {NAMED}=ACCOUNT/REGION")
    place = Place({**environment(), "AWS_REGION": region, "PRIME_TRAIN_HOME": str(home)})
    found = boto3.session.Session().client("sts", region_name=region).get_caller_identity()["Account"]
    assert found == account, f"these keys are of account {found}, and {NAMED} names {account}"
    with request.config.pluginmanager.getplugin("capturemanager").global_and_fixture_disabled():
        print(COST.format(name=PREFIX, account=account, region=region))
    return place


@pytest.mark.exhaustive
def test_the_control_plane_does_what_it_is_trusted_with(there: Site, subtests: pytest.Subtests) -> None:
    for part in PARTS:
        with subtests.test(part.__name__):
            part(there)


# ------------------------------------------------------------------------------------------------------------
# the parts


def it_answers(there: Site) -> None:
    assert requests.get(f"{there.url}/healthz", timeout=HANG_S).json()["now_s"] > 0


def its_table_forgets_what_has_expired_and_can_be_had_back(there: Site) -> None:
    dynamodb, table = there.client("dynamodb"), there.outputs["Table"]
    expires = dynamodb.describe_time_to_live(TableName=table)["TimeToLiveDescription"]
    _not_on_loopback(
        there,
        "ministack does not do what a template says of expiry",
        unless=expires["TimeToLiveStatus"] == "ENABLED",
    )
    assert (expires["TimeToLiveStatus"] in ("ENABLED", "ENABLING"), expires["AttributeName"]) == (True, "exp")
    backups = dynamodb.describe_continuous_backups(TableName=table)["ContinuousBackupsDescription"]
    assert backups["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"] == "ENABLED"


def its_bucket_is_closed_and_writes_on_condition(there: Site) -> None:
    s3, bucket = there.client("s3"), there.outputs["Bucket"]
    key = f"{run_prefix(b.RUN_ID)}once"
    tag = s3.put_object(Bucket=bucket, Key=key, Body=b"1", IfNoneMatch="*")["ETag"]
    assert (
        _refused(lambda: s3.put_object(Bucket=bucket, Key=key, Body=b"2", IfNoneMatch="*"))
        == "PreconditionFailed"
    )
    s3.put_object(Bucket=bucket, Key=key, Body=b"3", IfMatch=tag)
    assert (
        _refused(lambda: s3.put_object(Bucket=bucket, Key=key, Body=b"4", IfMatch=tag))
        == "PreconditionFailed"
    )
    _not_on_loopback(there, "ministack does not close a bucket as a template says")
    assert set(s3.get_public_access_block(Bucket=bucket)["PublicAccessBlockConfiguration"].values()) == {True}


def it_is_watched(there: Site) -> None:
    """Check the schedule and the alarms, without a sweep, which would end the long overdue run of the
    following tests.
    """
    schedules = there.client("scheduler").list_schedules(NamePrefix=there.name)["Schedules"]
    assert [one["State"] for one in schedules] == ["ENABLED"]
    alarms = there.client("cloudwatch").describe_alarms(AlarmNamePrefix=f"{there.name}-")["MetricAlarms"]
    assert len(alarms) == ALARMS
    _not_on_loopback(there, "its schedule's minute is too long for the tests")
    before, ends_s = there.store.watch().version, time.monotonic() + HANG_S
    while there.store.watch().version == before and time.monotonic() < ends_s:
        time.sleep(LOOK_S)
    assert there.store.watch().version > before


def a_heartbeat_is_heard_until_another_attempt_begins(there: Site) -> None:
    record = calls.stored(there.store)
    assert _sent(there, "heartbeat", calls.heartbeat(8).model_dump_json().encode()).json()["outcome"] == "ok"
    now = there.store.load(record.run.run_id)
    assert now is not None
    fenced = replace(b.run(RunState.TRAINING, attempt=3, spec=record.run.spec), version=now.run.version + 1)
    assert there.store.save(
        Change(
            fenced, replace(b.lease(fenced), version=now.lease.version + 1), lease_version=now.lease.version
        )
    )
    late = _sent(there, "heartbeat", calls.heartbeat(9).model_dump_json().encode())
    assert (late.status_code, late.json()["outcome"]) == (409, "fenced")


def a_machine_gets_keys_to_its_own_run_alone(there: Site) -> None:
    if "PodRole" not in there.outputs:
        pytest.skip("this stack lends no keys")
    output = _sent(there, "keys", b"", attempt=3)
    assert output.status_code == 200, output.text
    bucket, lent = there.outputs["Bucket"], PodKeys.model_validate_json(output.content)
    session = boto3.session.Session(
        lent.access_key_id, lent.secret_access_key, lent.session_token, region_name=there.account.region
    )
    s3 = session.client("s3", endpoint_url=there.place.env.get("AWS_ENDPOINT_URL"))
    s3.put_object(Bucket=bucket, Key=f"{blob_prefix(b.RUN_ID)}mine", Body=b"1")
    s3.list_objects_v2(Bucket=bucket, Prefix=run_prefix(b.RUN_ID))
    # An agent has to hear that there is none yet, not that it may not look.
    assert _refused(lambda: s3.get_object(Bucket=bucket, Key=latest_key(b.RUN_ID))) == "NoSuchKey"
    _not_on_loopback(there, "ministack holds no key to what it may")
    for deny in (
        lambda: s3.put_object(Bucket=bucket, Key=f"{blob_prefix('another-1')}not-mine", Body=b"1"),
        lambda: s3.put_object(Bucket=bucket, Key=spec_key(b.RUN_ID), Body=b"{}"),
        lambda: s3.get_object(Bucket=bucket, Key=f"{blob_prefix('another-1')}not-mine"),
        lambda: s3.list_objects_v2(Bucket=bucket, Prefix=run_prefix("another-1")),
        lambda: s3.list_objects_v2(Bucket=bucket),
        lambda: s3.put_object(Bucket=bucket, Key=manifest_key(b.RUN_ID, 10, 2), Body=b"{}"),
        lambda: s3.delete_object(Bucket=bucket, Key=manifest_key(b.RUN_ID, 10, 4)),
        lambda: s3.delete_bucket(Bucket=bucket),
    ):
        assert _refused(deny) == "AccessDenied"


def functions_are_set_aside_for_it(there: Site) -> None:
    _not_on_loopback(there, "ministack sets no functions aside")
    left = there.account.functions_left()
    for name, count in (("Webhook", 20), ("Watcher", 5)):
        output = there.client("lambda").get_function_concurrency(FunctionName=there.outputs[name])
        assert output.get("ReservedConcurrentExecutions") in (count, None if left < 125 else count)


def the_doctor_finds_the_webhook_well(there: Site) -> None:
    assert "well   webhook" in prime_train(there.place.env, "doctor", "--stack", there.name).stdout


def what_was_trained_outlives_it(there: Site) -> None:
    record = there.store.load(b.RUN_ID)
    if record is not None and not record.run.is_over:
        there.store.save(
            Change(
                replace(
                    b.run(RunState.CANCELLED, attempt=3, spec=record.run.spec), version=record.run.version + 1
                )
            )
        )
    done = prime_train(there.place.env, "destroy", "--stack", there.name, "--yes")
    assert done.returncode == 0, done.stderr
    assert f"kept: bucket {there.outputs['Bucket']}" in done.stdout
    _not_on_loopback(there, "ministack deletes what a template says to keep")
    there.client("s3").head_bucket(Bucket=there.outputs["Bucket"])
    there.client("dynamodb").describe_table(TableName=there.outputs["Table"])


PARTS: tuple[Callable[[Site], None], ...] = (
    it_answers,
    its_table_forgets_what_has_expired_and_can_be_had_back,
    its_bucket_is_closed_and_writes_on_condition,
    it_is_watched,
    a_heartbeat_is_heard_until_another_attempt_begins,
    a_machine_gets_keys_to_its_own_run_alone,
    functions_are_set_aside_for_it,
    the_doctor_finds_the_webhook_well,
    what_was_trained_outlives_it,
)


def _not_on_loopback(there: Site, reason: str, *, unless: bool = False) -> None:
    if there.place.loopback is not None and not unless:
        pytest.skip(reason)


def _sent(there: Site, verb: str, body: bytes, *, attempt: int = calls.ATTEMPT) -> requests.Response:
    at_s = int(requests.get(f"{there.url}/healthz", timeout=HANG_S).json()["now_s"])
    request: Request = calls.ask(verb, body, attempt=attempt, master=there.key, at_s=at_s)
    headers = {"content-type": "application/json", **request.headers}
    return requests.request(
        request.method, there.url + request.path, data=request.body, headers=headers, timeout=HANG_S
    )


def _refused(call: Callable[[], object]) -> str:
    """Return AWS's error code."""
    with pytest.raises(ClientError) as caught:
        call()
    return str(caught.value.response["Error"]["Code"])
