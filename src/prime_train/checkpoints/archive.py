"""Checkpoints as one archive, made by somebody else: a .tar, .tar.gz or .tar.zst.

What is unpacked shows up under its name when all of it is there; how it is written nowhere else is in `unpacking`.
"""

import gzip
import io
import shutil
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import IO, cast

import zstandard

from prime_train.checkpoints.restore import DISK_SPARE_BYTES, Reported, unreported
from prime_train.checkpoints.tar_reader import ArchiveBroken, Unsafe
from prime_train.checkpoints.unpacking import MEMBERS_MAX, unpack_stream
from prime_train.core.text.paths import violation_of_folder

ENDINGS = (".tar.gz", ".tar.zst", ".tgz", ".tar")


class ArchiveRefused(Exception):
    """It cannot be unpacked; the message says why, and nothing of it is left."""


class TargetExists(Exception):
    """There is something under that name already; it was not touched."""


def stem_of(name: str) -> str:
    """`run7` for `run7.tar.gz`."""
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)


@contextmanager
def stage(into: Path, name: str) -> Iterator[Path]:
    """A hidden folder in `into` for what is on its way, gone at the end; `into` too where it had to be made and stayed empty."""
    made = not into.exists()
    into.mkdir(parents=True, exist_ok=True)
    hidden = into / f".prime-train-unpack-{name}"
    shutil.rmtree(hidden, ignore_errors=True)  # of one that was killed
    hidden.mkdir()
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        if made:
            with suppress(OSError):
                into.rmdir()


def unpack(archive: Path, hidden: Path, *, replace: bool = False, members_max: int = MEMBERS_MAX, progress: Reported = unreported) -> Path:
    """Unpacks into the folder that `hidden` is in, by way of it, and returns the checkpoint's folder there.

    That is the one folder in the archive, if all of it is inside one, else one named as the archive. `replace`: whatever has that name
    goes. Raises ArchiveRefused and TargetExists. `progress` is told bytes of the archive.
    """
    content = hidden / "content"
    content.mkdir()
    _extract(archive, content, members_max, progress)
    inside = list(content.iterdir())
    whole = inside[0] if len(inside) == 1 and inside[0].is_dir() and not inside[0].is_symlink() else content
    name = stem_of(archive.name) if whole is content else whole.name
    violation = violation_of_folder(name)
    if violation is not None:
        raise ArchiveRefused(f"{archive.name} would make the folder {name[:200]!r}, which {violation}")
    target = hidden.parent / name
    if target.exists() or target.is_symlink():
        if not replace:
            raise TargetExists(str(target))
        target.rename(hidden / "replaced")
    return whole.rename(target)


def _extract(archive: Path, folder: Path, members_max: int, progress: Reported) -> None:
    size = archive.stat().st_size
    try:
        with archive.open("rb") as file, uncompressed(file) as stream:
            wrote = partial(_report, file, size, progress)
            unpack_stream(stream, folder, spare_bytes=DISK_SPARE_BYTES, members_max=members_max, wrote=wrote)
            progress(size, size)
    except Unsafe as error:
        raise ArchiveRefused(f"{archive.name} is not safe to unpack: {error}") from error
    except BROKEN as error:
        raise ArchiveRefused(f"{archive.name} is cut off, damaged or no tar archive: {str(error)[:200]}") from error
    except OSError as error:
        raise ArchiveRefused(f"{archive.name} cannot be unpacked here: {error}") from error


def _report(file: IO[bytes], size: int, progress: Reported) -> None:
    progress(file.tell(), size)


def uncompressed(file: IO[bytes]) -> IO[bytes]:
    """What is inside the compression, which is told by the first bytes: names lie."""
    head = file.read(4)
    file.seek(0)
    return next((opened(file) for magic, opened in _KINDS.items() if head.startswith(magic)), file)


def _unzstd(file: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))


BROKEN = (ArchiveBroken, EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError)
"""What reading an archive raises that is cut off, damaged or none."""

_KINDS: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda file: cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb")),
    b"\x28\xb5\x2f\xfd": _unzstd,
}
