"""Where the folders that a config names may lie, for it may be somebody else's: inside the repository, or
where the person at the terminal says.

The repository is the git repository that holds the config or, for a config without one, the config's own
folder. The folder in which the command is run counts likewise, because the person chose it. A home folder is
never one of them, whatever lies in it.
"""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from prime_train.advice import Option, SettingAdvice
from prime_train.spec.finding import Finding
from prime_train.text.invocations import flag
from prime_train.text.safe import neutralized

SHOWN_CHARS = 200
GIT = ".git"


def folder_outside(folder: str, file: str, allowed: Sequence[Path] = ()) -> Path | None:
    """Return the real path of a folder that the config `file` names, if it lies outside; None if it may be
    read. `folder` is relative to the current folder, and `file` may be a label of a config without a file.
    `allowed`: folders that the person at the terminal named.
    """
    real = _real(Path(folder))
    return None if any(real.is_relative_to(root) for root in (*_roots(file), *map(_real, allowed))) else real


def leads_out(path: Path, folder: Path) -> bool:
    """Return whether a file below `folder`, with all links followed, is outside of the repository that the
    folder belongs to.
    """
    return not _real(path).is_relative_to(_repository(_real(folder)))


def outside_finding(real: Path, file: str, *, line: int = 1, column: int = 1) -> Finding:
    """Return the finding about a folder that lies outside."""
    where = " and ".join(dict.fromkeys(map(str, _roots(file)))) or "any repository"
    named = neutralized(str(real)[:SHOWN_CHARS])
    message = f"trainer.code.folder is {named}, which lies outside of {where}: a config alone may not pack it"
    fix = (
        "name a folder inside, or allow it yourself when you launch: "
        f"{flag(Option(SettingAdvice.ALLOW_FOLDER, named))}"
    )
    return Finding("PT030", message, file, line, column, fix=fix)


def _roots(file: str) -> Iterator[Path]:
    # Where the config is named, not where a link of that name leads: the link may be somebody else's.
    above = _real(Path(file).parent)
    for folder in dict.fromkeys((above, _real(Path()))):
        root = _repository(folder)
        if not _is_home(root):
            yield root
        elif not _is_home(folder):
            yield folder


def _repository(folder: Path) -> Path:
    """Return the folder with the `.git` above, or the folder itself. Git is not asked: a repository's
    settings may name another one.
    """
    return next((above for above in (folder, *folder.parents) if os.path.lexists(above / GIT)), folder)


def _is_home(folder: Path) -> bool:
    """Return whether the folder is a home folder, or holds one."""
    try:
        return _real(Path.home()).is_relative_to(folder)
    except RuntimeError:
        return folder == folder.parent


def _real(path: Path) -> Path:
    return Path(os.path.realpath(path.expanduser() if str(path).startswith("~") else path))
