"""Keys for pods, without AWS: the request to STS, the use of its response, and which keys each caller gets."""

import itertools
import json
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from prime_lambdas.pod_keys import ANSWER_BYTES_MAX, issue_credentials, parsed, request
from prime_lambdas.secret import has_pod_keys, of_bucket
from prime_lambdas.settings import Settings
from prime_lambdas.webhook_context import checked, new_context
from prime_train.adapters.store_dynamo.signed_calls import SignedCalls
from prime_train.core.access.pod_policy import Part, session_policy
from prime_train.core.keys import code_key
from prime_train.ports import PermanentError, TemporaryError
from tests.lambdas.test_functions import ENVIRONMENT
from tests.lambdas.test_template import resources

ROLE = "arn:aws-us-gov:iam::123456789012:role/training-PodRole"
NOW_S = 1_800_000_000.0
KEYS = {"AWS_ACCESS_KEY_ID": "the-functions", "AWS_SECRET_ACCESS_KEY": "own-secret", "AWS_SESSION_TOKEN": "own-token"}
ANSWER = """\
<AssumeRoleResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/">
  <AssumeRoleResult>
    <Credentials>
      <AccessKeyId>ASIA1</AccessKeyId><SecretAccessKey>a/b+c&amp;d</SecretAccessKey><SessionToken>t==</SessionToken>
      <Expiration>{ends}</Expiration>
    </Credentials>
    <PackedPolicySize>41</PackedPolicySize>
  </AssumeRoleResult>
  <ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
</AssumeRoleResponse>
"""


def settings(**environment: str) -> Settings:
    return Settings.of({**ENVIRONMENT, **KEYS, "PRIME_TRAIN_POD_ROLE": ROLE, **environment})


def test_the_role_is_taken_for_one_attempt_with_what_that_may() -> None:
    assert request(settings(), "tiny-1", 2) == {
        "Action": "AssumeRole",
        "Version": "2011-06-15",
        "RoleArn": ROLE,
        "RoleSessionName": "pt-tiny-1-e2",
        "DurationSeconds": 3600,
        "Policy": session_policy(Part("training", partition="aws-us-gov"), "tiny-1", 2),
    }


@pytest.mark.parametrize(("ends", "valid_s"), [("2027-01-15T09:00:00Z", 3600), ("2027-01-15T08:30:00.000Z", 1800)])
def test_what_sts_answers_is_reported_in_seconds_that_are_left(ends: str, valid_s: int) -> None:
    keys = parsed(ANSWER.format(ends=ends).encode(), NOW_S)
    assert (keys.access_key_id, keys.secret_access_key, keys.session_token, keys.valid_s) == ("ASIA1", "a/b+c&d", "t==", valid_s)
    assert "a/b+c" not in repr(keys)


WHOLE = ANSWER.format(ends="2027-01-15T09:00:00Z")


@pytest.mark.parametrize(
    "answer",
    [
        "",
        "{}",
        WHOLE[:300],
        WHOLE.replace("SecretAccessKey", "Other"),
        WHOLE.replace("2011-06-15", "2099-01-01"),
        WHOLE.replace("2027-01-15T09:00:00Z", "soon"),
        WHOLE.replace("2027-01-15T09:00:00Z", "2020-01-15T09:00:00Z"),
        WHOLE + " " * ANSWER_BYTES_MAX,
        '<!DOCTYPE x [<!ENTITY a "b">]>' + WHOLE.replace("ASIA1", "&a;"),
    ],
    ids=["nothing", "json", "cut", "a key missing", "another version", "no time", "ended", "too long", "entities"],
)
def test_an_answer_that_is_not_understood_is_refused_unseen(answer: str) -> None:
    with pytest.raises(PermanentError, match="cannot be parsed") as caught:
        parsed(answer.encode(), NOW_S)
    assert "a/b+c" not in repr(caught.value)
    assert caught.value.__context__ is None


