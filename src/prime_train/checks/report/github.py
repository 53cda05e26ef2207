"""Findings as GitHub annotations: one workflow command per line, shown at the finding's line in a pull
request.
"""

from collections.abc import Iterable

from prime_train.spec.finding import Finding, Severity
from prime_train.text.safe import without_commands

_COMMANDS = {Severity.ERROR: "error", Severity.WARNING: "warning", Severity.NOTE: "notice"}


def github(findings: Iterable[Finding]) -> str:
    return "\n".join(_line(finding) for finding in findings)


def _line(finding: Finding) -> str:
    where = {"file": finding.file, "line": finding.line, "col": finding.column, "title": finding.code}
    properties = ",".join(f"{name}={_property(str(value))}" for name, value in where.items())
    message = f"{finding.message}\nfix: {finding.fix}" if finding.fix else finding.message
    return f"::{_COMMANDS[finding.severity]} {properties}::{_data(without_commands(message))}"


def _data(text: str) -> str:
    """Return the text escaped for the message of a workflow command, as GitHub's own toolkit does."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
