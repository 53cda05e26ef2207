"""A config file that is to be checked, together with every file that was read for it."""

import stat
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from prime_train.core.finding import Finding
from prime_train.rules.rule import Subject

if TYPE_CHECKING:
    from prime_train.core.spec import RunSpec


@dataclass(frozen=True)
class LoadedConfig:
    """A config file that is to be checked. `subject` is None if the file cannot be parsed. `others` are the real paths of the further files
    read for it."""

    file: str
    subject: Subject | None
    findings: tuple[Finding, ...] = ()
    sources: dict[str, str] = field(default_factory=dict, repr=False)
    others: frozenset[str] = frozenset()
    variants: tuple[tuple[str, Subject], ...] = ()
    """The config as machines of each of its variants get it, with the variant in words; empty if it has none."""
    is_config: bool = True
    """False for a file found in a folder that is not a config of any known kind."""

    @property
    def spec(self) -> "RunSpec | None":
        """The config as it was written, with all its variants; None if it cannot be parsed, or is a trainer's."""
        return self.subject.spec if self.subject is not None else None

    @property
    def judged(self) -> tuple[tuple[str, Subject], ...]:
        """What machines can get: the variants, or the config itself without a name if it has none. Empty if it cannot be parsed."""
        return self.variants or ((("", self.subject),) if self.subject is not None else ())


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
