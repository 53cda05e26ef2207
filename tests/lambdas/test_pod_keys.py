"""Keys for pods, without AWS: whom the stack's role trusts and with what, and which keys each caller gets."""

import itertools
import json
from collections.abc import Iterator
from contextlib import contextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from prime_lambdas.secret import has_pod_keys, of_bucket
from prime_lambdas.settings import Settings
from prime_lambdas.webhook import Webhook
from prime_train.buckets.attempt_policy import PolicyScope, session_policy
from prime_train.buckets.keys import code_key
from prime_train.errors import TemporaryError
from tests.fakes.http import Response, ScriptedServer
from tests.lambdas.test_functions import ENVIRONMENT
from tests.lambdas.test_template import resources

ROLE = "arn:aws-us-gov:iam::123456789012:role/training-PodRole"
KEYS = {
    "AWS_ACCESS_KEY_ID": "the-functions",
    "AWS_SECRET_ACCESS_KEY": "own-secret",
    "AWS_SESSION_TOKEN": "own-token",
}

PAIR = {"PRIME_TRAIN_POD_AWS_ACCESS_KEY_ID": "k", "PRIME_TRAIN_POD_AWS_SECRET_ACCESS_KEY": "s"}


@contextmanager
def of_secret(values: dict[str, str], **environment: str) -> Iterator[Webhook]:
    """Yield a webhook whose secret has these values."""
    with ScriptedServer(Response(200, json.dumps({"SecretString": json.dumps(values)}).encode())) as server:
        webhook = Webhook(settings(AWS_ENDPOINT_URL=server.url, **environment))
        yield webhook
        webhook.close()


def settings(**environment: str) -> Settings:
    return Settings.of({**ENVIRONMENT, **KEYS, "PRIME_TRAIN_POD_ROLE": ROLE, **environment})


def test_where_sts_does_not_answer_there_are_none_now(caplog: pytest.LogCaptureFixture) -> None:
    webhook = Webhook(settings(AWS_ENDPOINT_URL="http://127.0.0.1:9"))
    with pytest.raises(TemporaryError, match="sts: EndpointConnectionError"):
        webhook.issue_credentials("tiny-1", 2)
    assert "no keys to the bucket for run tiny-1, attempt 2" in caplog.text
    assert "own-secret" not in caplog.text


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def test_the_stacks_role_may_what_attempts_are_lent_and_nothing_outside() -> None:
    (policy,) = resources()["PodRole"]["Properties"]["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    may = [
        (action, resource)
        for one in statements
        for action in listed(one["Action"])
        for resource in listed(one["Resource"])
    ]
    assert {resource for _, resource in may} == {
        "Bucket.Arn",
        "${Bucket.Arn}/runs/*",
        "${Bucket.Arn}/evidence/*",
    }
    lent = json.loads(session_policy(PolicyScope("training"), "tiny-1", 2))["Statement"]
    for one in (each for each in lent if each["Effect"] == "Allow"):
        for resource, wanted in itertools.product(one["Resource"], listed(one["Action"])):
            named = resource.replace("arn:aws:s3:::training/", "${Bucket.Arn}/").replace(
                "arn:aws:s3:::training", "Bucket.Arn"
            )
            assert [pattern for action, pattern in may if action == wanted and fnmatchcase(named, pattern)], (
                wanted,
                named,
            )


def role_may(action: str, key: str) -> bool:
    """Return whether the stack's role may do that with the object, by AWS's rules."""
    (policy,) = resources()["PodRole"]["Properties"]["Policies"]
    statements = [
        one for one in policy["PolicyDocument"]["Statement"] if f"s3:{action}" in listed(one["Action"])
    ]
    assert {one["Effect"] for one in statements} <= {"Allow"}, "the evaluator does not know such a statement"
    return any(
        fnmatchcase(f"${{Bucket.Arn}}/{key}", pattern)
        for one in statements
        for pattern in listed(one["Resource"])
    )


@pytest.mark.parametrize("action", ["PutObject", "AbortMultipartUpload"])
def test_an_operator_may_upload_a_tree_in_parts_and_abort_that(action: str) -> None:
    assert role_may(action, code_key("tiny-1"))
    assert not role_may(action, "else/code.tar.gz")


def test_the_page_lists_what_a_role_of_ones_own_has_to_be_allowed() -> None:
    (policy,) = resources()["PodRole"]["Properties"]["Policies"]
    actions = {action for one in policy["PolicyDocument"]["Statement"] for action in listed(one["Action"])}
    page = (Path(__file__).parents[2] / "docs" / "aws.md").read_text()
    assert [action for action in actions if f"`{action}`" not in page] == []


def test_the_role_trusts_the_webhook_alone() -> None:
    (trust,) = resources()["PodRole"]["Properties"]["AssumeRolePolicyDocument"]["Statement"]
    assert (trust["Principal"], trust["Action"]) == ({"AWS": "WebhookRole.Arn"}, "sts:AssumeRole")
    (lends,) = resources()["WebhookLends"]["Properties"]["PolicyDocument"]["Statement"]
    assert (lends["Action"], lends["Resource"]) == ("sts:AssumeRole", "PodRole.Arn")


def test_keys_that_somebody_gave_to_pods_win() -> None:
    assert has_pod_keys(
        {"PRIME_TRAIN_POD_AWS_ACCESS_KEY_ID": "k", "PRIME_TRAIN_POD_AWS_SECRET_ACCESS_KEY": "s"}
    )
    assert not has_pod_keys(
        {"PRIME_TRAIN_POD_AWS_REGION": "eu-central-1", "PRIME_TRAIN_POD_PYTHON": "/usr/bin/python"}
    )


@pytest.mark.parametrize("half", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_half_a_pair_is_none(half: str) -> None:
    values = {
        f"PRIME_TRAIN_POD_{half}": "x",
        "PRIME_TRAIN_POD_AWS_SESSION_TOKEN": "t",
        "PRIME_TRAIN_POD_PYTHON": "/usr/bin/python",
    }
    assert not has_pod_keys(values)
    assert of_bucket(values) == {"PYTHON": "/usr/bin/python"}


@pytest.mark.parametrize(("given", "at_start"), [({}, True), (PAIR, False)])
def test_giving_keys_takes_the_role_from_nobody(given: dict[str, str], at_start: bool) -> None:
    with of_secret({"PRIME_TRAIN_MASTER_KEY": "ab" * 32} | given) as webhook:
        context = webhook.webhook()
        assert (context.issue_credentials is not None, context.issues_credentials_at_start) == (
            True,
            at_start,
        )


def test_the_check_finds_a_prefix_that_is_too_long_for_some_run() -> None:
    with of_secret({}, PRIME_TRAIN_BUCKET=f"s3://training/{'p' * 110}") as webhook:
        found = webhook.check()
    assert (found["keys"], "the bucket's prefix is too long" in found["wrong"]) == ("role", True), found


def test_pods_are_reported_where_the_bucket_is() -> None:
    assert settings().place == {"AWS_REGION": "eu-central-1"}
    assert settings(AWS_ENDPOINT_URL="http://127.0.0.1:9").place["AWS_ENDPOINT_URL"] == "http://127.0.0.1:9"
