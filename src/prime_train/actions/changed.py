"""Which configs a job is about: those that are named, or those that a pull request touches, itself or in a file that it leads to."""

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from prime_train.adapters.github import LISTED_MAX, ChangedFile, GitHub, changed_files
from prime_train.configs.loaded import Matter
from prime_train.configs.loader import matters
from prime_train.core.errors import UsageError

PATHS_MAX = 1000


def named(text: str) -> tuple[Path, ...]:
    """Paths separated by spaces or lines. Raises UsageError for one that leads out of the repository, or is none."""
    paths = [inside(word) for word in text.split()]
    if len(paths) > PATHS_MAX:
        raise UsageError(f"{len(paths)} paths are named, more than {PATHS_MAX}")
    return tuple(paths)


def inside(text: str) -> Path:
    """A path within the working folder, as it was written."""
    path = Path(text)
    here = Path.cwd().resolve()
    if not text.isprintable() or text.startswith("-") or path.is_absolute() or not _resolved(path).is_relative_to(here):
        raise UsageError(
            f"{text[:200]!r} is no path within the repository", fix="write it from the repository's root, such as configs/demo.yaml"
        )
    return path


def of_pull(github: GitHub, pull: int, folder: str) -> tuple[Matter, ...]:
    """Configs in `folder` that the pull request touches, and those that lead to a file that it touches; all of them where it touches more
    files than GitHub tells."""
    files = changed_files(github, pull)
    touched = {os.path.realpath(name) for file in files for name in _names(file)}
    root = inside(folder)
    read = matters([root]) if root.is_dir() else []
    return _kept(matter for matter in read if len(files) >= LISTED_MAX or _files(matter) & touched)


def read_named(paths: Sequence[Path]) -> tuple[Matter, ...]:
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise UsageError(f"{', '.join(missing)[:300]}: not in the repository at this commit")
    return _kept(matters(paths))


def runs_among(read: Iterable[Matter]) -> list[str]:
    """Paths of those that can be launched."""
    return [matter.file for matter in read if matter.subject is not None and matter.subject.spec is not None]


def _kept(read: Iterable[Matter]) -> tuple[Matter, ...]:
    """Raises UsageError for one that leads out of the repository: what else is on this machine is told to nobody."""
    here, kept = os.path.realpath("."), tuple(read)
    for matter in kept:
        if not all(Path(file).is_relative_to(here) for file in _files(matter)):
            raise UsageError(f"{matter.file!r} leads to a file out of the repository", fix="commit the file itself, not a link to it")
    return kept


def _files(matter: Matter) -> set[str]:
    """All that were read, by their real paths."""
    return {os.path.realpath(matter.file), *matter.others}


def _names(file: ChangedFile) -> list[str]:
    """What it is called, and what it was: a config that leads to a file that is gone is touched, too."""
    return [file.filename, *([file.previous_filename] if file.previous_filename else [])]


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return Path("/")
