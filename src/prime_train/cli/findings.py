"""Findings on a terminal: the line they are about, a caret under the place, and what to do."""

import json
import os
import sys
from collections.abc import Iterable, Mapping, Sequence

from prime_train.core.finding import Finding, Severity
from prime_train.core.masking import HIDDEN, masked

LINE_CHARS_MAX = 160
_BOLD = 1
_COLOURS = {Severity.ERROR: 31, Severity.WARNING: 33, Severity.NOTE: 34}
_JSON_KEYS = ("code", "severity", "file", "line", "column", "message", "fix")


def print_findings(findings: Iterable[Finding], sources: Mapping[str, str]) -> None:
    """`sources` has the text of each file that could be read."""
    lines = {file: source.split("\n") if source else [] for file, source in sources.items()}
    for finding in findings:
        print(text(finding, lines.get(finding.file, [])))


def print_json(findings: Iterable[Finding]) -> None:
    rows = [{key: finding.row()[key] for key in _JSON_KEYS} for finding in findings]
    print(json.dumps(rows, indent=2))


def text(finding: Finding, lines: Sequence[str]) -> str:
    """The finding with its line; in colours where that is a terminal."""
    head = _styled(f"{finding.severity.value} {finding.code}", _BOLD, _COLOURS[finding.severity])
    parts = [f"{finding.file}:{finding.line}:{finding.column}: {head}: {_shown(finding.message)}"]
    # The line of a secret is not shown: output ends up in logs.
    if 0 < finding.line <= len(lines) and finding.code != "PT020" and finding.value != HIDDEN:
        parts += _marked(lines[finding.line - 1], finding)
    if finding.fix:
        parts.append(f"       {_styled('fix:', _BOLD)} {_shown(finding.fix)}")
    return "\n".join(parts)


def summary(findings: Iterable[Finding], files: int) -> None:
    """How many there were, to the error output."""
    count = len(list(findings))
    plural = "" if count == 1 else "s"
    print(f"{count} finding{plural} in {files} file{'' if files == 1 else 's'}", file=sys.stderr)


def _marked(line: str, finding: Finding) -> list[str]:
    start = max(0, finding.column - LINE_CHARS_MAX)
    # A secret at the edge of what is shown is known by what lies beyond it.
    first = max(0, start - LINE_CHARS_MAX)
    shown = _shown(masked(line[first : start + 2 * LINE_CHARS_MAX]))[start - first :][:LINE_CHARS_MAX]
    number = f"{finding.line:>6}"
    return [f"{number} | {shown}", f"       | {' ' * (finding.column - 1 - start)}{_styled('^', _BOLD)}"]


def _styled(text: str, *codes: int) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\033[{';'.join(map(str, codes))}m{text}\033[0m"


def _shown(text: str) -> str:
    """Without what would move the cursor."""
    return "".join(char if char.isprintable() else " " for char in text)
