"""The proxy passes everything unchanged, and fails exactly as configured; tested with boto3 and real
servers.
"""

import http.client
import os
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from botocore.exceptions import BotoCoreError, ClientError, ConnectionClosedError, SSLError

from tests.fakes.certificates import make_certificate
from tests.fakes.faulty_proxy import (
    ACCESS_DENIED,
    INTERNAL_ERROR,
    NO_SUCH_BUCKET,
    PERMANENT_REDIRECT,
    SERVICE_UNAVAILABLE,
    SLOW_DOWN,
    TIME_TOO_SKEWED,
    CutRequest,
    CutResponse,
    Delay,
    FaultyProxy,
    FlipRequest,
    FlipResponse,
    Strike,
    TruncateResponse,
)
from tests.fakes.http import ALWAYS, LoseResponse, Response
from tests.fakes.s3_servers import S3Server, minio, ministack, needs_minio

MIB = 1024 * 1024
KINDS = [pytest.param(ministack, id="ministack"), pytest.param(minio, id="minio", marks=needs_minio)]


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    with request.param(tmp_path_factory.mktemp("s3")) as running:
        running.create_bucket("bucket")
        yield running


@pytest.fixture
def proxy(server: S3Server) -> Iterator[FaultyProxy]:
    with FaultyProxy(server.url) as between:
        yield between
    assert not between.broken


@pytest.fixture(scope="module")
def direct(server: S3Server) -> Any:
    """Return a client that bypasses the proxy, so that it sees the server's content."""
    return server.client()


@pytest.fixture
def s3(server: S3Server, proxy: FaultyProxy) -> Any:
    return server.through(proxy.url).client()


def stored(direct: Any, key: str) -> bytes | None:
    try:
        data: bytes = direct.get_object(Bucket="bucket", Key=key)["Body"].read()
    except ClientError as error:
        assert error.response["Error"]["Code"] == "NoSuchKey"  # noqa: PT017 -- any other is an error of the test
        return None
    return data


def is_as_cut(server: S3Server, found: bytes | None, data: bytes, *, sent_bytes: int) -> bool:
    """Return whether nothing is stored of an interrupted body. ministack stores the received part, sooner or
    later.
    """
    return found is None or (
        server.name == "ministack" and len(found) <= sent_bytes and data.startswith(found)
    )


def refusal(ask: Callable[[], object]) -> tuple[int, str]:
    with pytest.raises(ClientError) as refused:
        ask()
    response: Any = refused.value.response
    return response["ResponseMetadata"]["HTTPStatusCode"], response["Error"]["Code"]


# ------------------------------------------------------------------------------------------------------------
# passing through


def test_an_object_passes_both_ways_as_it_is(s3: Any, direct: Any, proxy: FaultyProxy) -> None:
    data = os.urandom(3 * MIB + 1)
    s3.put_object(Bucket="bucket", Key="whole", Body=data)
    assert stored(direct, "whole") == data
    assert s3.get_object(Bucket="bucket", Key="whole")["Body"].read() == data
    put, got = proxy.exchanges(path="/bucket/whole")
    assert (put.method, put.request_bytes, put.status) == ("PUT", len(data), 200)
    assert (got.method, got.response_bytes, got.status) == ("GET", len(data), 200)


def test_a_range_a_head_and_an_empty_object_pass(s3: Any) -> None:
    s3.put_object(Bucket="bucket", Key="digits", Body=b"0123456789")
    s3.put_object(Bucket="bucket", Key="empty", Body=b"")
    assert s3.get_object(Bucket="bucket", Key="digits", Range="bytes=3-5")["Body"].read() == b"345"
    assert s3.head_object(Bucket="bucket", Key="digits")["ContentLength"] == 10
    assert s3.get_object(Bucket="bucket", Key="empty")["Body"].read() == b""
    s3.delete_object(Bucket="bucket", Key="digits")
    assert refusal(lambda: s3.get_object(Bucket="bucket", Key="digits")) == (404, "NoSuchKey")


def test_an_upload_in_parts_passes(s3: Any, direct: Any) -> None:
    parts = [os.urandom(5 * MIB), os.urandom(1000)]
    of = {"Bucket": "bucket", "Key": "parts"}
    of["UploadId"] = s3.create_multipart_upload(**of)["UploadId"]
    tags = [
        s3.upload_part(**of, PartNumber=number, Body=part)["ETag"]
        for number, part in enumerate(parts, start=1)
    ]
    joined = [{"PartNumber": number, "ETag": tag} for number, tag in enumerate(tags, start=1)]
    s3.complete_multipart_upload(**of, MultipartUpload={"Parts": joined})
    assert stored(direct, "parts") == b"".join(parts)


