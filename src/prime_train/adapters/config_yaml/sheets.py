"""A trainer's own config, TOML or YAML: its keys and values, whatever they mean."""

from dataclasses import dataclass, field
from pathlib import Path

from prime_train.adapters.config_yaml import parse, secrets
from prime_train.adapters.config_yaml.files import read_source
from prime_train.adapters.config_yaml.nodes import Mapping, ParseAborted, finding
from prime_train.core.finding import Finding, in_order

TOML = ".toml"


@dataclass(frozen=True)
class Sheet:
    """`root` is None where the file cannot be read, or says what only its trainer can read (YAML with tags or merges)."""

    file: str
    root: Mapping | None
    findings: tuple[Finding, ...] = ()
    source: str = field(default="", repr=False)


def read_sheet(path: Path, *, file: str = "") -> Sheet:
    """Never raises for what is in the file. `file`: as it is called in findings, and in every place of the tree."""
    name = file or str(path)
    source = ""
    try:
        source = read_source(path)
        root, troubles = (_toml(source, file), []) if path.suffix == TOML else parse.read_code(source)
    except ParseAborted as halt:
        return Sheet(name, None, (finding(name, halt.trouble),), source)
    if any(trouble.code == "PT007" for trouble in troubles):
        return Sheet(name, None, (), source)
    return Sheet(name, root, in_order([finding(name, trouble) for trouble in (*troubles, *secrets.spelled_out(root, source))]), source)


def _toml(source: str, file: str) -> Mapping:
    # Most configs are YAML: they need not wait for this.
    from prime_train.adapters.config_yaml.toml_tree import read_code

    return read_code(source, file)
