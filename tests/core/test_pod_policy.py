"""The permissions of keys that are issued to one attempt, as AWS would evaluate them."""

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest

from prime_train.buckets.attempt_policy import (
    NEWER,
    POLICY_CHARS_MAX,
    PolicyScope,
    assumed,
    check,
    session_policy,
)
from prime_train.buckets.keys import (
    blob_key,
    blob_prefix,
    code_key,
    descendant_key,
    evidence_key,
    latest_key,
    manifest_key,
    output_blob_key,
    output_manifest_key,
    piece_key,
    pin_key,
    run_prefix,
    spec_key,
)

RUN, ATTEMPT = "tiny-1", 2
PART = PolicyScope("training")
BLOB = blob_key(RUN, "blake3-" + "0" * 64, "zstd")


def allows(
    policy: str, action: str, key: str = "", *, bucket: str = "training", prefix: str | None = None
) -> bool:
    """Return whether AWS allows the action: it must be allowed and not denied. `prefix`: that of a list call.
    For an object that does not exist, AWS evaluates its key as the prefix.
    """
    resource = f"arn:aws:s3:::{bucket}/{key}" if key else f"arn:aws:s3:::{bucket}"
    applying = [one for one in json.loads(policy)["Statement"] if _applies(one, action, resource, prefix)]
    return bool(applying) and all(one["Effect"] == "Allow" for one in applying)


def _applies(statement: Mapping[str, Any], action: str, resource: str, prefix: str | None) -> bool:
    known = set(statement) <= {"Effect", "Action", "Resource", "Condition"} and statement["Effect"] in (
        "Allow",
        "Deny",
    )
    assert known, "the evaluator does not know such a statement"
    wanted = statement.get("Condition", {"StringLike": {"s3:prefix": None}})
    assert list(wanted) == ["StringLike"]
    assert list(wanted["StringLike"]) == ["s3:prefix"]
    patterns = wanted["StringLike"]["s3:prefix"]
    fits = patterns is None or (prefix is not None and any(_like(pattern, prefix) for pattern in patterns))
    actions = [statement["Action"]] if isinstance(statement["Action"], str) else statement["Action"]
    return f"s3:{action}" in actions and any(_like(one, resource) for one in statement["Resource"]) and fits


def _like(pattern: str, text: str) -> bool:
    """Return whether the text matches AWS's wildcards: any number of any characters, and one character."""
    assert "$" not in pattern
    return (
        re.fullmatch(re.escape(pattern).replace(r"\*", ".*").replace(r"\?", "."), text, re.DOTALL) is not None
    )


POLICY = session_policy(PART, RUN, ATTEMPT)

WRITTEN = [BLOB, manifest_key(RUN, 10, ATTEMPT), latest_key(RUN), evidence_key(RUN, ATTEMPT, "trainer.log")]
IDENTITY = "0123456789abcdef"
OWN = [
    output_manifest_key(RUN, ATTEMPT, IDENTITY),
    output_blob_key(RUN, ATTEMPT, IDENTITY, "blake3-" + "0" * 64),
    piece_key(RUN, ATTEMPT, IDENTITY, "trainer.log", 1),
    piece_key(RUN, ATTEMPT, IDENTITY, "metrics.csv", 1),
]
WRITTEN += OWN
READ = [code_key(RUN), manifest_key(RUN, 5, 1), BLOB, latest_key(RUN), spec_key(RUN)]
DELETED = [*OWN, BLOB, manifest_key(RUN, 5, 1), manifest_key(RUN, 5, ATTEMPT)]


@pytest.mark.parametrize("key", READ)
def test_an_attempt_reads_its_run(key: str) -> None:
    assert allows(POLICY, "GetObject", key)


@pytest.mark.parametrize("key", WRITTEN)
def test_an_attempt_writes_what_its_agent_writes(key: str) -> None:
    assert allows(POLICY, "PutObject", key)


@pytest.mark.parametrize("key", DELETED)
def test_an_attempt_takes_away_what_retention_lets_go_of(key: str) -> None:
    assert allows(POLICY, "DeleteObject", key)


@pytest.mark.parametrize("below", ["", "blobs/", "manifests/", "pins/"])
def test_an_attempt_lists_its_run(below: str) -> None:
    assert allows(POLICY, "ListBucket", prefix=f"{run_prefix(RUN)}{below}")


def test_an_object_that_is_not_there_is_found_to_be_missing() -> None:
    """A caller that may not list objects gets "forbidden" for a missing one, which an agent would take for
    the end of the attempt.
    """
    assert allows(POLICY, "ListBucket", prefix=latest_key(RUN))


@pytest.mark.parametrize("other", ["other", "tiny-10", "tiny-1-2", "tiny", "tiny-1x"])
def test_another_run_is_closed_to_it(other: str) -> None:
    keys = [
        spec_key(other),
        BLOB.replace(RUN, other),
        manifest_key(other, 10, ATTEMPT),
        latest_key(other),
        evidence_key(other, ATTEMPT, "x.log"),
    ]
    for action in ("GetObject", "PutObject", "DeleteObject"):
        assert not [key for key in keys if allows(POLICY, action, key)]
    assert not allows(POLICY, "ListBucket", prefix=run_prefix(other))