def test_a_list_in_pages_passes(s3: Any) -> None:
    for number in range(5):
        s3.put_object(Bucket="bucket", Key=f"list/{number}", Body=b"x")
    pages = s3.get_paginator("list_objects_v2").paginate(
        Bucket="bucket", Prefix="list/", PaginationConfig={"PageSize": 2}
    )
    assert [each["Key"] for page in pages for each in page["Contents"]] == [
        f"list/{number}" for number in range(5)
    ]


def test_many_requests_share_a_connection(server: S3Server, proxy: FaultyProxy) -> None:
    at = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=30)
    at.connect()
    first = at.sock
    for _ in range(3):
        at.request("GET", "/bucket/not-there")
        answer = at.getresponse()
        answer.read()
        assert answer.status in (403, 404)
        assert at.sock is first
    at.close()
    assert len(proxy.exchanges(path="not-there")) == 3


def test_clients_in_parallel_do_not_mix(server: S3Server, proxy: FaultyProxy, direct: Any) -> None:
    s3 = server.through(proxy.url).client()
    bodies = {f"parallel/{number}": os.urandom(200_000 + number) for number in range(8)}
    threads = [
        threading.Thread(target=s3.put_object, kwargs={"Bucket": "bucket", "Key": k, "Body": v})
        for k, v in bodies.items()
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {key: stored(direct, key) for key in bodies} == bodies
    assert {key: proxy.sent_bytes(f"/{key}$") for key in bodies} == {
        key: len(body) for key, body in bodies.items()
    }


def test_a_body_in_chunks_passes(proxy: FaultyProxy) -> None:
    at = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=30)
    at.request(
        "POST",
        "/bucket/chunks",
        body=iter([b"a" * 1000, b"b" * 24]),
        encode_chunked=True,
        headers={"Transfer-Encoding": "chunked"},
    )
    at.getresponse().read()
    at.close()
    (seen,) = proxy.exchanges(path="chunks")
    assert seen.request_bytes == 1024
    assert seen.status >= 400


def test_over_tls_the_proxy_answers_those_who_trust_it(server: S3Server, direct: Any, tmp_path: Path) -> None:
    certificate, other = make_certificate(tmp_path / "one"), make_certificate(tmp_path / "other")
    data = os.urandom(MIB + 1)
    with FaultyProxy(server.url, certificate) as proxy:
        s3 = server.through(proxy.url, certificate.authority).client()
        s3.put_object(Bucket="bucket", Key="tls", Body=data)
        assert s3.get_object(Bucket="bucket", Key="tls")["Body"].read() == data
        with pytest.raises(SSLError):
            server.through(proxy.url, other.authority).client().list_buckets()
        proxy.fail(CutRequest(1000), method="PUT")
        with pytest.raises((BotoCoreError, ConnectionError)):
            s3.put_object(Bucket="bucket", Key="tls-cut", Body=data)
        assert proxy.sent_bytes("tls-cut") == 1000
    assert stored(direct, "tls") == data
    assert is_as_cut(server, stored(direct, "tls-cut"), data, sent_bytes=1000)


# ------------------------------------------------------------------------------------------------------------
# rules


def test_only_the_requests_of_a_rule_meet_its_fault(s3: Any, proxy: FaultyProxy) -> None:
    proxy.fail(SLOW_DOWN, method="PUT", path="/blobs/", first=2, times=2)
    answers = []
    for key in ("blobs/1", "other/1", "blobs/2", "blobs/3", "blobs/4"):
        try:
            s3.put_object(Bucket="bucket", Key=key, Body=b"x")
            answers.append("stored")
        except ClientError as error:
            answers.append(error.response["Error"]["Code"])
    assert answers == ["stored", "stored", "SlowDown", "SlowDown", "stored"]
    assert [each.fault for each in proxy.exchanges(method="PUT")] == [None, None, SLOW_DOWN, SLOW_DOWN, None]
    assert s3.get_object(Bucket="bucket", Key="blobs/4")["Body"].read() == b"x"


def test_of_two_rules_the_older_comes_first_and_both_count(s3: Any, proxy: FaultyProxy) -> None:
    proxy.fail(SLOW_DOWN, method="PUT")
    proxy.fail(ACCESS_DENIED, method="PUT", times=2)
    codes = [refusal(lambda: s3.put_object(Bucket="bucket", Key="two", Body=b"x"))[1] for _ in range(2)]
    assert codes == ["SlowDown", "AccessDenied"]
    s3.put_object(Bucket="bucket", Key="two", Body=b"x")


def test_a_healed_wire_passes_again(s3: Any, proxy: FaultyProxy) -> None:
    proxy.fail(INTERNAL_ERROR, times=ALWAYS)
    assert refusal(lambda: s3.put_object(Bucket="bucket", Key="healed", Body=b"x")) == (500, "InternalError")
    assert refusal(lambda: s3.put_object(Bucket="bucket", Key="healed", Body=b"x")) == (500, "InternalError")
    proxy.heal()
    s3.put_object(Bucket="bucket", Key="healed", Body=b"x")


