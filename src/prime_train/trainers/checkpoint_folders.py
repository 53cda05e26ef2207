"""When a checkpoint is complete.

No file is opened here. A sentinel file proves that a checkpoint is complete only if no file was written after
it, because a folder that is overwritten in place still holds the sentinel of the previous save. PyTorch's
distributed checkpoints have one of their own, `.metadata`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath

from prime_train.spec.spec import CheckpointSpec

STEP_MAX = 10**12 - 1
"""Largest step: keys in the bucket have twelve digits for it."""

_DCP_SHARD = ".distcp"
_DCP_MARKER = ".metadata"


@dataclass(frozen=True)
class FileInfo:
    """A file of a checkpoint: `path` relative to the checkpoint's folder, or to that of all checkpoints if it
    is no folder, with / as separator, `size` in bytes, `mtime_s` in seconds with fractions.
    """

    path: str
    size: int
    mtime_s: float


def is_complete(checkpoints: CheckpointSpec, files: Sequence[FileInfo], now_s: int) -> bool:
    """Return whether the checkpoint is complete by the rules of `checkpoints`.

    With a sentinel: the sentinel file exists, and no file is newer. If a file is newer, the checkpoint is
    complete once nothing has changed for `settled_s` seconds; where saves overwrite in place it is
    incomplete, because the sentinel belongs to the previous save. Without a sentinel: nothing has changed for
    `settled_s` seconds. In both cases the required files exist, and every distributed checkpoint in the
    folder has a `.metadata` no older than its shards.
    """
    seen = {file.path: file for file in files}
    if not files or any(path not in seen for path in checkpoints.files) or not shards_complete(files):
        return False
    newest_s = max(file.mtime_s for file in files)
    settled = newest_s + checkpoints.settled_s <= now_s
    if checkpoints.sentinel is None:
        return settled
    sentinel = seen.get(checkpoints.sentinel)
    return sentinel is not None and (sentinel.mtime_s >= newest_s or (settled and not checkpoints.in_place))


def shards_complete(files: Iterable[FileInfo]) -> bool:
    """Return whether every distributed checkpoint in the folder has a `.metadata` no older than its
    shards.
    """
    shards_s: dict[PurePosixPath, float] = {}
    markers_s: dict[PurePosixPath, float] = {}
    for file in files:
        path = PurePosixPath(file.path)
        if path.suffix == _DCP_SHARD:
            shards_s[path.parent] = max(file.mtime_s, shards_s.get(path.parent, file.mtime_s))
        elif path.name == _DCP_MARKER:
            markers_s[path.parent] = file.mtime_s
    return all(folder in markers_s and markers_s[folder] >= newest_s for folder, newest_s in shards_s.items())
