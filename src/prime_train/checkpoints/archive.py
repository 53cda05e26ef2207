"""Unpacking of checkpoints that others packed as one archive: .tar, .tar.gz or .tar.zst.

The unpacked folder gets its final name only when it is complete; `unpacking` makes sure that nothing is
written outside it.
"""

import gzip
import io
import shutil
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, cast

import zstandard

from prime_train.checkpoints.restore import DISK_MARGIN_BYTES, Reported, unreported
from prime_train.checkpoints.tar_reader import ArchiveBroken, Unsafe
from prime_train.checkpoints.unpacking import MEMBERS_MAX, unpack_stream
from prime_train.text.auto_run import summary
from prime_train.text.paths import violation_of_folder
from prime_train.text.safe import neutralized

ENDINGS = (".tar.gz", ".tar.zst", ".tgz", ".tar")


class ArchiveRefused(Exception):
    """The archive cannot be unpacked; the message gives the reason, and no part of it is left on disk."""


class TargetExists(Exception):
    """The target name is already taken; the existing file or folder was not touched."""


def stem_of(name: str) -> str:
    """Return the name without its archive ending: `run7` for `run7.tar.gz`."""
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)


@contextmanager
def stage(into: Path, name: str) -> Iterator[Path]:
    """Yield a hidden folder in `into` for files in transit. At the end it is removed, and so is `into` if it
    was created here and is empty.
    """
    made = not into.exists()
    into.mkdir(parents=True, exist_ok=True)
    hidden = into / f".prime-train-unpack-{name}"
    shutil.rmtree(hidden, ignore_errors=True)  # left by a process that was killed
    hidden.mkdir()
    try:
        yield hidden
    finally:
        shutil.rmtree(hidden, ignore_errors=True)
        if made:
            with suppress(OSError):
                into.rmdir()


@dataclass(frozen=True)
class Unpacked:
    """An archive that was unpacked. `folder`: the checkpoint's folder; `left_out`: members that programs
    would run by themselves, which were not written, each with the reason.
    """

    folder: Path
    left_out: Mapping[str, str]


def unpack(
    archive: Path,
    hidden: Path,
    *,
    replace: bool = False,
    members_max: int = MEMBERS_MAX,
    progress: Reported = unreported,
) -> Unpacked:
    """Unpack `archive` into the parent of `hidden`, with `hidden` as work space.

    If the archive has exactly one folder at its top, that is the checkpoint's folder; otherwise a folder
    named after the archive. `replace`: remove whatever has that name. Raises ArchiveRefused and TargetExists.
    `progress` is called with bytes of the archive.
    """
    content = hidden / "content"
    content.mkdir()
    left = _extract(archive, content, members_max, progress)
    if left and not any(path.is_file() for path in content.rglob("*")):
        raise ArchiveRefused(
            f"{archive.name} has nothing but files that programs would run by themselves: "
            f"{neutralized(summary(left))}"
        )
    inside = list(content.iterdir())
    top = inside[0] if len(inside) == 1 and inside[0].is_dir() and not inside[0].is_symlink() else content
    name = stem_of(archive.name) if top is content else top.name
    violation = violation_of_folder(name)
    if violation is not None:
        raise ArchiveRefused(f"{archive.name} would make the folder {name[:200]!r}, which {violation}")
    target = hidden.parent / name
    if target.exists() or target.is_symlink():
        if not replace:
            raise TargetExists(str(target))
        target.rename(hidden / "replaced")
    return Unpacked(top.rename(target), left)


def _extract(archive: Path, folder: Path, members_max: int, progress: Reported) -> Mapping[str, str]:
    size = archive.stat().st_size
    try:
        with archive.open("rb") as file, uncompressed(file) as stream:
            wrote = partial(_report, file, size, progress)
            left = unpack_stream(
                stream, folder, margin_bytes=DISK_MARGIN_BYTES, members_max=members_max, wrote=wrote
            )
            progress(size, size)
            return left
    except Unsafe as error:
        raise ArchiveRefused(f"{archive.name} is not safe to unpack: {error}") from error
    except BROKEN as error:
        raise ArchiveRefused(
            f"{archive.name} is truncated, damaged or not a tar archive: {str(error)[:200]}"
        ) from error
    except OSError as error:
        raise ArchiveRefused(f"{archive.name} cannot be unpacked here: {error}") from error


def _report(file: IO[bytes], size: int, progress: Reported) -> None:
    progress(file.tell(), size)


def uncompressed(file: IO[bytes]) -> IO[bytes]:
    """Return the uncompressed content; the compression is detected by the first bytes because file names can
    be wrong.
    """
    head = file.read(4)
    file.seek(0)
    return next((opened(file) for magic, opened in _KINDS.items() if head.startswith(magic)), file)


def _unzstd(file: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))


BROKEN = (ArchiveBroken, EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError)
"""Exceptions raised when an archive is cut off, damaged or not an archive."""

_KINDS: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda file: cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb")),
    b"\x28\xb5\x2f\xfd": _unzstd,
}
