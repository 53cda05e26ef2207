"""Versions of a config: its text and that of the trainer's own config file, with a note, one JSON file for
each version.

They are stored in the home folder (`configs/NAME/0001.json`), beside the store of the runs that used them.
There they do not clutter the repository, and survive the deletion of a checkout. NAME is the config's file
name without its suffix.
"""

import json
import os
import re
import secrets
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path, PurePosixPath

from prime_train.advice import Advice, Call, Operation
from prime_train.app.home import Home
from prime_train.clock import wall_s
from prime_train.configs.code_folder import folder_outside, outside_finding
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.spec.launchers import config_named
from prime_train.spec.limits import CREATED_S_MAX
from prime_train.spec.reader import read_config, read_text
from prime_train.spec.spec import RunSpec
from prime_train.trainers.of_spec import trainer_for

VERSIONS_MAX = 9999
NOW = "now"
"""Stands for the current file, in the place of a version's number or name."""
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9._-]{0,39}")
TRIES_MAX = 20
_CONFIGS = (".yaml", ".yml", ".toml")
_FILES = "[0-9][0-9][0-9][0-9].json"


@dataclass(frozen=True)
class Texts:
    """The texts of a version. `trainer`: None if the config names no config file of the trainer's, or the
    file does not exist.
    """

    config: str = field(repr=False)
    trainer: str | None = field(default=None, repr=False)


@dataclass(frozen=True)
class Version:
    number: int
    saved_s: int
    note: str
    texts: Texts
    name: str = ""
    """A name that people gave it, unique among the versions of the config; empty if it has none."""

    @property
    def title(self) -> str:
        named = f", {self.name}" if self.name else ""
        return f"version {self.number}{named}" + (f" ({self.note})" if self.note else "")


@dataclass(frozen=True)
class SavedVersions:
    """The saved versions of the config at `path`. The config file itself need not exist."""

    home: Home
    path: Path

    @property
    def folder(self) -> Path:
        return self.home.root / "configs" / self.path.stem

    def all(self) -> tuple[Version, ...]:
        """Return all versions, oldest first."""
        return tuple(_read(file) for file in sorted(self.folder.glob(_FILES)))

    def get(self, number: int) -> Version:
        file = self.folder / f"{number:04d}.json"
        if not file.exists():
            numbers = [version.number for version in self.all()]
            save = Advice("save one first: ", Call(Operation.SAVE_CONFIG, str(self.path)))
            raise UsageError(
                f"{self.path.stem} has no version {number}",
                fix=f"existing versions: {_spans(numbers)}" if numbers else save,
            )
        return _read(file)

    def find(self, text: str) -> Version:
        """Return the version with this number or name. Raises UsageError if there is none."""
        if text.isascii() and text.isdigit() and len(text) <= len(str(VERSIONS_MAX)):
            return self.get(int(text))
        saved = self.all()
        found = next((version for version in saved if version.name == text), None)
        if found is None:
            names = ", ".join(version.name for version in saved if version.name)
            fix = (
                f"write the number of a version, {NOW} for the "
                "current "
                f"file{f', or one of the names {names}' if names else ''}"
            )
            raise UsageError(f"{self.path.stem} has no version called {text}", fix=fix)
        return found

    def check_name(self, name: str, *, of: int | None = None) -> None:
        """Raises UsageError if a version may not have this name, or if one other than number `of` has it
        already.
        """
        if not _NAME.fullmatch(name) or name == NOW:
            fix = "write up to 40 letters, digits, dots, hyphens and underscores, beginning with a letter"
            raise UsageError(f"{name} is not possible as the name of a version", fix=fix)
        taken = next(
            (version for version in self.all() if version.name == name and version.number != of), None
        )
        if taken is not None:
            raise UsageError(f"{taken.title} has the name {name} already", fix="choose another name")

    def rename(self, version: Version, name: str) -> Version:
        """Give a version a name, in place of the one that it may have, and return it."""
        named = replace(version, name=name)
        file = self.folder / f"{version.number:04d}.json"
        draft = file.with_name(f".{file.name}-{secrets.token_hex(8)}")
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w", encoding="utf-8") as stream:
            stream.write(_text_of(named))
        draft.replace(file)
        return named

    def now(self) -> Texts:
        """Return the current texts of the files. Raises UsageError if the config cannot be read."""
        config = _text(self.path)
        return Texts(config, _text_or_none(trainer_file(config, self.path)))

    def add(self, texts: Texts, note: str, name: str = "") -> Version:
        """Save `texts` as the next version and return it. Safe if other processes add versions at the same
        time. Raises UsageError if no number is free.
        """
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        for _ in range(TRIES_MAX):
            number = max((int(file.stem) for file in self.folder.glob(_FILES)), default=0) + 1
            if number > VERSIONS_MAX:
                break
            version = Version(number, wall_s(), note, texts, name)
            if _create(self.folder / f"{number:04d}.json", _text_of(version)):
                return version
        raise UsageError(
            f"{self.folder} already has the most versions that are allowed",
            fix="move some of its files away",
            code=Exit.EXTERNAL_FAILED,
        )


