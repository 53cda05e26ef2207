"""What was deleted of a run to make room, as its history and its tracker tell it.

An agent counts from its own start, so what is new is the difference to what was told before; an agent that
was started again on the same machine counts from zero. Deletions of checkpoints come every few minutes, and
are told together.
"""

from collections.abc import Iterator

from prime_train.runs.wire import INTEGER_MAX, Deletions
from prime_train.spec.spec import CheckpointSpec
from prime_train.text.formatting import size

NOTHING = Deletions()
TOLD_S = 3600
"""Shortest time in seconds between two lines in the history about what a machine that trains deletes."""
_HIGHEST = "newest_step"


def plus(one: Deletions, other: Deletions) -> Deletions:
    """Return both together."""
    a, b = one.model_dump(), other.model_dump()
    return Deletions(
        **{
            name: min(INTEGER_MAX, max(a[name], b[name]) if name == _HIGHEST else a[name] + b[name])
            for name in a
        }
    )


def since(told: Deletions, now: Deletions) -> Deletions:
    """Return what of `now` is not in `told`. If anything has become less, the agent was started again, and
    all of `now` is new.
    """
    a, b = told.model_dump(), now.model_dump()
    if any(b[name] < a[name] for name in a):
        return now
    fresh = {name: b[name] - a[name] for name in a if name != _HIGHEST}
    return Deletions(**fresh, newest_step=now.newest_step if fresh["checkpoints"] else 0)


def in_words(deleted: Deletions, spec: CheckpointSpec) -> str:
    """Return what was deleted, how many bytes, and why; empty if nothing was."""
    return "; ".join(_parts(deleted, spec))


def summary(deleted: Deletions, words: str) -> dict[str, object]:
    """Return what the tracker's summary of the run gets."""
    return {
        "prime_train/deleted": words,
        "prime_train/deleted_checkpoints": deleted.checkpoints,
        "prime_train/deleted_bucket_bytes": deleted.chunk_bytes + deleted.output_bytes,
        "prime_train/deleted_local_bytes": deleted.local_bytes,
    }


def _parts(deleted: Deletions, spec: CheckpointSpec) -> Iterator[str]:
    if deleted.checkpoints:
        up_to = f", up to step {deleted.newest_step:,}" if deleted.newest_step else ""
        yield (
            f"{_count(deleted.checkpoints, 'checkpoint')}{up_to}, deleted from the bucket, "
            "because "
            f"{_kept(spec)}"
        )
    if deleted.chunk_bytes:
        yield f"{size(deleted.chunk_bytes)} of chunks that no checkpoint uses deleted from the bucket"
    if deleted.output_bytes:
        yield (
            f"{size(deleted.output_bytes)} of older versions of outputs deleted from the bucket, "
            "because newer ones replaced them"
        )
    local = [
        _count(number, what)
        for number, what in ((deleted.local, "committed checkpoint"), (deleted.folders, "folder"))
        if number
    ]
    if local:
        limit = (
            f" or used more than checkpoints.max_disk_gib ({spec.max_disk_gib:g})"
            if spec.max_disk_gib is not None
            else ""
        )
        unneeded = " that the trainer did not need any more" if deleted.folders else ""
        what = (
            f"{' and '.join(local)}{unneeded}, {size(deleted.local_bytes)}, deleted from the machine's disk"
        )
        yield f"{what}, because it was nearly full{limit}"


def _kept(spec: CheckpointSpec) -> str:
    rules = [f"the newest {spec.keep} are kept (checkpoints.keep)"]
    if spec.keep_every_steps is not None:
        rules.append(f"every {spec.keep_every_steps:,} steps one (keep_every_steps)")
    if spec.keep_best:
        rules.append(f"the best {spec.keep_best} by {spec.best_by} (keep_best)")
    return " and ".join(rules)


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
