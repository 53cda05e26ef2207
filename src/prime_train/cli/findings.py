"""Findings on a terminal: the line they are about, a caret under the place, and what to do."""

import json
import sys
from collections.abc import Iterable, Mapping

import typer

from prime_train.adapters.config_yaml import masked
from prime_train.core.finding import Finding, Severity

LINE_CHARS_MAX = 160
_COLOURS = {Severity.ERROR: "red", Severity.WARNING: "yellow", Severity.NOTE: "blue"}
_JSON_KEYS = ("code", "severity", "file", "line", "column", "message", "fix")


def print_findings(findings: Iterable[Finding], sources: Mapping[str, str]) -> None:
    """`sources` has the text of each file that could be read."""
    for finding in findings:
        typer.echo(text(finding, sources.get(finding.file, "")))


def print_json(findings: Iterable[Finding]) -> None:
    rows = [{key: finding.row()[key] for key in _JSON_KEYS} for finding in findings]
    print(json.dumps(rows, indent=2))


def text(finding: Finding, source: str) -> str:
    """The finding with its line. Colours are left out by typer where the output is no terminal."""
    head = typer.style(f"{finding.severity.value} {finding.code}", fg=_COLOURS[finding.severity], bold=True)
    parts = [f"{finding.file}:{finding.line}:{finding.column}: {head}: {_shown(finding.message)}"]
    # The line of a secret is not shown: output ends up in logs.
    lines = source.splitlines()
    if 0 < finding.line <= len(lines) and finding.code != "PT020":
        parts += _marked(lines[finding.line - 1], finding)
    if finding.fix:
        parts.append(f"       {typer.style('fix:', bold=True)} {_shown(finding.fix)}")
    return "\n".join(parts)


def summary(findings: Iterable[Finding], files: int) -> None:
    """How many there were, to the error output."""
    count = len(list(findings))
    plural = "" if count == 1 else "s"
    print(f"{count} finding{plural} in {files} file{'' if files == 1 else 's'}", file=sys.stderr)


def _marked(line: str, finding: Finding) -> list[str]:
    start = max(0, finding.column - LINE_CHARS_MAX)
    shown = _shown(masked(line))[start : start + LINE_CHARS_MAX]
    number = f"{finding.line:>6}"
    return [f"{number} | {shown}", f"       | {' ' * (finding.column - 1 - start)}{typer.style('^', bold=True)}"]


def _shown(text: str) -> str:
    """Without what would move the cursor."""
    return "".join(char if char.isprintable() else " " for char in text)