# ------------------------------------------------------------------------------------------------------------
# faults


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (INTERNAL_ERROR, (500, "InternalError")),
        (SERVICE_UNAVAILABLE, (503, "ServiceUnavailable")),
        (SLOW_DOWN, (503, "SlowDown")),
        (TIME_TOO_SKEWED, (403, "RequestTimeTooSkewed")),
        (ACCESS_DENIED, (403, "AccessDenied")),
        (NO_SUCH_BUCKET, (404, "NoSuchBucket")),
        (PERMANENT_REDIRECT, (301, "PermanentRedirect")),
        (Response(502, b"<html>Bad gateway</html>"), (502, "502")),
    ],
    ids=lambda value: value[1] if isinstance(value, tuple) else "",
)
def test_an_answer_of_its_own_is_heard_and_nothing_reaches_the_server(
    s3: Any, direct: Any, proxy: FaultyProxy, answer: Response, expected: tuple[int, str]
) -> None:
    key = f"answered/{expected[1]}"
    # boto3 follows a redirect once, which here leads to the same place.
    proxy.fail(answer, method="PUT", times=ALWAYS)
    assert refusal(lambda: s3.put_object(Bucket="bucket", Key=key, Body=b"x" * MIB)) == expected
    assert stored(direct, key) is None
    assert {each.status for each in proxy.exchanges(method="PUT")} == {expected[0]}


def test_a_client_that_asks_before_it_sends_is_answered_before_the_body(proxy: FaultyProxy, s3: Any) -> None:
    proxy.fail(SLOW_DOWN, method="PUT")
    refusal(lambda: s3.put_object(Bucket="bucket", Key="asked", Body=b"x" * MIB))
    assert proxy.sent_bytes("asked") == 0


def test_a_client_that_does_not_ask_is_answered_after_the_body_and_stays_connected(
    proxy: FaultyProxy,
) -> None:
    proxy.fail(SLOW_DOWN, method="PUT")
    at = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=30)
    at.request("PUT", "/bucket/unasked", body=b"x" * MIB)
    answer = at.getresponse()
    assert (answer.status, b"<Code>SlowDown</Code>" in answer.read()) == (503, True)
    before = at.sock
    at.request("GET", "/bucket/not-there")
    at.getresponse().read()
    assert at.sock is before
    at.close()
    assert proxy.sent_bytes("unasked") == MIB


@pytest.mark.parametrize("after_bytes", [0, 1, 300_000])
def test_a_request_is_cut_after_so_many_bytes(
    s3: Any, direct: Any, proxy: FaultyProxy, server: S3Server, after_bytes: int
) -> None:
    key, data = f"cut-{after_bytes}", os.urandom(MIB)
    proxy.fail(CutRequest(after_bytes), method="PUT")
    with pytest.raises((BotoCoreError, ConnectionError)):
        s3.put_object(Bucket="bucket", Key=key, Body=data)
    assert proxy.sent_bytes(key) == after_bytes
    assert is_as_cut(server, stored(direct, key), data, sent_bytes=after_bytes)
    s3.put_object(Bucket="bucket", Key=f"{key}-again", Body=b"again")
    assert stored(direct, f"{key}-again") == b"again"


def test_a_lost_response_hides_what_was_done(s3: Any, direct: Any, proxy: FaultyProxy) -> None:
    proxy.fail(LoseResponse(), method="PUT")
    with pytest.raises(ConnectionClosedError):
        s3.put_object(Bucket="bucket", Key="lost", Body=b"done all the same")
    assert stored(direct, "lost") == b"done all the same"
    assert [each.status for each in proxy.exchanges(path="lost")] == [0]


@pytest.mark.parametrize(("done", "found"), [(False, None), (True, b"done")])
def test_whoever_is_struck_knows_nothing_of_what_was_done(
    s3: Any, direct: Any, proxy: FaultyProxy, done: bool, found: bytes | None
) -> None:
    ports: list[int] = []

    def strike(port: int) -> bool:
        ports.append(port)
        assert stored(direct, f"struck-{done}") == found
        return True

    proxy.fail(Strike(strike, done), method="PUT")
    with pytest.raises((BotoCoreError, ConnectionError)):
        s3.put_object(Bucket="bucket", Key=f"struck-{done}", Body=b"done")
    assert len(ports) == 1
    assert stored(direct, f"struck-{done}") == found


def test_a_strike_at_somebody_else_lets_the_request_pass(s3: Any, direct: Any, proxy: FaultyProxy) -> None:
    proxy.fail(Strike(lambda port: False), method="PUT")
    s3.put_object(Bucket="bucket", Key="unharmed", Body=b"here")
    assert stored(direct, "unharmed") == b"here"


