"""The dashboard as served by the webhook's function."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import boto3
import pytest

from prime_lambdas.settings import Settings
from prime_lambdas.webhook import Webhook
from prime_train.buckets.keys import evidence_key
from prime_train.runs.dashboard_token import dashboard_token
from prime_train.stores.dynamo.store import DynamoStore
from tests import builders as b
from tests.fakes import dynamo
from tests.fakes.s3_servers import S3Server
from tests.lambdas.roles import Stack, acting
from tests.webhook.calls import stored

KEY = "5e" * 32
OLDER_KEY = "ab" * 32
BUCKET = "of-pages"


@pytest.fixture(scope="module")
def secret(ministack: S3Server) -> str:
    keys = {"aws_access_key_id": ministack.access_key, "aws_secret_access_key": ministack.secret_key}
    place = {"region_name": ministack.region, "endpoint_url": ministack.url, **keys}
    boto3.client("s3", **place).create_bucket(Bucket=BUCKET)
    boto3.client("s3", **place).put_object(
        Bucket=BUCKET,
        Key=evidence_key(b.RUN_ID, 1, "trainer.log"),
        Body=b"the last words\x1b[2J<script>alert(1)</script>",
    )
    values = {"PRIME_TRAIN_MASTER_KEY": f"{KEY},{OLDER_KEY}"}
    return str(
        boto3.client("secretsmanager", **place).create_secret(
            Name="of-pages", SecretString=json.dumps(values)
        )["ARN"]
    )


@pytest.fixture
def store(ministack: S3Server) -> Iterator[DynamoStore]:
    with dynamo.store(ministack) as store:
        yield store


@pytest.fixture
def webhook(ministack: S3Server, store: DynamoStore, secret: str) -> Iterator[Webhook]:
    stack = Stack(store.table_name, store.table_name, BUCKET, secret)
    with acting(ministack, stack, "Webhook") as environment, closing(Webhook(Settings.of(environment))) as it:
        yield it


def get(webhook: Webhook, path: str, query: str = "", *cookies: str, method: str = "GET") -> dict[str, Any]:
    http = {"method": method, "path": path, "sourceIp": "127.0.0.1", "protocol": "HTTP/1.1"}
    context = {"http": http, "domainName": "x.lambda-url.us-east-1.on.aws"}
    headers = {"x-forwarded-proto": "https"}
    return webhook(
        {
            "version": "2.0",
            "rawPath": path,
            "rawQueryString": query,
            "cookies": list(cookies),
            "headers": headers,
            "requestContext": context,
        },
        None,
    )


@pytest.mark.parametrize("key", [KEY, OLDER_KEY])
def test_a_link_opens_the_list_and_each_run(webhook: Webhook, store: DynamoStore, key: str) -> None:
    stored(store)
    opened = get(webhook, "/", f"token={dashboard_token(bytes.fromhex(key), store.now_s() + 60)}")
    assert opened["statusCode"] == 200
    (cookie,) = opened["cookies"]
    assert cookie.endswith("; HttpOnly; SameSite=Strict; Secure")
    kept = cookie.partition(";")[0]
    listed = get(webhook, "/", "", "other=1", kept)
    assert "href='runs/tiny-1'" in listed["body"]
    page = get(webhook, "/runs/tiny-1", "", kept)
    assert page["statusCode"] == 200
    assert "the last words\\x1b[2J&lt;script&gt;" in page["body"]
    assert page["headers"]["cache-control"] == "no-store"
    # There is nobody to hear changes from: the browser asks.
    assert "data-events=''" in page["body"]
    assert get(webhook, "/runs/tiny-1/events", "", kept)["statusCode"] == 404
    assert get(webhook, "/runs/nobody", "", kept)["statusCode"] == 404


def test_without_a_link_nothing_is_shown_and_the_table_is_not_queried(
    webhook: Webhook, store: DynamoStore
) -> None:
    stored(store)
    requested = store.now_s() + 60
    for query in (
        "",
        "token=",
        f"token={dashboard_token(b'guessed', requested)}",
        f"token={dashboard_token(bytes.fromhex(KEY), requested - 120)}",
    ):
        for path in ("/", "/runs/tiny-1"):
            refused = get(webhook, path, query)
            assert refused["statusCode"] == 403
            assert "prime-train dashboard" in refused["body"]
            assert "tiny" not in refused["body"]
            assert "cookies" not in refused
    assert get(webhook, "/", method="POST")["statusCode"] == 405
    assert get(webhook, "/elsewhere")["statusCode"] == 404
