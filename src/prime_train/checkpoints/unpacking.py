"""Writes the members of an archive into one folder, and never outside it.

Every folder and file is opened relative to its parent's descriptor, without following links. So no content of
the archive, and nothing that another process puts into the folder meanwhile, can cause a write outside.
Python's tarfile filters are not needed.
"""

import errno
import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath
from typing import IO

from prime_train.checkpoints.manifest import FILES_MAX, MTIME_S_MAX
from prime_train.checkpoints.tar_reader import Member, TarReader, Unsafe
from prime_train.text.auto_run import GIT, auto_run, is_git, is_repository
from prime_train.text.paths import is_inside, link_stays_inside, violation_of_path

MEMBERS_MAX = 2 * FILES_MAX
"""Upper limit of members; folders, links and extended headers count too."""
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


def unpack_stream(
    stream: IO[bytes],
    folder: Path,
    *,
    margin_bytes: int,
    is_own: bool = False,
    members_max: int = MEMBERS_MAX,
    wrote: Callable[[], None] = lambda: None,
) -> dict[str, str]:
    """Write every file and folder of the tar archive that `stream` reads into `folder`, which must exist and
    be empty. Return the members that were left out because programs would run or obey them, each with the
    reason.

    `is_own`: the archive is a code snapshot of the user's own folder. It may hold any names but `.git`, and
    symbolic links that stay inside, which are created last. In an archive made by others, a link raises
    Unsafe; a member of any other kind raises it in every archive. `margin_bytes` of the disk stay free;
    `wrote` is called after each member. Raises Unsafe, ArchiveBroken, OSError, and the stream's errors.
    """
    reader = TarReader(stream, headers_max=members_max)
    kept: list[tuple[str, str]] = []
    left: dict[str, str] = {}
    root = os.open(folder, _FOLDER)
    try:
        for member in reader.members():
            path = _path_of(member, is_own=is_own)
            why = None if is_own else auto_run(path)
            if why is not None:
                left[path] = why
            elif member.is_link and is_own:
                _check_link(path, member)
                kept.append((path, member.link))
            elif member.is_file:
                _check_free_space(folder, member, margin_bytes)
                _write_file(root, path, member, reader.content())
            elif member.is_folder:
                with opened_folder(root, PurePosixPath(path).parts if path else ()):
                    pass
            else:
                raise Unsafe(
                    f"{member.name[:200]!r} is {_KINDS.get(member.kind, 'neither a file nor a folder')}"
                )
            wrote()
        for path, target in kept:
            _write_link(root, path, target)
    finally:
        os.close(root)
    return left if is_own else left | _without_heads(folder)


_KINDS = {
    b"1": "a hard link (pack with tar --hard-dereference)",
    b"2": "a link (pack with tar --dereference)",
    b"S": "a sparse file",
}


def _path_of(member: Member, *, is_own: bool) -> str:
    """Return the member's path inside the folder; empty for the folder itself. Raises Unsafe if the path is
    not allowed.
    """
    path = "/".join(part for part in member.name.split("/") if part != ".")
    if not path and member.is_folder:
        return path
    violation = (
        (None if is_inside(path) else "is not a relative path inside the folder")
        if is_own
        else violation_of_path(path)
    )
    if violation is None and is_own and is_git(path):
        violation = f"is refused: {GIT}"
    if violation is not None:
        raise Unsafe(f"{member.name[:200]!r} {violation}")
    return path


def _without_heads(folder: Path) -> dict[str, str]:
    """Remove the `HEAD` of each folder that is a git repository by its content, and return what was
    removed.
    """
    left = {}
    for above, folders, files in os.walk(folder):
        if is_repository([*folders, *files]):
            for head in [Path(above, name) for name in files if name.casefold() == "head"]:
                head.unlink()
                left[head.relative_to(folder).as_posix()] = GIT
    return left


def _check_link(path: str, member: Member) -> None:
    if not link_stays_inside(path, member.link):
        raise Unsafe(
            f"{member.name[:200]!r} is a link that points outside the folder, to {member.link[:200]!r}"
        )


def _check_free_space(folder: Path, member: Member, margin_bytes: int) -> None:
    free = shutil.disk_usage(folder).free
    if member.size + margin_bytes > free:
        raise OSError(
            f"not enough disk space: {member.name[:200]} needs {member.size / 2**30:.2f} GiB, "
            f"{free / 2**30:.2f} GiB free"
        )


def _write_file(root: int, path: str, member: Member, content: Iterator[bytes]) -> None:
    pure = PurePosixPath(path)
    with opened_folder(root, pure.parts[:-1]) as parent:
        try:
            descriptor = os.open(pure.name, _FILE, 0o755 if member.mode & 0o100 else 0o644, dir_fd=parent)
        except FileExistsError:
            raise Unsafe(
                f"{member.name[:200]!r} is in the archive twice, or differs from another name only in case"
            ) from None
        with os.fdopen(descriptor, "wb", buffering=0) as file:
            for piece in content:
                left = memoryview(piece)
                while left:
                    left = left[file.write(left) :]
            at_s = min(max(member.mtime_s, -MTIME_S_MAX), MTIME_S_MAX)
            os.utime(file.fileno(), (at_s, at_s))


def _write_link(root: int, path: str, target: str) -> None:
    pure = PurePosixPath(path)
    with opened_folder(root, pure.parts[:-1]) as parent:
        try:
            os.symlink(target, pure.name, dir_fd=parent)
        except FileExistsError:
            raise Unsafe(f"{path[:200]!r} is in the archive twice") from None


@contextmanager
def opened_folder(root: int, parts: tuple[str, ...]) -> Iterator[int]:
    """Yield a descriptor of the folder at `parts` below the descriptor `root`, creating missing folders.
    Raises Unsafe for a link or file on the way.
    """
    current = os.dup(root)
    try:
        for part in parts:
            try:
                with suppress(FileExistsError):
                    os.mkdir(part, 0o755, dir_fd=current)
                below = os.open(part, _FOLDER, dir_fd=current)
            except OSError as error:
                if error.errno in (errno.ENOTDIR, errno.ELOOP):
                    raise Unsafe(
                        f"{'/'.join(parts)[:200]!r} leads through something that is not a folder"
                    ) from None
                raise
            os.close(current)
            current = below
        yield current
    finally:
        os.close(current)