def test_a_descendant_reads_the_blobs_that_it_shares_and_nothing_else_of_the_other_run() -> None:
    policy, other = session_policy(PART, RUN, ATTEMPT, "other"), BLOB.replace(RUN, "other")
    assert allows(policy, "GetObject", other)
    assert allows(policy, "ListBucket", prefix=blob_prefix("other"))
    closed = [
        spec_key("other"),
        code_key("other"),
        manifest_key("other", 10, 1),
        latest_key("other"),
        descendant_key("other", RUN, 10),
    ]
    assert not [key for key in closed if allows(policy, "GetObject", key)]
    assert not [action for action in ("PutObject", "DeleteObject") if allows(policy, action, other)]
    assert not allows(policy, "ListBucket", prefix=run_prefix("other"))
    assert not allows(policy, "PutObject", manifest_key(RUN, 10, 0)), (
        "no machine writes where its run started"
    )
    assert not allows(policy, "PutObject", descendant_key(RUN, "next", 10))


@pytest.mark.parametrize("prefix", [None, "", "runs/", "runs", "runs/tiny-1", "evidence/"])
def test_the_bucket_as_a_whole_is_not_listed(prefix: str | None) -> None:
    assert not allows(POLICY, "ListBucket", prefix=prefix)


def test_another_bucket_is_closed_to_it() -> None:
    assert not allows(POLICY, "GetObject", code_key(RUN), bucket="training-2")
    assert not allows(POLICY, "ListBucket", bucket="training-2", prefix=run_prefix(RUN))


@pytest.mark.parametrize(
    "key",
    [
        manifest_key(RUN, 10, 1),
        manifest_key(RUN, 10, 3),
        manifest_key(RUN, 10, 12),
        manifest_key(RUN, 10, 22),
        evidence_key(RUN, 1, "trainer.log"),
        evidence_key(RUN, 22, "trainer.log"),
        spec_key(RUN),
        code_key(RUN),
        pin_key(RUN, 10, ATTEMPT),
        *(output_manifest_key(RUN, other, IDENTITY) for other in (1, 3, 22)),
        piece_key(RUN, 22, IDENTITY, "trainer.log", 1),
        f"{run_prefix(RUN)}else",
        "runs/tiny-1",
    ],
)
def test_what_is_not_its_own_it_cannot_write(key: str) -> None:
    assert not allows(POLICY, "PutObject", key)


@pytest.mark.parametrize("attempt", [1, 2, 9, 10, 99, 100])
def test_what_a_later_attempt_commits_stays(attempt: int) -> None:
    policy = session_policy(PART, RUN, attempt)
    for later in range(attempt + 1, attempt + 1 + NEWER):
        for action in ("PutObject", "DeleteObject"):
            assert not allows(policy, action, manifest_key(RUN, 10, later))
    for earlier in range(1, attempt + 1):
        assert allows(policy, "DeleteObject", manifest_key(RUN, 10, earlier))


@pytest.mark.parametrize(
    "key",
    [spec_key(RUN), code_key(RUN), latest_key(RUN), pin_key(RUN, 10, 1), evidence_key(RUN, ATTEMPT, "x.log")],
)
def test_what_no_clean_up_touches_it_cannot_delete(key: str) -> None:
    assert not allows(POLICY, "DeleteObject", key)


def test_nothing_else_is_allowed() -> None:
    said = [one["Action"] for one in json.loads(POLICY)["Statement"]]
    actions = [action for one in said for action in ([one] if isinstance(one, str) else one)]
    assert set(actions) == {
        "s3:ListBucket",
        "s3:GetObject",
        "s3:PutObject",
        "s3:DeleteObject",
    }


def test_a_prefix_of_the_bucket_is_kept_to() -> None:
    policy = session_policy(PolicyScope("training", "team/a"), RUN, ATTEMPT)
    assert allows(policy, "PutObject", f"team/a/{latest_key(RUN)}")
    assert not allows(policy, "PutObject", latest_key(RUN))
    assert allows(policy, "ListBucket", prefix=f"team/a/{run_prefix(RUN)}blobs/")
    assert not allows(policy, "ListBucket", prefix=f"{run_prefix(RUN)}blobs/")


def test_the_longest_names_fit_into_what_aws_takes() -> None:
    assert (
        len(session_policy(PolicyScope("b" * 63, partition="aws-us-gov"), "r" * 48, 10**9 - NEWER - 1))
        <= POLICY_CHARS_MAX
    )
    check(PolicyScope("b" * 63, partition="aws-us-gov"))


def test_a_prefix_that_only_short_names_have_room_for_is_found() -> None:
    long = PolicyScope("training", "p" * 120)
    session_policy(long, RUN, ATTEMPT)
    with pytest.raises(ValueError, match="too long"):
        check(long)


@pytest.mark.parametrize("prefix", ["p" * 200, "a*", "a?b", "${aws:username}"])
def test_a_prefix_that_cannot_be_reported_is_refused(prefix: str) -> None:
    with pytest.raises(ValueError, match="prefix"):
        session_policy(PolicyScope("training", prefix), RUN, ATTEMPT)


def test_a_session_bears_the_name_of_the_pod_and_lasts_an_hour() -> None:
    requested = assumed("arn:aws:iam::1:role/pods", PART, "r" * 48, 10**9 - 1)
    assert requested["RoleSessionName"] == f"pt-{'r' * 48}-e{10**9 - 1}"
    assert len(str(requested["RoleSessionName"])) <= 64
    assert requested["DurationSeconds"] == 3600
