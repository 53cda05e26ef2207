"""One file to judge, with all that was read for it."""

import stat
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.core.finding import Finding
from prime_train.rules.rule import Subject


@dataclass(frozen=True)
class Matter:
    """One file to judge. `subject` is None where it cannot be understood. `others`: files that were read for it, by their real paths."""

    file: str
    subject: Subject | None
    findings: tuple[Finding, ...] = ()
    sources: dict[str, str] = field(default_factory=dict, repr=False)
    others: frozenset[str] = frozenset()
    is_config: bool = True
    """False for a file of a folder that is the config of nobody we know."""


def is_file(path: Path) -> bool:
    return stat.S_ISREG(mode(path))


def is_folder(path: Path) -> bool:
    return stat.S_ISDIR(mode(path))


def mode(path: Path) -> int:
    """Of what is there; 0 where nothing is, or can be: of a name that is too long, say."""
    try:
        return path.stat().st_mode
    except (OSError, ValueError):
        return 0
