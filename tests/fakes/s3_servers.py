"""Real S3 servers for tests: a process on loopback that certainly ends, told where its home is, spoken to
with boto3.

minio may also run in another place than loopback, such as a network namespace.

What each can be trusted with (measured):

| it refuses or does                             | ministack               | minio  |
|------------------------------------------------|-------------------------|--------|
| a wrong signature, or none                     | no                      | yes    |
| a wrong checksum (`x-amz-checksum-*`)          | only if named (below)   | yes    |
| a wrong Content-MD5                            | yes                     | yes    |
| a body that ends before its Content-Length     | no, stores what it has  | yes    |
| If-None-Match, If-Match on PUT (412; 404)      | yes                     | yes    |
| pages of a list, ListParts                     | yes                     | yes    |
| objects are kept in                            | memory                  | `home` |

ministack compares a checksum only where the client also names its kind (`x-amz-sdk-checksum-algorithm`, as
boto3 does unless it is given the value), and it does not know CRC32C. ministack comes with the development
requirements, so it is always there; it takes large bodies slowly (16 MiB in 0.4 s, 64 MiB in 20 s), so keep
objects small. minio is a program of its own: tests that need it are marked `needs_minio`.
"""

import functools
import http.client
import os
import shutil
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import boto3
import psutil
import pytest
from botocore.config import Config

from tests.fakes.certificates import Certificate
from tests.tools import GO_BIN, program

ROOT = Path(__file__).resolve().parents[2]
HOST = "127.0.0.1"
REGION = "us-east-1"
READY_S_MAX = 60.0
STARTS_MAX = 3
ANSWER_S_MAX = 30.0
LOG_TAIL_BYTES = 2000

_MAKING = threading.Lock()

# Runs before the server does, in its process: the kernel kills it when the thread that started it ends,
# however that ends. Not done by `preexec_fn`, which is not safe where there are threads. Elsewhere than on
# Linux only the end of the `with` ends the server.
LAUNCH = """\
import ctypes, os, signal, sys
if sys.platform == "linux":
    PR_SET_PDEATHSIG = 1
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != int(sys.argv[1]):
        sys.exit("whoever wanted this server is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class S3Server:
    """A running server, and what is needed to use it. `authority`: the PEM file to trust, None if it uses
    plain HTTP.
    """

    name: str
    url: str
    access_key: str
    secret_key: str
    pid: int
    authority: Path | None = None
    region: str = REGION

    def client(self) -> Any:
        """Return boto3's client; it sends each request once, so that a test sees every fault."""
        config = Config(
            s3={"addressing_style": "path"},
            retries={"total_max_attempts": 1},
            connect_timeout=ANSWER_S_MAX,
            read_timeout=ANSWER_S_MAX,
            proxies={},
        )
        verify = str(self.authority) if self.authority else None
        with _MAKING:
            session = _session(self.access_key, self.secret_key, self.region)
            return session.client("s3", endpoint_url=self.url, config=config, verify=verify)

    def create_bucket(self, bucket: str) -> str:
        """Create a bucket and return its name, for which S3 requires at least 3 characters."""
        self.client().create_bucket(Bucket=bucket)
        return bucket

    def through(self, url: str, authority: Path | None = None) -> "S3Server":
        """Return the same server, reached through a proxy."""
        return replace(self, url=url, authority=authority)


@functools.cache
def _session(access_key: str, secret_key: str, region: str) -> Any:
    """Return a session; cached, because each new one loads the description of S3 again, which takes longer
    than most tests. Use by one thread at a time.
    """
    return boto3.session.Session(access_key, secret_key, region_name=region)


@dataclass(frozen=True)
class Place:
    """The address that a server listens on, and the command prefix with which it is started there; the prefix
    becomes the server, as `exec` does.
    """

    host: str = HOST
    prefix: tuple[str, ...] = ()


LOOPBACK = Place()


@dataclass(frozen=True)
class Program:
    """How one kind of server is started on a port, and where it reports that it is ready."""

    name: str
    command: Sequence[str]
    env: Mapping[str, str]
    health: str
    access_key: str
    secret_key: str


@contextmanager
def ministack(home: Path, certificate: Certificate | None = None) -> Iterator[S3Server]:
    """Run ministack with S3, DynamoDB and STS only, all in memory; `home` gets its log and small files."""
    with _running(_ministack, home, certificate, LOOPBACK) as server:
        yield server


@contextmanager
def minio(home: Path, certificate: Certificate | None = None, place: Place = LOOPBACK) -> Iterator[S3Server]:
    """Run minio with its objects under `home`; fails if `minio_program()` is None. The certificate is for the
    place's address.
    """
    with _running(_minio, home, certificate, place) as server:
        yield server


def minio_program() -> Path | None:
    """Return $MINIO, or minio from PATH or from where `go install` puts it."""
    found = program("minio", GO_BIN / "minio")
    return Path(found) if found is not None else None


needs_minio = pytest.mark.skipif(
    minio_program() is None, reason="there is no minio on PATH, in $MINIO or in ~/go/bin: make tools"
)


