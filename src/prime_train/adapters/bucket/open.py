"""From a URL to the bucket it names."""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote

from prime_train.adapters.bucket.folder import FolderBucket
from prime_train.adapters.bucket.lent import Lent
from prime_train.adapters.bucket.places import PLACES, place_of, split
from prime_train.ports import Bucket, PermanentError


def open_bucket(
    url: str, environment: Mapping[str, str] | None = None, lent: Lent | None = None, *, mark: str = "", make: bool = False
) -> Bucket:
    """The bucket at `url`: a folder (`file:///srv/bucket`) or a bucket that speaks S3 (see `places`).

    Keys and settings are read from `environment` (this process's own, when it is None) and from AWS's own files, as AWS's tools read
    them; where keys are `lent`, those count. PermanentError for a scheme that is not known, a path that is not absolute, and settings that
    are missing or make no sense. Nothing is asked of the bucket yet. A folder with a known `mark` is looked at whenever something is
    written or not found: where it does not bear that mark, OtherBucket is raised. A folder that is not there is made only with `make`.
    """
    scheme = split(url).scheme
    if scheme == "file":
        return FolderBucket(_folder(url), mark=mark, make=make)
    if scheme in PLACES:
        # Only here, for it takes a while, and a run on one machine never needs it.
        from prime_train.adapters.bucket.s3 import S3Bucket

        return S3Bucket(place_of(url, os.environ if environment is None else environment), lent)
    raise PermanentError(f"a bucket of scheme {scheme!r} is not known; known: file, {', '.join(sorted(PLACES))}")


def address(url: str) -> str:
    """One text for all the ways in which the address of a bucket can be written. PermanentError for a path that is no folder of this
    machine."""
    return _folder(url).as_uri() if split(url).scheme == "file" else url.rstrip("/")


def _folder(url: str) -> Path:
    parts = split(url)
    path = Path(unquote(parts.path))
    if parts.netloc not in ("", "localhost") or not path.is_absolute():
        raise PermanentError(f"the bucket {url.rpartition('@')[2]!r} is no folder of this machine; write file:///absolute/path")
    return path
