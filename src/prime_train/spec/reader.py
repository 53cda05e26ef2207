"""Parses YAML config files into specs, and reports every mistake at once with its line and column."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.spec import written_secrets as secrets
from prime_train.spec import yaml_tree
from prime_train.spec.finding import Finding, has_errors, in_order
from prime_train.spec.finding_drafts import Mapping, ParseAborted, finding
from prime_train.spec.overrides import ChosenSetting, with_settings
from prime_train.spec.pydantic_errors import checked
from prime_train.spec.source_file import BYTES_MAX, read_source
from prime_train.spec.spec import RunSpec
from prime_train.spec.yaml_tree import read_code
from prime_train.text.redaction import redacted

__all__ = [
    "BYTES_MAX",
    "Config",
    "TrainerConfigFile",
    "read_config",
    "read_text",
    "read_trainer_config",
    "redacted",
]


@dataclass(frozen=True)
class Config:
    """The content of a config file. `spec` is None if the file is not valid; a spec with error findings must
    not be launched.
    """

    file: str
    spec: RunSpec | None
    findings: tuple[Finding, ...]
    source: str = field(default="", repr=False)
    """The text of the file, including any secrets in it."""
    root: Mapping | None = field(default=None, repr=False)
    """The file's keys and values; None if it could not be parsed."""

    @property
    def is_fit(self) -> bool:
        """Whether the spec may be launched."""
        return self.spec is not None and not has_errors(self.findings)


def read_config(path: Path, *, settings: Sequence[ChosenSetting] = ()) -> Config:
    """Read one config file. Never raises for a missing file or for its content: both become findings.
    `settings`: values that override the file's.
    """
    try:
        source = read_source(path)
    except ParseAborted as halt:
        return Config(str(path), None, (finding(str(path), halt.draft),))
    return read_text(source, str(path), settings=settings)


def read_text(source: str, file: str, *, settings: Sequence[ChosenSetting] = ()) -> Config:
    """Parse a config's text as `read_config` does. `file` is its name in findings."""
    try:
        root, drafts = read_code(source)
    except ParseAborted as halt:
        return Config(file, None, (finding(file, halt.draft),), source)
    root = with_settings(root, settings) if settings else root
    spec, of_spec = checked(root)
    spelled_out = list(secrets.spelled_out(root, source))
    # A secret in place of another value is one mistake, not two.
    at = {draft.place for draft in spelled_out}
    others = [draft for draft in of_spec if draft.code != "PT013" or draft.place not in at]
    found = [finding(file, draft) for draft in (*drafts, *others, *spelled_out)]
    return Config(file, spec, in_order(found), source, root)


TOML = ".toml"


@dataclass(frozen=True)
class TrainerConfigFile:
    """A trainer's config. `root` is None if the file cannot be read, or uses YAML that only its trainer can
    read (tags or merge keys).
    """

    file: str
    root: Mapping | None
    findings: tuple[Finding, ...] = ()
    source: str = field(default="", repr=False)


def read_trainer_config(path: Path, *, file: str = "") -> TrainerConfigFile:
    """Read one file; mistakes become findings and are never raised. `file` is its name in findings and in
    every place of the tree.
    """
    name = file or str(path)
    source = ""
    try:
        source = read_source(path)
        root, drafts = (_toml(source, file), []) if path.suffix == TOML else yaml_tree.read_code(source)
    except ParseAborted as halt:
        return TrainerConfigFile(name, None, (finding(name, halt.draft),), source)
    if any(draft.code == "PT007" for draft in drafts):
        return TrainerConfigFile(name, None, (), source)
    return TrainerConfigFile(
        name,
        root,
        in_order([finding(name, draft) for draft in (*drafts, *secrets.spelled_out(root, source))]),
        source,
    )


def _toml(source: str, file: str) -> Mapping:
    # Imported only here: most configs are YAML, and do not need it.
    from prime_train.spec.toml_tree import read_code

    return read_code(source, file)
