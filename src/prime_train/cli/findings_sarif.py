"""Findings as SARIF 2.1.0, which code-scanning tools read."""

from collections.abc import Sequence
from pathlib import PurePath
from typing import Any
from urllib.parse import quote

from prime_train import __version__
from prime_train.core.finding import CODES, Finding, Severity
from prime_train.rules import by_code

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """The whole log: one run of one tool."""
    codes = sorted({finding.code for finding in findings})
    driver = {"name": "prime-train", "version": __version__, "rules": [_rule(code) for code in codes]}
    results = [_result(finding, codes.index(finding.code)) for finding in findings]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    rule = by_code().get(code)
    if rule is None:
        return {"id": code, "shortDescription": {"text": CODES.get(code, code)}}
    return {
        "id": code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.fix},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    said = f"{finding.message}\n{finding.fix}" if finding.fix else finding.message
    region = {"startLine": finding.line, "startColumn": finding.column}
    place = {"artifactLocation": {"uri": _uri(finding.file)}, "region": region}
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": said},
        "locations": [{"physicalLocation": place}],
    }


def _uri(file: str) -> str:
    path = PurePath(file)
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
