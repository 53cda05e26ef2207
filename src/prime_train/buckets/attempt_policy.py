"""The permissions of the temporary keys of one attempt, as an AWS session policy.

An attempt reads all objects of its run, and writes what its agent writes: blobs, manifests with its own
attempt number, evidence of its attempt, its outputs and logs, and the pointer `latest.json`. It deletes what
retention releases: blobs, manifests up to its own attempt, and older versions of its own outputs.

Keys stay valid for an hour whatever happens, so those of a fenced attempt work for a while longer. With these
keys an attempt
- cannot write a manifest of a later attempt, nor delete one of the next `NEWER` attempts, which are more than
  can commit within an hour: what was committed after it stays committed;
- can write blobs: each is named by the hash of its content, and every reader verifies that hash, so a forged
  one is detected and never trained with;
- can write manifests of its own attempt: no attempt resumes from one that was not complete at the fence, and
  the chosen one is identified by its hash, as the working tree is by its hash from the launch;
- can delete no version of an object, so that in a bucket that keeps versions everything that it deletes or
  writes over can be brought back (docs/runbook.md);
- can delete blobs. An agent does so only within a minute after an accepted commit of its own, and only blobs
  that were old and unlisted then, which no later attempt relies on unless it uploads them again;
- can write and delete its own outputs and logs, which are stored apart from those of every other attempt
  number;
- can move the pointer, on which no decision depends.

The keys of a run that was started from another run's checkpoint also list and read the blobs of the run that
holds its content.

These keys have no access to the spec, the working tree, pins and marks, the control plane's records of
attempts, or any other run.
"""

import json
from dataclasses import dataclass

from prime_train.buckets.keys import (
    blob_prefix,
    evidence_prefix,
    latest_key,
    manifest_prefix,
    outputs_prefix,
    pod_name,
    run_prefix,
)

VALID_S = 3600
"""Seconds that the keys are valid: the longest that AWS allows if a role, such as a function's, assumes
another role.
"""
NEWER = 8
"""Number of later attempts whose manifests are protected. An attempt boots, restores and trains before it
commits, which takes minutes.
"""
POLICY_CHARS_MAX = 2048
"""The longest session policy in characters that AWS accepts."""
RUN_ID_CHARS_MAX, ATTEMPT_MAX = 48, 10**9 - 1
OPERATOR = "pt-operator"
SPECIAL = frozenset("*?$")
"""Characters with a special meaning in a policy."""


@dataclass(frozen=True)
class PolicyScope:
    """The location of a bucket's objects in S3. `prefix` has no slashes at its ends; `partition` as in
    ARNs.
    """

    bucket: str
    prefix: str = ""
    partition: str = "aws"


def assumed(
    role: str, part: PolicyScope, run_id: str, attempt: int, blobs_of: str = ""
) -> dict[str, str | int]:
    """Return the parameters of STS's AssumeRole. The session is named like the pod, so that CloudTrail shows
    which attempt made a call. Without a `run_id` the session is the operator's, with all permissions of the
    role. `blobs_of` as in `session_policy`, which also determines what is raised.
    """
    if not run_id:
        return {"RoleArn": role, "RoleSessionName": OPERATOR, "DurationSeconds": VALID_S}
    policy = session_policy(part, run_id, attempt, blobs_of)
    return {
        "RoleArn": role,
        "RoleSessionName": pod_name(run_id, attempt),
        "DurationSeconds": VALID_S,
        "Policy": policy,
    }


def check(part: PolicyScope) -> None:
    """Raise ValueError if AWS would not accept the policy of a run with the longest possible name and attempt
    number. A run that shares the blobs of another one has a longer policy, which its launch checks.
    """
    session_policy(part, "r" * RUN_ID_CHARS_MAX, ATTEMPT_MAX)


def session_policy(part: PolicyScope, run_id: str, attempt: int, blobs_of: str = "") -> str:
    """Return the policy as JSON. `blobs_of`: another run whose blobs may be read, empty if there is none.
    Raises ValueError if the prefix makes it longer than AWS accepts, or contains a wildcard.
    """
    if SPECIAL & set(part.prefix):
        raise ValueError(
            f"the bucket's prefix contains one of {' '.join(sorted(SPECIAL))}, which are special characters "
            "in a policy"
        )
    arn = f"arn:{part.partition}:s3:::"
    root = f"{arn}{part.bucket}/{part.prefix}/" if part.prefix else f"{arn}{part.bucket}/"
    below = f"{part.prefix}/{run_prefix(run_id)}" if part.prefix else run_prefix(run_id)
    manifests, blobs = f"{root}{manifest_prefix(run_id)}", f"{root}{blob_prefix(run_id)}*"
    outputs = f"{root}{outputs_prefix(run_id, attempt)}*"
    written = [
        f"{manifests}*-e{attempt}.json",
        f"{root}{evidence_prefix(run_id, attempt)}*",
        f"{root}{latest_key(run_id)}",
    ]
    listed, read = [f"{below}*"], [f"{root}{run_prefix(run_id)}*"]
    if blobs_of:
        shared = blob_prefix(blobs_of)
        listed.append(f"{part.prefix}/{shared}*" if part.prefix else f"{shared}*")
        read.append(f"{root}{shared}*")
    newer = [f"{arn}*-e{later}.json" for later in range(attempt + 1, attempt + 1 + NEWER)]
    statements = [
        # Without permission to list a prefix, a request for a missing object is answered "forbidden" instead
        # of "no such object".
        _statement("ListBucket", [f"{arn}{part.bucket}"])
        | {"Condition": {"StringLike": {"s3:prefix": listed}}},
        _statement("GetObject", read),
        # One statement for both actions, because AWS limits the length of the whole.
        _statement("PutObject", [blobs, outputs]) | {"Action": ["s3:PutObject", "s3:DeleteObject"]},
        _statement("PutObject", written),
        _statement("DeleteObject", [f"{manifests}*"]),
        _statement("DeleteObject", newer) | {"Effect": "Deny"},
    ]
    text = json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))
    if len(text) > POLICY_CHARS_MAX:
        reason = (
            f"the policy has {len(text)} characters and AWS allows {POLICY_CHARS_MAX}; choose "
            "a shorter prefix"
        )
        raise ValueError(f"the bucket's prefix is too long: {reason}")
    return text


def _statement(action: str, resources: list[str]) -> dict[str, object]:
    return {"Effect": "Allow", "Action": f"s3:{action}", "Resource": resources}
