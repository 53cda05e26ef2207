"""Restore a checkpoint that was packed by hand."""

import shutil
import threading
from collections.abc import Callable, Mapping
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.buckets.open import open_bucket
from prime_train.buckets.port import Bucket
from prime_train.checkpoints.archive import ArchiveRefused, TargetExists, Unpacked, stage, unpack
from prime_train.checkpoints.progress import Progress
from prime_train.checkpoints.restore import DISK_MARGIN_BYTES, Reported
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit

LOOK_S = 0.2


def restore_archive(
    archive: str, folder: Path, environment: Mapping[str, str], *, replace: bool, progress: Progress
) -> Unpacked:
    """Unpack an archive into `folder` and return what was unpacked. `archive`: a path, or the URL of an
    object, which is first downloaded into `folder`, with the keys in `environment`. Raises UsageError if the
    archive is missing or invalid, or the target exists and `replace` is not set.
    """
    path, source = _local(archive), None
    if path is None:
        path, source = Path(unquote(urlsplit(archive).path)), _source(archive, environment)
    elif not path.is_file():
        raise UsageError(
            f"there is no archive {path}", fix="give a file, or a URL such as s3://bucket/path/run.tar.gz"
        )
    try:
        with stage(folder, path.name) as hidden:
            if source is not None:
                path = _fetch(*source, hidden / path.name, progress)
            with progress(f"unpacking {path.name}", path.stat().st_size) as report:
                return unpack(path, hidden, replace=replace, progress=report)
    except ArchiveRefused as error:
        raise UsageError(
            str(error), fix="no files were unpacked; pack or copy the archive again", code=Exit.FINDINGS
        ) from error
    except TargetExists as error:
        raise UsageError(
            f"{error} already exists",
            fix=Advice("restore into another folder, or ", Option(SettingAdvice.REPLACE)),
        ) from error


def _local(archive: str) -> Path | None:
    parts = urlsplit(archive)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(archive) if "://" not in archive else None


def _source(url: str, environment: Mapping[str, str]) -> tuple[Bucket, str]:
    """Return the bucket and the key of an object's URL. Raises UsageError if the URL has no key."""
    parts = urlsplit(url)
    key = unquote(parts.path).strip("/")
    if not key:
        raise UsageError(
            f"{url} names a bucket, but no object in it",
            fix="add the path, such as s3://bucket/path/run.tar.gz",
        )
    return open_bucket(urlunsplit((parts.scheme, parts.netloc, "", parts.query, "")), environment), key


def _fetch(bucket: Bucket, key: str, path: Path, progress: Progress) -> Path:
    stat = bucket.stat(key)
    if stat is None:
        raise UsageError(
            f"there is no {key} in the bucket", fix="check the object's key with a tool for buckets"
        )
    free = shutil.disk_usage(path.parent).free
    if stat.size + DISK_MARGIN_BYTES > free:
        message = (
            f"not enough disk space for {path.name}: {stat.size / 2**30:.2f} GiB "
            "needed, "
            f"{free / 2**30:.2f} GiB free"
        )
        raise UsageError(
            message,
            fix="free some space: the archive is downloaded first and then unpacked next to it",
            code=Exit.EXTERNAL_REFUSED,
        )
    with progress(f"downloading {path.name}", stat.size) as report:
        _watched(lambda: bucket.get_file(key, path), path.parent, stat.size, report)
    return path


def _watched(fetch: Callable[[], object], folder: Path, size: int, report: Reported) -> None:
    """Run `fetch` in a thread and report its progress by the size of the growing draft in `folder`, because a
    bucket reports none. On Ctrl-C the thread is not waited for.
    """
    fetching: Future[object] = Future()

    def work() -> None:
        try:
            fetching.set_result(fetch())
        except BaseException as error:
            fetching.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    while not wait([fetching], LOOK_S).done:
        with suppress(FileNotFoundError):
            report(sum(path.stat().st_size for path in folder.iterdir()), size)
    fetching.result()
