"""Checks that files with requirements pin every package by hashes, and hold no secret: they become part of an image."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from prime_train.core.text.redaction import redacted

_HASH = re.compile(r"--hash=(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})(?=\s|$)")
_OPTIONS = re.compile(
    r"(?:-i|--index-url|--extra-index-url|-f|--find-links|--only-binary|--no-binary|--prefer-binary|--pre|--require-hashes)(?=[\s=]|$)"
)
_CREDENTIALS = re.compile(r"://[^/\s@]+@")
_SHOWN_CHARS = 80


@dataclass(frozen=True)
class RequirementProblem:
    """What is wrong with a file of requirements. `is_secret`: the line must not be shown."""

    line: int
    message: str
    fix: str
    is_secret: bool = False


def problems(text: str) -> Iterator[RequirementProblem]:
    """Yield what keeps these requirements out of an image."""
    for number, line in _logical_lines(text):
        if _CREDENTIALS.search(line) or redacted(line) != line:
            yield RequirementProblem(
                number, "what looks like a password or token would become part of the image", "use an index that needs none", is_secret=True
            )
        elif line.startswith("-"):
            if not _OPTIONS.match(line):
                yield RequirementProblem(
                    number, f"{line[:_SHOWN_CHARS]} is not supported here", "write the requirements themselves, pinned and with hashes"
                )
        elif not _HASH.search(line) or not re.search(r"[^=!<>~]==[^=]|@\s", line.split("--hash")[0]):
            name = line.split("--hash")[0].strip()[:_SHOWN_CHARS]
            yield RequirementProblem(
                number, f"{name} is not pinned by == and a hash", "write the file with: uv pip compile --generate-hashes"
            )


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, joined with those that it is continued on, without comments and empty ones."""
    begin, parts = 0, list[str]()
    for number, raw in enumerate(text.splitlines(), start=1):
        line = re.sub(r"(^|\s)#.*", "", raw).strip()
        begin = number if not parts else begin
        parts.append(line.removesuffix("\\").strip())
        if not line.endswith("\\"):
            joined = " ".join(filter(None, parts))
            parts = []
            if joined:
                yield begin, joined
    if joined := " ".join(filter(None, parts)):
        yield begin, joined
