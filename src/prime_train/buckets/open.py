"""Opens the bucket that a URL names."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from urllib.parse import unquote

from prime_train.buckets.folder import FolderBucket
from prime_train.buckets.location import PLACES, place_of, split
from prime_train.buckets.port import Bucket
from prime_train.buckets.refreshing_credentials import Lent
from prime_train.errors import PermanentError


def open_bucket(
    url: str,
    environment: Mapping[str, str] | None = None,
    lent: Lent | None = None,
    *,
    mark: str = "",
    make: bool = False,
) -> Bucket:
    """Return the bucket at `url`: a folder (`file:///srv/bucket`) or an S3-compatible bucket (see `places`).

    Keys and settings are read from `environment` (this process's own if None) and from AWS's own files, as
    AWS's tools do; `lent` keys take precedence. Raises PermanentError for an unknown scheme, a path that is
    not absolute, and settings that are missing or invalid. No request is sent yet. A folder with a known
    `mark` is checked whenever something is written or not found: OtherBucket is raised if it does not bear
    that mark. A missing folder is created only with `make`.
    """
    scheme = split(url).scheme
    if scheme == "file":
        return FolderBucket(_folder(url), mark=mark, make=make)
    if scheme in PLACES:
        # Imported only here: it is slow, and a run on one machine never needs it.
        from prime_train.buckets.s3 import S3Bucket

        return S3Bucket(place_of(url, os.environ if environment is None else environment), lent)
    raise PermanentError(
        f"a bucket of scheme {scheme!r} is not known; known: file, {', '.join(sorted(PLACES))}"
    )


def signed_upload(url: str, environment: Mapping[str, str]) -> Callable[[str, int], str] | None:
    """Return a function from a key and a size in bytes to a URL at which an object of that size may be
    uploaded for some minutes by whoever has it; None for a folder.
    """
    if split(url).scheme not in PLACES:
        return None

    def signed(key: str, size_bytes: int) -> str:
        from prime_train.buckets.s3 import S3Bucket

        return S3Bucket(place_of(url, environment)).upload_url(key, size_bytes)

    return signed


def address(url: str) -> str:
    """Return the canonical form of a bucket's address. Raises PermanentError for a path that is not a folder
    of this machine.
    """
    return _folder(url).as_uri() if split(url).scheme == "file" else url.rstrip("/")


def _folder(url: str) -> Path:
    parts = split(url)
    path = Path(unquote(parts.path))
    if parts.netloc not in ("", "localhost") or not path.is_absolute():
        raise PermanentError(
            f"the bucket {url.rpartition('@')[2]!r} is not a folder on this machine; write "
            "file:///absolute/path"
        )
    return path
