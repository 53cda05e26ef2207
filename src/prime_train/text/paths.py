"""Checks of file and folder names chosen by a machine or by others, before anything is written, listed or
deleted under them.
"""

from collections.abc import Iterable
from pathlib import PurePosixPath

from prime_train.text.safe import is_safe_character

NAME_BYTES_MAX = 255
"""The longest name in bytes that common file systems accept."""
PATH_BYTES_MAX = 4096
"""The longest path in bytes that Linux accepts (PATH_MAX)."""
DEPTH_MAX = 64


def is_inside(path: str) -> bool:
    """Return whether `path`, exactly as written, is a normalised relative path inside a folder."""
    pure = PurePosixPath(path)
    return (
        str(pure) == path
        and path != "."
        and not pure.is_absolute()
        and ".." not in pure.parts
        and "\0" not in path
    )


def violation_of_path(path: str) -> str | None:
    """Return why `path` cannot be the path of a file inside a folder, as a predicate that follows the path;
    None if it can.

    A file inside a checkpoint may have any name that a disk accepts, such as `-rf`: refusing it would lose
    the checkpoint.
    """
    if not is_inside(path) or "\\" in path:
        return "is not a relative path inside the checkpoint"
    pure = PurePosixPath(path)
    if len(pure.parts) > DEPTH_MAX or len(path.encode(errors="surrogatepass")) > PATH_BYTES_MAX:
        return f"is deeper than {DEPTH_MAX} folders or longer than {PATH_BYTES_MAX} bytes"
    too_long = any(len(part.encode(errors="surrogatepass")) > NAME_BYTES_MAX for part in pure.parts)
    return f"has a name of more than {NAME_BYTES_MAX} bytes" if too_long else None


def violation_of_folder(name: str) -> str | None:
    """Return why `name` cannot be the name of one visible folder, as a predicate that follows the name; None
    if it can.
    """
    if violation := violation_of_path(name):
        return violation
    if "/" in name:
        return "is not the name of one folder"
    if name.startswith("."):
        return "begins with a dot"
    if name.startswith("-"):
        return "begins with a dash, which commands interpret as an option"
    return None if all(map(is_safe_character, name)) else "contains a control character"


def same_but_for_case(paths: Iterable[str]) -> tuple[str, str] | None:
    """Return two of the paths that are one file or folder on a disk that ignores case, or None."""
    seen: dict[str, str] = {}
    for path in paths:
        parts = PurePosixPath(path).parts
        for depth in range(1, len(parts) + 1):
            prefix = "/".join(parts[:depth])
            known = seen.setdefault(prefix.casefold(), prefix)
            if known != prefix:
                return known, prefix
    return None


def link_stays_inside(link: str, target: str) -> bool:
    """Return whether a symbolic link at `link`, a path relative to a folder, stays inside that folder,
    whatever other such links point to.

    `..` is allowed only at the start: after the name of another link it would lead up from that link's
    target.
    """
    parts = PurePosixPath(target).parts
    up = next((index for index, part in enumerate(parts) if part != ".."), len(parts))
    depth = len(PurePosixPath(link).parts) - 1
    return bool(parts) and not PurePosixPath(target).is_absolute() and up <= depth and ".." not in parts[up:]
