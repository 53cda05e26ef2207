"""Configs out of YAML files: the spec, and every mistake at once with its line and column."""

import json
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from prime_train.adapters.config_yaml import secrets, words
from prime_train.adapters.config_yaml.files import BYTES_MAX, read_source
from prime_train.adapters.config_yaml.nodes import Halt, Mapping, Trouble, finding, plain
from prime_train.adapters.config_yaml.parse import read_tree
from prime_train.adapters.config_yaml.sheets import Sheet, read_sheet
from prime_train.core.finding import Finding, has_errors, in_order
from prime_train.core.masking import masked
from prime_train.core.spec import RunSpec

__all__ = ["BYTES_MAX", "Config", "Sheet", "masked", "read_config", "read_sheet", "read_text"]


@dataclass(frozen=True)
class Config:
    """What a file says. `spec` is None where it can not be understood; a spec with error findings must not be launched."""

    file: str
    spec: RunSpec | None
    findings: tuple[Finding, ...]
    source: str = field(default="", repr=False)
    """The text that was read; with secrets in it, if it has any."""
    root: Mapping | None = field(default=None, repr=False)
    """The keys and values as they stand there; None where they can not be told."""

    @property
    def is_fit(self) -> bool:
        """Whether the spec may be launched."""
        return self.spec is not None and not has_errors(self.findings)


def read_config(path: Path) -> Config:
    """Reads one file. Never raises for what is in it or for a file that is not there: that is a finding."""
    try:
        source = read_source(path)
    except Halt as halt:
        return Config(str(path), None, (finding(str(path), halt.trouble),))
    return read_text(source, str(path))


def read_text(source: str, file: str) -> Config:
    """As `read_config`, for text that has been read already."""
    try:
        root, troubles = read_tree(source)
    except Halt as halt:
        return Config(file, None, (finding(file, halt.trouble),), source)
    spec, mistakes = _validate(root)
    found = [finding(file, trouble) for trouble in (*troubles, *mistakes, *secrets.spelled_out(root))]
    return Config(file, spec, in_order(found), source, root)


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
