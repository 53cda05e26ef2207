"""How a server's refusal is reported: whether to retry, what to do about it, and never with a secret."""

import socket
import traceback
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from prime_train.buckets.error_conversion import REFUSALS, external_error
from prime_train.buckets.location import place_of
from prime_train.buckets.s3 import PART_BYTES, S3Bucket
from prime_train.errors import ExternalError, PermanentError, TemporaryError
from tests.buckets import BUCKET, keys_for, url_of
from tests.fakes.certificates import make_certificate
from tests.fakes.faulty_proxy import (
    ACCESS_DENIED,
    NO_SUCH_BUCKET,
    PERMANENT_REDIRECT,
    SLOW_DOWN,
    TIME_TOO_SKEWED,
    FaultyProxy,
    s3_error,
)
from tests.fakes.http import ALWAYS, Response
from tests.fakes.s3_servers import S3Server, needs_minio

SIGNATURE = "5f1c9e0de55ad5b1fc1b1e5a1ab5f6d8d1f0f8a8"
KEY = "AKIAIOSFODNN7EXAMPLE"
"""Amazon's answer to a wrong secret. It contains everything needed to find the mistake, and to reuse the
request.
"""
TOLD_ALL = (
    f"<AWSAccessKeyId>{KEY}</AWSAccessKeyId><StringToSign>AWS4-HMAC-SHA256 20261121T000000Z</StringToSign>"
    f"<SignatureProvided>{SIGNATURE}</SignatureProvided>"
)

Ask = Callable[[S3Bucket], object]
ASKS: Mapping[str, Ask] = {
    "put": lambda bucket: bucket.put("k", b"x"),
    "put_if": lambda bucket: bucket.put_if("k", b"x", tag=None),
    "get": lambda bucket: bucket.get("k"),
    "list": lambda bucket: list(bucket.list("")),
    "delete": lambda bucket: bucket.delete("k"),
}

ANSWERS: Mapping[str, tuple[Response, type[ExternalError], str]] = {
    "no-right": (
        ACCESS_DENIED,
        PermanentError,
        "lacks permission; the keys need the permissions to get, put, list and delete",
    ),
    "no-bucket": (NO_SUCH_BUCKET, PermanentError, "no bucket with that name; create it"),
    "clock": (TIME_TOO_SKEWED, PermanentError, "clock is wrong; set it"),
    "redirect": (PERMANENT_REDIRECT, PermanentError, "another region; write ?region="),
    "region": (
        s3_error(
            400,
            "AuthorizationHeaderMalformed",
            "the region 'us-east-1' is wrong; expecting 'eu-west-3'",
            "<Region>eu-west-3</Region>",
        ),
        PermanentError,
        "another region; write ?region=",
    ),
    "wrong-key": (
        s3_error(403, "InvalidAccessKeyId", "no record", TOLD_ALL),
        PermanentError,
        "check AWS_ACCESS_KEY_ID",
    ),
    "wrong-secret": (
        s3_error(403, "SignatureDoesNotMatch", "no match", TOLD_ALL),
        PermanentError,
        "check AWS_SECRET_ACCESS_KEY",
    ),
    "expired": (
        s3_error(400, "ExpiredToken", "expired", TOLD_ALL),
        TemporaryError,
        "credentials have expired",
    ),
    "quota": (s3_error(403, "QuotaExceeded", "too much"), PermanentError, "the bucket is full"),
    "unknown-400": (
        s3_error(400, "SomethingNew", "never heard of", TOLD_ALL),
        PermanentError,
        "400 (SomethingNew, never heard of)",
    ),
    "unknown-418": (
        s3_error(418, "Teapot", "short and stout", TOLD_ALL),
        TemporaryError,
        "418 (Teapot, short and stout)",
    ),
    "no-xml": (
        Response(403, f"<html>{SIGNATURE}".encode()),
        PermanentError,
        "the access key is wrong or lacks permission",
    ),
    "long": (s3_error(400, "Long", "x" * 5000), PermanentError, "x" * 200 + ")"),
}


