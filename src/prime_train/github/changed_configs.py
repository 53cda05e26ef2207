"""Select the configs a job checks: those named in its input, or those that a pull request or a merge queue
changes directly or through a file they refer to.
"""

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from prime_train.configs.loader import LoadedConfig, load_configs
from prime_train.errors import UsageError
from prime_train.github.api import LISTED_MAX, GitHub
from prime_train.github.events import MergeGroup
from prime_train.github.repository import COMPARED_MAX, ChangedFile, changed_files, compared_files

PATHS_MAX = 1000


def named(text: str) -> tuple[Path, ...]:
    """Parse paths separated by whitespace. Raises UsageError for an invalid path, for one outside the
    repository, or for more than `PATHS_MAX` paths.
    """
    paths = [inside(word) for word in text.split()]
    if len(paths) > PATHS_MAX:
        raise UsageError(f"{len(paths)} paths were given; at most {PATHS_MAX} are allowed")
    return tuple(paths)


def inside(text: str) -> Path:
    """Return `text` as a path, unchanged. Raises UsageError unless it is a relative path inside the working
    folder.
    """
    path = Path(text)
    here = Path.cwd().resolve()
    if (
        not text.isprintable()
        or text.startswith("-")
        or path.is_absolute()
        or not _resolved(path).is_relative_to(here)
    ):
        raise UsageError(
            f"{text[:200]!r} is not a path within the repository",
            fix="write it relative to the repository's root, such as configs/demo.yaml",
        )
    return path


def of_pull(
    github: GitHub, pull: int, folder: str, environment: Mapping[str, str]
) -> tuple[LoadedConfig, ...]:
    """Return the configs in `folder` that the pull request changes, and those that refer to a changed file.
    Returns all configs in `folder` if the list of changed files reaches `LISTED_MAX`, the most that GitHub
    lists.
    """
    files = changed_files(github, pull)
    return _affected(files, folder, environment, is_cut=len(files) >= LISTED_MAX)


def of_merge_group(
    github: GitHub, group: MergeGroup, folder: str, environment: Mapping[str, str]
) -> tuple[LoadedConfig, ...]:
    """Return the configs that the commits of a merge queue change, as `of_pull` does; all of them if GitHub
    cut the list.
    """
    files = compared_files(github, group.base, group.head)
    return _affected(files, folder, environment, is_cut=len(files) >= COMPARED_MAX)


def _affected(
    files: Sequence[ChangedFile], folder: str, environment: Mapping[str, str], *, is_cut: bool
) -> tuple[LoadedConfig, ...]:
    touched = {os.path.realpath(name) for file in files for name in _names(file)}
    root = inside(folder)
    read = load_configs([root], environment) if root.is_dir() else []
    return _within_here(loaded for loaded in read if is_cut or _files(loaded) & touched)


def unchanged(
    read: Sequence[LoadedConfig], folder: str, environment: Mapping[str, str]
) -> list[LoadedConfig]:
    """Return the configs in `folder` that are not among those `read`."""
    root, known = inside(folder), {os.path.realpath(loaded.file) for loaded in read}
    return (
        [one for one in load_configs([root], environment) if os.path.realpath(one.file) not in known]
        if root.is_dir()
        else []
    )


def read_named(paths: Sequence[Path], environment: Mapping[str, str]) -> tuple[LoadedConfig, ...]:
    missing = [str(path) for path in paths if not path.exists()]
    if missing:
        raise UsageError(f"{', '.join(missing)[:300]}: not in the repository at this commit")
    return _within_here(load_configs(paths, environment))


def runs_among(read: Iterable[LoadedConfig]) -> list[str]:
    """Return the paths of the configs that define a run."""
    return [loaded.file for loaded in read if loaded.subject is not None and loaded.subject.spec is not None]


def _within_here(read: Iterable[LoadedConfig]) -> tuple[LoadedConfig, ...]:
    """Return the configs unchanged. Raises UsageError if one refers to a file outside the repository, so that
    no other file of this machine is disclosed.
    """
    here, loaded_configs = os.path.realpath("."), tuple(read)
    for loaded in loaded_configs:
        if not all(Path(file).is_relative_to(here) for file in _files(loaded)):
            raise UsageError(
                f"{loaded.file!r} links to a file outside the repository",
                fix="commit the file itself, not a link to it",
            )
    return loaded_configs


def _files(loaded: LoadedConfig) -> set[str]:
    """Return the real paths of the config and of every file that was read for it."""
    return {os.path.realpath(loaded.file), *loaded.others}


def _names(file: ChangedFile) -> list[str]:
    """Return the current and the previous name of a changed file: a config that refers to a deleted or
    renamed file counts as changed, too.
    """
    return [file.filename, *([file.previous_filename] if file.previous_filename else [])]


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, ValueError, RuntimeError):
        return Path("/")
