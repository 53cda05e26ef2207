"""Configs out of YAML files: the spec, and every mistake at once with its line and column."""

import json
import stat
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from prime_train.adapters.config_yaml import secrets, words
from prime_train.adapters.config_yaml.nodes import Halt, Mapping, Place, Trouble, plain
from prime_train.adapters.config_yaml.parse import read_tree
from prime_train.adapters.config_yaml.secrets import masked
from prime_train.core.finding import Finding, has_errors, in_order
from prime_train.core.spec import RunSpec

__all__ = ["BYTES_MAX", "Config", "masked", "read_config", "read_text"]

BYTES_MAX = 1024 * 1024


@dataclass(frozen=True)
class Config:
    """What a file says. `spec` is None where it can not be understood; a spec with error findings must not be launched."""

    file: str
    spec: RunSpec | None
    findings: tuple[Finding, ...]
    source: str = field(default="", repr=False)
    """The text that was read; with secrets in it, if it has any."""

    @property
    def is_fit(self) -> bool:
        """Whether the spec may be launched."""
        return self.spec is not None and not has_errors(self.findings)


def read_config(path: Path) -> Config:
    """Reads one file. Never raises for what is in it or for a file that is not there: that is a finding."""
    try:
        source = _read(path)
    except Halt as halt:
        return Config(str(path), None, (_finding(str(path), halt.trouble),))
    return read_text(source, str(path))


def read_text(source: str, file: str) -> Config:
    """As `read_config`, for text that has been read already."""
    try:
        root, troubles = read_tree(source)
    except Halt as halt:
        return Config(file, None, (_finding(file, halt.trouble),), source)
    spec, mistakes = _validate(root)
    found = [_finding(file, trouble) for trouble in (*troubles, *mistakes, *secrets.spelled_out(root))]
    return Config(file, spec, in_order(found), source)


def _finding(file: str, trouble: Trouble) -> Finding:
    message, fix, value = (masked(text) for text in (trouble.message, trouble.fix, trouble.value))
    return Finding(trouble.code, message, file, trouble.place.line, trouble.place.column, fix=fix, value=value)


def _read(path: Path) -> str:
    try:
        kind = path.stat().st_mode
        if stat.S_ISDIR(kind):
            raise Halt(Trouble("PT001", Place(), f"{path} is a folder", fix="name the file inside it"))
        if not stat.S_ISREG(kind):
            raise Halt(Trouble("PT001", Place(), f"{path} is not a plain file"))
        with path.open("rb") as file:
            data = file.read(BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise Halt(Trouble("PT001", Place(), f"there is no file {path}", fix="check the path")) from error
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise Halt(Trouble("PT001", Place(), f"{path} can not be read: {why}")) from error
    if len(data) > BYTES_MAX:
        raise Halt(Trouble("PT002", Place(), f"{path} is larger than 1 MiB: that is no config", fix="name the config, not its data"))
    return _decoded(path, data)


def _decoded(path: Path, data: bytes) -> str:
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = data[: error.start]
        place = Place(before.count(b"\n") + 1, error.start - (before.rfind(b"\n") + 1) + 1)
        raise Halt(Trouble("PT003", place, f"{path} is not UTF-8 text", fix="save it as UTF-8, or name another file")) from error
    if "\0" in text:
        raise Halt(
            Trouble("PT003", Place(text[: text.index("\0")].count("\n") + 1), f"{path} is binary, not text", fix="name another file")
        )
    return text


def _validate(root: Mapping) -> tuple[RunSpec | None, list[Trouble]]:
    """The spec, and what is wrong with it: once as it is, and once without the unknown keys, which may hide what a part as a whole says."""
    spec, errors = _attempt(root)
    if spec is not None:
        return spec, []
    hidden = [error for error in _attempt(words.without_unknown(root, errors))[1] if error not in errors]
    return None, words.troubles([*errors, *hidden], root)


def _attempt(root: Mapping) -> tuple[RunSpec | None, list[words.Mistake]]:
    # Through JSON and strict: a list is a tuple there, but a text is no number and `yes` is not 1.
    try:
        return RunSpec.model_validate_json(json.dumps(plain(root)), strict=True), []
    except ValidationError as error:
        return None, [words.Mistake.of(row) for row in error.errors(include_url=False)]
