"""Checkpoints as one archive, made by somebody else: a .tar, .tar.gz or .tar.zst.

Python's tarfile takes an archive that ends in the middle, or a header that can not be read, for the end of it, and says nothing. Here only
the end mark is the end. What is unpacked shows up under its name when all of it is there.
"""

import gzip
import io
import shutil
import tarfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Self, cast

import zstandard

from prime_train.checkpoints.restore import DISK_SPARE_BYTES, Reported, unreported
from prime_train.core.manifest import FILES_MAX

MEMBERS_MAX = 2 * FILES_MAX
"""Folders and links count too."""
ENDINGS = (".tar.gz", ".tar.zst", ".tgz", ".tar")
_BLOCK_BYTES = 2**20


class ArchiveRefused(Exception):
    """It can not be unpacked; the message says why, and nothing of it is left."""


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
    target = hidden.parent / (stem_of(archive.name) if whole is content else whole.name)
    if target.exists() or target.is_symlink():
        if not replace:
            raise TargetExists(str(target))
        target.rename(hidden / "replaced")
    return whole.rename(target)


def _extract(archive: Path, folder: Path, members_max: int, progress: Reported) -> None:
    size = archive.stat().st_size
    try:
        with archive.open("rb") as file, _plain(file) as stream, tarfile.open(fileobj=stream, mode="r|", tarinfo=_Member) as tar:
            for count, member in enumerate(tar):
                if count >= members_max:
                    raise ArchiveRefused(f"{archive.name} has more than {members_max} members")
                _check_room(member, folder)
                tar.extract(member, folder, filter="data")
                progress(file.tell(), size)
            while stream.read(_BLOCK_BYTES):  # to the end, where gzip has its checksum
                pass
            progress(size, size)
    except tarfile.FilterError as error:
        raise ArchiveRefused(f"{archive.name} is not safe to unpack: {error}") from error
    except (tarfile.TarError, EOFError, gzip.BadGzipFile, zlib.error, zstandard.ZstdError) as error:
        raise ArchiveRefused(f"{archive.name} is cut off, damaged or no tar archive: {str(error)[:200]}") from error
    except OSError as error:
        raise ArchiveRefused(f"{archive.name} can not be unpacked here: {error}") from error


def _check_room(member: tarfile.TarInfo, folder: Path) -> None:
    free = shutil.disk_usage(folder).free
    if member.size + DISK_SPARE_BYTES > free:
        raise OSError(f"no room: {member.name} wants {member.size / 2**30:.2f} GiB, {free / 2**30:.2f} GiB free")


def _plain(file: IO[bytes]) -> IO[bytes]:
    """What is inside the compression, which is told by the first bytes: names lie."""
    head = file.read(4)
    file.seek(0)
    return next((opened(file) for magic, opened in _KINDS.items() if head.startswith(magic)), file)


def _unzstd(file: IO[bytes]) -> IO[bytes]:
    return io.BufferedReader(zstandard.ZstdDecompressor().stream_reader(file, read_across_frames=True))


_KINDS: dict[bytes, Callable[[IO[bytes]], IO[bytes]]] = {
    b"\x1f\x8b": lambda file: cast("IO[bytes]", gzip.GzipFile(fileobj=file, mode="rb")),
    b"\x28\xb5\x2f\xfd": _unzstd,
}


class _Member(tarfile.TarInfo):
    """Refuses every header but a good one and the end mark."""

    @classmethod
    def fromtarfile(cls, tar: tarfile.TarFile) -> Self:
        try:
            return super().fromtarfile(tar)
        except tarfile.EOFHeaderError:  # type: ignore[attr-defined] # its stubs leave the kinds of HeaderError out
            raise
        except tarfile.HeaderError as error:
            raise tarfile.ReadError(f"{error} at byte {tar.offset}") from error
