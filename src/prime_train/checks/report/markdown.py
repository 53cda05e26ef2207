"""Findings as Markdown for a pull request: the counts, then a table."""

from collections.abc import Sequence

from prime_train.spec.finding import Finding, Severity
from prime_train.text.markdown import code, plain

ROWS_MAX = 200
"""Maximum number of rows, which keeps the text within the 65,536 characters of a GitHub comment."""


def markdown(findings: Sequence[Finding], files: int) -> str:
    """Return the findings as Markdown. `files` is the number of configs checked."""
    if not findings:
        return f"**{_count(files, 'config')}: nothing found**\n"
    rows = [
        "| | where | what | what to do |",
        "|---|---|---|---|",
        *(_row(finding) for finding in findings[:ROWS_MAX]),
    ]
    more = [f"\n… and {len(findings) - ROWS_MAX} more"] if len(findings) > ROWS_MAX else []
    return "\n".join([f"**{counted(findings)} in {_count(files, 'config')}**", "", *rows, *more]) + "\n"


def counted(findings: Sequence[Finding]) -> str:
    """Return the counts by severity, such as "2 errors, 1 warning"."""
    found = [(severity, sum(finding.severity is severity for finding in findings)) for severity in Severity]
    return ", ".join(_count(count, severity.value) for severity, count in found if count)


def _row(finding: Finding) -> str:
    where = f"{code(f'{finding.file}:{finding.line}')}"
    return (
        f"| {finding.severity.value} | {where} | {code(finding.code)} {plain(finding.message)} "
        "| "
        f"{plain(finding.fix)} |"
    )


def _count(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