def test_a_response_that_is_cut_ends_in_an_error(s3: Any, direct: Any, proxy: FaultyProxy) -> None:
    direct.put_object(Bucket="bucket", Key="cut", Body=b"x" * MIB)
    proxy.fail(CutResponse(300_000), method="GET")
    with pytest.raises((BotoCoreError, ConnectionError)):
        s3.get_object(Bucket="bucket", Key="cut")["Body"].read()
    assert [each.response_bytes for each in proxy.exchanges(path="cut")] == [300_000]
    assert s3.get_object(Bucket="bucket", Key="cut")["Body"].read() == b"x" * MIB


def test_a_truncated_response_has_fewer_bytes_than_it_says(s3: Any, direct: Any, proxy: FaultyProxy) -> None:
    direct.put_object(Bucket="bucket", Key="short", Body=b"x" * MIB)
    proxy.fail(TruncateResponse(300_000), method="GET")
    body = s3.get_object(Bucket="bucket", Key="short")["Body"]
    assert body.read(300_000) == b"x" * 300_000
    with pytest.raises(BotoCoreError):
        body.read()


def test_a_hidden_truncation_is_seen_by_the_length_alone(
    proxy: FaultyProxy, server: S3Server, direct: Any
) -> None:
    direct.put_object(Bucket="bucket", Key="hidden", Body=b"0123456789")
    signed = direct.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "hidden"})
    at = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=30)
    proxy.fail(TruncateResponse(4, hidden=True), method="GET")
    path, host = re.sub("^http://[^/]+", "", signed), {"Host": urlsplit(server.url).netloc}
    for expected in (b"0123", b"0123456789"):
        at.request("GET", path, headers=host)
        answer = at.getresponse()
        assert (answer.status, answer.getheader("content-length"), answer.read()) == (
            200,
            str(len(expected)),
            expected,
        )
    at.close()


def test_a_byte_turned_on_the_way_up_is_caught_by_the_checksum(
    s3: Any, direct: Any, proxy: FaultyProxy
) -> None:
    proxy.fail(FlipRequest(300_000), method="PUT")
    status, code = refusal(lambda: s3.put_object(Bucket="bucket", Key="turned", Body=b"x" * MIB))
    assert status == 400
    assert code in ("BadDigest", "XAmzContentChecksumMismatch", "XAmzContentSHA256Mismatch")
    assert stored(direct, "turned") is None


def test_exactly_one_byte_is_turned_on_the_way_down(
    server: S3Server, proxy: FaultyProxy, direct: Any
) -> None:
    data = bytearray(os.urandom(MIB))
    direct.put_object(Bucket="bucket", Key="down", Body=bytes(data))
    signed = direct.generate_presigned_url("get_object", {"Bucket": "bucket", "Key": "down"})
    proxy.fail(FlipResponse(300_000), method="GET")
    at = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=30)
    at.request("GET", re.sub("^http://[^/]+", "", signed), headers={"Host": urlsplit(server.url).netloc})
    got = at.getresponse().read()
    at.close()
    data[300_000] ^= 0xFF
    assert got == bytes(data)


def test_a_delayed_request_is_as_it_was(s3: Any, direct: Any, proxy: FaultyProxy) -> None:
    proxy.fail(Delay(0.2), method="PUT")
    begin_s = time.monotonic()
    s3.put_object(Bucket="bucket", Key="delayed", Body=b"later")
    assert time.monotonic() - begin_s >= 0.2
    assert stored(direct, "delayed") == b"later"


def test_a_delay_does_not_outlast_the_proxy(server: S3Server) -> None:
    with FaultyProxy(server.url) as proxy:
        proxy.fail(Delay(86_400.0))
        at = http.client.HTTPConnection(urlsplit(proxy.url).netloc, timeout=30)
        at.request("GET", "/bucket/slow")
    # An answer, none, or a reset, by how far the request had come; but not after a day.
    with suppress(http.client.HTTPException, ConnectionError):
        at.getresponse()
    at.close()


def test_a_limit_holds_for_all_connections_together(server: S3Server, direct: Any) -> None:
    with FaultyProxy(server.url, bytes_per_s=4_000_000) as proxy:
        s3 = server.through(proxy.url).client()
        body = os.urandom(500_000)
        threads = [
            threading.Thread(
                target=s3.put_object, kwargs={"Bucket": "bucket", "Key": f"slow/{n}", "Body": body}
            )
            for n in range(4)
        ]
        begin_s = time.monotonic()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert time.monotonic() - begin_s >= 0.45
    assert all(stored(direct, f"slow/{number}") == body for number in range(4))
