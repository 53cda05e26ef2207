"""Versions of a config: its text and that of the trainer's own file, with a note, one file a version.

They lie under the home folder (`configs/NAME/0001.json`), beside the store whose runs used them: there they are in nobody's way in the
repository, and a checkout that is thrown away does not take them along. NAME is that of the file, without its ending.
"""

import json
import os
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from prime_train.control_plane.wiring.home import Home, wall_s
from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.core.spec import RunSpec

VERSIONS_MAX = 9999
TRIES_MAX = 20


@dataclass(frozen=True)
class Texts:
    """What a version holds. `trainer` None: the config names no file of its trainer's, or it is not there."""

    config: str = field(repr=False)
    trainer: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Version:
    number: int
    saved_s: int
    note: str
    texts: Texts

    @property
    def title(self) -> str:
        return f"version {self.number}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True)
class Versions:
    """Of the config at `path`, which need not be there."""

    home: Home
    path: Path

    @property
    def folder(self) -> Path:
        return self.home.root / "configs" / self.path.stem

    def all(self) -> tuple[Version, ...]:
        """Oldest first."""
        return tuple(_read(file) for file in sorted(self.folder.glob("[0-9]*.json")))

    def get(self, number: int) -> Version:
        file = self.folder / f"{number:04d}.json"
        if not file.exists():
            numbers = [version.number for version in self.all()]
            fix = f"there are {_spans(numbers)}" if numbers else f"save one first: prime-train config save {self.path}"
            raise UsageError(f"{self.path.stem} has no version {number}", fix=fix)
        return _read(file)

    def now(self) -> Texts:
        """As the files are. Raises UsageError where there is no config that can be read."""
        config = _text(self.path)
        return Texts(config, _text_or_none(trainer_file(config)))

    def add(self, texts: Texts, note: str) -> Version:
        """As the next version, whoever else adds one at the same time."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for _ in range(TRIES_MAX):
            number = max((int(file.stem) for file in self.folder.glob("[0-9]*.json")), default=0) + 1
            if number > VERSIONS_MAX:
                break
            version = Version(number, wall_s(), note, texts)
            if _create(self.folder / f"{number:04d}.json", json.dumps(asdict(version), indent=1) + "\n"):
                return version
        raise UsageError(f"{self.folder} takes no more versions", fix="move some of its files away", code=Exit.OUTSIDE_FAILED)


def versions_of(config: Path) -> Versions:
    """In the home that the environment names. Raises UsageError for what can be no file."""
    if config.stem in ("", ".", ".."):
        raise UsageError(f"{config} names no file", fix="write the config's, such as configs/demo.yaml")
    return Versions(Home.of(os.environ), config)


def spec_of(text: str) -> "RunSpec | None":
    """None: it is no config that could be launched."""
    from prime_train.adapters.config_yaml import read_text

    return read_text(text, "").spec


def trainer_file(text: str) -> Path | None:
    """Where the trainer's own file lies that the config names; None: it names none."""
    spec = spec_of(text)
    if spec is None or spec.trainer.prime_rl is None or spec.trainer.tree.repo:
        return None
    return Path(spec.trainer.tree.folder) / spec.trainer.prime_rl.config


def _read(file: Path) -> Version:
    try:
        told = json.loads(file.read_text("utf-8"))
        return Version(int(told["number"]), int(told["saved_s"]), str(told["note"]), Texts(**told["texts"]))
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(f"{file} is no version of a config", fix="move it away", code=Exit.OUTSIDE_REFUSED) from error


def _text(path: Path) -> str:
    from prime_train.adapters.config_yaml import read_config

    read = read_config(path)
    if not read.source and read.findings:
        raise UsageError(read.findings[0].message, fix=read.findings[0].fix)
    return read.source


def _text_or_none(path: Path | None) -> str | None:
    return _text(path) if path is not None and path.is_file() else None


def _create(file: Path, text: str) -> bool:
    """Whole or not at all; False: there is one already."""
    draft = file.with_name(f".{file.name}-{secrets.token_hex(8)}")
    descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(text)
        try:
            os.link(draft, file)
        except FileExistsError:
            return False
    finally:
        draft.unlink()
    return True


def _spans(numbers: list[int]) -> str:
    """1 to 7, 9"""
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in _runs(sorted(numbers)))


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield numbers[start], numbers[at - 1]
            start = at
