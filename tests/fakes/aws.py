"""AWS on loopback, with functions that run: ministack with all its services.

Its measured behaviour: it supports change sets with SAM's transform; functions called by their address, by an
invocation and by the scheduler; secrets, DynamoDB and S3. It runs functions in the Python of the tests,
whatever their runtime: each in one process, one call at a time; if the process is killed, its call fails, and
the next call gets a new one. It reserves no concurrency, deletes what a template says to retain, and answers
a function's address only at `address_of`. It checks no permission: `tests.fakes.iam` in front of it does.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3

from tests.fakes.certificates import Certificate
from tests.fakes.iam.ledger import refused_to_functions
from tests.fakes.s3_servers import LOOPBACK, REGION, Program, _ministack, _running


@dataclass(frozen=True)
class Aws:
    """A running server. `log`: the output of it and its functions; `pid`: of the process whose children run
    them.
    """

    url: str
    log: Path
    pid: int

    @property
    def env(self) -> Mapping[str, str]:
        """Return the environment with which AWS's tools connect to this server."""
        keys = {"AWS_ACCESS_KEY_ID": "test", "AWS_SECRET_ACCESS_KEY": "test"}
        return {
            **keys,
            "AWS_REGION": REGION,
            "AWS_ENDPOINT_URL": self.url,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self, service: str) -> Any:
        return boto3.session.Session("test", "test", region_name=REGION).client(
            service, endpoint_url=self.url
        )

    def address_of(self, function_url: str) -> str:
        """Return the address at which a function's URL is answered here, because its host name is not
        resolved on this machine.
        """
        identity = (urlsplit(function_url).hostname or "").partition(".")[0]
        return f"{self.url}/_aws/lambda-url/{identity}"


@contextmanager
def aws(home: Path) -> Iterator[Aws]:
    """Run it. Fails at the end if a function was refused something: whatever a function does, its role has to
    allow.
    """
    with _running(_all, home, None, LOOPBACK) as server:
        yield Aws(server.url, home / "server.log", server.pid)
        assert not refused_to_functions(server), "the template does not allow what the functions do"


def _all(home: Path, host: str, port: int, certificate: Certificate | None) -> Program:
    some = _ministack(home, host, port, certificate)
    env = {name: value for name, value in some.env.items() if name != "SERVICES"}
    return replace(some, env=env)
