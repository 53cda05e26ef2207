"""Print findings on a terminal: the line they refer to, a caret under the position, and the fix."""

import json
import os
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence

from prime_train.advice import Advice, Call, Operation
from prime_train.exit_codes import Exit
from prime_train.spec.finding import Finding, Severity
from prime_train.terminal.output import print_coloured
from prime_train.text.invocations import worded
from prime_train.text.redaction import redacted

LINE_CHARS_MAX = 160
INDENT = " " * 7
_BOLD = 1
_COLOURS = {Severity.ERROR: 31, Severity.WARNING: 33, Severity.NOTE: 34}
_JSON_KEYS = ("code", "severity", "file", "line", "column", "message", "fix")


def print_findings(findings: Iterable[Finding], sources: Mapping[str, str]) -> None:
    """Print the findings. `sources`: the text of each file that could be read."""
    lines = {file: source.split("\n") if source else [] for file, source in sources.items()}
    for place, finding in enumerate(findings):
        if place and lines and sys.stdout.isatty():
            print()
        print_coloured(text(finding, lines.get(finding.file, [])))


def print_json(findings: Iterable[Finding]) -> None:
    rows = [{key: finding.row()[key] for key in _JSON_KEYS} for finding in findings]
    print(json.dumps(rows, indent=2))


def text(finding: Finding, lines: Sequence[str]) -> str:
    """Return the finding with its source line, coloured if the output is a terminal."""
    # What was set over a file, by an option say, has no line.
    place = f":{finding.line}:{finding.column}" if finding.line else ""
    where, what = f"{_shown(finding.file)}{place}: ", f"{finding.severity.value} {finding.code}"
    wrapped = _wrapped(_shown(finding.message), len(where) + len(what) + 2, INDENT)
    parts = [f"{where}{_styled(what, _BOLD, _COLOURS[finding.severity])}: {wrapped}"]
    # The line of a secret is not shown, because output ends up in logs.
    if 0 < finding.line <= len(lines) and not finding.is_about_secret:
        parts += _marked(lines[finding.line - 1], finding)
    if finding.fix:
        parts.append(
            f"{INDENT}{_styled('fix:', _BOLD)} "
            f"{_wrapped(_shown(finding.fix), len(INDENT) + 5, INDENT + ' ' * 5)}"
        )
    if finding.code in SEE_ALSO:
        parts.append(f"{INDENT}{_styled('see:', _BOLD)} {worded(SEE_ALSO[finding.code])}")
    return "\n".join(parts)


def print_refusal(findings: Collection[Finding], sources: Mapping[str, str]) -> Exit:
    """Print the findings, and their number to standard error. Return the exit code for them."""
    print_findings(findings, sources)
    files = {finding.file for finding in findings}
    plural, of_files = ("" if len(some) == 1 else "s" for some in (findings, files))
    print(f"{len(findings)} finding{plural} in {len(files)} file{of_files}", file=sys.stderr)
    return Exit.FINDINGS


def _marked(line: str, finding: Finding) -> list[str]:
    start = max(0, finding.column - LINE_CHARS_MAX)
    # More than is shown is redacted, because a secret at the edge may only be recognisable with the text
    # beyond it.
    first = max(0, start - LINE_CHARS_MAX)
    shown = _shown(redacted(line[first : start + 2 * LINE_CHARS_MAX]))[start - first :][:LINE_CHARS_MAX]
    number = f"{finding.line:>6}"
    padding = " " * _cells(shown[: finding.column - 1 - start])
    return [f"{number} | {shown}", f"{INDENT}| {padding}{_styled('^', _BOLD)}"]


def _wrapped(text: str, used: int, indent: str) -> str:
    """Wrap text to the width of the terminal, with `used` characters before the first word and `indent`
    before the other lines. Text for other outputs is returned unchanged.
    """
    if not sys.stdout.isatty():
        return text
    width = max(shutil.get_terminal_size().columns, 2 * len(indent))
    before = " " * min(used, width - 1)
    lines = textwrap.wrap(
        text,
        width,
        initial_indent=before,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(lines)[len(before) :]


def _cells(text: str) -> int:
    """Return the width of the text in terminal cells."""
    return sum(
        0 if unicodedata.combining(char) else 2 if unicodedata.east_asian_width(char) in "WF" else 1
        for char in text
    )


def _styled(text: str, *codes: int) -> str:
    if not sys.stdout.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\033[{';'.join(map(str, codes))}m{text}\033[0m"


def _shown(text: str) -> str:
    """Return the text with control characters replaced by spaces."""
    return "".join(char if char.isprintable() else " " for char in text)


_FIND = Advice(Call(Operation.FIND), ", which lists the GPUs for rent")
_MEMORY = Advice(Call(Operation.MEMORY), ", which shows what the memory is used for")

SEE_ALSO = {**dict.fromkeys(("HW101", "HW102"), _FIND), **dict.fromkeys(("ME201", "ME202"), _MEMORY)}
