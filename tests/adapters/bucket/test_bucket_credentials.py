"""Bucket keys for pods from the user's own control plane, which can assume a role."""

import logging

import pytest

from prime_train.app.pod_keys import keys_for_pods
from prime_train.buckets.attempt_policy import PolicyScope, session_policy
from prime_train.buckets.keys import latest_key
from prime_train.buckets.open import open_bucket
from prime_train.buckets.temporary_credentials import CredentialIssuer
from prime_train.errors import PermanentError, TemporaryError
from tests.buckets import BUCKET, keys_for, url_of
from tests.fakes.s3_servers import REGION, S3Server
from tests.lambdas.roles import Stack, make_roles

STACK = Stack("of-credentials", "no-table", BUCKET, "no-secret")
ROLE = STACK.values["PodRole.Arn"]
URL = f"s3://{BUCKET}"


def environment(server: S3Server, **more: str) -> dict[str, str]:
    return {
        **keys_for(server),
        "AWS_REGION": REGION,
        "AWS_ENDPOINT_URL": server.url,
        "PRIME_TRAIN_POD_ROLE": ROLE,
    } | more


def test_an_attempt_gets_keys_that_open_the_bucket_for_an_hour(ministack: S3Server) -> None:
    make_roles(ministack.url, STACK)
    place, issue_credentials = keys_for_pods(URL, environment(ministack))
    assert issue_credentials is not None
    assert place == {"AWS_REGION": REGION, "AWS_ENDPOINT_URL": ministack.url}
    keys = issue_credentials("tiny-1", 2)
    assert 3500 < keys.valid_s <= 3600
    assert keys.access_key_id != ministack.access_key
    bucket = open_bucket(URL, place, lambda: keys)
    bucket.put(latest_key("tiny-1"), b"{}")
    assert bucket.read(latest_key("tiny-1")) == b"{}"
    with pytest.raises(PermanentError, match="AccessDenied"):
        bucket.put(latest_key("another-1"), b"{}")


def test_keys_for_pods_alone_win_over_the_role_and_the_role_over_our_own(ministack: S3Server) -> None:
    given = {"PRIME_TRAIN_POD_AWS_ACCESS_KEY_ID": "pods", "PRIME_TRAIN_POD_AWS_SECRET_ACCESS_KEY": "theirs"}
    keys, issue_credentials = keys_for_pods(URL, environment(ministack, **given))
    assert (keys["AWS_ACCESS_KEY_ID"], keys["AWS_SECRET_ACCESS_KEY"]) == ("pods", "theirs")
    assert issue_credentials is not None, "who has keys that end needs new ones"
    keys, issue_credentials = keys_for_pods(URL, environment(ministack))
    assert "AWS_ACCESS_KEY_ID" not in keys
    assert issue_credentials is not None
    keys, issue_credentials = keys_for_pods(URL, environment(ministack, PRIME_TRAIN_POD_ROLE=""))
    assert (keys["AWS_ACCESS_KEY_ID"], issue_credentials) == (ministack.access_key, None)


@pytest.mark.parametrize(
    ("url", "role"), [("r2://a-bucket?account=x", ROLE), ("file:///srv/bucket", ROLE), (URL, "pods")]
)
def test_a_role_that_is_not_possible_is_refused(url: str, role: str) -> None:
    with pytest.raises(PermanentError, match="PRIME_TRAIN_POD_ROLE is for buckets such as s3://name"):
        keys_for_pods(url, {"PRIME_TRAIN_POD_ROLE": role, "AWS_REGION": REGION})


def test_a_prefix_that_no_policy_can_say_is_refused(ministack: S3Server) -> None:
    with pytest.raises(PermanentError, match="prefix"):
        CredentialIssuer(f"{URL}/{'p' * 300}", environment(ministack))


def test_a_prefix_that_is_too_long_for_some_run_is_refused_before_there_is_one(ministack: S3Server) -> None:
    prefix = "p" * 120
    session_policy(PolicyScope(BUCKET, prefix), "tiny-1", 2)
    with pytest.raises(
        PermanentError,
        match=r"PRIME_TRAIN_POD_ROLE cannot be used for s3://.* too long.* choose a shorter prefix",
    ):
        CredentialIssuer(f"{URL}/{prefix}", environment(ministack))


@pytest.mark.parametrize("half", ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"])
def test_half_a_pair_for_pods_is_reported_and_the_role_is_used(
    ministack: S3Server, caplog: pytest.LogCaptureFixture, half: str
) -> None:
    keys, issue_credentials = keys_for_pods(
        URL, environment(ministack, **{f"PRIME_TRAIN_POD_{half}": "half"})
    )
    assert issue_credentials is not None
    assert "half" not in keys.values()
    assert "the other half of the pair is: machines get the role's keys" in caplog.text


def test_where_sts_does_not_answer_there_are_none_now(
    ministack: S3Server, caplog: pytest.LogCaptureFixture
) -> None:
    issue_credentials = CredentialIssuer(
        URL, environment(ministack, AWS_ENDPOINT_URL_STS="http://127.0.0.1:9")
    )
    with caplog.at_level(logging.ERROR), pytest.raises(TemporaryError, match="sts: "):
        issue_credentials("tiny-1", 2)
    assert "no keys to the bucket for run tiny-1, attempt 2" in caplog.text


def test_a_bucket_at_another_address_is_reported_by_its_url(ministack: S3Server) -> None:
    place, issue_credentials = keys_for_pods(url_of(ministack), environment(ministack))
    assert issue_credentials is not None
    assert issue_credentials("tiny-1", 2).session_token
    assert place["AWS_REGION"] == REGION
