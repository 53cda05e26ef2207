"""Parses YAML config files into specs, and reports every mistake at once with its line and column."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from prime_train.adapters.config_yaml import secrets
from prime_train.adapters.config_yaml.files import BYTES_MAX, read_source
from prime_train.adapters.config_yaml.nodes import Draft, Mapping, ParseAborted, finding, plain
from prime_train.adapters.config_yaml.parse import read_code
from prime_train.adapters.config_yaml.sheets import Sheet, read_sheet
from prime_train.core.finding import Finding, has_errors, in_order
from prime_train.core.plain import spec as spec_plain
from prime_train.core.text.redaction import masked

if TYPE_CHECKING:
    from collections.abc import Sequence

    from prime_train.adapters.config_yaml.settings import Setting
    from prime_train.core.spec import RunSpec

__all__ = ["BYTES_MAX", "Config", "Sheet", "masked", "read_config", "read_sheet", "read_text"]


@dataclass(frozen=True)
class Config:
    """The content of a config file. `spec` is None if the file is not valid; a spec with error findings must not be launched."""

    file: str
    spec: "RunSpec | None"
    findings: tuple[Finding, ...]
    source: str = field(default="", repr=False)
    """The text of the file, including any secrets in it."""
    root: Mapping | None = field(default=None, repr=False)
    """The file's keys and values; None if it could not be parsed."""

    @property
    def is_fit(self) -> bool:
        """Whether the spec may be launched."""
        return self.spec is not None and not has_errors(self.findings)


def read_config(path: Path, *, plainly: bool = False, settings: "Sequence[Setting]" = ()) -> Config:
    """Read one config file. Never raises for a missing file or for its content: both become findings.

    With `plainly`, a spec that is certainly valid is read without loading pydantic; it then has a spec's values, but is not a `RunSpec`.
    `settings`: values that are set over the file's.
    """
    try:
        source = read_source(path)
    except ParseAborted as halt:
        return Config(str(path), None, (finding(str(path), halt.trouble),))
    return read_text(source, str(path), plainly=plainly, settings=settings)


def read_text(source: str, file: str, *, plainly: bool = False, settings: "Sequence[Setting]" = ()) -> Config:
    """Parse a config's text as `read_config` does. `file` is its name in findings."""
    try:
        root, troubles = read_code(source)
    except ParseAborted as halt:
        return Config(file, None, (finding(file, halt.trouble),), source)
    if settings:
        from prime_train.adapters.config_yaml.settings import laid_over

        root = laid_over(root, settings)
    spec, mistakes = _spec(root, plainly=plainly)
    spelled_out = list(secrets.spelled_out(root, source))
    # A secret in place of another value is one mistake, not two.
    at = {trouble.place for trouble in spelled_out}
    others = [mistake for mistake in mistakes if mistake.code != "PT013" or mistake.place not in at]
    found = [finding(file, trouble) for trouble in (*troubles, *others, *spelled_out)]
    return Config(file, spec, in_order(found), source, root)


def _spec(root: Mapping, *, plainly: bool) -> "tuple[RunSpec | None, list[Draft]]":
    found = spec_plain.read(plain(root)) if plainly else None
    if found is not None:
        return found, []
    # Imported only here: the validation library is slow to load.
    from prime_train.adapters.config_yaml.checked import checked

    return checked(root)