def versions_of(home: Home, config: Path) -> SavedVersions:
    """Return the versions of a config in the home. Raises UsageError if `config` is not a file name."""
    if config.stem in ("", ".", ".."):
        raise UsageError(
            f"{config} is not the name of a file",
            fix="write the path of the config, such as configs/demo.yaml",
        )
    return SavedVersions(home, config)


def spec_of(text: str) -> RunSpec | None:
    """Return the spec in a config's text, or None if the config is invalid."""
    return read_text(text, "").spec


def trainer_file(text: str, config: Path) -> Path | None:
    """Return the path of the trainer's own config file that the config or the command in it names, or None if
    they name none in the working tree or the code comes from a repository. `config`: the file whose text it
    is. Raises UsageError if the working tree lies where a config alone may not look.
    """
    spec = spec_of(text)
    if spec is None or spec.trainer.code.repo:
        return None
    outside = folder_outside(spec.trainer.code.folder, str(config))
    if outside is not None:
        raise UsageError(outside_finding(outside, str(config)).message, fix="name a folder inside")
    file = trainer_for(spec).config_file(spec) or _of_command(spec.trainer.command)
    return Path(spec.trainer.code.folder) / file if file is not None else None


def requires_trainer_file(text: str) -> bool:
    """Return whether the config itself names the trainer's own config file, so that a version without it is
    not complete.
    """
    spec = spec_of(text)
    return spec is not None and trainer_for(spec).config_file(spec) is not None


def _of_command(command: str) -> str | None:
    """Return the config file that a command names, if it is in the working tree."""
    path = PurePosixPath(config_named(command) or "")
    is_inside = not path.is_absolute() and ".." not in path.parts
    return str(path) if is_inside and path.suffix in _CONFIGS else None


def _text_of(version: Version) -> str:
    return json.dumps(asdict(version), indent=1) + "\n"


def _read(file: Path) -> Version:
    try:
        content = json.loads(file.read_text("utf-8"))
        named = str(content.get("name", ""))  # versions saved before they could have names have no such key
        texts = content["texts"]
        trainer = str(texts["trainer"]) if texts.get("trainer") is not None else None
        saved_s = min(max(int(content["saved_s"]), 0), CREATED_S_MAX)
        return Version(
            int(content["number"]), saved_s, str(content["note"]), Texts(str(texts["config"]), trainer), named
        )
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError, RecursionError) as error:
        raise UsageError(
            f"{file} is not a version of a config", fix="move it away", code=Exit.EXTERNAL_REFUSED
        ) from error


def _text(path: Path) -> str:
    read = read_config(path)
    if not read.source and read.findings:
        raise UsageError(read.findings[0].message, fix=read.findings[0].fix)
    return read.source


def _text_or_none(path: Path | None) -> str | None:
    return _text(path) if path is not None and path.is_file() else None


def _create(file: Path, text: str) -> bool:
    """Create the file atomically. Return False if it already exists."""
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
    """Format numbers as spans, such as "1 to 7, 9"."""
    return ", ".join(str(low) if low == high else f"{low} to {high}" for low, high in _runs(sorted(numbers)))


def _runs(numbers: list[int]) -> Iterator[tuple[int, int]]:
    start = 0
    for at in range(1, len(numbers) + 1):
        if at == len(numbers) or numbers[at] != numbers[at - 1] + 1:
            yield numbers[start], numbers[at - 1]
            start = at