def test_where_sts_does_not_answer_there_are_none_now(caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(TemporaryError, match="sts did not answer"):
        issue_credentials(settings(AWS_ENDPOINT_URL="http://127.0.0.1:9"), "tiny-1", 2, NOW_S)
    assert "no keys to the bucket for run tiny-1, attempt 2" in caplog.text
    assert "own-secret" not in caplog.text


def listed(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value


def test_the_stacks_role_may_what_attempts_are_lent_and_nothing_outside() -> None:
    (policy,) = resources()["PodRole"]["Properties"]["Policies"]
    statements = policy["PolicyDocument"]["Statement"]
    may = [(action, resource) for one in statements for action in listed(one["Action"]) for resource in listed(one["Resource"])]
    assert {resource for _, resource in may} == {
        "Bucket.Arn",
        "${Bucket.Arn}/runs/*",
        "${Bucket.Arn}/evidence/*",
    }
    lent = json.loads(session_policy(Part("training"), "tiny-1", 2))["Statement"]
    for one in (each for each in lent if each["Effect"] == "Allow"):
        for resource, wanted in itertools.product(one["Resource"], listed(one["Action"])):
            named = resource.replace("arn:aws:s3:::training/", "${Bucket.Arn}/").replace("arn:aws:s3:::training", "Bucket.Arn")
            assert [pattern for action, pattern in may if action == wanted and fnmatchcase(named, pattern)], (wanted, named)


def role_may(action: str, key: str) -> bool:
    """Return whether the stack's role may do that with the object, by AWS's rules."""
    (policy,) = resources()["PodRole"]["Properties"]["Policies"]
    statements = [one for one in policy["PolicyDocument"]["Statement"] if f"s3:{action}" in listed(one["Action"])]
    assert {one["Effect"] for one in statements} <= {"Allow"}, "the evaluator does not know such a statement"
    return any(fnmatchcase(f"${{Bucket.Arn}}/{key}", pattern) for one in statements for pattern in listed(one["Resource"]))


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
    assert has_pod_keys({"PRIME_TRAIN_POD_AWS_ACCESS_KEY_ID": "k", "PRIME_TRAIN_POD_AWS_SECRET_ACCESS_KEY": "s"})
    assert not has_pod_keys({"PRIME_TRAIN_POD_AWS_REGION": "eu-central-1", "PRIME_TRAIN_POD_PYTHON": "/usr/bin/python"})


@pytest.mark.parametrize("half", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_half_a_pair_is_none(half: str) -> None:
    values = {f"PRIME_TRAIN_POD_{half}": "x", "PRIME_TRAIN_POD_AWS_SESSION_TOKEN": "t", "PRIME_TRAIN_POD_PYTHON": "/usr/bin/python"}
    assert not has_pod_keys(values)
    assert of_bucket(values) == {"PYTHON": "/usr/bin/python"}


def test_giving_keys_takes_the_role_from_nobody() -> None:
    pair = {"PRIME_TRAIN_POD_AWS_ACCESS_KEY_ID": "k", "PRIME_TRAIN_POD_AWS_SECRET_ACCESS_KEY": "s"}
    calls = SignedCalls(settings().environment, "eu-central-1", None)
    for given, issues_credentials_at_start in (({}, True), (pair, False)):
        webhook = new_context(settings(), {"PRIME_TRAIN_MASTER_KEY": "ab" * 32} | given, calls, "train.example.org", lambda: NOW_S)
        assert (webhook.issue_credentials is not None, webhook.issues_credentials_at_start) == (True, issues_credentials_at_start)


def test_the_check_finds_a_prefix_that_is_too_long_for_some_run() -> None:
    of = settings(PRIME_TRAIN_BUCKET=f"s3://training/{'p' * 110}")
    request(of, "tiny-1", 2)
    found = checked(of, dict, lambda: NOW_S)
    assert (found["keys"], "the bucket's prefix is too long" in found["wrong"]) == ("role", True), found


def test_pods_are_reported_where_the_bucket_is() -> None:
    assert settings().place == {"AWS_REGION": "eu-central-1"}
    assert settings(AWS_ENDPOINT_URL="http://127.0.0.1:9").place["AWS_ENDPOINT_URL"] == "http://127.0.0.1:9"
