"""Print findings as GitHub annotations. GitHub shows at most ten of each severity per step, so only the first
ten of each are printed.
"""

from collections.abc import Sequence
from dataclasses import replace

from prime_train.checks.report.github import github
from prime_train.spec.finding import Finding, Severity

SHOWN_MAX = 10
MESSAGE_CHARS_MAX = 4000
"""Maximum length of an annotation message; GitHub truncates messages after 4,096 characters."""


def annotations(findings: Sequence[Finding]) -> str:
    """Return the workflow commands for the log: at most `SHOWN_MAX` findings of each severity, in the order
    error, warning, note.
    """
    return "\n".join(
        github([_cut(finding) for finding in of])
        for severity in Severity
        if (of := _first(findings, severity))
    )


def _first(findings: Sequence[Finding], severity: Severity) -> list[Finding]:
    return [finding for finding in findings if finding.severity is severity][:SHOWN_MAX]


def _cut(finding: Finding) -> Finding:
    if len(finding.message) <= MESSAGE_CHARS_MAX:
        return finding
    return replace(finding, message=finding.message[:MESSAGE_CHARS_MAX] + "…", fix="")
