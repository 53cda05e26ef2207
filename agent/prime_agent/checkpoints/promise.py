"""What a run promises about its checkpoints, compared with what lies on the disk.

A folder name that does not match the pattern, a link, a missing sentinel or a damaged file must not look like
"no checkpoint yet". So the lateness of a checkpoint counts from the interval that the config promises, or
from saves that were seen to begin, and never from saves that were already judged complete; and what is late
is explained by what was seen instead. Only lateness is reported: a `best` folder or a `latest` file beside
checkpoints that become durable is no problem.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from prime_train.runs.wire import UNSAVED_CHARS_MAX
from prime_train.spec.checkpoint_names import has_wildcards
from prime_train.spec.spec import CheckpointSpec, RunSpec
from prime_train.text.formatting import span
from prime_train.text.safe import neutralized
from prime_train.trainers.checkpoint_folders import shards_complete
from prime_train.trainers.of_spec import FileInfo
from prime_train.trainers.registry import TRAINERS

SAVES_LATE = 2
"""Number of expected saves after which a checkpoint is late."""
GRACE_S = 3.0
"""Seconds for which a checkpoint may be late before it is reported: two scans of the folder, and a little
more.
"""
UNKNOWN_S = 3600.0
"""Seconds from the first step after which a run that declares checkpoints, but no interval, should have begun
one.
"""
WRITING_S = 120.0
"""Seconds since its last write for which the only save that was begun may still be going on."""
NAME_CHARS_MAX = 60
REFUSALS_MAX = 3
"""Number of refused checkpoints whose reasons are looked for."""

WEIGHTS = frozenset(
    {
        ".bin",
        ".ckpt",
        ".distcp",
        ".h5",
        ".msgpack",
        ".npz",
        ".orbax",
        ".pkl",
        ".pt",
        ".pth",
        ".safetensors",
        ".tar",
    }
)
"""Endings of files in which weights are saved."""
_WORDS = re.compile(
    r"(?:^|[^a-z])(?:ckpt|checkpoint|chkpt|step|iter|epoch|model|weights|state|snapshot|save|adapter)",
    re.IGNORECASE,
)
_SHARD = re.compile(r"\d+[-_]of[-_]\d+")
_NUMBER = re.compile(r"\d{1,12}")


@dataclass(frozen=True)
class RefusedEntry:
    """An entry whose name is that of a checkpoint, and that is not one, or not yet. `quiet_s`: seconds since
    its last write.
    """

    name: str
    step: int
    reason: str
    quiet_s: float = 0.0


@dataclass(frozen=True)
class Strangers:
    """New entries of one folder that are no checkpoints of the run: how many, and the newest. `numbered`: how
    many different numbers are in the names of those that look like checkpoints; `highest`: the highest of
    them, 0 if there is none.
    """

    folder: str
    count: int
    newest: str
    numbered: int = 0
    highest: int = 0


@dataclass(frozen=True)
class Seen:
    """What lies in and near the checkpoint folder since the trainer was started. `refused`: newest first;
    `refused_count`: all of them; `unmatched`: entries of the checkpoint folder itself; `elsewhere`: the
    folder of the working tree with most entries that look like checkpoints; `is_cut`: there is more than was
    looked at.
    """

    refused: tuple[RefusedEntry, ...] = ()
    refused_count: int = 0
    unmatched: Strangers | None = None
    elsewhere: Strangers | None = None
    is_cut: bool = False

    @property
    def begun(self) -> int:
        """Number of saves that were seen to begin and are not complete."""
        strangers = [found.numbered for found in (self.unmatched, self.elsewhere) if found is not None]
        return self.refused_count + sum(strangers)

    @property
    def is_empty(self) -> bool:
        return not self.begun and self.unmatched is None


@dataclass(frozen=True)
class Promise:
    """The state of the comparison. `since_s`: since when a checkpoint is late; `good_step`: the newest step
    with a complete checkpoint; `problem`: what is reported, "" if nothing is.
    """

    seen: Seen | None = None
    since_s: float | None = None
    good_step: int = 0
    problem: str = ""


def declares(spec: RunSpec) -> bool:
    """Return whether the run declares checkpoints: its kind of trainer knows where it saves, its
    `checkpoints` are not the defaults, or its command is told the folder.
    """
    is_told = "{checkpoints}" in spec.trainer.command
    return TRAINERS[spec.trainer.kind].layout is not None or spec.checkpoints != CheckpointSpec() or is_told


def why_incomplete(checkpoints: CheckpointSpec, files: Sequence[FileInfo], now_s: int) -> str:
    """Return why a checkpoint with these files does not count as complete, as the end of a sentence that
    begins with its name.
    """
    seen = {file.path: file for file in files}
    if not files:
        return "is empty"
    if missing := [path for path in checkpoints.files if path not in seen]:
        return f"has no {missing[0]} (checkpoints.files)"
    newest_s = max(file.mtime_s for file in files)
    if checkpoints.sentinel is not None and checkpoints.sentinel not in seen:
        return f"has no {checkpoints.sentinel} (checkpoints.sentinel)"
    if not shards_complete(files):
        return "has shards of a distributed checkpoint without a .metadata that is as new as they are"
    if checkpoints.sentinel is not None and seen[checkpoints.sentinel].mtime_s < newest_s:
        return f"has files that are newer than its {checkpoints.sentinel} (checkpoints.sentinel)"
    if newest_s + checkpoints.settled_s > now_s:
        return f"was changed less than {checkpoints.settled_s} s ago (checkpoints.settled_s)"
    return "lacks files that its kind of trainer writes"


def looks_like_checkpoint(name: str) -> bool:
    """Return whether the name is one that scripts give to the checkpoint of a step: a number, and a word or
    an ending for weights. Shards of data and of one model are left out.
    """
    if not _NUMBER.search(name) or _SHARD.search(name):
        return False
    return bool(_WORDS.search(name)) or any(name.endswith(ending) for ending in WEIGHTS)


def numbers_in(names: list[str]) -> frozenset[int]:
    """Return the numbers of the saves that these names belong to: files side by side that bear the same
    number are of one save.
    """
    return frozenset(int(found[-1]) for name in names if (found := _NUMBER.findall(name)))


def watched(
    promise: Promise,
    spec: RunSpec,
    seen: Seen | None,
    now_s: float,
    *,
    good_step: int,
    reached: int,
    base_step: int,
    first_s: float | None,
) -> Promise:
    """Return the state after a scan while the trainer runs.

    `good_step`: the newest step with a complete checkpoint; `base_step`: the step from which the attempt
    resumed; `reached`: the newest step; `first_s`: when the first step of this attempt was seen.
    """
    seen = promise.seen if seen is None else seen
    if seen is None or first_s is None:
        return replace(promise, seen=seen, good_step=good_step)
    is_late = _is_late(
        spec, seen, now_s, good_step=good_step, reached=reached, base_step=base_step, first_s=first_s
    )
    since_s = promise.since_s if promise.since_s is not None and good_step <= promise.good_step else now_s
    # Without a sentinel, what matches the pattern is complete only some time after its last change.
    grace_s = GRACE_S + (
        2 * spec.checkpoints.settled_s if seen.refused and spec.checkpoints.sentinel is None else 0
    )
    if not is_late:
        return Promise(seen, None, good_step)
    is_told = bool(promise.problem) and good_step <= promise.good_step
    if not is_told and now_s - since_s < grace_s:
        return Promise(seen, since_s, good_step)
    return Promise(
        seen,
        since_s,
        good_step,
        text_of(spec, seen, good_step=good_step, reached=reached, waited_s=now_s - first_s),
    )


def left_behind(
    spec: RunSpec, promise: Promise, *, good_step: int, reached: int, base_step: int, first_step: int
) -> str:
    """Return what is true of the weights of a trainer that has finished, if the last ones are not complete
    checkpoints; else "".

    Steps after the last save, fewer than an interval, are no reason: the trainer did not promise a checkpoint
    of them. `first_step`: the first step of this attempt, 0 if it made none.
    """
    seen, every = promise.seen, spec.checkpoints.every_steps
    if seen is None or not first_step or reached <= max(good_step, base_step):
        return ""
    missed = (reached - max(good_step, base_step)) // every if every is not None else None
    if good_step > base_step:
        strange = seen.unmatched.highest if seen.unmatched is not None and every is None else 0
        is_lost = (
            any(one.step > good_step for one in seen.refused)
            or bool(missed)
            or good_step < strange <= reached
        )
    elif missed is not None:
        is_lost = missed > 0 or bool(seen.begun)
    else:
        is_lost = bool(seen.begun) or (base_step == 0 and declares(spec))
    return text_of(spec, seen, good_step=good_step, reached=reached) if is_lost else ""


def text_of(spec: RunSpec, seen: Seen, *, good_step: int, reached: int, waited_s: float | None = None) -> str:
    """Return what was seen instead of a checkpoint, as one line."""
    folder = f"{spec.checkpoints.folder.rstrip('/')}/"
    pattern, parts = spec.checkpoints.pattern, []
    if seen.refused:
        newest = seen.refused[0]
        count = (
            f"{seen.refused_count} checkpoints in {folder}, none complete: " if seen.refused_count > 1 else ""
        )
        parts.append(f"{count}{_shown(newest.name)} {newest.reason}")
    if (found := seen.unmatched) is not None:
        more = "more than " if seen.is_cut else ""
        place = f"{_shown(found.folder)}/" if has_wildcards(folder) else folder
        entries = f"{more}{found.count} {'entry' if found.count == 1 else 'entries'} in {place}"
        parts.append(f"{entries}, none matches {pattern}; the newest is {_shown(found.newest)}")
    if seen.is_empty:
        parts.append(f"no file was written in {folder}{_although(spec, reached, waited_s)}")
    elif seen.elsewhere is not None and not seen.refused and seen.unmatched is None:
        parts.append(f"no file was written in {folder}")
    if (found := seen.elsewhere) is not None:
        look = "looks like a checkpoint" if found.count == 1 else "look like checkpoints"
        where = "the working tree" if found.folder == "." else f"{_shown(found.folder)}/"
        parts.append(f"{found.count} in {where} {look}, the newest is {_shown(found.newest)}")
    good = f"; the newest complete checkpoint is of step {good_step}" if good_step else ""
    return ("; ".join(parts) + good)[:UNSAVED_CHARS_MAX]


def _although(spec: RunSpec, reached: int, waited_s: float | None) -> str:
    every = spec.checkpoints.every_steps
    if every is not None:
        return f" although every_steps is {every} and step {reached} is reached"
    return (
        f" in the {span(round(waited_s))} since the first step"
        if waited_s is not None
        else f" up to step {reached}"
    )


def _is_late(
    spec: RunSpec, seen: Seen, now_s: float, *, good_step: int, reached: int, base_step: int, first_s: float
) -> bool:
    every, since = spec.checkpoints.every_steps, reached - max(good_step, base_step)
    if seen.begun == 1 and seen.refused and seen.refused[0].quiet_s < WRITING_S:
        return False  # a save takes as long as it takes; the next one shows that it was given up
    if every is not None and since >= SAVES_LATE * every:
        return True
    if seen.refused_count >= SAVES_LATE:
        return True
    if good_step > base_step:
        return False
    return seen.begun >= SAVES_LATE or (declares(spec) and every is None and now_s - first_s >= UNKNOWN_S)


def _shown(name: str) -> str:
    text = neutralized(name)
    return text if len(text) <= NAME_CHARS_MAX else f"{text[: NAME_CHARS_MAX - 1]}…"
