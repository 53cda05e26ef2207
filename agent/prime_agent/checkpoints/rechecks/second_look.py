"""The second look at a checkpoint, once the trainer has gone on.

When a save is over is known for certain only afterwards: the trainer reports a later step, begins another
save, or ends in order. A sentinel that comes before its files, or a save that pauses for longer than
`settled_s`, looks complete before it is. So an uploaded checkpoint is compared with what lies on the disk
once the trainer has gone on, and again when the next save has begun; if files were added or changed, it is
uploaded again under the same key. From then on this trainer's checkpoints count as complete only once it has
gone on.

A file that all checkpoints share, because its name has no number, is the next save's as soon as that has
begun. It is not compared, and a checkpoint with which it no longer fits is not uploaded again.

A checkpoint that is doubtful from the start, because it lacks what the ones before it had or a process has
not written its file, waits for that too. One that really is of another kind is then accepted.
"""

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from prime_agent.checkpoints.units import Unit
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.ranks import missing_rank
from prime_train.runs.resuming.shapes import Shape, difference, shape_of
from prime_train.trainers.of_spec import FileInfo

SHAPES_MAX = 5
TRIES_MAX = 5
"""Number of uploads again that may fail because the checkpoint changes meanwhile."""
LOOKS_MAX = 2
"""Number of looks at one checkpoint: when the trainer has gone on, and when the next save has begun. Not
more, because a trainer may write into a folder for ever, a log for example.
"""


@dataclass
class _Watched:
    """A checkpoint that was uploaded, with its files as they were then, the number of looks since, and of
    uploads again that failed.
    """

    step: int
    files: frozenset[FileInfo]
    looks: int = 0
    failures: int = 0


class SecondLook:
    """What is known of one attempt's checkpoints beside the rules of its trainer. `gone_on`: whether the
    trainer has reported a step after this one, or has ended in order; `workers`: the number of its processes,
    None if it is not known; `is_shared`: whether all checkpoints share the file with this path.
    """

    def __init__(
        self,
        gone_on: Callable[[int], bool],
        *,
        workers: int | None,
        is_shared: Callable[[str], bool] = lambda path: False,
    ) -> None:
        self._gone_on, self._workers, self._is_shared = gone_on, workers, is_shared
        self._watched: _Watched | None = None
        self._shapes: dict[tuple[int, int], Shape] = {}
        self.changes_late = False
        """Whether files were added or changed in a checkpoint after it counted as complete."""

    @property
    def watched_step(self) -> int | None:
        return self._watched.step if self._watched is not None else None

    def know(self, manifests: Collection[Manifest]) -> None:
        """Take these checkpoints of the run as examples of complete ones, and learn from them whether its
        checkpoints change late.
        """
        for manifest in manifests:
            self._shapes[manifest.step, manifest.attempt] = shape_of(
                (file.path, file.size) for file in manifest.files
            )
            self.changes_late |= manifest.changes_late
        for place in sorted(self._shapes)[:-SHAPES_MAX]:
            del self._shapes[place]

    def uploaded(self, manifest: Manifest, files: Sequence[FileInfo], newest_begun: int) -> None:
        """Record an upload of the checkpoint with these files, the first or another one."""
        one, looks = self._watched, 0
        if one is not None and one.step == manifest.step:
            looks = LOOKS_MAX if newest_begun > one.step else one.looks + 1
        self._watched = _Watched(manifest.step, frozenset(files), looks)
        self.know((manifest,))

    def vanished(self, step: int) -> None:
        """Record that the checkpoint changed or was deleted while it was uploaded."""
        if self._watched is not None and self._watched.step == step:
            self._watched.failures += 1

    def is_over(self, step: int, newest_begun: int) -> bool:
        """Return whether the save of `step` is over: the trainer has gone on, or has begun to save the newer
        step `newest_begun`.
        """
        return newest_begun > step or self._gone_on(step)

    def doubt(self, step: int, files: Sequence[FileInfo], newest_begun: int) -> str:
        """Return why a checkpoint that is complete by the rules does not count as complete yet, as a
        predicate; "" if it does.
        """
        if self.is_over(step, newest_begun):
            return ""
        if self.changes_late:
            return "may still change: earlier checkpoints did after they were complete"
        lacking = missing_rank([file.path for file in files], workers=self._workers)
        if lacking is not None:
            return f"lacks {lacking}, which another process writes"
        return difference(
            shape_of((file.path, file.size) for file in files),
            [one for (at, _), one in self._shapes.items() if at != step],
        )

    def is_due(self, newest_begun: int) -> bool:
        """Return whether the checkpoint that was uploaded last has to be looked at now."""
        one = self._watched
        if one is None or one.looks >= LOOKS_MAX or one.failures >= TRIES_MAX:
            return False
        return newest_begun > one.step or (one.looks == 0 and self._gone_on(one.step))

    def compare(self, unit: Unit | None, newest_begun: int) -> bool:
        """Look at the checkpoint again, as it lies on the disk now; return whether files were added or
        changed since its upload. None: it was deleted. Raises OSError and PermanentError if it cannot be
        read.
        """
        one = self._watched
        if one is None:
            return False
        new = set(unit.files()) - one.files if unit is not None else set()
        own = {file for file in new if not self._is_shared(file.path)}
        self.changes_late |= bool(own)
        changed = bool(own) and own == new
        if not changed:
            one.looks = LOOKS_MAX if newest_begun > one.step or unit is None else one.looks + 1
        return changed
