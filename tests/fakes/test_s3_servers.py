"""What tests rely on in the S3 servers, checked with boto3."""

import base64
import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import psutil
import pytest
from botocore.exceptions import ClientError, SSLError

from tests.fakes.certificates import Certificate, make_certificate
from tests.fakes.s3_servers import S3Server, minio, ministack, needs_minio
from tests.waiting import await_true

MIB = 1024 * 1024
ROOT = Path(__file__).resolve().parents[2]
Kind = Callable[[Path, Certificate | None], AbstractContextManager[S3Server]]
KINDS = [pytest.param(ministack, id="ministack"), pytest.param(minio, id="minio", marks=needs_minio)]


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with request.param(tmp_path_factory.mktemp("s3"), None) as running:
        running.create_bucket("bucket")
        yield running


@pytest.fixture(scope="module")
def strict(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with minio(tmp_path_factory.mktemp("strict")) as running:
        running.create_bucket("bucket")
        yield running


def refusal(ask: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(ClientError) as refused:
        ask()
    response: Any = refused.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


def is_over(process: psutil.Process) -> bool:
    """Return whether the process has ended, also if its exit status was not read yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_an_object_comes_back_as_it_was_put(server: S3Server) -> None:
    data = os.urandom(3 * MIB)
    server.client().put_object(Bucket="bucket", Key="some/key", Body=data)
    assert server.client().get_object(Bucket="bucket", Key="some/key")["Body"].read() == data


def test_a_server_listens_on_loopback_only(server: S3Server) -> None:
    at = {
        connection.laddr.ip
        for connection in psutil.Process(server.pid).net_connections("tcp")
        if connection.status == psutil.CONN_LISTEN
    }
    assert at
    assert at <= {"127.0.0.1", "::1"}


def test_an_object_is_written_once_where_there_must_be_none(server: S3Server) -> None:
    s3 = server.client()
    s3.put_object(Bucket="bucket", Key="once", Body=b"first", IfNoneMatch="*")
    assert refusal(lambda: s3.put_object(Bucket="bucket", Key="once", Body=b"second", IfNoneMatch="*")) == (
        412,
        "PreconditionFailed",
    )
    assert s3.get_object(Bucket="bucket", Key="once")["Body"].read() == b"first"


def test_an_object_is_replaced_only_where_it_is_what_was_read(server: S3Server) -> None:
    s3 = server.client()
    read = s3.put_object(Bucket="bucket", Key="tagged", Body=b"first")["ETag"]
    s3.put_object(Bucket="bucket", Key="tagged", Body=b"second", IfMatch=read)
    assert refusal(lambda: s3.put_object(Bucket="bucket", Key="tagged", Body=b"third", IfMatch=read)) == (
        412,
        "PreconditionFailed",
    )
    assert refusal(lambda: s3.put_object(Bucket="bucket", Key="missing", Body=b"third", IfMatch=read)) == (
        404,
        "NoSuchKey",
    )


def test_a_list_comes_in_pages_and_in_order(server: S3Server) -> None:
    s3 = server.client()
    for number in (4, 2, 0, 3, 1):
        s3.put_object(Bucket="bucket", Key=f"list/{number}", Body=b"x")
    pages = list(
        s3.get_paginator("list_objects_v2").paginate(
            Bucket="bucket", Prefix="list/", PaginationConfig={"PageSize": 2}
        )
    )
    assert [[each["Key"] for each in page["Contents"]] for page in pages] == [
        ["list/0", "list/1"],
        ["list/2", "list/3"],
        ["list/4"],
    ]


def test_parts_are_listed_and_joined(server: S3Server) -> None:
    s3 = server.client()
    parts = [os.urandom(5 * MIB), os.urandom(1000)]
    of = {"Bucket": "bucket", "Key": "parts"}
    of["UploadId"] = s3.create_multipart_upload(**of)["UploadId"]
    for number, part in enumerate(parts, start=1):
        s3.upload_part(**of, PartNumber=number, Body=part)
    listed = s3.list_parts(**of)["Parts"]
    assert [(part["PartNumber"], part["Size"]) for part in listed] == [(1, 5 * MIB), (2, 1000)]
    s3.complete_multipart_upload(
        **of, MultipartUpload={"Parts": [{"PartNumber": p["PartNumber"], "ETag": p["ETag"]} for p in listed]}
    )
    assert s3.get_object(Bucket="bucket", Key="parts")["Body"].read() == b"".join(parts)


def test_a_wrong_content_md5_is_refused(server: S3Server) -> None:
    wrong = base64.b64encode(hashlib.md5(b"another body").digest()).decode()
    assert refusal(
        lambda: server.client().put_object(Bucket="bucket", Key="wrong", Body=b"x", ContentMD5=wrong)
    ) == (400, "BadDigest")


@needs_minio
@pytest.mark.parametrize(
    "checksum",
    [
        {"ChecksumSHA256": base64.b64encode(hashlib.sha256(b"another body").digest()).decode()},
        {"ChecksumCRC64NVME": "AAAAAAAAAAA="},
        {"ChecksumCRC32C": "AAAAAA=="},
    ],
    ids=lambda checksum: next(iter(checksum)),
)
def test_a_wrong_checksum_is_refused_by_minio(strict: S3Server, checksum: dict[str, str]) -> None:
    s3 = strict.client()
    assert refusal(lambda: s3.put_object(Bucket="bucket", Key="checked", Body=b"x", **checksum)) == (
        400,
        "XAmzContentChecksumMismatch",
    )
    assert s3.list_objects_v2(Bucket="bucket", Prefix="checked")["KeyCount"] == 0


@needs_minio
def test_a_wrong_secret_is_refused_by_minio(strict: S3Server) -> None:
    stranger = S3Server("stranger", strict.url, strict.access_key, "another secret", strict.pid)
    assert refusal(lambda: stranger.client().list_objects_v2(Bucket="bucket")) == (
        403,
        "SignatureDoesNotMatch",
    )


@pytest.mark.parametrize("kind", KINDS)
def test_over_tls_only_a_client_that_knows_the_authority_is_served(kind: Kind, tmp_path: Path) -> None:
    with kind(tmp_path / "s3", make_certificate(tmp_path / "certificate")) as server:
        assert server.url.startswith("https://")
        server.create_bucket("bucket")
        other = make_certificate(tmp_path / "other")
        with pytest.raises(SSLError):
            server.through(server.url, other.authority).client().list_buckets()


@pytest.mark.parametrize("kind", KINDS)
def test_a_server_ends_with_its_block(kind: Kind, tmp_path: Path) -> None:
    with kind(tmp_path, None) as server:
        assert psutil.pid_exists(server.pid)
    assert not psutil.pid_exists(server.pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells a child of its parent's end")
@pytest.mark.parametrize("kind", KINDS)
def test_a_server_ends_when_the_process_that_wanted_it_is_killed(kind: Kind, tmp_path: Path) -> None:
    started = f"""
from pathlib import Path
from tests.fakes.s3_servers import minio, ministack
with {kind.__name__}(Path({str(tmp_path)!r})) as server:
    print(server.pid, flush=True)
    input()
"""
    with subprocess.Popen(
        [sys.executable, "-c", started], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as wanting:
        assert wanting.stdout is not None
        server = psutil.Process(int(wanting.stdout.readline()))
        wanting.send_signal(signal.SIGKILL)
    await_true("the server is gone", lambda: is_over(server))