def reported(error: BaseException) -> str:
    """Return everything that a log would show of the error, and all other data attached to it."""
    shown = "".join(traceback.format_exception(error))
    seen: BaseException | None = error
    while seen is not None:
        shown += f"{seen!r} {seen}"
        seen = seen.__cause__ or seen.__context__
    return shown


def holds_no_secret(error: BaseException, server: S3Server) -> bool:
    return not [
        secret
        for secret in (server.secret_key, SIGNATURE, KEY, "StringToSign", "Signature=")
        if secret in reported(error)
    ]


@pytest.fixture(scope="module")
def server(ministack: S3Server) -> S3Server:
    """Return a server whose keys resemble no word of a message."""
    return S3Server("", ministack.url, "user-of-the-test", "wJalrXUtnFEMIK7MDENG", ministack.pid)


@pytest.fixture(scope="module")
def line(server: S3Server) -> Iterator[tuple[FaultyProxy, S3Bucket]]:
    with FaultyProxy(server.url) as proxy:
        yield proxy, opened(url_of(server.through(proxy.url)), keys_for(server))


def opened(url: str, environment: Mapping[str, str]) -> S3Bucket:
    return S3Bucket(place_of(url, environment), retries_max=1)


@pytest.mark.parametrize("answer", ANSWERS)
@pytest.mark.parametrize("ask", ASKS)
def test_a_refusal_says_what_to_do_and_tells_no_secret(
    server: S3Server, line: tuple[FaultyProxy, S3Bucket], ask: str, answer: str
) -> None:
    proxy, bucket = line
    message, kind, words = ANSWERS[answer]
    proxy.forget()
    proxy.fail(message, times=ALWAYS)
    with pytest.raises(kind) as refusal:
        ASKS[ask](bucket)
    assert words in str(refusal.value)
    assert f"s3://{BUCKET}/" in str(refusal.value)
    assert len(str(refusal.value)) < 500
    assert holds_no_secret(refusal.value, server)
    assert len(proxy.exchanges()) == 1, "asked again, though it was refused"


@pytest.mark.parametrize("answer", [ACCESS_DENIED, PERMANENT_REDIRECT, Response(400)])
def test_a_question_whose_answer_has_no_body_is_reported_too(
    line: tuple[FaultyProxy, S3Bucket], answer: Response
) -> None:
    proxy, bucket = line
    proxy.forget()
    proxy.fail(answer, method="HEAD")
    with pytest.raises(PermanentError, match=r"lacks permission|another region|answered 400"):
        bucket.stat("k")


@pytest.mark.parametrize("status", [409, 412])
@pytest.mark.parametrize("ask", [name for name in ASKS if name != "put_if"])
def test_a_conflict_where_nothing_was_conditional_is_a_failure_of_the_bucket(
    line: tuple[FaultyProxy, S3Bucket], ask: str, status: int
) -> None:
    proxy, bucket = line
    proxy.forget()
    proxy.fail(Response(status, b"odd"), times=ALWAYS)
    with pytest.raises(ExternalError):
        ASKS[ask](bucket)


def test_an_upload_in_parts_is_reported_by_what_went_wrong_or_by_the_right_that_it_lacks(
    line: tuple[FaultyProxy, S3Bucket], tmp_path: Path
) -> None:
    proxy, bucket = line
    (tmp_path / "tree").write_bytes(bytes(PART_BYTES + 1))
    proxy.forget()
    proxy.fail(SLOW_DOWN, method="PUT", times=ALWAYS)
    with pytest.raises(TemporaryError, match="SlowDown: the server asks for fewer requests"):
        bucket.put_file("tree", tmp_path / "tree")
    proxy.fail(ACCESS_DENIED, method="DELETE")
    with pytest.raises(PermanentError, match=r"lacks permission; .* and to abort multipart uploads"):
        bucket.put_file("tree", tmp_path / "tree")


# ---------------------------------------------------------------- from a real server, or none


