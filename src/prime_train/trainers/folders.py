"""Checkpoint folders: their names, and when one is complete.

Nothing here opens a file. A marker proves that a checkpoint is whole only if nothing was written after it: a folder that is overwritten
in place still holds the marker of the save before. PyTorch's distributed checkpoints have a marker of their own, `.metadata`.
"""

import re
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from prime_train.core.spec import CheckpointSpec

STEP_MAX = 10**12 - 1
"""The bucket's keys hold twelve digits."""

_DCP_SHARD = ".distcp"
_DCP_MARKER = ".metadata"


@dataclass(frozen=True)
class FileSeen:
    """A file of a checkpoint: `path` inside the checkpoint's folder with / between parts, `size` in bytes, `mtime_s` with fractions."""

    path: str
    size: int
    mtime_s: float


def folder_of(checkpoints: CheckpointSpec, step: int) -> str:
    return checkpoints.pattern.format(step=step)


def step_of(checkpoints: CheckpointSpec, name: str) -> int | None:
    """The step whose folder is called exactly `name`: `step_10.bak`, `old-step_10` and, unless so formatted, `step_010` are nobody's."""
    found = re.fullmatch(_name_pattern(checkpoints.pattern), name)
    if found is None:
        return None
    step = int(found.group("step"))
    return step if folder_of(checkpoints, step) == name else None


def _name_pattern(pattern: str) -> str:
    """A regular expression of all names; the step may stand in it more than once."""
    expression = ""
    for literal, field, _, _ in string.Formatter().parse(pattern):
        expression += re.escape(literal)
        if field is not None:
            expression += "(?P=step)" if "(?P<step>" in expression else "(?P<step>[0-9]{1,12})"
    return expression


def is_complete(checkpoints: CheckpointSpec, files: Sequence[FileSeen], now_s: int) -> bool:
    """Whether nothing of the checkpoint is missing, by the rules of `checkpoints`.

    With a marker: it is there, and no file is newer; a file that is newer is waited for (`settled_s`), or, where saves overwrite in
    place, proves that the marker is the last save's. Without a marker: nothing changed for `settled_s`. In both cases the required files
    are there, and every distributed checkpoint inside has a `.metadata` no older than its shards.
    """
    seen = {file.path: file for file in files}
    if not files or any(path not in seen for path in checkpoints.files) or not _shards_whole(files):
        return False
    newest_s = max(file.mtime_s for file in files)
    settled = newest_s + checkpoints.settled_s <= now_s
    if checkpoints.marker is None:
        return settled
    marker = seen.get(checkpoints.marker)
    return marker is not None and (marker.mtime_s >= newest_s or (settled and not checkpoints.in_place))


def _shards_whole(files: Iterable[FileSeen]) -> bool:
    shards_s: dict[PurePosixPath, float] = {}
    markers_s: dict[PurePosixPath, float] = {}
    for file in files:
        path = PurePosixPath(file.path)
        if path.suffix == _DCP_SHARD:
            shards_s[path.parent] = max(file.mtime_s, shards_s.get(path.parent, file.mtime_s))
        elif path.name == _DCP_MARKER:
            markers_s[path.parent] = file.mtime_s
    return all(folder in markers_s and markers_s[folder] >= newest_s for folder, newest_s in shards_s.items())
