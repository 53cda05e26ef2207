"""Objects by key, in any S3-compatible server.

Bulk data goes through obstore (Rust's object_store): of the libraries measured it costs the least CPU per
gigabyte, and it does not hold the interpreter's lock. Keys, region and endpoint are found by boto3, so that
profiles, roles and container credentials work as in any other tool.

Content is not covered by the signature but by a separate CRC-64/NVME checksum, which the server compares on
arrival: over TLS that is as safe, and takes a third of the CPU of a SHA-256. Servers that do not support it
are listed in `places`.
"""

import hashlib
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import boto3
import botocore.exceptions
import obstore
from botocore.config import Config
from obstore import exceptions as refused
from obstore.auth.boto3 import Boto3CredentialProvider
from obstore.store import S3Store

from prime_train.buckets.error_conversion import external_error, shortened
from prime_train.buckets.event_loop import await_here
from prime_train.buckets.location import BucketLocation
from prime_train.buckets.object_keys import check_key, folder_of
from prime_train.buckets.port import GET_BYTES_MAX, Content, Data, Stat
from prime_train.buckets.refreshing_credentials import Lent, RefreshedCredentials
from prime_train.errors import ObjectTooLarge, PermanentError, TemporaryError

if TYPE_CHECKING:
    from obstore import ObjectMeta
    from obstore.store import ClientConfig, RetryConfig, S3Config

CONNECT_S_MAX = 10
REQUEST_S_MAX = 300
"""Timeout in seconds of one request: 16 MiB at half a megabit per second."""
READ_S_MAX = 60
"""Seconds without a received byte after which a request fails."""
RETRIES_MAX = 8
RETRY_S_MAX = 240
BACKOFF_BASE = 4
"""Base of the exponential back-off between retries. Each pause is random, at most this many times the
previous one and at most 15 s. With this base, eight retries take half a minute; with the library's default of
2 they would take 2 s.
"""
IDLE_CONNECTIONS_MAX = 64
PART_BYTES = 16 * 2**20
PARTS_AT_ONCE = 4
LIST_PAGE = 1000
UPLOAD_URL_S = 900
CREDENTIALS_S = 300
"""Seconds after which credentials are requested again; boto3 renews them before they expire."""

_SIGNING = Config(
    signature_version="s3v4", s3={"addressing_style": "path"}, request_checksum_calculation="when_required"
)
"""How URLs are signed: in the form that all servers know."""
_LOST_RACE = (refused.AlreadyExistsError, refused.PreconditionError, refused.NotModifiedError)


