"""Compare two sets of versions of a run's outputs: two attempts, two steps, or the newest versions with those
before.
"""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypedDict

from prime_train.buckets.port import Bucket
from prime_train.errors import UsageError
from prime_train.outputs.lookup import RunOutputs, check_attempt
from prime_train.outputs.manifest import (
    OutputChange,
    OutputVersion,
    newest_outputs,
    output_changes,
    previous_outputs,
)
from prime_train.outputs.stored_content import chunks_of
from prime_train.text.globs import matches

TEXT_BYTES_MAX = 256 * 1024
LINES_MAX = 5000
"""Maximum number of lines of a text that is compared line by line; the time that this takes may grow with the
square of it.
"""
_VERSION = re.compile(r"([0-9]{1,9})?(?:@([0-9]{1,12}))?")


class ChangeRow(TypedDict):
    """An output that differs; sizes in bytes, None where there is no such version."""

    path: str
    kind: str
    before_bytes: int | None
    after_bytes: int | None


@dataclass(frozen=True)
class OutputDiff:
    """The outputs that differ. `before` and `after` describe what was compared."""

    before: str
    after: str
    changes: Sequence[OutputChange]

    @property
    def rows(self) -> list[ChangeRow]:
        return [
            ChangeRow(
                path=one.path, kind=one.kind, before_bytes=_size(one.before), after_bytes=_size(one.after)
            )
            for one in self.changes
        ]


def diff(
    outputs: RunOutputs, before: str = "", after: str = "", *, patterns: Sequence[str] = ()
) -> OutputDiff:
    """Return the differences between two sets of versions.

    A set is named `ATTEMPT`, `@STEP` or `ATTEMPT@STEP`. By default `after` is the newest set. `before` is
    then the newest set from before the last attempt with outputs or, if only one attempt has outputs, the
    previous version of each output. `patterns`: only files that one of these glob patterns chooses. Raises
    UsageError if a name is not valid or the attempt has no outputs.
    """
    now = _versions(outputs, after) if after else outputs.newest()
    old, name = (_versions(outputs, before), f"version {before}") if before else _before(outputs, now)
    changes = [
        change
        for change in output_changes(old, now)
        if not patterns or any(matches(one, change.path) for one in patterns)
    ]
    return OutputDiff(name, f"version {after}" if after else "newest", changes)


def lines_of_change(outputs: RunOutputs, change: OutputChange) -> list[str] | None:
    """Return the unified diff of a change as lines; None if one of the versions is not text, or too long.
    Raises UsageError if the content is damaged, and the bucket's errors.
    """
    old, new = (_lines(outputs.bucket, version) for version in (change.before, change.after))
    if old is None or new is None:
        return None
    return list(difflib.unified_diff(old, new, _title(change.before), _title(change.after), lineterm=""))


def _versions(outputs: RunOutputs, name: str) -> dict[str, OutputVersion]:
    found = _VERSION.fullmatch(name) if name else None
    if found is None:
        raise UsageError(
            f"{name[:80]!r} is not a version",
            fix="write an attempt, such as 2, a step, such as @500, or both: 2@500",
        )
    attempt, step = (int(text) if text is not None else None for text in found.groups())
    check_attempt(outputs, attempt)
    return outputs.newest(attempt=attempt, step=step)


def _before(outputs: RunOutputs, now: Mapping[str, OutputVersion]) -> tuple[Mapping[str, OutputVersion], str]:
    manifests = [one.manifest for one in outputs.attempts if one.manifest.files]
    if len(manifests) > 1:
        earlier = manifests[:-1]
        return newest_outputs(earlier), f"attempts up to {earlier[-1].attempt}"
    older = previous_outputs(manifests[0]) if manifests else {}
    # An output that was uploaded only once has not changed.
    return {
        **{path: version for path, version in now.items() if path not in older},
        **older,
    }, "previous version of each output"


def _lines(bucket: Bucket, version: OutputVersion | None) -> list[str] | None:
    if version is None:
        return []
    if version.file.size > TEXT_BYTES_MAX:
        return None
    try:
        text = b"".join(chunks_of(bucket, version)).decode()
    except UnicodeDecodeError:
        return None
    lines = text.splitlines()
    return lines if len(lines) <= LINES_MAX and "\0" not in text else None


def _size(version: OutputVersion | None) -> int | None:
    return version.file.size if version is not None else None


def _title(version: OutputVersion | None) -> str:
    if version is None:
        return "/dev/null"
    return f"{version.file.path} (attempt {version.manifest.attempt}, step {version.file.step})"
