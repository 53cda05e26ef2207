"""Parts of the functions that need no service."""

import json
from pathlib import Path
from typing import Any

import pytest

from prime_lambdas.aws import ask
from prime_lambdas.metrics import line
from prime_lambdas.secret import KEPT_S, Secret, masters, of_bucket, of_runs, parsed
from prime_lambdas.settings import Settings
from prime_lambdas.watcher import WatcherOfStack
from prime_lambdas.webhook import Webhook, http_event
from prime_train.errors import PermanentError, TemporaryError
from tests.fakes import http as fakes

KEY = "ab" * 32
ENVIRONMENT = {
    "PRIME_TRAIN_STORE": "dynamodb://training?region=eu-central-1",
    "PRIME_TRAIN_BUCKET": "s3://training",
    "PRIME_TRAIN_SECRET": "arn:of:secret",
    "AWS_REGION": "us-east-1",
}


def event(body: str = "", *, encoded: bool = False, **headers: str) -> dict[str, Any]:
    http = {"method": "POST", "path": "/v1/canary"}
    context = {"http": http, "domainName": "x.lambda-url.us-east-1.on.aws"}
    return {
        "version": "2.0",
        "rawPath": "/v1/canary",
        "headers": headers,
        "requestContext": context,
        "body": body,
        "isBase64Encoded": encoded,
    }


# ------------------------------------------------------------------------------------------------------------
# events


def test_an_event_without_headers_and_body_is_a_request() -> None:
    bare = event()
    del bare["body"], bare["headers"]
    request = http_event(bare)
    assert request is not None
    assert (request["requestContext"]["http"]["method"], request["body"], request["headers"]) == (
        "POST",
        "",
        {},
    )


def test_what_is_no_base64_is_no_request() -> None:
    assert http_event(event("not base64!", encoded=True)) is None


def test_an_answer_has_no_header_that_is_the_connections() -> None:
    headers = alone()(event(" " * 70_000), None)["headers"]
    assert "connection" not in headers
    assert headers["content-type"] == "application/json"


def alone() -> Webhook:
    """Return a webhook whose requests to other services find no server."""
    keys = {
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    }
    return Webhook(Settings.of({**ENVIRONMENT, **keys}), clock=lambda: 99.5)


def test_without_its_secret_the_webhook_asks_to_be_retried() -> None:
    answer = alone()(event("{}"), None)
    assert (answer["statusCode"], answer["headers"]["retry-after"], json.loads(answer["body"])["now_s"]) == (
        503,
        "2",
        99,
    )


def test_a_body_with_half_a_character_is_refused() -> None:
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    assert Webhook(Settings.of({**ENVIRONMENT, **keys}))(event("\ud800"), None)["statusCode"] == 400


# ------------------------------------------------------------------------------------------------------------
# settings


def test_settings_are_read_from_the_environment() -> None:
    settings = Settings.of(ENVIRONMENT)
    assert (settings.table, settings.region, settings.endpoint) == ("training", "eu-central-1", None)


@pytest.mark.parametrize("name", ENVIRONMENT)
def test_what_is_not_set_is_named(name: str) -> None:
    with pytest.raises(PermanentError, match=name):
        Settings.of({**ENVIRONMENT, name: ""})


def test_a_store_that_is_no_table_is_refused() -> None:
    with pytest.raises(PermanentError, match="not a table"):
        Settings.of({**ENVIRONMENT, "PRIME_TRAIN_STORE": "https://elsewhere.example"})


# ------------------------------------------------------------------------------------------------------------
# secret


class Kept:
    """A secret that answers as configured, and counts the calls."""

    def __init__(self) -> None:
        self.values: dict[str, str] | None = {"A": "1"}
        self.reads, self.now_s = 0, 0.0

    def read(self) -> dict[str, str]:
        self.reads += 1
        if self.values is None:
            raise TemporaryError("not now")
        return dict(self.values)


def test_a_secret_is_kept_for_a_while_and_then_read_again() -> None:
    kept = Kept()
    secret = Secret(kept.read, lambda: kept.now_s)
    first = secret.values()
    assert secret.values() is first
    kept.now_s = KEPT_S + 1
    assert secret.values() is first  # nothing has changed in it
    kept.values, kept.now_s = {"A": "2"}, 2 * KEPT_S + 2
    assert secret.values() == {"A": "2"}
    assert kept.reads == 3


def test_a_secret_that_cannot_be_read_again_stays_as_it_was() -> None:
    kept = Kept()
    secret = Secret(kept.read, lambda: kept.now_s)
    first = secret.values()
    kept.values, kept.now_s = None, KEPT_S + 1
    assert secret.values() is first
    with pytest.raises(TemporaryError):
        Secret(kept.read, lambda: kept.now_s).values()


def test_a_secret_that_will_not_do_is_read_again_at_once() -> None:
    kept = Kept()
    secret = Secret(kept.read, lambda: kept.now_s)
    secret.values()
    secret.doubt()
    kept.values = {"A": "2"}
    assert secret.values() == {"A": "2"}


def test_a_master_key_that_is_mended_counts_at_once() -> None:
    reported = [
        json.dumps({"SecretString": json.dumps({"PRIME_TRAIN_MASTER_KEY": text})}).encode()
        for text in ("no key", KEY)
    ]
    with fakes.ScriptedServer(*(fakes.Response(200, answer) for answer in reported)) as server:
        keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_ENDPOINT_URL": server.url}
        webhook = Webhook(Settings.of({**ENVIRONMENT, **keys}))
        assert [webhook(event("{}"), None)["statusCode"] for _ in range(2)] == [503, 401]