class S3Bucket:
    """A bucket, or the part of it under a prefix. A temporary failure is retried `retries_max` times."""

    def __init__(
        self, place: BucketLocation, lent: Lent | None = None, *, retries_max: int = RETRIES_MAX
    ) -> None:
        self._place = place
        self._endpoint, self._region, self._store = _connect(place, lent, retries_max)

    def put(self, key: str, data: Data) -> None:
        check_key(key)
        with self._translated_errors("put", key):
            # obstore cannot borrow the memory of an empty buffer
            obstore.put(self._store, key, data if len(data) else b"", use_multipart=False)

    def put_if(self, key: str, data: bytes, *, tag: str | None) -> bool:
        """Write only if the object's tag is still `tag`. If the server has no conditional writes, the tag is
        read first, and of two concurrent writes one is lost.
        """
        check_key(key)
        if not self._place.conditional:
            now = self.get(key)
            if (now.tag if now is not None else None) != tag:
                return False
            self.put(key, data)
            return True
        with self._translated_errors("put", key):
            try:
                obstore.put(
                    self._store,
                    key,
                    data,
                    use_multipart=False,
                    mode="create" if tag is None else {"e_tag": tag},
                )
            except _LOST_RACE:
                return False
        return True

    def put_file(self, key: str, path: Path) -> None:
        """Upload the file, in parts if it is large. Raises PermanentError if the file does not exist or
        cannot be read.
        """
        check_key(key)
        try:
            with path.open("rb") as file, self._translated_errors("put", key):
                obstore.put(self._store, key, file, chunk_size=PART_BYTES, max_concurrency=PARTS_AT_ONCE)
        except OSError as error:
            raise PermanentError(f"{path}: {error.strerror or error}") from error

    def upload_url(self, key: str, size_bytes: int) -> str:
        """Return a URL at which an object of exactly that size may be uploaded with PUT, for `UPLOAD_URL_S`
        seconds and without keys.
        """
        check_key(key)
        with self._translated_errors("sign", key):
            # Not by obstore, whose signatures cover no length: whoever has the URL could upload as much as an
            # object can hold.
            client = session_of(self._place).client(
                "s3", endpoint_url=self._endpoint, region_name=self._region, config=_SIGNING
            )
            wanted = {
                "Bucket": self._place.bucket,
                "Key": f"{self._place.prefix}/{key}".lstrip("/"),
                "ContentLength": size_bytes,
            }
            return str(client.generate_presigned_url("put_object", Params=wanted, ExpiresIn=UPLOAD_URL_S))

    def get(self, key: str) -> Content | None:
        found = self._get(key)
        return Content(bytes(found[0]), found[1]) if found is not None else None

    def read(self, key: str) -> Data | None:
        found = self._get(key)
        return found[0] if found is not None else None

    def _get(self, key: str) -> tuple[memoryview, str] | None:
        check_key(key)
        try:
            with self._translated_errors("get", key):
                data, meta = await_here(self._response(key))
        except Missing:
            return None
        if len(data) != meta["size"]:
            raise TemporaryError(
                f"{self._place.url}: {key} has {meta['size']} bytes, but only {len(data)} of them arrived"
            )
        return data, meta["e_tag"] or hashlib.sha256(data).hexdigest()

    async def _response(self, key: str) -> "tuple[memoryview, ObjectMeta]":
        answer = await obstore.get_async(self._store, key)
        if answer.meta["size"] > GET_BYTES_MAX:
            raise ObjectTooLarge(
                f"{self._place.url}: {key} has {answer.meta['size']} bytes; at most {GET_BYTES_MAX} can be "
                "read at once"
            )
        return memoryview(await answer.bytes_async()), answer.meta

    def get_file(self, key: str, path: Path) -> bool:
        """Download the object to `path` atomically, and create the folder of `path` if it is missing. Return
        False if there is no such object.
        """
        check_key(key)
        draft = path.with_name(f".{secrets.token_hex(8)}.part")
        try:
            with self._translated_errors("get", key):
                answer = obstore.get(self._store, key)
                draft.parent.mkdir(parents=True, exist_ok=True)
                with draft.open("xb") as file:
                    for part in answer.stream(min_chunk_size=2**20):
                        file.write(part)
            if draft.stat().st_size != answer.meta["size"]:
                raise TemporaryError(
                    f"{self._place.url}: only {draft.stat().st_size} of {answer.meta['size']} bytes of {key} "
                    "arrived"
                )
            draft.replace(path)
        except Missing:
            return False
        except OSError as error:
            raise TemporaryError(f"{path}: {error.strerror or error}") from error
        finally:
            draft.unlink(missing_ok=True)
        return True

    def stat(self, key: str) -> Stat | None:
        check_key(key)
        try:
            with self._translated_errors("look at", key):
                meta = obstore.head(self._store, key)
        except Missing:
            return None
        return Stat(key, meta["size"], int(meta["last_modified"].timestamp()))

    def list(self, prefix: str) -> Iterator[Stat]:
        # The library lists folders; the rest of the prefix is filtered here.
        folder = folder_of(prefix)
        if folder is None:
            return
        with self._translated_errors("list", prefix):
            for page in obstore.list(self._store, prefix=folder or None, chunk_size=LIST_PAGE):
                for meta in page:
                    if meta["path"].startswith(prefix):
                        yield Stat(meta["path"], meta["size"], int(meta["last_modified"].timestamp()))

    def delete(self, key: str) -> None:
        check_key(key)
        try:
            with self._translated_errors("delete", key):
                obstore.delete(self._store, key)
        except Missing:
            return

    @contextmanager
    def _translated_errors(self, what: str, key: str) -> Iterator[None]:
        """Convert the library's exceptions to errors of `ports` that name the operation."""
        try:
            yield
        except FileNotFoundError as error:
            if "NoSuchBucket" not in str(error):
                raise Missing(key) from error
            raise self._error(what, key, error) from error
        except (
            refused.BaseError,
            botocore.exceptions.BotoCoreError,
            botocore.exceptions.ClientError,
        ) as error:
            raise self._error(what, key, error) from error

    def _error(self, what: str, key: str, error: Exception) -> PermanentError | TemporaryError:
        text = str(error)
        error.args = (shortened(text),)  # the library's error is chained to ours and printed with it
        return external_error(self._place.url, f"{what} {key}", text, endpoint=self._endpoint)


