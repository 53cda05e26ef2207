"""The working tree of a run: a local folder as one gzipped tar, without files that git ignores."""

import gzip
import os
import stat
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath

from prime_train.launch.code.git import (
    Checkout,
    checkout_of,
    commit_of,
    files_of,
    is_commit,
    same_repository,
    tracked_files,
    without_password,
)
from prime_train.launch.code.variable_files import is_dotenv
from prime_train.spec.finding import Finding, Severity
from prime_train.text.auto_run import is_git
from prime_train.text.paths import link_stays_inside

__all__ = [
    "BYTES_MAX",
    "Checkout",
    "CodeSnapshot",
    "checkout_of",
    "commit_of",
    "is_commit",
    "is_dotenv",
    "pack",
    "same_repository",
    "survey",
    "tracked_files",
    "without_password",
]

BYTES_MAX = 200 * 2**20
FILES_MAX = 50_000
DEPTH_MAX = 64
NAMED_MAX = 5
WEIGHS = 100
"""A finding about the total size names each file that has at least one part in this many of all bytes."""
LEVEL = 1
"""Compression level of gzip: the fastest one, because code is small and a launch should not wait."""

_LEFT_OUT = frozenset(
    {".git", "__pycache__", ".mypy_cache", ".pytest_cache", ".ruff_cache", "node_modules", ".DS_Store"}
)


@dataclass(frozen=True)
class CodeSnapshot:
    """The content to be packed, as files with their sizes in bytes, and findings about it."""

    folder: Path
    files: tuple[tuple[str, int], ...]
    findings: tuple[Finding, ...] = ()

    @property
    def size(self) -> int:
        return sum(size for _, size in self.files)


def survey(
    folder: Path, *, without: Sequence[str] = (), bytes_max: int = BYTES_MAX, files_max: int = FILES_MAX
) -> CodeSnapshot:
    """Inspect every file once and return the code snapshot to be packed. `without`: folders inside that are
    left out, such as the checkpoints.

    In a git checkout these are the files that git tracks or would track; elsewhere all files except
    environments and caches.
    """
    try:
        kind = folder.stat().st_mode
    except OSError as error:
        return CodeSnapshot(
            folder,
            (),
            (
                _finding(
                    folder, f"trainer.code.folder: {error.strerror}", "write the path of an existing folder"
                ),
            ),
        )
    if not stat.S_ISDIR(kind):
        return CodeSnapshot(
            folder,
            (),
            (
                _finding(
                    folder,
                    "trainer.code.folder is not a folder",
                    "write the path of the folder that contains it",
                ),
            ),
        )
    names = _names(folder, tuple(PurePosixPath(path).parts for path in without if PurePosixPath(path).parts))
    files, links = [], []
    is_within = _within(folder)
    for name in names:
        seen = _look(folder, name) if is_within(name.rpartition("/")[0]) else None
        if seen is None:
            links.append(name)
        elif seen >= 0:
            files.append((name, seen))
        if len(files) > files_max:
            break
    return CodeSnapshot(
        folder, tuple(files), tuple(_limits(folder, files, bytes_max, files_max) + _links(folder, links))
    )


def pack(snapshot: CodeSnapshot, into: Path) -> Finding | None:
    """Write the tar to `into`. Return a finding if a file could not be packed completely, else None. The same
    files produce the same bytes.
    """
    name = ""
    try:
        with (
            into.open("wb") as raw,
            gzip.GzipFile("", "wb", LEVEL, raw, mtime=0) as packed,
            tarfile.open(fileobj=packed, mode="w|") as tar,
        ):
            for name, _ in snapshot.files:
                _add(tar, snapshot.folder / name, name)
    except OSError as error:
        why = error.strerror or str(error)
        return _finding(
            snapshot.folder,
            f"{name}: {why} while it was packed",
            "stop programs that write into the folder, or exclude the file from git",
        )
    return None


# ------------------------------------------------------------------------------------------------------------
# which files


