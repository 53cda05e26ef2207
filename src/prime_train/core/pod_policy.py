"""What keys that are lent to one attempt open: a session policy, in the words of AWS.

An attempt reads its whole run, and writes what its agent writes: blobs, manifests that bear its attempt, evidence of its attempt, and the
pointer for people. It takes away what retention lets go of, blobs and manifests up to its own attempt.

Keys live for an hour whatever happens, so those of an attempt that was fenced are still good for a while. With them it
- cannot write a manifest of a later attempt, nor delete one of the `NEWER` next, which are more than an hour has room for: what was
  committed after it stays committed;
- can write blobs: each is named by the hash of its content, and whoever reads one holds it against its name, so a false one is found and
  never trained with;
- can write manifests of its own attempt: nobody resumes from one that was not complete when it was fenced, and what was chosen then is
  bound by its hash, as the working tree is by that of the launch;
- can delete blobs. An agent does so only within a minute after a commit of its own that was accepted, and only blobs that were old and
  listed nowhere then, on which no later attempt counts unless it sends them anew;
- can move the pointer, by which nothing is decided.
The spec, the working tree, pins, the control plane's records of attempts and every other run are closed to it.
"""

import json
from dataclasses import dataclass

from prime_train.core.keys import blob_prefix, evidence_prefix, latest_key, manifest_prefix, pod_name, run_prefix

VALID_S = 3600
"""The most that AWS gives to whoever has a role itself, as a function has."""
NEWER = 8
"""An attempt boots, restores and trains before it commits: minutes."""
POLICY_CHARS_MAX = 2048
RUN_ID_CHARS_MAX, ATTEMPT_MAX = 48, 10**9 - 1
OPERATOR = "pt-operator"
SPECIAL = frozenset("*?$")
"""Not letters in a policy."""


@dataclass(frozen=True)
class Part:
    """Where in S3 a bucket's objects are. `prefix` is without slashes at its ends; `partition` as in ARNs."""

    bucket: str
    prefix: str = ""
    partition: str = "aws"


def assumed(role: str, part: Part, run_id: str, attempt: int) -> dict[str, str | int]:
    """What STS's AssumeRole is asked with. The session bears the pod's name, by which CloudTrail tells who did what. Without a `run_id` it
    is the operator's, who may all that the role may. ValueError as of `session_policy`."""
    if not run_id:
        return {"RoleArn": role, "RoleSessionName": OPERATOR, "DurationSeconds": VALID_S}
    policy = session_policy(part, run_id, attempt)
    return {"RoleArn": role, "RoleSessionName": pod_name(run_id, attempt), "DurationSeconds": VALID_S, "Policy": policy}


def check(part: Part) -> None:
    """ValueError where there could be a run, by its name and attempt, whose policy AWS would not take."""
    session_policy(part, "r" * RUN_ID_CHARS_MAX, ATTEMPT_MAX)


def session_policy(part: Part, run_id: str, attempt: int) -> str:
    """The policy as JSON. ValueError for a prefix that makes it longer than AWS takes, or that would stand for others too."""
    if SPECIAL & set(part.prefix):
        raise ValueError(f"the bucket's prefix holds one of {' '.join(sorted(SPECIAL))}, which mean something else in a policy")
    arn = f"arn:{part.partition}:s3:::"
    root = f"{arn}{part.bucket}/{part.prefix}/" if part.prefix else f"{arn}{part.bucket}/"
    below = f"{part.prefix}/{run_prefix(run_id)}" if part.prefix else run_prefix(run_id)
    manifests, blobs = f"{root}{manifest_prefix(run_id)}", f"{root}{blob_prefix(run_id)}*"
    written = [blobs, f"{manifests}*-e{attempt}.json", f"{root}{evidence_prefix(run_id, attempt)}*", f"{root}{latest_key(run_id)}"]
    newer = [f"{arn}*-e{later}.json" for later in range(attempt + 1, attempt + 1 + NEWER)]
    statements = [
        # Who may not list what a key would be in is told that it is forbidden, not that there is no such object.
        _statement("ListBucket", [f"{arn}{part.bucket}"]) | {"Condition": {"StringLike": {"s3:prefix": f"{below}*"}}},
        _statement("GetObject", [f"{root}{run_prefix(run_id)}*"]),
        _statement("PutObject", written),
        _statement("DeleteObject", [blobs, f"{manifests}*"]),
        _statement("DeleteObject", newer) | {"Effect": "Deny"},
    ]
    text = json.dumps({"Version": "2012-10-17", "Statement": statements}, separators=(",", ":"))
    if len(text) > POLICY_CHARS_MAX:
        said = f"AWS takes {POLICY_CHARS_MAX} characters of a policy, and with it one has {len(text)}; choose a shorter one"
        raise ValueError(f"the bucket's prefix is too long: {said}")
    return text


def _statement(action: str, resources: list[str]) -> dict[str, object]:
    return {"Effect": "Allow", "Action": f"s3:{action}", "Resource": resources}