class Missing(Exception):
    """The object does not exist."""


def _connect(place: BucketLocation, lent: Lent | None, retries_max: int) -> tuple[str, str, S3Store]:
    """Return the endpoint's URL, the region and the store. Raises PermanentError if settings are missing or
    wrong.
    """
    try:
        # A session with dummy keys, used only to find the bucket's endpoint and region.
        session = (
            session_of(place)
            if lent is None
            else boto3.session.Session("none", "none", region_name=place.region)
        )
        client = session.client(
            "s3", endpoint_url=place.endpoint, region_name=place.region or session.region_name or "us-east-1"
        )
        endpoint, region = client.meta.endpoint_url, client.meta.region_name
        retry: RetryConfig = {
            "max_retries": retries_max,
            "retry_timeout": timedelta(seconds=RETRY_S_MAX),
            "backoff": {"base": BACKOFF_BASE},
        }
        store = S3Store(
            place.bucket,
            prefix=place.prefix or None,
            config=_config(place, endpoint, region),
            client_options=_client(place, endpoint),
            retry_config=retry,
            credential_provider=RefreshedCredentials(lent)
            if lent is not None
            else _found_keys(place, session),
        )
    except (botocore.exceptions.BotoCoreError, refused.BaseError, ValueError) as error:
        raise PermanentError(f"{place.url}: {str(error)[:300]}") from error
    return endpoint, region, store


def _found_keys(place: BucketLocation, session: boto3.session.Session) -> Boto3CredentialProvider:
    if session.get_credentials() is None:
        raise PermanentError(
            f"{place.url}: no keys were found; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or "
            "AWS_PROFILE"
        )
    return Boto3CredentialProvider(session, ttl=timedelta(seconds=CREDENTIALS_S))


def session_of(place: BucketLocation) -> boto3.session.Session:
    """Return a session with the keys given for this place, or else with those that AWS's tools would find."""
    if place.keys is not None:
        return boto3.session.Session(place.keys[0], place.keys[1], region_name=place.region)
    given = {
        name: place.environment.get(name)
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    }
    if given["AWS_ACCESS_KEY_ID"] and given["AWS_SECRET_ACCESS_KEY"]:
        return boto3.session.Session(
            *given.values(), region_name=place.region or place.environment.get("AWS_REGION")
        )
    return boto3.session.Session(profile_name=place.environment.get("AWS_PROFILE"), region_name=place.region)


def _config(place: BucketLocation, endpoint: str, region: str) -> "S3Config":
    # The library reads AWS's variables too; both names of the endpoint are set, so that no variable redirects
    # it elsewhere.
    config: S3Config = {"endpoint": endpoint, "aws_endpoint_url_s3": endpoint, "region": region}
    config["unsigned_payload"] = place.checksum != "signed"
    if place.checksum != "signed":
        config["checksum_algorithm"] = place.checksum.upper()
    if not place.bulk_delete:
        config["disable_bulk_delete"] = True
    return config


def _client(place: BucketLocation, endpoint: str) -> "ClientConfig":
    options: ClientConfig = {
        "allow_http": endpoint.startswith("http://"),
        "connect_timeout": timedelta(seconds=CONNECT_S_MAX),
        "timeout": timedelta(seconds=REQUEST_S_MAX),
        "read_timeout": timedelta(seconds=READ_S_MAX),
        "pool_max_idle_per_host": str(IDLE_CONNECTIONS_MAX),
    }
    authority = place.environment.get("AWS_CA_BUNDLE")
    if authority:
        try:
            options["root_certificate"] = Path(authority).read_bytes()
        except OSError as error:
            raise PermanentError(f"AWS_CA_BUNDLE is {authority}: {error.strerror or error}") from error
    return options
