"""Findings as SARIF 2.1.0, the format of code-scanning tools."""

from collections.abc import Sequence
from pathlib import Path, PurePath
from typing import Any
from urllib.parse import quote

from prime_train.checks.all_rules import by_code
from prime_train.spec.finding import CODES, Finding, Severity
from prime_train.text.markdown import plain
from prime_train.version import __version__

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
RESULTS_MAX = 5000
"""Maximum number of results that GitHub shows for one run of a tool, the most severe first."""
_LEVELS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "note"}


def sarif(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the complete SARIF log, with one run of one tool."""
    shown = sorted(findings, key=lambda finding: list(Severity).index(finding.severity))[:RESULTS_MAX]
    codes = sorted({finding.code for finding in shown})
    driver = {"name": "prime-train", "version": __version__, "rules": [_rule(code) for code in codes]}
    results = [_result(finding, codes.index(finding.code)) for finding in shown]
    run = {"tool": {"driver": driver}, "columnKind": "unicodeCodePoints", "results": results}
    if len(shown) < len(findings):
        run["invocations"] = [_cut(len(findings) - len(shown))]
    return {"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}


def _rule(code: str) -> dict[str, Any]:
    rule = by_code().get(code)
    if rule is None:
        return {"id": code, "shortDescription": {"text": CODES.get(code, code)}}
    return {
        "id": code,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": rule.why},
        "help": {"text": rule.fix, "markdown": f"{plain(rule.why)}\n\n**What to do:** {plain(rule.fix)}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
        "properties": {"tags": [rule.topic]},
    }


def _cut(count: int) -> dict[str, Any]:
    message = f"{count:,} more findings are left out: only the first {RESULTS_MAX:,} are listed, errors first"
    return {
        "executionSuccessful": True,
        "toolExecutionNotifications": [{"level": "warning", "message": {"text": message}}],
    }


def _result(finding: Finding, index: int) -> dict[str, Any]:
    message = f"{finding.message}\n{finding.fix}" if finding.fix else finding.message
    region = {"startLine": finding.line, "startColumn": finding.column}
    place = {"artifactLocation": {"uri": _uri(finding.file)}, "region": region}
    return {
        "ruleId": finding.code,
        "ruleIndex": index,
        "level": _LEVELS[finding.severity],
        "message": {"text": message},
        "locations": [{"physicalLocation": place}],
    }


def _uri(file: str) -> str:
    """Return the file as a URI. If the file is below the current folder, which is the repository's root, the
    URI is relative to that folder.
    """
    path = PurePath(file)
    if path.is_absolute() and path.is_relative_to(Path.cwd()):
        path = path.relative_to(Path.cwd())
    return path.as_uri() if path.is_absolute() else quote(path.as_posix())
