"""Buckets on the S3 servers of the tests."""

from collections.abc import Mapping

from prime_train.buckets.port import Bucket
from prime_train.errors import PermanentError
from tests.fakes.s3_servers import S3Server

BUCKET = "a-bucket"


def url_of(server: S3Server, prefix: str = "") -> str:
    return f"s3://{BUCKET}/{prefix}?endpoint={server.url}&region={server.region}"


def keys_for(server: S3Server) -> Mapping[str, str]:
    """Return the environment with which `open_bucket` may use the server."""
    keys = {"AWS_ACCESS_KEY_ID": server.access_key, "AWS_SECRET_ACCESS_KEY": server.secret_key}
    return keys | ({"AWS_CA_BUNDLE": str(server.authority)} if server.authority is not None else {})


def no_bucket() -> Bucket:
    """Open the bucket of a control plane that gets no commits."""
    raise PermanentError("this control plane has no bucket")
