"""Finds the files that the config's `outputs` choose in the working tree."""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.text.globs import initial_positions, is_match, next_positions, parts_of
from prime_train.text.paths import violation_of_path

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
ENTRIES_MAX = 200_000
"""Number of files and folders that one search looks at."""

IsLeftOut = Callable[[str], bool]
"""Whether a folder, given by its path inside the working tree, holds no outputs: a checkpoint."""


@dataclass(frozen=True)
class MatchedFile:
    """A file that the patterns choose. `path`: inside the working tree; `real`: the file itself, if `path` is
    a link.
    """

    path: str
    real: Path
    size: int
    mtime_ns: int


@dataclass
class Search:
    """The result of a search. `refused`: what cannot be uploaded, each with the reason."""

    found: dict[str, MatchedFile] = field(default_factory=dict)
    refused: list[str] = field(default_factory=list)


def search(
    work: Path, patterns: Sequence[str], *, is_left_out: IsLeftOut, entries_max: int = ENTRIES_MAX
) -> Search:
    """Return the regular files below `work` that the patterns choose. A link to a file counts if it stays in
    the working tree; links to folders are not followed. Files that vanish meanwhile are left out.
    """
    result, work = Search(), work.resolve()
    for seen, (path, entry) in enumerate(
        _walk(work, [parts_of(pattern) for pattern in patterns], is_left_out)
    ):
        if seen >= entries_max:
            result.refused.append(
                f"the patterns search more than {entries_max} files and folders; name the folders of the "
                "outputs"
            )
            break
        if isinstance(entry, OSError):
            result.refused.append(f"{path[:200]} cannot be read: {entry.strerror or entry}")
        elif entry is not None:
            _add(work, path, entry, result)
    return result


def open_inside(work: Path, real: Path) -> int:
    """Return a descriptor for reading the file at `real`. Raises OSError if a link leads to it, because
    whoever writes into the working tree might have replaced it, or a folder above it, since the search. A
    pipe is opened without waiting for a writer.
    """
    *above, name = real.relative_to(work).parts
    folder = os.open(work, _FOLDER)
    try:
        for part in above:
            below = os.open(part, _FOLDER, dir_fd=folder)
            os.close(folder)
            folder = below
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    finally:
        os.close(folder)


Positions = frozenset[int]


def _walk(
    work: Path, patterns: list[tuple[str, ...]], is_left_out: IsLeftOut
) -> Iterator[tuple[str, "os.DirEntry[str] | OSError | None"]]:
    """Yield path and entry of every file that a pattern chooses, and every folder that could hold one,
    without an entry, or with the error that kept it from being read.
    """
    waiting: list[tuple[str, list[Positions]]] = [("", [initial_positions(pattern) for pattern in patterns])]
    while waiting:
        folder, places = waiting.pop()
        try:
            with os.scandir(work / folder) as entries:
                for entry in entries:
                    path = f"{folder}/{entry.name}" if folder else entry.name
                    reached = [
                        next_positions(pattern, place, entry.name)
                        for pattern, place in zip(patterns, places, strict=True)
                    ]
                    is_folder = entry.is_dir(follow_symlinks=False)
                    if is_folder and any(reached) and not is_left_out(path):
                        waiting.append((path, reached))
                    elif not is_folder and any(
                        is_match(pattern, place) for pattern, place in zip(patterns, reached, strict=True)
                    ):
                        yield path, entry
                        continue
                    yield path, None
        except (FileNotFoundError, NotADirectoryError):
            continue
        except OSError as error:
            yield folder, error


def _add(work: Path, path: str, entry: "os.DirEntry[str]", result: Search) -> None:
    try:
        real = Path(entry.path).resolve(strict=True) if entry.is_symlink() else Path(entry.path)
        status = real.stat()
    except (FileNotFoundError, RuntimeError):
        return
    except OSError as error:
        result.refused.append(f"{path[:200]} cannot be read: {error.strerror or error}")
        return
    if not stat.S_ISREG(status.st_mode) or (entry.is_symlink() and not real.is_relative_to(work)):
        return
    if (violation := _violation(path)) is not None:
        result.refused.append(f"{path[:200]!a} {violation}; rename it")
        return
    result.found[path] = MatchedFile(path, real, status.st_size, status.st_mtime_ns)


def _violation(path: str) -> str | None:
    try:
        path.encode()
    except UnicodeEncodeError:
        return "is not named in UTF-8"
    return violation_of_path(path)
