"""Findings as Markdown, for a pull request: how many there are, then a table."""

import re
from collections.abc import Sequence

from prime_train.core.finding import Finding, Severity

_SPECIAL = re.compile(r"[\\`*\[\]<>|~$&]|(?<!\w)_|_(?!\w)")
"""What would be read as Markdown or as HTML; an underscore within a word is none of it."""
_LINK = re.compile(r"(?<![\w/])(@|#)(?=\w)")
"""Of a person or an issue."""
ROWS_MAX = 200
"""A comment of GitHub's holds 65,536 characters."""


def markdown(findings: Sequence[Finding], files: int) -> str:
    """`files`: how many were checked."""
    if not findings:
        return f"**{_count(files, 'config')}: nothing found**\n"
    rows = ["| | where | what | what to do |", "|---|---|---|---|", *(_row(finding) for finding in findings[:ROWS_MAX])]
    more = [f"\n… and {len(findings) - ROWS_MAX} more"] if len(findings) > ROWS_MAX else []
    return "\n".join([f"**{counted(findings)} in {_count(files, 'config')}**", "", *rows, *more]) + "\n"


def counted(findings: Sequence[Finding]) -> str:
    """2 errors, 1 warning"""
    found = [(severity, sum(finding.severity is severity for finding in findings)) for severity in Severity]
    return ", ".join(_count(count, severity.value) for severity, count in found if count)


def _row(finding: Finding) -> str:
    where = f"{_code(f'{finding.file}:{finding.line}')}"
    return f"| {finding.severity.value} | {where} | {_code(finding.code)} {escaped(finding.message)} | {escaped(finding.fix)} |"


def _code(text: str) -> str:
    """As code, where nothing but the quote, the bar and the end of the line mean something."""
    kept = _one_line(text).replace("|", "\\|")
    return f"`` {kept} ``" if "`" in kept else f"`{kept}`"


def escaped(text: str) -> str:
    """As text, whatever it would mean in Markdown or HTML."""
    return _LINK.sub("\\1\u200b", _SPECIAL.sub(r"\\\g<0>", _one_line(text)))


def _one_line(text: str) -> str:
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())


def _count(count: int, word: str) -> str:
    return f"{count} {word}{'' if count == 1 else 's'}"
