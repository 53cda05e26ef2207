"""Files written into a folder for the user, and never outside it.

A machine chose their paths, and other programs may change the folder meanwhile. So every folder and file is
opened relative to its parent's descriptor, and no link is followed. A file appears under its name only when
it is complete.
"""

import os
import secrets
import shutil
import stat
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from functools import partial
from pathlib import Path, PurePosixPath

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.buckets.port import Data
from prime_train.checkpoints.hashing import digest_of
from prime_train.checkpoints.manifest import CHUNK_BYTES
from prime_train.checkpoints.parallel import in_parallel
from prime_train.checkpoints.progress import Progress, silent
from prime_train.checkpoints.restore import DISK_MARGIN_BYTES, Reported
from prime_train.checkpoints.tar_reader import Unsafe
from prime_train.checkpoints.unpacking import opened_folder
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.text.safe import neutralized

SHOWN_MAX = 5
WORKERS = 8
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_OLD = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC


@dataclass(frozen=True)
class WantedFile:
    """A file to write. `digests`: those of its chunks, by which an existing file with the same content is
    recognised; None: the file is always written. `content` yields its content. `part_of`: the output whose
    earlier rows it has; empty: it is an output itself.
    """

    path: str
    attempt: int
    step: int | None
    size: int
    digests: tuple[str, ...] | None
    content: Callable[[], Iterable[Data]]
    part_of: str = ""


@dataclass(frozen=True)
class WrittenFile:
    """A file in the folder. `is_new`: it was written now; otherwise it existed already with this content.
    `part_of`: the output whose earlier rows it has; empty: it is an output itself.
    """

    path: str
    attempt: int
    step: int | None
    size_bytes: int
    is_new: bool
    part_of: str = ""


class _State(Enum):
    MISSING, SAME, DIFFERENT = range(3)


def write_files(
    folder: Path, files: Sequence[WantedFile], *, replace: bool = False, progress: Progress = silent
) -> list[WrittenFile]:
    """Write the files into `folder`, which is created if it is missing. Files that exist there with the same
    content are left as they are.

    `replace`: existing files with other content may be overwritten. `progress` reports the bytes written.
    Raises UsageError, with nothing written, if a file is in the way; and also if the folder cannot be written
    to.
    """
    folder = _made(folder)
    root = os.open(folder, _FOLDER)
    try:
        states = in_parallel(partial(_state, root), files, workers=WORKERS)
        if not replace:
            _check_not_in_the_way(
                folder,
                [file.path for file, state in zip(files, states, strict=True) if state is _State.DIFFERENT],
            )
        missing = [file for file, state in zip(files, states, strict=True) if state is not _State.SAME]
        _check_space(folder, missing)
        with progress(folder.name, sum(file.size for file in missing)) as report:
            sizes = dict(zip((file.path for file in missing), _write_all(root, missing, report), strict=True))
    except Unsafe as error:
        raise UsageError(f"{folder}: {error}", fix="choose another folder") from error
    except OSError as error:
        fix = "free some space, or choose another folder"
        raise UsageError(
            f"{folder} cannot be written to: {error.strerror or error}", fix=fix, code=Exit.EXTERNAL_REFUSED
        ) from error
    finally:
        os.close(root)
    return [
        WrittenFile(
            file.path,
            file.attempt,
            file.step,
            sizes.get(file.path, file.size),
            file.path in sizes,
            file.part_of,
        )
        for file in files
    ]


def _made(folder: Path) -> Path:
    """Return the folder with links resolved, created if it is missing. Raises UsageError if it cannot be
    written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return folder.resolve(strict=True)
    except OSError as error:
        fix = "name another folder"
        raise UsageError(
            f"{folder} cannot be created: {error.strerror or error}", fix=fix, code=Exit.EXTERNAL_REFUSED
        ) from error


def _state(root: int, file: WantedFile) -> _State:
    *above, name = PurePosixPath(file.path).parts
    with opened_folder(root, tuple(above)) as parent:
        try:
            found = os.stat(name, dir_fd=parent, follow_symlinks=False)
        except FileNotFoundError:
            return _State.MISSING
        if not stat.S_ISREG(found.st_mode):
            raise Unsafe(f"{file.path[:200]!r} exists and is not a file")
        if file.digests is None:
            return _State.MISSING
        return (
            _State.SAME
            if found.st_size == file.size and _has_content(parent, name, file.digests)
            else _State.DIFFERENT
        )


def _has_content(parent: int, name: str, digests: Sequence[str]) -> bool:
    descriptor = os.open(name, _OLD, dir_fd=parent)
    try:
        return all(
            digest_of(os.pread(descriptor, CHUNK_BYTES, place * CHUNK_BYTES)) == digest
            for place, digest in enumerate(digests)
        )
    finally:
        os.close(descriptor)


def _check_not_in_the_way(folder: Path, paths: Sequence[str]) -> None:
    if paths:
        more = f" and {len(paths) - SHOWN_MAX} more" if len(paths) > SHOWN_MAX else ""
        fix = Advice("choose another folder, or ", Option(SettingAdvice.REPLACE))
        raise UsageError(
            f"{folder} has other content in {', '.join(map(neutralized, paths[:SHOWN_MAX]))}{more}; nothing "
            "was written",
            fix=fix,
        )


def _check_space(folder: Path, files: Sequence[WantedFile]) -> None:
    wanted, free = sum(file.size for file in files) + DISK_MARGIN_BYTES, shutil.disk_usage(folder).free
    if wanted > free:
        text = (
            f"not enough disk space in {folder}: {wanted / 2**30:.2f} GiB needed, {free / 2**30:.2f} GiB free"
        )
        raise UsageError(text, fix="free some space, or choose another folder", code=Exit.EXTERNAL_REFUSED)


def _write_all(root: int, files: Sequence[WantedFile], progress: Reported) -> list[int]:
    total, done, lock = sum(file.size for file in files), 0, threading.Lock()

    def write(file: WantedFile) -> int:
        nonlocal done
        size = _write(root, file)
        with lock:
            done += file.size
            progress(done, total)
        return size

    return in_parallel(write, files, workers=WORKERS)


def _write(root: int, file: WantedFile) -> int:
    """Write one file and return its size in bytes."""
    *above, name = PurePosixPath(file.path).parts
    with opened_folder(root, tuple(above)) as parent:
        part = f".prime-train-{secrets.token_hex(8)}.part"
        descriptor = os.open(part, _NEW, 0o644, dir_fd=parent)
        try:
            with os.fdopen(descriptor, "wb") as out:
                size = sum(out.write(data) for data in file.content())
            os.rename(part, name, src_dir_fd=parent, dst_dir_fd=parent)
        except BaseException:
            with suppress(FileNotFoundError):
                os.unlink(part, dir_fd=parent)
            raise
    return size
