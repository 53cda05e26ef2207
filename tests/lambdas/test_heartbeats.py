"""The application as a Lambda: it answers and keeps what it does without a server.
`tests/server/test_http.py` asks the same over HTTP.
"""

import base64
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import boto3
import pytest

from prime_lambdas.settings import Settings
from prime_lambdas.webhook import Webhook
from prime_train.runs.run import Change
from prime_train.runs.store import RunRecord, Store
from prime_train.runs.wire import PROOF_HEADER, Order, attempt_key
from prime_train.stores.dynamo.schema import lease_key, packed_key
from prime_train.stores.dynamo.store import DynamoStore
from prime_train.stores.memory import MemoryStore
from prime_train.webhook.app import create_app
from prime_train.webhook.requests import Request
from tests import builders as b
from tests.fakes import dynamo
from tests.fakes.http import Response, ScriptedServer
from tests.fakes.s3_servers import S3Server
from tests.lambdas.roles import Stack, acting
from tests.webhook import calls
from tests.webhook.calls import (
    CASES,
    MASTER,
    NOTICE_SECRET,
    NOW_S,
    Desk,
    ask,
    commit,
    handle,
    heartbeat,
    held,
    last_heartbeat,
    manifest_of,
    market,
    notice,
    stored,
)
from tests.webhook.calls import webhook as webhook_context

ROOT = Path(__file__).parents[2]
KEY = MASTER.hex()
SECRETS = {
    "PRIME_TRAIN_MASTER_KEY": KEY,
    "PRIME_TRAIN_VAST_WEBHOOK_SECRET": f"{NOTICE_SECRET},the-one-before",
    **calls.SECRETS,
}
GIVEN = {
    "PRIME_TRAIN_BUCKET": "s3://training",
    "AWS_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "secret",
}
HEAVY = (
    "granian",
    "uvloop",
    "obstore",
    "rich",
    "typer",
    "paramiko",
    "numpy",
    "prime_train.status",
    "prime_train.pages.dashboard.dashboard",
    "prime_train.pages.document",
    "prime_train.terminal",
)
"""What a request of a machine must not make the function load."""


def event(request: Request) -> dict[str, Any]:
    http = {"method": request.method, "path": request.path, "sourceIp": "127.0.0.1", "protocol": "HTTP/1.1"}
    context = {"http": http, "domainName": "x.lambda-url.us-east-1.on.aws"}
    body, encoded = base64.b64encode(request.body).decode(), not request.body.isascii()
    return {
        "version": "2.0",
        "rawPath": request.path,
        "headers": request.headers,
        "requestContext": context,
        "body": body if encoded else request.body.decode(),
        "isBase64Encoded": encoded,
    }


# ------------------------------------------------------------------------------------------------------------
# the same, whoever answers


@pytest.fixture(scope="module")
def secret(ministack: S3Server) -> str:
    keys = {"aws_access_key_id": ministack.access_key, "aws_secret_access_key": ministack.secret_key}
    client = boto3.client("secretsmanager", region_name=ministack.region, endpoint_url=ministack.url, **keys)
    made = client.create_secret(Name="of-heartbeats", SecretString=json.dumps(SECRETS))
    bucket = boto3.client("s3", region_name=ministack.region, endpoint_url=ministack.url, **keys)
    bucket.create_bucket(Bucket="training")
    for one in (commit(5), commit(10), commit(10, attempt=1)):
        bucket.put_object(Bucket="training", Key=one.key, Body=manifest_of(one).model_dump_json().encode())
    return str(made["ARN"])


@pytest.fixture
def store(ministack: S3Server) -> Iterator[DynamoStore]:
    with dynamo.store(ministack) as store:
        yield store


@pytest.fixture
def webhook(ministack: S3Server, store: DynamoStore, secret: str) -> Iterator[Webhook]:
    stack = Stack(store.table_name, store.table_name, "training", secret)
    with (
        acting(ministack, stack, "Webhook") as environment,
        closing(Webhook(Settings.of(environment), clock=lambda: NOW_S + 0.5)) as it,
    ):
        yield it


def loaded(store: Store) -> RunRecord:
    there = store.load(b.RUN_ID)
    assert there is not None
    return there


def unusual(**fields: object) -> bytes:
    """Return a valid heartbeat that is not of the plain form."""
    return json.dumps(heartbeat(8).model_dump(mode="json") | fields).encode()


