"""Requests to AWS's services without boto3: signed as boto3 signs them, and responses read completely or not at all."""

import contextlib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

import botocore.auth
import botocore.awsrequest
import botocore.credentials
import pytest

from prime_train.adapters.aws_http.connection import BODY_BYTES_MAX, HEAD_BYTES_MAX, Connection, ProtocolError, trusted
from prime_train.adapters.aws_http.service import Service, Unanswered
from prime_train.adapters.aws_http.signature import Signer
from tests.fakes.certificates import Certificate, make_certificate
from tests.fakes.http import Response, ScriptedServer

KEYS = {"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "a-secret-value"}
REGION = "eu-central-1"


def requested(endpoint: str) -> tuple[int, bytes]:
    service = Service("lambda", KEYS, REGION, endpoint, connect_s=5.0, answer_s=5.0)
    try:
        message = service.ask("/", {}, b"")
        return message.status, message.body
    finally:
        service.close()


# ---------------------------------------------------------------------------------------------------------------------- signatures


@pytest.mark.parametrize("token", ["", "a/session+token=="])
@pytest.mark.parametrize(
    ("name", "path", "headers", "body"),
    [
        ("dynamodb", "/", {"content-type": "application/x-amz-json-1.0", "x-amz-target": "DynamoDB_20120810.UpdateItem"}, '{"Key":"ü"}'),
        ("lambda", "/2015-03-31/functions/a-watcher/invocations", {"x-amz-invocation-type": "Event"}, "{}"),
        ("sts", "/", {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}, "Action=AssumeRole&Version=2011-06-15"),
    ],
)
def test_questions_are_signed_as_amazons_library_signs_them(token: str, name: str, path: str, headers: dict[str, str], body: str) -> None:
    host, data = f"{name}.{REGION}.amazonaws.com", body.encode()
    theirs = botocore.awsrequest.AWSRequest("POST", f"https://{host}{path}", headers=dict(headers), data=data)
    keys = botocore.credentials.Credentials(*KEYS.values(), token or None)
    botocore.auth.SigV4Auth(keys, name, REGION).add_auth(theirs)
    at_s = datetime.strptime(theirs.context["timestamp"], "%Y%m%dT%H%M%SZ").replace(tzinfo=UTC).timestamp()
    signer = Signer(KEYS | ({"AWS_SESSION_TOKEN": token} if token else {}), REGION, name)
    ours = signer.headers(host, path, headers, data, at_s=at_s)
    assert ours["authorization"] == theirs.headers["Authorization"]
    assert ours.get("x-amz-security-token", "") == token


def test_each_day_has_a_signature_of_its_own() -> None:
    signer = Signer(KEYS, REGION, "dynamodb")
    first, again, next_day = (signer.headers("h", "/", {}, b"", at_s=at_s)["authorization"] for at_s in (0.0, 0.0, 86_400.0))
    assert first == again
    assert next_day == Signer(KEYS, REGION, "dynamodb").headers("h", "/", {}, b"", at_s=86_400.0)["authorization"] != first


# ------------------------------------------------------------------------------------------------------------------------- answers


def secured(requested: socket.socket, certificate: Certificate | None) -> socket.socket:
    return requested if certificate is None else certificate.server_context().wrap_socket(requested, server_side=True)


@contextmanager
def saying(*pieces: bytes, certificate: Certificate | None = None) -> Iterator[str]:
    """Run a server that answers its first request with these pieces, and then closes the connection."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            requested, _ = listener.accept()
            with contextlib.suppress(ssl.SSLError, ConnectionError), secured(requested, certificate) as requested:
                requested.recv(65_536)
                for piece in pieces:
                    requested.sendall(piece)

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield f"http{'s' if certificate else ''}://localhost:{listener.getsockname()[1]}"
        finally:
            thread.join()


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("pieces", "status", "body"),
    [
        ([OK + b"Content-Length: 2\r\n\r\nhi"], 200, b"hi"),
        ([b"HTTP/1.1 4", b"03 No\r\ncontent-len", b"gth:  2\r\n\r", b"\nh", b"i"], 403, b"hi"),
        ([OK + b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\nA;x=y\r\n0123456789\r\n0\r\ntrailer: x\r\n\r\n"], 200, b"hi0123456789"),
        ([b"HTTP/1.0 200 OK\r\n\r\nto the", b" end"], 200, b"to the end"),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], 204, b""),
        ([b"HTTP/1.1 202\r\ncontent-length: 0\r\ncontent-length: 0\r\n\r\n"], 202, b""),
    ],
    ids=["a length", "torn", "pieces", "to the end", "nothing", "the same twice"],
)
def test_an_answer_is_read_to_its_end(pieces: list[bytes], status: int, body: bytes) -> None:
    with saying(*pieces) as url:
        assert requested(url) == (status, body)


@pytest.mark.parametrize(
    "answer",
    [
        b"",
        b"HTTP/1.1 200 OK\r\n",
        OK + b"content-length: 9\r\n\r\nhi",
        OK + b"content-length: -1\r\n\r\n",
        OK + b"content-length: 1_0\r\n\r\n0123456789",
        OK + b"content-length: 2\r\ncontent-length: 3\r\n\r\nabc",
        OK + b"content-length: 2\r\ntransfer-encoding: chunked\r\n\r\n0\r\n\r\n",
        OK + b"transfer-encoding: gzip\r\n\r\nhi",
        OK + b"transfer-encoding: chunked\r\n\r\n2\r\nhiX\r\n0\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n+2\r\nhi\r\n0\r\n\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n2\r\nhi\r\n",
        OK + b"transfer-encoding: chunked\r\n\r\n0\r\n" + b"a: b\r\n" * 99,
        OK + b"no header\r\n\r\n",
        OK + b"content-length : 2\r\n\r\nhi",
        OK + f"content-length: {BODY_BYTES_MAX + 1}\r\n\r\n".encode(),
        OK + b"x: " + b"y" * (HEAD_BYTES_MAX + 70_000),
        b"HTTP/2 200\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"SSH-2.0-x\r\n\r\n",
    ],
    ids=lambda answer: repr(answer[:60]),
)
def test_what_is_no_complete_answer_is_none(answer: bytes) -> None:
    with saying(answer) as url, pytest.raises(Unanswered, match="ProtocolError"):
        requested(url)


def test_nobody_there_is_no_answer() -> None:
    with pytest.raises(Unanswered, match="ConnectionRefusedError"):
        requested("http://127.0.0.1:9")


def test_a_connection_is_retried_unless_the_server_leaves_it() -> None:
    with ScriptedServer(Response(200, b"a", headers={"connection": "keep-alive"})) as server:
        host = server.url.removeprefix("http://")
        connection = Connection(host, is_tls=False, connect_s=5.0, answer_s=5.0)
        assert connection.post("/", {"host": host}, b"1")[:3] == (200, b"a", True)
        connection.close()
    for tail in (b"connection: close\r\n\r\na", b"\r\nab"):
        with saying(OK + b"content-length: 1\r\n" + tail) as url:
            connection = Connection(url.removeprefix("http://"), is_tls=False, connect_s=5.0, answer_s=5.0)
            assert connection.post("/", {}, b"")[:3] == (200, b"a", False)
            connection.close()


@pytest.fixture
def trust(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[Certificate], None]]:
    """Set the certificate authorities that the system trusts during this test."""

    def trust_only(certificate: Certificate) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate.authority))
        trusted.cache_clear()

    yield trust_only
    trusted.cache_clear()


def test_a_server_that_the_system_trusts_is_queried(tmp_path: Path, trust: Callable[[Certificate], None]) -> None:
    certificate = make_certificate(tmp_path)
    trust(certificate)
    with saying(OK + b"content-length: 2\r\n\r\nhi", certificate=certificate) as url:
        assert requested(url) == (200, b"hi")


def test_a_server_of_another_name_or_authority_is_sent_nothing(tmp_path: Path, trust: Callable[[Certificate], None]) -> None:
    elsewhere, stranger = make_certificate(tmp_path / "a", "elsewhere.example"), make_certificate(tmp_path / "b")
    trust(elsewhere)
    for certificate in (elsewhere, stranger, None):
        with saying(b"", certificate=certificate) as url, pytest.raises(Unanswered, match="SSL"):
            requested(url.replace("http:", "https:"))


def test_an_answer_that_does_not_come_is_not_waited_for() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        host = f"127.0.0.1:{listener.getsockname()[1]}"
        connection = Connection(host, is_tls=False, connect_s=5.0, answer_s=0.01)
        with pytest.raises(TimeoutError):
            connection.post("/", {}, b"")
        connection.close()


def test_garbled_is_distinguished_from_what_the_network_does() -> None:
    assert not issubclass(ProtocolError, OSError)
