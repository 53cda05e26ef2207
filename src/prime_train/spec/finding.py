"""A finding: a mistake in a config with its position, the problem and the fix. How findings are printed is
decided elsewhere.
"""

import re
from dataclasses import asdict, dataclass
from enum import StrEnum

from prime_train.text.redaction import HIDDEN


class Severity(StrEnum):
    """The severity of a finding. An error prevents the launch of a run; a warning and a note do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


BUG = "PT099"
SECRET = "PT020"
CODES: dict[str, str] = {
    "PT001": "the file cannot be read",
    "PT002": "the file is too large",
    "PT003": "the file is not text",
    "PT004": "not YAML, or not TOML",
    "PT005": "not one mapping",
    "PT006": "a key occurs twice",
    "PT007": "unsupported YAML: a tag, a merge, or a key that is not a word",
    "PT008": "the YAML is too large: too many values, aliases or levels",
    "PT009": "not the config of a known trainer",
    "PT010": "unknown key",
    "PT011": "a key is missing",
    "PT012": "a value of the wrong type",
    "PT013": "a value that is not allowed",
    "PT014": "a word or text that YAML interprets differently",
    SECRET: "a secret is written in plain text",
    "PT021": "a secret that is listed is not set",
    "PT022": "a placeholder was not filled in",
    "PT023": "this machine does not meet the requirements",
    "PT024": "the newest run does not meet what the config requires of its results",
    "PT025": "requirements of the image are missing, not pinned by hashes, or hold a secret",
    "PT026": "the provider does not start machines from this image",
    "PT027": "the operator's policy does not allow what the config chooses",
    "PT028": "the script was not rehearsed",
    "PT030": "the working tree cannot be packed, or lacks files that the command names",
    "PT090": "an ignore comment without a reason",
    "PT091": "an ignore comment for a finding that cannot be ignored",
    "PT092": "an ignore comment that has no effect",
    BUG: "a bug in prime-train prevented the check of the file",
}
"""Meanings of the codes for findings about reading a file; the codes of rules are defined by the rules. A
code never changes its meaning.
"""

CODE_PREFIXES: dict[str, str] = {
    "PT0": "the spec",
    "HW1": "hardware",
    "ME2": "memory",
    "PR3": "prime-rl",
    "TR4": "other trainers",
    "RE5": "resilience",
    "TO6": "tools",
}
"""Families of codes by their first three characters; two digits follow."""

_CODE = re.compile(f"({'|'.join(CODE_PREFIXES)})[0-9]{{2}}")


@dataclass(frozen=True)
class Finding:
    """A mistake in a config. `line` and `column` count from 1; `value` is the offending value, cut short,
    empty if it is secret.
    """

    code: str
    message: str
    file: str
    line: int = 1
    column: int = 1
    severity: Severity = Severity.ERROR
    fix: str = ""
    value: str = ""

    def __post_init__(self) -> None:
        if not _CODE.fullmatch(self.code):
            raise ValueError(
                f"{self.code} is not a code: {', '.join(f'{start}xx' for start in CODE_PREFIXES)}"
            )

    @property
    def is_about_secret(self) -> bool:
        """Whether the line that it refers to contains a secret, so that the line must not be shown."""
        return self.code == SECRET or self.value == HIDDEN

    def row(self) -> dict[str, str | int]:
        """Return all fields as a mapping for JSON."""
        return asdict(self)


def has_errors(findings: tuple[Finding, ...]) -> bool:
    return any(finding.severity is Severity.ERROR for finding in findings)


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Return each finding once, sorted by file and position."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda f: (f.file, f.line, f.column, f.code, f.message)))
