"""One mistake in a config: where it is, what is wrong, and what to do. How it is printed is not its business."""

from dataclasses import asdict, dataclass
from enum import StrEnum


class Severity(StrEnum):
    """An error keeps a run from being launched; a warning and a note do not."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


CODES: dict[str, str] = {
    "PT001": "the file can not be read",
    "PT002": "the file is too large",
    "PT003": "the file is not text",
    "PT004": "not YAML",
    "PT005": "not one mapping",
    "PT006": "a key is written twice",
    "PT007": "YAML that is not read: a tag, a merge, a key that is no word",
    "PT008": "too much YAML: too many values, aliases or levels",
    "PT010": "unknown key",
    "PT011": "a key is missing",
    "PT012": "a value of the wrong kind",
    "PT013": "a value that is not possible",
    "PT014": "a word or text that YAML reads as something else",
    "PT020": "a secret is spelled out",
    "PT021": "a secret that is named is not set",
    "PT030": "the working tree can not be packed",
}
"""What each code stands for; a code never changes its meaning."""


@dataclass(frozen=True)
class Finding:
    """`line` and `column` count from 1; `value` is what was seen, cut short, empty where it must not be shown."""

    code: str
    message: str
    file: str
    line: int = 1
    column: int = 1
    severity: Severity = Severity.ERROR
    fix: str = ""
    value: str = ""

    def __post_init__(self) -> None:
        if self.code not in CODES:
            raise ValueError(f"{self.code} is not in the table of codes")

    def row(self) -> dict[str, str | int]:
        """All of it, for JSON."""
        return asdict(self)


def has_errors(findings: tuple[Finding, ...]) -> bool:
    return any(finding.severity is Severity.ERROR for finding in findings)


def in_order(findings: list[Finding]) -> tuple[Finding, ...]:
    """Each once, as they stand in their files."""
    return tuple(sorted(dict.fromkeys(findings), key=lambda f: (f.file, f.line, f.column, f.code, f.message)))
