"""Parses a trainer's own config, TOML or YAML, into keys and values without interpreting them."""

from dataclasses import dataclass, field
from pathlib import Path

from prime_train.spec import written_secrets as secrets
from prime_train.spec import yaml_tree
from prime_train.spec.finding import Finding, in_order
from prime_train.spec.finding_drafts import Mapping, ParseAborted, finding
from prime_train.spec.source_file import read_source

TOML = ".toml"


@dataclass(frozen=True)
class TrainerConfigFile:
    """A trainer's config. `root` is None if the file cannot be read, or uses YAML that only its trainer can read (tags or merge keys)."""

    file: str
    root: Mapping | None
    findings: tuple[Finding, ...] = ()
    source: str = field(default="", repr=False)


def read_trainer_config(path: Path, *, file: str = "") -> TrainerConfigFile:
    """Read one file; mistakes become findings and are never raised. `file` is its name in findings and in every place of the tree."""
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
        name, root, in_order([finding(name, draft) for draft in (*drafts, *secrets.spelled_out(root, source))]), source
    )


def _toml(source: str, file: str) -> Mapping:
    # Imported only here: most configs are YAML, and do not need it.
    from prime_train.spec.toml_tree import read_code

    return read_code(source, file)
