"""What a machine can do to the bucket with its temporary keys, at a server that obeys their policy, and how
that is undone.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import boto3
import pytest
from botocore.exceptions import ClientError

from prime_train.buckets.attempt_policy import PolicyScope, session_policy
from prime_train.buckets.keys import blob_key, latest_key, manifest_key
from prime_train.buckets.versioning import VersionsKept, versions_of
from prime_train.errors import ExternalError
from tests.fakes.http import Response, ScriptedServer
from tests.fakes.s3_servers import S3Server, minio, ministack, needs_minio

ROOT = Path(__file__).parents[3]
RUN, BUCKET = "tiny-1", "training"
BLOB = blob_key(RUN, "blake3-" + "0" * 64, "zstd")
KEYS = {
    BLOB: b"weights",
    manifest_key(RUN, 10, 1): b"manifest 10",
    manifest_key(RUN, 20, 2): b"manifest 20",
    latest_key(RUN): b"latest",
}


@pytest.fixture(name="server")
def _server(tmp_path: Path) -> Iterator[S3Server]:
    with minio(tmp_path) as server:
        server.create_bucket(BUCKET)
        yield server


def environment(server: S3Server) -> dict[str, str]:
    return {
        "AWS_ACCESS_KEY_ID": server.access_key,
        "AWS_SECRET_ACCESS_KEY": server.secret_key,
        "AWS_REGION": server.region,
    }


def versioned(server: S3Server) -> Any:
    client = server.client()
    client.put_bucket_versioning(Bucket=BUCKET, VersioningConfiguration={"Status": "Enabled"})
    for key, body in KEYS.items():
        client.put_object(Bucket=BUCKET, Key=key, Body=body)
    return client


def machine(server: S3Server, attempt: int) -> Any:
    """Return a client with the keys that the attempt's machine gets."""
    own = {"aws_access_key_id": server.access_key, "aws_secret_access_key": server.secret_key}
    sts = boto3.client("sts", endpoint_url=server.url, region_name=server.region, **own)
    policy = session_policy(PolicyScope(BUCKET), RUN, attempt)
    keys = sts.assume_role(
        RoleArn="arn:aws:iam::123456789012:role/pods", RoleSessionName="pt", Policy=policy
    )["Credentials"]
    lent = {"aws_access_key_id": keys["AccessKeyId"], "aws_secret_access_key": keys["SecretAccessKey"]}
    return boto3.client(
        "s3",
        endpoint_url=server.url,
        region_name=server.region,
        aws_session_token=keys["SessionToken"],
        **lent,
    )


def is_refused(call: Any, **arguments: Any) -> bool:
    try:
        call(Bucket=BUCKET, **arguments)
    except ClientError as error:
        return bool(error.response["Error"]["Code"] == "AccessDenied")
    return False


def readable(client: Any) -> dict[str, bytes]:
    found = client.list_objects_v2(Bucket=BUCKET).get("Contents", [])
    return {one["Key"]: client.get_object(Bucket=BUCKET, Key=one["Key"])["Body"].read() for one in found}


@needs_minio
def test_whatever_a_machine_deletes_or_overwrites_can_be_brought_back(server: S3Server) -> None:
    client, taken = versioned(server), machine(server, attempt=2)
    for key in KEYS:
        if key != latest_key(RUN):
            taken.delete_object(Bucket=BUCKET, Key=key)
    taken.put_object(Bucket=BUCKET, Key=latest_key(RUN), Body=b"nonsense")
    assert readable(client) == {latest_key(RUN): b"nonsense"}

    for one in client.list_object_versions(Bucket=BUCKET)["Versions"]:
        assert is_refused(taken.delete_object, Key=one["Key"], VersionId=one["VersionId"])
    for marker in client.list_object_versions(Bucket=BUCKET)["DeleteMarkers"]:
        client.delete_object(Bucket=BUCKET, Key=marker["Key"], VersionId=marker["VersionId"])
    assert readable(client) == KEYS | {latest_key(RUN): b"nonsense"}
    kept = client.list_object_versions(Bucket=BUCKET, Prefix=latest_key(RUN))["Versions"]
    bodies = {
        client.get_object(Bucket=BUCKET, Key=one["Key"], VersionId=one["VersionId"])["Body"].read()
        for one in kept
    }
    assert bodies == {b"latest", b"nonsense"}


@needs_minio
def test_a_machine_can_neither_end_the_versions_nor_have_them_expire_at_once(server: S3Server) -> None:
    versioned(server)
    taken = machine(server, attempt=2)
    rule = {"ID": "x", "Status": "Enabled", "Filter": {"Prefix": ""}, "Expiration": {"Days": 1}}
    assert is_refused(taken.put_bucket_versioning, VersioningConfiguration={"Status": "Suspended"})
    assert is_refused(taken.put_bucket_lifecycle_configuration, LifecycleConfiguration={"Rules": [rule]})
    assert is_refused(taken.delete_bucket)


@needs_minio
def test_a_server_is_asked_whether_it_keeps_versions(server: S3Server) -> None:
    url = f"s3://{BUCKET}/some/prefix?endpoint={server.url}"
    assert versions_of(url, environment(server)) is VersionsKept.NOT_KEPT
    versioned(server)
    assert versions_of(url, environment(server)) is VersionsKept.KEPT
    with pytest.raises(ExternalError, match="check AWS_SECRET_ACCESS_KEY"):
        versions_of(url, {**environment(server), "AWS_SECRET_ACCESS_KEY": "wrong"})


@pytest.mark.parametrize(
    ("code", "versions"),
    [
        ("AccessDenied", VersionsKept.NOT_TOLD),
        ("NotImplemented", VersionsKept.UNSUPPORTED),
        ("NoSuchBucket", None),
    ],
)
def test_a_refusal_is_told_apart_from_a_bucket_that_keeps_nothing(
    code: str, versions: VersionsKept | None
) -> None:
    with ScriptedServer(
        *[Response(403, f"<Error><Code>{code}</Code></Error>".encode(), "application/xml")] * 4
    ) as server:
        url = f"s3://{BUCKET}?endpoint={server.url}&region=us-east-1"
        keys = {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
        if versions is None:
            with pytest.raises(ExternalError, match="there is no bucket with that name"):
                versions_of(url, keys)
        else:
            assert versions_of(url, keys) is versions


def test_the_rule_of_the_page_lets_old_versions_expire_and_nothing_else_of_runs(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "runbook.md").read_text()
    rules = json.loads(re.findall(r"--lifecycle-configuration '(\{.*?\})'", page, re.DOTALL)[0])
    with ministack(tmp_path) as server:
        server.create_bucket(BUCKET)
        server.client().put_bucket_lifecycle_configuration(Bucket=BUCKET, LifecycleConfiguration=rules)
    assert [rule["ID"] for rule in rules["Rules"] if "NoncurrentVersionExpiration" in rule] == [
        "deleted-and-overwritten"
    ]
    assert [rule["Filter"]["Prefix"] for rule in rules["Rules"] if "Days" in rule.get("Expiration", {})] == [
        "evidence/"
    ]