def _ministack(home: Path, host: str, port: int, certificate: Certificate | None) -> Program:
    env = {
        "BIND_HOST": host,
        "GATEWAY_PORT": str(port),
        "SERVICES": "s3,dynamodb,sts,secretsmanager,iam,lambda",
        "SFTP_ENABLED": "0",
        "IOT_MTLS_ENABLED": "0",
        "LOG_LEVEL": "WARNING",
        "TMPDIR": str(home),
        # When it starts and ends it stops every container that bears its label: not those of this machine.
        "DOCKER_HOST": f"unix://{home}/no-docker",
    }
    if certificate is not None:
        env |= {
            "USE_SSL": "1",
            "MINISTACK_SSL_CERT": str(certificate.chain),
            "MINISTACK_SSL_KEY": str(certificate.key),
        }
    env["PYTHONPATH"] = str(ROOT)
    return Program(
        "ministack", [sys.executable, "-m", "tests.fakes.iam"], env, "/_ministack/health", "test", "test"
    )


def _minio(home: Path, host: str, port: int, certificate: Certificate | None) -> Program:
    program, certs = minio_program(), home / "certs"
    assert program is not None, "there is no minio: mark the test `needs_minio`"
    certs.mkdir(exist_ok=True)
    if certificate is not None:
        shutil.copy(certificate.chain, certs / "public.crt")
        shutil.copy(certificate.key, certs / "private.key")
    env = {
        "MINIO_ROOT_USER": "minio-user",
        "MINIO_ROOT_PASSWORD": "minio-password",
        "MINIO_BROWSER": "off",
        "MINIO_UPDATE": "off",
    }
    command = [
        str(program),
        "server",
        "--quiet",
        "--certs-dir",
        str(certs),
        "--address",
        f"{host}:{port}",
        str(home / "objects"),
    ]
    # Not its `ready`, which is said before it can create a bucket.
    return Program(
        "minio", command, env, "/minio/health/cluster", env["MINIO_ROOT_USER"], env["MINIO_ROOT_PASSWORD"]
    )


Kind = Callable[[Path, str, int, Certificate | None], Program]


@contextmanager
def _running(kind: Kind, home: Path, certificate: Certificate | None, place: Place) -> Iterator[S3Server]:
    home.mkdir(parents=True, exist_ok=True)
    log = home / "server.log"
    # A port that was free a moment ago may be taken by now: then the server ends at once, and another port is
    # tried.
    for _ in range(STARTS_MAX):
        port = _free_port()
        program = kind(home, place.host, port, certificate)
        process = _start(program, place.prefix, home, log)
        try:
            url = f"{'https' if certificate else 'http'}://{place.host}:{port}"
            if _is_ready(process, url + program.health, certificate):
                authority = certificate.authority if certificate else None
                yield S3Server(
                    program.name, url, program.access_key, program.secret_key, process.pid, authority
                )
                return
        finally:
            _end(process)
    raise AssertionError(
        f"{program.name} did not start; it said: "
        f"{log.read_bytes()[-LOG_TAIL_BYTES:].decode(errors='replace')}"
    )


def _start(program: Program, prefix: tuple[str, ...], home: Path, log: Path) -> subprocess.Popen[bytes]:
    """Start the server from the calling thread, because it lives no longer than that thread."""
    command = [sys.executable, "-I", "-S", "-c", LAUNCH, str(os.getpid()), *prefix, *program.command]
    env = {"PATH": os.environ["PATH"], "HOME": str(home), **program.env}
    with log.open("ab") as output:
        return subprocess.Popen(
            command, env=env, cwd=home, stdin=subprocess.DEVNULL, stdout=output, stderr=output
        )


def _end(process: subprocess.Popen[bytes]) -> None:
    """Kill the server and what it started: a function of AWS that is answering a call would outlive it by all
    its retries.
    """
    with suppress(psutil.NoSuchProcess):
        server = psutil.Process(process.pid)
        server.suspend()  # so that it starts no more of them
        for child in server.children(recursive=True):
            with suppress(psutil.NoSuchProcess):
                child.kill()
    process.kill()
    process.wait()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _is_ready(process: subprocess.Popen[bytes], url: str, certificate: Certificate | None) -> bool:
    """Poll until the server reports that it is ready. Return False if it has ended or is not ready within
    `READY_S_MAX`.
    """
    end_s, pause = time.monotonic() + READY_S_MAX, threading.Event()
    while process.poll() is None and time.monotonic() < end_s:
        if _status(url, certificate) == http.HTTPStatus.OK:
            return True
        pause.wait(0.02)
    return False


def _status(url: str, certificate: Certificate | None) -> int | None:
    """Return the status of the response; None if the server does not answer yet."""
    at = urlsplit(url)
    context = certificate.client_context() if certificate else None
    asking = (
        http.client.HTTPSConnection(at.netloc, timeout=5, context=context)
        if context
        else http.client.HTTPConnection(at.netloc, timeout=5)
    )
    try:
        asking.request("GET", at.path)
        return asking.getresponse().status
    except (OSError, http.client.HTTPException):
        return None
    finally:
        asking.close()
