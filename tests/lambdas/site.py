"""A control plane with a random name, on AWS on loopback or in an account, which is deleted with everything
that it leaves behind.
"""

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from botocore.exceptions import ClientError

from prime_train.aws.account import Account, texts
from prime_train.aws.stack import Stack
from prime_train.stores.dynamo.opening import open_dynamo
from prime_train.stores.dynamo.store import DynamoStore
from tests.lambdas.deployed import Deployed, prime_train

PREFIX = "pt-smoke-"
"""Prefix of all names, by which leftovers can be found: see docs/aws.md."""
NOBODY = {"PRIME_API_KEY": "key-of-nobody", "PRIME_API_BASE_URL": "http://127.0.0.1:9"}
"""Credentials with which nothing can be rented."""
KEYS = ("PK", "SK")


@dataclass(frozen=True)
class Place:
    """Where to deploy. `env`: the environment of the shell that deploys. `code`: a zip; None: one is made.
    `loopback`: the replacement of AWS, if any.
    """

    env: Mapping[str, str]
    code: Path | None = None
    loopback: Deployed | None = None


@dataclass(frozen=True)
class Site:
    """A deployed stack."""

    place: Place
    name: str
    account: Account
    outputs: Mapping[str, str]

    @property
    def url(self) -> str:
        return self.outputs["Url"].rstrip("/")

    @property
    def store(self) -> DynamoStore:
        return open_dynamo(f"dynamodb://{self.outputs['Table']}?region={self.account.region}", self.place.env)

    @property
    def key(self) -> bytes:
        return bytes.fromhex(texts(self.account.secret(self.outputs["Secret"]))["PRIME_TRAIN_MASTER_KEY"])

    def client(self, service: str) -> Any:
        return self.account.client(service)


@contextmanager
def site(place: Place) -> Iterator[Site]:
    name, account = f"{PREFIX}{secrets.token_hex(4)}", Account(place.env)
    stack = Stack(account.client("cloudformation"), name)
    words = ["deploy", "--stack", name, "--yes", *(["--code", str(place.code)] if place.code else [])]
    outputs: Mapping[str, str] = {}
    try:
        _succeeds(place, *words, *(word for secret in NOBODY for word in ("--secret", secret)))
        outputs = stack.outputs()
        if place.loopback is not None:
            _succeeds(place, *words, "--public-url", place.loopback.cloud.address_of(outputs["FunctionUrl"]))
        yield Site(place, name, account, stack.outputs())
    finally:
        # A test may have deleted the stack, which has then nothing to say of what outlives it.
        outputs = outputs or (stack.outputs() if stack.state() else {})
        stack.delete(print)
        _delete(account, outputs)


def _succeeds(place: Place, *words: str) -> None:
    done = prime_train({**place.env, **NOBODY}, *words)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"


def _delete(account: Account, outputs: Mapping[str, str]) -> None:
    """Delete what outlives a stack. Each part may be deleted already, or never have existed."""
    for delete, output in ((_delete_bucket, "Bucket"), (_delete_table, "Table"), (_delete_secret, "Secret")):
        try:
            delete(account, outputs.get(output, ""))
        except ClientError as error:
            if not _is_gone(error):
                raise


def _delete_bucket(account: Account, name: str) -> None:
    s3 = account.client("s3")
    for page in s3.get_paginator("list_objects_v2").paginate(Bucket=name) if name else ():
        for row in page.get("Contents", []):
            s3.delete_object(Bucket=name, Key=row["Key"])
    if name:
        s3.delete_bucket(Bucket=name)


def _delete_table(account: Account, name: str) -> None:
    if name:
        account.client("dynamodb").delete_table(TableName=name)


def _delete_secret(account: Account, name: str) -> None:
    """Delete the secret at once, because the stack has only scheduled its deletion."""
    if name:
        account.client("secretsmanager").restore_secret(SecretId=name)
        account.client("secretsmanager").delete_secret(SecretId=name, ForceDeleteWithoutRecovery=True)


def _is_gone(error: ClientError) -> bool:
    code = str(error.response["Error"]["Code"])
    return code in ("NoSuchBucket", "404") or "NotFound" in code


def environment() -> dict[str, str]:
    """Return this shell's variables for AWS, without those of prime-train."""
    return {name: value for name, value in os.environ.items() if not name.startswith("PRIME_")}