def test_keys_of_aws_that_a_run_is_given_are_not_the_watchers_own(tmp_path: Path) -> None:
    of_a_run = {
        "AWS_ACCESS_KEY_ID": "of-a-run",
        "AWS_SECRET_ACCESS_KEY": "too",
        "AWS_ENDPOINT_URL": "http://127.0.0.1:9",
    }
    values = {
        "PRIME_TRAIN_MASTER_KEY": KEY,
        "PRIME_API_KEY": "key",
        "PRIME_API_BASE_URL": "http://127.0.0.1:9",
        **of_a_run,
    }
    denied = b'{"__type": "com.amazon#UnrecognizedClientException", "message": "no"}'
    secret = json.dumps({"SecretString": json.dumps(values)}).encode()
    with fakes.ScriptedServer(fakes.Response(200, secret), fakes.Response(400, denied)) as server:
        place = {
            "AWS_ENDPOINT_URL": server.url,
            "AWS_ACCESS_KEY_ID": "of-the-function",
            "AWS_SECRET_ACCESS_KEY": "own",
        }
        WatcherOfStack(Settings.of({**ENVIRONMENT, **place}), tmp_path).look(0, lambda: 60.0)
    signed = [request.headers["authorization"] for request in server.requests]
    assert any(b"SecretId" not in request.body for request in server.requests)
    assert all("Credential=of-the-function/" in line for line in signed), signed


@pytest.mark.parametrize("text", [None, "", "[1]", '{"a": 1}', "very-secret"])
def test_a_secret_that_is_no_object_of_texts_is_refused_unseen(text: str | None) -> None:
    with pytest.raises(PermanentError, match="not a JSON object") as caught:
        parsed(text)
    assert "very-secret" not in repr(caught.value)
    assert caught.value.__cause__ is None


def test_an_older_master_key_is_taken_beside_the_new_one() -> None:
    assert masters({"PRIME_TRAIN_MASTER_KEY": f"{KEY}, {'cd' * 32}"}) == (
        bytes.fromhex(KEY),
        bytes.fromhex("cd" * 32),
    )


@pytest.mark.parametrize("text", ["", "abc", KEY + "00", f"{KEY},"])
def test_a_master_key_of_another_length_is_refused(text: str) -> None:
    with pytest.raises(PermanentError, match="64 hex digits"):
        masters({"PRIME_TRAIN_MASTER_KEY": text})


def test_runs_get_neither_the_control_planes_keys_nor_those_of_the_bucket() -> None:
    values = {
        "PRIME_TRAIN_MASTER_KEY": KEY,
        "PRIME_API_KEY": "p",
        "SLACK_WEBHOOK_URL": "s",
        "PRIME_TRAIN_POD_AWS_ACCESS_KEY_ID": "k",
        "PRIME_TRAIN_POD_AWS_SECRET_ACCESS_KEY": "s",
        "HF_TOKEN": "h",
    }
    for listed in ("", "*", "HF_*"):
        assert of_runs(values, Settings.of({**ENVIRONMENT, "PRIME_TRAIN_RUN_SECRETS": listed})) == {
            "HF_TOKEN": "h"
        }
    own = {"AWS_SECRET_ACCESS_KEY": "a", "JUDGE_KEY": "j", "HF_TOKEN": "h"}
    assert of_runs(own, Settings.of(ENVIRONMENT)) == {"HF_TOKEN": "h"}
    assert of_runs(own, Settings.of({**ENVIRONMENT, "PRIME_TRAIN_RUN_SECRETS": "JUDGE_KEY"})) == {
        "JUDGE_KEY": "j"
    }
    with pytest.raises(PermanentError, match="PRIME_TRAIN_RUN_SECRETS"):
        Settings.of({**ENVIRONMENT, "PRIME_TRAIN_RUN_SECRETS": "a=b"})
    assert of_bucket(values) == {"AWS_ACCESS_KEY_ID": "k", "AWS_SECRET_ACCESS_KEY": "s"}


# ------------------------------------------------------------------------------------------------------------
# asking


def test_nobody_there_is_a_failure_that_passes() -> None:
    keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
    with pytest.raises(TemporaryError, match="lambda did not answer"):
        ask(
            "lambda",
            Settings.of({**ENVIRONMENT, **keys, "AWS_ENDPOINT_URL": "http://127.0.0.1:9"}),
            lambda to: to.list_functions(),
        )


# ------------------------------------------------------------------------------------------------------------
# the rest


def test_metrics_are_in_the_form_that_cloudwatch_reads() -> None:
    reported = json.loads(line({"Sweeps": 4, "UsdPerHour": 1.5}, "training", 7.5))
    (about,) = reported["_aws"]["CloudWatchMetrics"]
    assert reported["_aws"]["Timestamp"] == 7500
    assert (about["Namespace"], about["Dimensions"]) == ("PrimeTrain", [["Stack"]])
    assert about["Metrics"] == [{"Name": "Sweeps", "Unit": "Count"}, {"Name": "UsdPerHour", "Unit": "None"}]
    assert (reported["Stack"], reported["Sweeps"], reported["UsdPerHour"]) == ("training", 4, 1.5)
