"""Launch keys at the webhook's function: they open what they open at a server, and nothing from the moment
that they are revoked.
"""

import json
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import boto3
import pytest

from prime_lambdas.settings import Settings
from prime_lambdas.webhook import Webhook
from prime_train.buckets.upload import upload
from prime_train.runs.launch_ids import launch_id
from prime_train.runs.launch_key import LAUNCH_KEY_HEADER, LaunchKey, launch_secret
from prime_train.runs.run import Origin, RunState
from prime_train.runs.wire import SIGNATURE_HEADER, TIMESTAMP_HEADER, sign
from prime_train.stores.dynamo.store import DynamoStore
from tests import builders as b
from tests.cli.estimates.test_find import row
from tests.fakes import dynamo
from tests.fakes.prime import FakePrime
from tests.fakes.s3_servers import S3Server
from tests.lambdas.roles import Stack, acting
from tests.waiting import await_true

KEY = "5e" * 32
BUCKET = "of-launches"
NAME = "0123abcd"
NEW = launch_id("tiny", "ab12", "acme/rl")


@pytest.fixture
def store(ministack: S3Server) -> Iterator[DynamoStore]:
    with dynamo.store(ministack) as store:
        yield store


@pytest.fixture
def webhook(ministack: S3Server, store: DynamoStore) -> Iterator[Webhook]:
    keys = {"aws_access_key_id": ministack.access_key, "aws_secret_access_key": ministack.secret_key}
    place = {"region_name": ministack.region, "endpoint_url": ministack.url, **keys}
    boto3.client("s3", **place).create_bucket(Bucket=BUCKET)
    secret = boto3.client("secretsmanager", **place).create_secret(
        Name=store.table_name, SecretString=json.dumps({"PRIME_TRAIN_MASTER_KEY": KEY})
    )
    stack = Stack(store.table_name, store.table_name, BUCKET, str(secret["ARN"]))
    with acting(ministack, stack, "Webhook") as environment, closing(Webhook(Settings.of(environment))) as it:
        yield it


def allow(store: DynamoStore, **rows: LaunchKey) -> None:
    watch = store.watch()
    assert store.save_watch(
        replace(watch, version=watch.version + 1, launch_keys=rows), version=watch.version
    )


def call(webhook: Webhook, store: DynamoStore, name: str, *given: object) -> tuple[int, Any]:
    path, body, at_s = f"/v1/store/{name}", json.dumps(given), store.now_s()
    signature = sign(launch_secret(bytes.fromhex(KEY), NAME), at_s, "POST", path, body.encode())
    event = {
        "version": "2.0",
        "rawPath": path,
        "headers": {TIMESTAMP_HEADER: str(at_s), SIGNATURE_HEADER: signature, LAUNCH_KEY_HEADER: NAME},
        "requestContext": {
            "http": {"method": "POST", "path": path, "sourceIp": "127.0.0.1", "protocol": "HTTP/1.1"},
            "domainName": "x.lambda-url.us-east-1.on.aws",
        },
        "body": body,
    }
    answer = webhook(event, None)
    return answer["statusCode"], json.loads(answer["body"])


def test_a_launch_key_opens_its_repository_and_the_upload_of_new_code_until_it_is_revoked(
    webhook: Webhook, store: DynamoStore, ministack: S3Server, tmp_path: Path
) -> None:
    for run_id, repository in (("tiny-mine1", "acme/rl"), ("tiny-their", "acme/secret")):
        assert store.create(
            replace(b.run(RunState.QUEUED, run_id=run_id), origin=Origin(repository, "0" * 40, "c.yaml", "1"))
        )
    allow(store, **{NAME: LaunchKey("acme/rl", store.now_s())})

    status, runs = call(webhook, store, "list_runs")
    assert (status, [run["run_id"] for run in runs]) == (200, ["tiny-mine1"])
    assert call(webhook, store, "opening")[0] == 403
    assert call(webhook, store, "code_url", "tiny-their", 8)[0] == 403
    status, url = call(webhook, store, "code_url", NEW, len(b"the code"))
    assert status == 200
    (tmp_path / "code").write_bytes(b"the code")
    upload(url, tmp_path / "code")
    keys = {"aws_access_key_id": ministack.access_key, "aws_secret_access_key": ministack.secret_key}
    client = boto3.client("s3", region_name=ministack.region, endpoint_url=ministack.url, **keys)
    assert client.get_object(Bucket=BUCKET, Key=f"runs/{NEW}/code.tar.gz")["Body"].read() == b"the code"

    allow(store)

    assert call(webhook, store, "list_runs")[0] == 403


def test_what_is_for_rent_is_told_with_the_providers_keys_that_are_in_the_secret(
    webhook: Webhook, store: DynamoStore, ministack: S3Server, tmp_path: Path
) -> None:
    allow(store, **{NAME: LaunchKey("acme/rl", store.now_s())})
    place = {"aws_access_key_id": ministack.access_key, "aws_secret_access_key": ministack.secret_key}
    vault = boto3.client("secretsmanager", region_name=ministack.region, endpoint_url=ministack.url, **place)
    with FakePrime(tmp_path / "prime", machines=False) as prime:
        prime.rows = (row("H100_80GB", 1, 2.9, spot=True),)
        values = {
            "PRIME_TRAIN_MASTER_KEY": KEY,
            "PRIME_API_KEY": prime.api_key,
            "PRIME_API_BASE_URL": prime.url,
        }
        vault.put_secret_value(SecretId=store.table_name, SecretString=json.dumps(values))
        status, offers = call(webhook, store, "offers", {"provider": "prime", "gpus": ["H100_80GB"]})
        assert (status, [(offer["provider"], offer["usd_per_hour"]) for offer in offers]) == (
            200,
            [("prime", 2.9)],
        )
    # The function asks nobody for as long as its last question took.
    await_true(
        "another provider is asked for",
        lambda: call(webhook, store, "offers", {"provider": "runpod"}) == (200, None),
    )
