"""`prime-train checkpoints - restore DIR --archive ARCHIVE`: restore a checkpoint that was packed by hand."""

import threading
from collections.abc import Callable
from concurrent.futures import Future, wait
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote, urlsplit, urlunsplit

import typer

from prime_train.checkpoints.archive import ArchiveRefused, TargetExists, stage, unpack
from prime_train.checkpoints.restore import DISK_SPARE_BYTES
from prime_train.cli.checkpoints.progress_bar import bar
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.checkpoints.restore import Reported
    from prime_train.ports import Bucket

LOOK_S = 0.2


def restore_archive(archive: str, folder: Path, *, replace: bool, as_json: bool) -> None:
    """Unpack an archive into `folder`. `archive`: a path, or the URL of an object, which is first downloaded into `folder`. Raises
    UsageError if the archive is missing or invalid, or the target exists and `replace` is not set."""
    import json

    path, source = _local(archive), None
    if path is None:
        path, source = Path(unquote(urlsplit(archive).path)), _source(archive)
    elif not path.is_file():
        raise UsageError(f"there is no archive {path}", fix="name a file, or a URL such as s3://bucket/path/run.tar.gz")
    try:
        with stage(folder, path.name) as hidden:
            if source is not None:
                path = _fetch(*source, hidden / path.name)
            with bar(f"unpacking {path.name}", path.stat().st_size) as progress:
                target = unpack(path, hidden, replace=replace, progress=progress)
    except ArchiveRefused as error:
        raise UsageError(str(error), fix="nothing of it was kept; pack or copy it again", code=Exit.FINDINGS) from error
    except TargetExists as error:
        raise UsageError(f"{error} is there already", fix="restore into another folder, or --replace") from error
    typer.echo(json.dumps({"folder": str(target), "archive": archive}, indent=2) if as_json else f"{target}: unpacked from {archive}")


def _local(archive: str) -> Path | None:
    parts = urlsplit(archive)
    if parts.scheme == "file":
        return Path(unquote(parts.path))
    return Path(archive) if "://" not in archive else None


def _source(url: str) -> "tuple[Bucket, str]":
    """Return the bucket and the key of an object's URL. Raises UsageError if the URL has no key."""
    from prime_train.adapters.bucket import open_bucket

    parts = urlsplit(url)
    key = unquote(parts.path).strip("/")
    if not key:
        raise UsageError(f"{url} names a bucket and no object in it", fix="add the path, such as s3://bucket/path/run.tar.gz")
    return open_bucket(urlunsplit((parts.scheme, parts.netloc, "", parts.query, ""))), key


def _fetch(bucket: "Bucket", key: str, path: Path) -> Path:
    import shutil

    stat = bucket.stat(key)
    if stat is None:
        raise UsageError(f"there is no {key} in the bucket", fix="look for the key with any tool for buckets")
    free = shutil.disk_usage(path.parent).free
    if stat.size + DISK_SPARE_BYTES > free:
        said = f"no room for {path.name}: {stat.size / 2**30:.2f} GiB wanted, {free / 2**30:.2f} GiB free"
        raise UsageError(said, fix="it is fetched first, and then unpacked beside it", code=Exit.OUTSIDE_REFUSED)
    with bar(f"fetching {path.name}", stat.size) as progress:
        _watched(lambda: bucket.get_file(key, path), path.parent, stat.size, progress)
    return path


def _watched(fetch: Callable[[], object], folder: Path, size: int, progress: "Reported") -> None:
    """Run `fetch` in a thread and report its progress by the size of the growing draft in `folder`, because a bucket reports none. On
    Ctrl-C the thread is not waited for."""
    fetching: Future[object] = Future()

    def work() -> None:
        try:
            fetching.set_result(fetch())
        except BaseException as error:
            fetching.set_exception(error)

    threading.Thread(target=work, daemon=True).start()
    while not wait([fetching], LOOK_S).done:
        with suppress(FileNotFoundError):
            progress(sum(path.stat().st_size for path in folder.iterdir()), size)
    fetching.result()
