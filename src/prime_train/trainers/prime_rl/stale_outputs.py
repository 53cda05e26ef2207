"""What an earlier launch left in prime-rl's folder, and must be out of its snapshot before the next one.

It reads the step out of every name that begins with `step_`, after the last underscore: `step_10.tmp` ends its launcher, trainer and
orchestrator, `step_10_2` is step 2 to it. Checkpoints beyond the one it resumes are not removed by it, and a half of one would be what it
takes next time. Broadcast weights of a dead launch still bear the mark that they are ready. `logs/latest` leads to the logs of
a dead launch until the next one has come as far as to write its own. And without anything to resume, a folder that holds a run is
refused. So all of this is moved, to names that do not begin with `step_`.
"""

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from pathlib import PurePosixPath

from prime_train.core.prime_rl import SHIPPED, TRAINED

ENTRIES_MAX = 100_000
DEPTH = 4
"""Levels of the run's folder that are to be listed: checkpoints/step_N/trainer/.metadata is the deepest that tells anything."""

BROADCASTS_KEPT = 2

_LATEST = "logs/latest"
_SCANNED = ("checkpoints", "rollouts")
_LAUNCHERS = re.compile(r"configs|rl\.sbatch|sft\.sbatch|job_.*\.log")
"""What may lie in the folder of a run that has not begun."""

_STEP = re.compile(r"step_(0|[1-9][0-9]{0,11})")


@dataclass(frozen=True)
class Move:
    """A rename, both paths seen from the run's folder. What lies at `target` already is an older leftover, and may go."""

    source: str
    target: str


def to_move_aside(listing: Iterable[str], resume_step: int | None, *, attempt: int) -> tuple[Move, ...]:
    """What to rename, in order, before the launch of attempt `attempt`.

    `listing`: paths of files and folders seen from the run's folder, with / between parts, down to `DEPTH`. `resume_step`: the checkpoint
    that was restored, which always stays; None: nothing was.
    """
    paths = sorted({PurePosixPath(path) for path in listing})
    if resume_step is None:
        sources = {path.parts[0] for path in paths if not _LAUNCHERS.fullmatch(path.parts[0])}
    else:
        sources = set(_in_the_way(paths, resume_step))
    return tuple(Move(source, _aside(source, attempt)) for source in sorted(sources))


def broadcasts_to_remove(names: Iterable[str], step: int) -> tuple[str, ...]:
    """Folders in `broadcasts` that nobody reads any more at `step`, oldest first: those of steps with a checkpoint are never removed by
    prime-rl, and each is as large as the model."""
    steps = sorted(found for name in names if (found := _step(name)) is not None and found <= step)
    return tuple(f"step_{old}" for old in steps[:-BROADCASTS_KEPT])


def _in_the_way(paths: Collection[PurePosixPath], resume_step: int) -> Iterable[str]:
    present = {str(path) for path in paths}
    for path in paths:
        folder, *below = path.parts
        if folder == "broadcasts":
            yield folder
        elif str(path) == _LATEST:
            yield _LATEST
        elif folder in _SCANNED and len(below) == 1 and below[0].startswith("step_"):
            step = _step(below[0])
            if step is None or (folder == "checkpoints" and step != resume_step and _is_no_checkpoint(path, step, resume_step, present)):
                yield str(path)


def _is_no_checkpoint(path: PurePosixPath, step: int, resume_step: int, present: Collection[str]) -> bool:
    return step > resume_step or any(str(path / half) not in present for half in (TRAINED, SHIPPED))


def _step(name: str) -> int | None:
    found = _STEP.fullmatch(name)
    return int(found.group(1)) if found else None


def _aside(source: str, attempt: int) -> str:
    """Beside the run's folder, for inside it a hidden folder counts as somebody's run too."""
    return f"../.aside-e{attempt}/old-{source.replace('/', '-')}"
