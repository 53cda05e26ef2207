"""One config file to check, with everything that was read for it."""

import stat
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.core.finding import Finding
from prime_train.rules.rule import Subject


@dataclass(frozen=True)
class LoadedConfig:
    """One config file to check. `subject` is None if the file cannot be parsed. `others` are the real paths of the further files read for
    it."""

    file: str
    subject: Subject | None
    findings: tuple[Finding, ...] = ()
    sources: dict[str, str] = field(default_factory=dict, repr=False)
    others: frozenset[str] = frozenset()
    is_config: bool = True
    """False for a file found in a folder that is not a config of any known kind."""


def is_file(path: Path) -> bool:
    return stat.S_ISREG(mode(path))


def is_folder(path: Path) -> bool:
    return stat.S_ISDIR(mode(path))


def mode(path: Path) -> int:
    """Return the mode bits of the path, or 0 if nothing exists there or nothing can (the name is too long, for example)."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0
