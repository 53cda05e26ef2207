"""A URL at which a stranger may upload is for one object of one size."""

from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest

from prime_train.buckets.open import open_bucket, signed_upload
from prime_train.buckets.upload import upload
from prime_train.errors import PermanentError
from tests.buckets import keys_for, url_of
from tests.fakes.s3_servers import S3Server, needs_minio

KEY = "runs/tiny-abc/code.tar.gz"
KINDS = ["ministack", pytest.param("minio", marks=needs_minio)]


@pytest.fixture(params=KINDS)
def server(request: pytest.FixtureRequest) -> S3Server:
    there: S3Server = request.getfixturevalue(request.param)
    return there


@pytest.mark.parametrize("prefix", ["", "team/a"])
def test_code_of_the_named_size_arrives_where_the_bucket_looks_for_it(
    server: S3Server, prefix: str, tmp_path: Path
) -> None:
    signed = signed_upload(url_of(server, prefix), keys_for(server))
    assert signed is not None
    (tmp_path / "code").write_bytes(b"the code")

    upload(signed(KEY, 8), tmp_path / "code")

    found = open_bucket(url_of(server, prefix), keys_for(server)).get(KEY)
    assert found is not None
    assert found.data == b"the code"


def test_the_signature_covers_the_length(server: S3Server) -> None:
    signed = signed_upload(url_of(server), keys_for(server))
    assert signed is not None
    query = parse_qs(urlsplit(signed(KEY, 8)).query)
    assert query["X-Amz-SignedHeaders"] == ["content-length;host"]


@needs_minio
def test_more_than_the_named_size_is_refused(minio: S3Server, tmp_path: Path) -> None:
    signed = signed_upload(url_of(minio), keys_for(minio))
    assert signed is not None
    (tmp_path / "code").write_bytes(b"x" * 10_000)

    with pytest.raises(PermanentError, match="403"):
        upload(signed(KEY, 8), tmp_path / "code")
