"""Leftovers of an earlier launch in prime-rl's folder, which must be moved away before the next launch.

prime-rl reads the step from every name that begins with `step_`, after the last underscore: `step_10.tmp`
crashes its launcher, trainer and orchestrator, and `step_10_2` counts as step 2. It does not remove
checkpoints newer than the one it resumes, and would resume from an incomplete one next time. Broadcast
weights of a dead launch are still marked as ready. `logs/latest` points to the logs of a dead launch until
the next one writes its own. And with nothing to resume, prime-rl refuses a folder that holds a run. So all of
this is renamed to names that do not begin with `step_`.
"""

import re
from collections.abc import Collection, Iterable
from pathlib import PurePosixPath

from prime_train.trainers.prime_rl.conventions import SHIPPED, TRAINED
from prime_train.trainers.stale_outputs import Move

DEPTH = 4
"""Depth to which the run's folder must be listed: checkpoints/step_N/trainer/.metadata is the deepest
relevant path.
"""
_OPENED = 2
"""Depth to which every folder is listed; below it, only checkpoints are relevant."""

BROADCASTS_KEPT = 2

_LATEST = "logs/latest"
_CHECKPOINTS = "checkpoints"
_SCANNED = (_CHECKPOINTS, "rollouts")
_LAUNCHERS = re.compile(r"configs|rl\.sbatch|sft\.sbatch|job_.*\.log")
"""Names allowed in the folder of a run that has not started."""

_STEP = re.compile(r"step_(0|[1-9][0-9]{0,11})")


def to_move_aside(listing: Iterable[str], resume_step: int | None, *, attempt: int) -> tuple[Move, ...]:
    """Return the renames to make, in order, before the launch of attempt `attempt`.

    `listing` holds the paths of files and folders relative to the run's folder, with / as separator, down to
    `DEPTH`. `resume_step` is the restored checkpoint, which always stays; None if nothing was restored.
    """
    paths = sorted({PurePosixPath(path) for path in listing})
    if resume_step is None:
        sources = {path.parts[0] for path in paths if not _LAUNCHERS.fullmatch(path.parts[0])}
    else:
        sources = set(_in_the_way(paths, resume_step))
    return tuple(Move(source, _aside(source, attempt)) for source in sorted(sources))


def is_opened(path: PurePosixPath) -> bool:
    """Return whether the entries of this folder are relevant. `path` is relative to the run's folder."""
    depth = len(path.parts)
    return depth < _OPENED or (depth < DEPTH and path.parts[0] == _CHECKPOINTS)


def broadcasts_to_remove(names: Iterable[str], step: int) -> tuple[str, ...]:
    """Return the folders in `broadcasts` that no component reads any more at `step`, oldest first.

    prime-rl never removes those of steps with a checkpoint, and each is as large as the model.
    """
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
            if step is None or (
                folder == _CHECKPOINTS
                and step != resume_step
                and _is_no_checkpoint(path, step, resume_step, present)
            ):
                yield str(path)


def _is_no_checkpoint(path: PurePosixPath, step: int, resume_step: int, present: Collection[str]) -> bool:
    return step > resume_step or any(str(path / half) not in present for half in (TRAINED, SHIPPED))


def _step(name: str) -> int | None:
    found = _STEP.fullmatch(name)
    return int(found.group(1)) if found else None


def _aside(source: str, attempt: int) -> str:
    """Return a target beside the run's folder, because even a hidden folder inside it counts as a run."""
    return f"../.aside-e{attempt}/old-{source.replace('/', '-')}"