REQUESTS = {
    **{
        case.name: case.request for case in CASES if case.name != "a bootstrap"
    },  # which tells where the bucket is
    "a heartbeat with a note": ask("heartbeat", heartbeat(8, step=20, note="größe")),
    "a heartbeat with news": ask("heartbeat", heartbeat(8, news=True)),
    "a heartbeat said before": ask("heartbeat", heartbeat(7)),
    "a fenced heartbeat": ask("heartbeat", heartbeat(8, attempt=1), attempt=1),
    "a heartbeat of nobody's": ask("heartbeat", heartbeat(8, run="other"), run="other"),
    "the end": ask("exit", last_heartbeat(8)),
    "an exit without an end": ask("exit", heartbeat(8)),
    "a heartbeat with a number that is whole": ask("heartbeat", unusual(loss=1)),
    "a heartbeat with a mistake": ask("heartbeat", unusual(step="ten")),
    "a heartbeat of another run": ask("heartbeat", heartbeat(8, run="other")),
    "a commit": ask("commit", commit(10)),
    "the market": market(),
    "the market by an attempt's key": market(attempt_key(MASTER, b.RUN_ID, 2)),
    "somebody else's": ask("heartbeat", heartbeat(8), master=b"guessed"),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_the_function_answers_and_keeps_what_the_webhook_does(
    name: str, webhook: Webhook, store: DynamoStore
) -> None:
    there = held(order=Order.DRAIN, order_reason='a "reason"')
    memory = MemoryStore()
    for one in (store, memory):
        stored(one, there)
    reported = webhook(event(REQUESTS[name]), None)
    response = handle(webhook_context(memory, MASTER), REQUESTS[name])
    assert (reported["statusCode"], reported["body"]) == (response.status, response.body.decode())
    assert reported["headers"].get(PROOF_HEADER) == dict(response.headers).get(PROOF_HEADER)
    assert loaded(store) == loaded(memory)


def test_a_notice_wakes_the_run_of_the_machine_that_it_is_about(webhook: Webhook, store: DynamoStore) -> None:
    there = held()
    last = replace(
        there.run.attempts[-1],
        pod_id="vast/20000001",
        offer=replace(there.run.attempts[-1].offer, provider="vast"),
    )
    stored(
        store,
        replace(
            there, run=replace(there.run, attempts=(*there.run.attempts[:-1], last), next_check_s=NOW_S + 600)
        ),
    )
    refused = webhook(event(notice("guessed")), None)
    assert (refused["statusCode"], loaded(store).run.next_check_s) == (401, NOW_S + 600)
    heard = webhook(event(notice()), None)
    assert (heard["statusCode"], json.loads(heard["body"])) == (200, {"woken": 1})
    assert (loaded(store).run.next_check_s or 0) <= NOW_S


def test_the_pace_is_on_the_lease_and_read_of_the_run_where_it_is_not(
    webhook: Webhook, store: DynamoStore, ministack: S3Server
) -> None:
    stored(store)
    client, key = dynamo.client_of(ministack), packed_key(lease_key(b.RUN_ID))
    assert client.get_item(TableName=store.table_name, Key=key)["Item"]["pace_s"] == {"N": "11"}
    client.update_item(TableName=store.table_name, Key=key, UpdateExpression="REMOVE pace_s")
    for seq in (8, 9):
        assert json.loads(webhook(event(ask("heartbeat", heartbeat(seq))), None)["body"])["heartbeat_s"] == 11
    before = loaded(store)
    assert store.save(Change(replace(before.run, version=before.run.version + 1)))
    assert "pace_s" in client.get_item(TableName=store.table_name, Key=key)["Item"]


# ------------------------------------------------------------------------------------------------------------
# what is loaded

ALONE = f"""
import json, os, sys
os.environ.update(json.loads(sys.argv[1]))
from prime_lambdas import webhook
events = json.loads(sys.argv[2])
answers = [webhook.handler(event, None) for event in events]
print(json.dumps([answers, [name for name in {HEAVY} if name in sys.modules]]))
"""


def test_what_must_not_be_loaded_is_installed() -> None:
    assert [name for name in HEAVY if find_spec(name) is None] == []


def alone(env: dict[str, str], *events: dict[str, Any]) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the responses of a fresh process, and which of the slow modules it has loaded."""
    command = [sys.executable, "-c", ALONE, json.dumps(env), json.dumps(events)]
    answers, heavy = json.loads(
        subprocess.run(command, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    )
    return answers, heavy


def test_hearing_heartbeats_costs_one_write_each_and_loads_nothing_that_they_do_not_need() -> None:
    answer = {
        "SecretString": json.dumps({"PRIME_TRAIN_MASTER_KEY": KEY}),
        "Attributes": {
            "asked": {"S": "none"},
            "asked_why": {"S": ""},
            "committed_step": {"N": "5"},
            "pace_s": {"N": "11"},
        },
    }
    with ScriptedServer(Response(200, json.dumps(answer).encode())) as server:
        place = {
            "PRIME_TRAIN_STORE": "dynamodb://tab",
            "PRIME_TRAIN_SECRET": "one",
            "AWS_ENDPOINT_URL": server.url,
        }
        at_s = int(time.time())
        requested = [
            ask("heartbeat", heartbeat(8), at_s=at_s),
            ask("exit", last_heartbeat(9), at_s=at_s),
            ask("heartbeat", b"{}"),
        ]
        answers, heavy = alone(
            {**GIVEN, **place, "AWS_LAMBDA_INITIALIZATION_TYPE": "on-demand"}, *map(event, requested)
        )
    assert [one["statusCode"] for one in answers] == [200, 200, 401]
    assert json.loads(answers[0]["body"])["heartbeat_s"] == 11
    assert heavy == []
    assert [request.headers["x-amz-target"].partition(".")[2] for request in server.requests] == [
        "GetSecretValue",
        "GetItem",
        "UpdateItem",
        "UpdateItem",
    ]


def test_the_pages_describe_what_is_served_also_without_a_secret() -> None:
    env = {
        **GIVEN,
        "PRIME_TRAIN_STORE": "dynamodb://tab",
        "PRIME_TRAIN_SECRET": "one",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    }
    pages = [event(Request("GET", path, {}, b"", NOW_S)) for path in ("/docs", "/openapi.json")]
    (docs, described), heavy = alone(env, *pages)
    assert "openapi.json" in docs["body"]
    assert json.loads(described["body"]) == create_app(Desk(webhook_context(MemoryStore()))).openapi()
    assert heavy == []
