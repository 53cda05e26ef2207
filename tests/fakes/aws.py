"""AWS on loopback, with functions that run: ministack with all its services.

What it can be trusted with (measured): change sets with SAM's transform; functions called by their address, by an invocation and by the
scheduler; secrets, DynamoDB and S3. It runs functions in the Python of the tests, whatever their runtime, checks no permission, sets no
concurrency aside, deletes what a template says to retain, can not delete a change set, and answers a function's address only where
`address_of` says.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3

from tests.fakes.certificates import Certificate
from tests.fakes.s3_servers import LOOPBACK, REGION, Program, _ministack, _running


@dataclass(frozen=True)
class Aws:
    """A running one. `log`: what it and its functions say."""

    url: str
    log: Path

    @property
    def env(self) -> Mapping[str, str]:
        """What AWS's tools read to come here."""
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        return {**keys, "AWS_REGION": REGION, "AWS_ENDPOINT_URL": self.url, "AWS_EC2_METADATA_DISABLED": "true"}

    def client(self, service: str) -> Any:
        return boto3.session.Session("test", "test", region_name=REGION).client(service, endpoint_url=self.url)

    def address_of(self, function_url: str) -> str:
        """Where a function's address is answered: nobody resolves its name here."""
        identity = (urlsplit(function_url).hostname or "").partition(".")[0]
        return f"{self.url}/_aws/lambda-url/{identity}"


@contextmanager
def aws(home: Path) -> Iterator[Aws]:
    with _running(_all, home, None, LOOPBACK) as server:
        yield Aws(server.url, home / "server.log")


def _all(home: Path, host: str, port: int, certificate: Certificate | None) -> Program:
    some = _ministack(home, host, port, certificate)
    env = {name: value for name, value in some.env.items() if name != "SERVICES"}
    return Program(some.name, some.command, {**env, "PYTHONDONTWRITEBYTECODE": "1"}, some.health, some.access_key, some.secret_key)