def _names(folder: Path, without: Sequence[tuple[str, ...]]) -> Iterator[str]:
    listed = files_of(folder)
    for name in listed if listed is not None else _walk(folder, ""):
        parts = PurePosixPath(name).parts
        if any(parts[: len(out)] == out for out in without) or is_git(name):
            continue
        # A repository inside the repository is one entry: git does not look into it.
        if listed is not None and not (folder / name).is_symlink() and (folder / name).is_dir():
            yield from _walk(folder, name.rstrip("/"))
        else:
            yield name


def _walk(folder: Path, below: str, depth: int = 0) -> Iterator[str]:
    """Yield every file, in order, without environments, caches and unreadable folders. Links are not
    followed.
    """
    if depth > DEPTH_MAX:
        return
    try:
        entries = sorted(os.scandir(folder / below), key=lambda entry: entry.name)
    except OSError:
        return
    if any(entry.name == "pyvenv.cfg" for entry in entries):
        return
    for entry in entries:
        name = f"{below}/{entry.name}" if below else entry.name
        if entry.name in _LEFT_OUT:
            continue
        if entry.is_dir(follow_symlinks=False):
            yield from _walk(folder, name, depth + 1)
        else:
            yield name


def _within(folder: Path) -> Callable[[str], bool]:
    """Return a function that tells whether a folder inside is really there: git lists what is in its index,
    and a link that took the place of a folder would lead elsewhere.
    """
    real = folder.resolve()
    return cache(lambda below: (folder / below).resolve() == real / below)


def _look(folder: Path, name: str) -> int | None:
    """Return the size in bytes; -1 if this is not a file or no longer exists; None for a link that leads out
    of the folder.
    """
    path = folder / name
    try:
        found = path.lstat()
    except OSError:
        return -1
    if stat.S_ISLNK(found.st_mode):
        return 0 if link_stays_inside(name, str(path.readlink())) else None
    return found.st_size if stat.S_ISREG(found.st_mode) else -1


# ------------------------------------------------------------------------------------------------------------
# what is wrong


def _limits(folder: Path, files: Sequence[tuple[str, int]], bytes_max: int, files_max: int) -> list[Finding]:
    if len(files) > files_max:
        return [
            _finding(
                folder,
                f"the working tree has more than {files_max:,} files",
                "add files that are not code to .gitignore",
            )
        ]
    size = sum(size for _, size in files)
    if size <= bytes_max:
        return []
    # Only files that matter for the size, so that the advice does not make users ignore their own code.
    largest = sorted((file for file in files if file[1] * WEIGHS >= size), key=lambda file: -file[1])[
        :NAMED_MAX
    ]
    named = ", ".join(f"{name} ({_mib(size)})" for name, size in largest)
    message = (
        f"the working tree has {_mib(size)}, more "
        "than "
        f"{_mib(bytes_max)}{f'; the largest files: {named}' if named else ''}"
    )
    return [
        _finding(folder, message, "add files that are not code to .gitignore, and download them in setup")
    ]


def _links(folder: Path, links: Sequence[str]) -> list[Finding]:
    if not links:
        return []
    named = ", ".join(links[:NAMED_MAX]) + (
        f" and {len(links) - NAMED_MAX} more" if len(links) > NAMED_MAX else ""
    )
    message = f"links that point outside the folder are not packed: {named}"
    return [_finding(folder, message, "download their targets in setup", Severity.WARNING)]


def _finding(folder: Path, message: str, fix: str, severity: Severity = Severity.ERROR) -> Finding:
    return Finding("PT030", message, str(folder), severity=severity, fix=fix)


def _mib(size: int) -> str:
    return f"{size / 2**20:,.1f} MiB"


# ------------------------------------------------------------------------------------------------------------
# packing


def _add(tar: tarfile.TarFile, path: Path, name: str) -> None:
    """Add one file or link without its owner, because another user unpacks it."""
    info = tarfile.TarInfo(name)
    if path.is_symlink():
        info.type, info.linkname = tarfile.SYMTYPE, str(path.readlink())
        tar.addfile(info)
        return
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        info.size, info.mtime, info.mode = (
            found.st_size,
            int(found.st_mtime),
            stat.S_IMODE(found.st_mode) & 0o755 | 0o600,
        )
        tar.addfile(info, file)
