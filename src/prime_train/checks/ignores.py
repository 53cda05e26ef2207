"""`# prime-train: ignore[CODE] reason`: marks a finding that a person has reviewed and accepts.

The comment is on the line of the finding, or alone on the line before it. Without a reason it has no effect;
a comment that no finding needs is reported, so that it does not outlive its purpose.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from prime_train.checks.all_rules import by_code
from prime_train.spec.finding import BUG, CODES, Finding, Severity, in_order

IGNORES_MAX = 200
"""Maximum number of comments read in one file; later ones have no effect."""
LINE_CHARS_MAX = 2000
CODES_MAX = 20
"""Maximum number of codes read in one comment; later ones have no effect."""

_COMMENT = re.compile(r"(?:^|\s)(#\s*prime-train:\s*ignore\b\s*(?:\[([^\]]*)\])?)[ \t]*:?[ \t]*(.*)$")
_UNREADABLE = frozenset(code for code in CODES if code < "PT020" or code == BUG)
"""Codes of files that cannot be parsed. They cannot be ignored, as there is nothing to launch."""


@dataclass(frozen=True)
class Ignore:
    """An `ignore` comment. `line`: the line whose findings are ignored; `stands` and `column`: the comment's
    own line and column.
    """

    file: str
    line: int
    codes: tuple[str, ...]
    reason: str
    stands: int
    column: int


def apply_ignores(findings: Iterable[Finding], sources: Mapping[str, str]) -> tuple[Finding, ...]:
    """Return the findings without the ignored ones, plus a note for each comment that has no effect."""
    found = list(findings)
    comments = [ignore for file, text in sources.items() for ignore in ignores(file, text)]
    silent = {
        (ignore.file, ignore.line, code)
        for ignore in comments
        if ignore.reason
        for code in ignore.codes
        if code not in _UNREADABLE
    }
    at = {(finding.file, finding.line, finding.code) for finding in found}
    notes = [note for ignore in comments for note in _notes(ignore, at)]
    return in_order([*(f for f in found if (f.file, f.line, f.code) not in silent), *notes])


def ignores(file: str, text: str) -> Iterator[Ignore]:
    """Yield every `ignore` comment of a file, in order."""
    if "prime-train:" not in text:
        return
    lines = text.split("\n")
    below = _below(lines)
    spoken_of = [at for at, line in enumerate(lines) if "prime-train:" in line]
    for at in spoken_of[:IGNORES_MAX]:
        line = lines[at]
        found = _COMMENT.search(line) if len(line) <= LINE_CHARS_MAX else None
        if found is None:
            continue
        codes = tuple(code.strip() for code in (found[2] or "").split(",") if code.strip())[:CODES_MAX]
        alone = not line[: found.start(1)].strip()
        yield Ignore(
            file, below[at] if alone else at + 1, codes, found[3].strip(), at + 1, found.start(1) + 1
        )


def _below(lines: list[str]) -> list[int]:
    """Return for each line the number of the next line that is not a comment, so that two ignores can be
    above one value.
    """
    found = [len(lines) + 1] * len(lines)
    for at in range(len(lines) - 2, -1, -1):
        found[at] = found[at + 1] if lines[at + 1].lstrip().startswith("#") else at + 2
    return found


def _notes(ignore: Ignore, at: Collection[tuple[str, int, str]]) -> Iterator[Finding]:
    def note(code: str, message: str, fix: str) -> Finding:
        return Finding(
            code, message, ignore.file, ignore.stands, ignore.column, severity=Severity.NOTE, fix=fix
        )

    if not ignore.codes:
        yield note(
            "PT091", "an ignore without a code ignores nothing", "name the code, such as ignore[PT020] reason"
        )
    elif not ignore.reason:
        yield note("PT090", "an ignore without a reason ignores nothing", "give the reason after the bracket")
    for code in ignore.codes:
        if code not in by_code() and code not in CODES:
            yield note(
                "PT091",
                f"{code[:20]!r} is not the code of a finding",
                "see docs/rules.md for the codes, or delete the comment",
            )
        elif code in _UNREADABLE:
            yield note(
                "PT091", f"{code} cannot be ignored: {CODES[code]}", "fix the problem, and delete the comment"
            )
        elif ignore.reason and (ignore.file, ignore.line, code) not in at:
            yield note(
                "PT092",
                f"this comment has no effect: line {ignore.line} has no finding {code}",
                "delete the comment",
            )
