"""What a request to AWS does, by the names that policies use for actions and resources.

Source: AWS's service authorization reference. A request that is not known here has the action `service:?`,
which nothing allows.
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs, unquote
from xml.etree import ElementTree

from tests.fakes.iam.policies import Wanted

ACCOUNT = "000000000000"
OBJECTS = {
    "GET": "s3:GetObject",
    "HEAD": "s3:GetObject",
    "PUT": "s3:PutObject",
    "POST": "s3:PutObject",
    "DELETE": "s3:DeleteObject",
}
OF_VERSIONS = {"s3:GetObject": "s3:GetObjectVersion", "s3:DeleteObject": "s3:DeleteObjectVersion"}
BUCKETS = {
    ("GET", "versioning"): "s3:GetBucketVersioning",
    ("GET", "location"): "s3:GetBucketLocation",
    ("GET", "versions"): "s3:ListBucketVersions",
    ("GET", "uploads"): "s3:ListBucketMultipartUploads",
    ("PUT", "versioning"): "s3:PutBucketVersioning",
    ("PUT", ""): "s3:CreateBucket",
    ("DELETE", ""): "s3:DeleteBucket",
    ("GET", ""): "s3:ListBucket",
    ("HEAD", ""): "s3:ListBucket",
}
IN_A_TRANSACTION = {
    "Put": "dynamodb:PutItem",
    "Update": "dynamodb:UpdateItem",
    "Delete": "dynamodb:DeleteItem",
    "ConditionCheck": "dynamodb:ConditionCheckItem",
    "Get": "dynamodb:GetItem",
}


@dataclass(frozen=True)
class Sent:
    """A signed request. `query` has the first value of each parameter. `path` is decoded."""

    service: str
    region: str
    method: str
    path: str
    query: Mapping[str, str]
    headers: Mapping[str, str]
    body: bytes

    @property
    def target(self) -> str:
        """Return the operation of the services that name it in a header."""
        return self.headers.get("x-amz-target", "").rpartition(".")[2]


def wanted(sent: Sent) -> list[Wanted]:
    """Return what the request does; it is refused if one of that is not allowed."""
    match sent.service:
        case "s3":
            return list(_s3(sent))
        case "dynamodb":
            return list(_dynamodb(sent))
        case "secretsmanager":
            return [Wanted(f"secretsmanager:{sent.target}", json.loads(sent.body).get("SecretId", "*"))]
        case "sts":
            asked = {name: values[0] for name, values in parse_qs(sent.body.decode()).items()}
            # Anybody may ask who they are.
            return (
                []
                if asked.get("Action") == "GetCallerIdentity"
                else [Wanted(f"sts:{asked.get('Action')}", asked.get("RoleArn", "*"))]
            )
        case "lambda" if sent.path.endswith("/invocations"):
            name = sent.path.split("/functions/")[1].removesuffix("/invocations")
            return [
                Wanted("lambda:InvokeFunction", f"arn:aws:lambda:{sent.region}:{ACCOUNT}:function:{name}")
            ]
        case other:
            return [Wanted(f"{other}:?", "*")]


def object_wanted(bucket: str, key: str, action: str) -> Wanted:
    return Wanted(action, f"arn:aws:s3:::{bucket}/{key}")


def seen_as_missing(bucket: str, key: str) -> Wanted:
    """Return what a caller must be allowed to hear that an object does not exist; otherwise it hears that it
    may not read it. S3 decides as for a list of the prefix that is the object's key (ceph/ceph pull request
    68577 does likewise, to match AWS).
    """
    return Wanted("s3:ListBucket", f"arn:aws:s3:::{bucket}", {"s3:prefix": key})


def place(sent: Sent) -> tuple[str, str]:
    """Return the bucket and the key of a request to S3, whose address has the bucket in its path."""
    bucket, _, key = sent.path.lstrip("/").partition("/")
    return bucket, key


def _s3(sent: Sent) -> Iterator[Wanted]:
    bucket, key = place(sent)
    if not bucket:
        yield Wanted("s3:ListAllMyBuckets", "*")
    elif key:
        yield object_wanted(bucket, key, _on_object(sent))
        source = sent.headers.get("x-amz-copy-source")
        if source:
            source_bucket, _, source_key = unquote(source).lstrip("/").partition("/")
            yield object_wanted(source_bucket, source_key, "s3:GetObject")
    elif sent.method == "POST" and "delete" in sent.query:
        for one in ElementTree.fromstring(sent.body).iter():
            if one.tag.endswith("Key"):
                yield object_wanted(bucket, one.text or "", "s3:DeleteObject")
    else:
        named = next((name for _, name in BUCKETS if name and name in sent.query), "")
        listing = {"s3:prefix": sent.query.get("prefix", "")} if not named and sent.method == "GET" else {}
        yield Wanted(BUCKETS.get((sent.method, named), "s3:?"), f"arn:aws:s3:::{bucket}", listing)


def _on_object(sent: Sent) -> str:
    if "uploadId" in sent.query:
        parts = {"DELETE": "s3:AbortMultipartUpload", "GET": "s3:ListMultipartUploadParts"}
        return parts.get(sent.method, "s3:PutObject")
    action = OBJECTS.get(sent.method, "s3:?")
    return OF_VERSIONS.get(action, action) if "versionId" in sent.query else action


def _dynamodb(sent: Sent) -> Iterator[Wanted]:
    asked = json.loads(sent.body)
    if "TransactItems" in asked:
        for action in asked["TransactItems"]:
            for kind, item in action.items():
                yield Wanted(IN_A_TRANSACTION[kind], _table(sent, item["TableName"]))
    elif "RequestItems" in asked:
        for name in asked["RequestItems"]:
            yield Wanted(f"dynamodb:{sent.target}", _table(sent, name))
    else:
        yield Wanted(f"dynamodb:{sent.target}", _table(sent, asked.get("TableName", "*")))


def _table(sent: Sent, name: str) -> str:
    return f"arn:aws:dynamodb:{sent.region}:{ACCOUNT}:table/{name}"
