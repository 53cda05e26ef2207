"""Checks that the files with an image's requirements are there, pin every package by hashes, and hold no
secret: they become part of the image.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from prime_train.configs.working_tree import WorkingTree
from prime_train.spec.finding import Finding
from prime_train.spec.finding_drafts import ParseAborted, finding
from prime_train.spec.reader import Config
from prime_train.spec.source_file import read_source
from prime_train.spec.tree import place_of
from prime_train.text.redaction import HIDDEN, redacted

_HASH = re.compile(r"--hash=(?:sha256:[0-9a-f]{64}|sha384:[0-9a-f]{96}|sha512:[0-9a-f]{128})(?=\s|$)")
_OPTIONS = re.compile(
    r"(?:-i|--index-url|--extra-index-url|-f|--find-links|--only-binary|--no-binary|--prefer-binary|--pre|"
    r"--require-hashes)(?=[\s=]|$)"
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


def findings_on_requirements(config: Config) -> list[Finding]:
    """Return what keeps the requirements of the image from being installed, as far as they are on this
    machine.
    """
    spec, root = config.spec, config.root
    if spec is None or root is None or spec.image is None or spec.trainer.code.ref is not None:
        return []
    tree, found = WorkingTree(config.file, spec.trainer.code.folder), list[Finding]()
    for at, name in enumerate(spec.image.requirements):
        path = tree.find(name, inside=True)
        if path is not None:
            try:
                text = read_source(path)
            except ParseAborted as halt:
                found.append(finding(str(path), halt.draft))
                continue
            found += [
                Finding(
                    "PT025",
                    one.message,
                    str(path),
                    one.line,
                    fix=one.fix,
                    value=HIDDEN if one.is_secret else "",
                )
                for one in problems(text)
            ]
            continue
        if tree.find(name) is not None:
            message = f"{name} is a link that leads out of the working tree, and is not followed"
            fix = "put the file itself into the working tree"
        elif spec.trainer.code.repo is None:
            message = (
                f"there is no file {name} in the working tree, from which the image's requirements are read"
            )
            fix = "check the path, which is relative to the working tree"
        else:
            continue
        place = place_of(root, ("image", "requirements", at))
        found.append(Finding("PT025", message, config.file, place.line, place.column, fix=fix, value=name))
    return found


def problems(text: str) -> Iterator[RequirementProblem]:
    """Yield what keeps these requirements out of an image."""
    for number, line in _logical_lines(text):
        if _CREDENTIALS.search(line) or redacted(line) != line:
            yield RequirementProblem(
                number,
                "what looks like a password or token would become part of the image",
                "use an index that needs none",
                is_secret=True,
            )
        elif line.startswith("-"):
            if not _OPTIONS.match(line):
                yield RequirementProblem(
                    number,
                    f"{line[:_SHOWN_CHARS]} is not supported here",
                    "write the requirements themselves, pinned and with hashes",
                )
        elif not _HASH.search(line) or not re.search(r"[^=!<>~]==[^=]|@\s", line.split("--hash")[0]):
            name = line.split("--hash")[0].strip()[:_SHOWN_CHARS]
            yield RequirementProblem(
                number,
                f"{name} is not pinned by == and a hash",
                "write the file with: uv pip compile --generate-hashes",
            )


def _logical_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number, joined with those that it is continued on, without comments and empty
    ones.
    """
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
