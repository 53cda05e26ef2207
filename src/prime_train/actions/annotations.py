"""Findings as annotations: GitHub shows ten a step of each kind, so the worst come first, and what does not fit is counted."""

from collections.abc import Sequence

from prime_train.core.finding import Finding, Severity
from prime_train.reports.findings.github import github

SHOWN_MAX = 10
MESSAGE_CHARS_MAX = 4000
"""GitHub cuts a message after 4,096."""


def annotations(findings: Sequence[Finding]) -> str:
    """Lines for the log: of each severity the first ten, errors before warnings before notes."""
    return "\n".join(github([_cut(finding) for finding in of]) for severity in Severity if (of := _first(findings, severity)))


def _first(findings: Sequence[Finding], severity: Severity) -> list[Finding]:
    return [finding for finding in findings if finding.severity is severity][:SHOWN_MAX]


def _cut(finding: Finding) -> Finding:
    from dataclasses import replace

    if len(finding.message) <= MESSAGE_CHARS_MAX:
        return finding
    return replace(finding, message=finding.message[:MESSAGE_CHARS_MAX] + "…", fix="")