@needs_minio
@pytest.mark.parametrize("ask", ASKS)
@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"AWS_ACCESS_KEY_ID": "nobody-at-all"}, "check AWS_ACCESS_KEY_ID"),
        ({"AWS_SECRET_ACCESS_KEY": "not-its-secret"}, "check AWS_SECRET_ACCESS_KEY"),
    ],
)
def test_wrong_keys_are_distinguished(
    minio: S3Server, ask: str, changes: Mapping[str, str], words: str
) -> None:
    with pytest.raises(PermanentError, match=words) as refusal:
        ASKS[ask](opened(url_of(minio), {**keys_for(minio), **changes}))
    assert "not-its-secret" not in reported(refusal.value)
    assert holds_no_secret(refusal.value, minio)


@needs_minio
@pytest.mark.parametrize("ask", ASKS)
def test_a_bucket_that_does_not_exist_is_no_empty_one(minio: S3Server, ask: str) -> None:
    with pytest.raises(PermanentError, match="no bucket with that name"):
        ASKS[ask](opened(url_of(minio).replace(BUCKET, "no-such-bucket"), keys_for(minio)))


@pytest.mark.parametrize("host", ["127.0.0.1", "nowhere.invalid"])
@pytest.mark.parametrize("ask", ASKS)
def test_an_endpoint_nobody_answers_at_may_answer_later(server: S3Server, ask: str, host: str) -> None:
    with socket.socket() as taken:  # bound and not listening: certainly nobody answers
        taken.bind(("127.0.0.1", 0))
        endpoint = f"http://{host}:{taken.getsockname()[1]}"
        with pytest.raises(
            TemporaryError, match=f"{endpoint} cannot be reached; check the endpoint"
        ) as failure:
            ASKS[ask](opened(f"s3://{BUCKET}?endpoint={endpoint}&region=us-east-1", keys_for(server)))
    assert holds_no_secret(failure.value, server)


def test_a_server_that_cannot_be_trusted_is_sent_nothing(server: S3Server, tmp_path: Path) -> None:
    with FaultyProxy(server.url, make_certificate(tmp_path / "theirs")) as proxy:
        stranger = server.through(proxy.url)
        other = server.through(proxy.url, make_certificate(tmp_path / "other").authority)
        for known in (stranger, other):
            with pytest.raises(
                PermanentError,
                match=r"certificate of https://.* is not trusted; set AWS_CA_BUNDLE to the file of its "
                r"certificate "
                r"authority",
            ):
                opened(url_of(known), keys_for(known)).put("k", b"x")
        assert proxy.exchanges() == []


def test_a_certificate_for_another_host_is_not_trusted(server: S3Server, tmp_path: Path) -> None:
    made = make_certificate(tmp_path, "elsewhere.example")
    with FaultyProxy(server.url, made) as proxy:
        known = server.through(proxy.url, made.authority)
        with pytest.raises(PermanentError, match="is not trusted"):
            opened(url_of(known), keys_for(known)).put("k", b"x")


# ---------------------------------------------------------------- the table


@pytest.mark.parametrize("code", [code for code in REFUSALS if not code.isdigit()])
def test_every_code_of_the_table_is_found_in_an_answer(code: str) -> None:
    text = (
        "Server returned non-2xx status code: 400 Bad Request: "
        f"<Error><Code>{code}</Code><Message>m</Message></Error>"
    )
    error = external_error("s3://b", "put k", text, endpoint="http://h")
    assert str(error) == f"s3://b: put k: {code}: {REFUSALS[code].advice}"
    assert isinstance(error, TemporaryError if REFUSALS[code].again else PermanentError)


@pytest.mark.parametrize(
    "text",
    ["", "\n", "something new", "x" * 9000, f"odd <Signature>{SIGNATURE}</Signature>", f"odd\n{SIGNATURE}"],
)
def test_words_that_are_not_known_are_cut_short_and_may_be_retried(text: str) -> None:
    error = external_error("s3://b", "put k", text, endpoint="http://h")
    assert isinstance(error, TemporaryError)
    assert len(str(error)) < 300
    assert SIGNATURE not in str(error)
