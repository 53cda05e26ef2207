"""The config of a rehearsed script: what was found, as a run's config says it."""

import itertools
import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import PurePosixPath

from prime_train.planning.new_configs.own_script import Own, name_of
from prime_train.rehearsal.options import length_of
from prime_train.rehearsal.rehearsal import Rehearsal
from prime_train.rehearsal.trial import progress_of
from prime_train.spec.checkpoint_names import EPOCH
from prime_train.spec.spec import ProgressSpec, RunSpec
from prime_train.spec.tree import Plain

SETTLED_S_MIN = 2
STOP_S_MIN, STOP_S_SAVING = 10, 60
DISK_GIB_MIN = 20
_GIB = 2**30


def config_values(found: Rehearsal, *, usd: float, name: str = "") -> dict[str, Plain]:
    """Return the values of a config that runs the rehearsed command, with what was found of it and nothing
    that was not seen.
    """
    command = found.request.command
    made = name or name_of(Own("command", command, steps=1, usd=usd))
    spec = found.request.spec
    setup = spec.setup or added_setup(found)
    values: dict[str, Plain] = {"name": made, "trainer": trainer_values(found)}
    if found.saves.saves:
        values["checkpoints"] = checkpoint_values(found)
    if setup:
        values["setup"] = list(setup)
    if spec.environment:
        environment: dict[str, Plain] = dict(spec.environment)
        values["environment"] = environment
    values["hardware"] = {"spot": "prefer", "disk_gib": _disk_gib(found)}
    values["budget"] = {"usd": usd}
    outputs = [file] if (file := progress_file(found)) else []
    if outputs:
        values["outputs"] = list(outputs)
    return values


def added_setup(found: Rehearsal) -> tuple[str, ...]:
    """Return the commands that prepare a machine for the script, where the user gave none."""
    if found.request.spec.setup or not (found.request.folder / "requirements.txt").is_file():
        return ()
    return ("python -m pip install -r requirements.txt",)


def trainer_values(found: Rehearsal) -> dict[str, Plain]:
    """Return what is known under `trainer`."""
    kind = found.request.spec.trainer.kind
    trainer: dict[str, Plain] = {"kind": kind} if kind != "command" else {}
    trainer["command"] = found.request.command
    steps = total_steps(found)
    if steps is not None:
        trainer["steps"] = steps[0]
    if found.resumed is not None:
        trainer["resume"] = found.resumed.arguments
    if found.progress is not None:
        spec = progress_of(found.progress, file=progress_file(found))
        trainer["progress"] = _shown(spec)
    trainer["stop_s"] = _stop_s(found)
    return trainer


def _shown(spec: ProgressSpec) -> dict[str, Plain]:
    return dict(spec.model_dump(mode="json", exclude_defaults=True, exclude_none=True)) | {"kind": spec.kind}


def checkpoint_values(found: Rehearsal) -> dict[str, Plain]:
    """Return what is known under `checkpoints`."""
    saves = found.saves
    values: dict[str, Plain] = {"folder": folder_of(found), "pattern": saves.pattern}
    # What each save writes over beside it is stored with it, too.
    shared = [
        PurePosixPath(one.path).name
        for one in saves.beside
        if one.kind == "shared" and str(PurePosixPath(one.path).parent) == saves.folder
    ]
    if saves.also or shared:
        values["also"] = [*saves.also, *shared]
    if counts_from_0(found):
        values["first"] = 0
    if saves.sentinel:
        values["sentinel"] = saves.sentinel
    else:
        values["settled_s"] = settled_s(found)
    if every_steps(found):
        values["every_steps"] = every_steps(found)
    return values


def folder_of(found: Rehearsal) -> str:
    """Return the folder of checkpoints, with `*` in place of what differed at the next start."""
    return in_common(found.saves.folder, found.other_folder or found.saves.folder)


def in_common(first: str, second: str) -> str:
    """Return the path with a wildcard in each part in which the two differ."""
    if first == second:
        return first
    parts, others = PurePosixPath(first).parts, PurePosixPath(second).parts
    if len(parts) != len(others):
        return first
    return "/".join(a if a == b else _wild(a, b) for a, b in zip(parts, others, strict=True))


def _wild(first: str, second: str) -> str:
    same = 0
    while same < min(len(first), len(second)) and first[same] == second[same]:
        same += 1
    # A number or date that differs differs as a whole.
    lead = (
        re.sub(r"[\d.:_-]+$", "", first[:same]) if re.search(r"\d[\d.:_-]*$", first[:same]) else first[:same]
    )
    return f"{lead}*"


def progress_file(found: Rehearsal) -> str:
    """Return the file of the progress, with wildcards; empty for the output."""
    if found.progress is None or found.progress.series.stream in ("stdout", "stderr"):
        return ""
    own, other = found.progress.series.stream, ""
    if found.resumed is not None:
        wanted = re.sub(r"\d+", "", own)
        streams = dict.fromkeys(line.stream for line in found.resumed.recording.lines)
        other = next((one for one in streams if one != own and re.sub(r"\d+", "", one) == wanted), "")
    return in_common(own, other or own)


def counts_from_0(found: Rehearsal) -> bool:
    """Return whether the numbers of checkpoints are those of steps that count from 0, as the progress does:
    the checkpoint of step n is made after step n, and n + 1 follows.
    """
    resumed, progress = found.resumed, found.progress
    if resumed is None or progress is None or found.saves.counts in ("", EPOCH):
        return False
    is_dense = progress.series.distance == 1
    return is_dense and progress.first == 0 and resumed.first == resumed.restored + 2


def every_steps(found: Rehearsal) -> int:
    """Return the steps from one save to the next, by the script's usual interval; 0 if it is not known."""
    if found.lowered is not None:
        usual = next((one.value for one in found.numbers if one.option == found.lowered.option), 0)
        return usual if _is_in_steps(found) else 0
    return every_seen(found)


def every_seen(found: Rehearsal) -> int:
    """Return the steps from one save to the next, as they were seen."""
    if found.saves.numbers:
        return found.saves.every
    steps = found.steps_of_saves
    apart = [b - a for a, b in itertools.pairwise(steps)]
    return max(apart, key=apart.count) if apart else 0


def _is_in_steps(found: Rehearsal) -> bool:
    """Return whether the option that was lowered counts what the checkpoints count."""
    return found.lowered is not None and every_seen(found) == found.lowered.value


def settled_s(found: Rehearsal) -> int:
    """Return the seconds of rest after which a checkpoint is complete: longer than any pause within a save."""
    pauses = [
        later.begun_s - earlier.closed_s
        for save in found.saves.saves
        for earlier, later in pairwise(save.members)
    ]
    return max(SETTLED_S_MIN, int(3 * max(pauses, default=0.0)) + 1)


def total_steps(found: Rehearsal) -> tuple[int, str] | None:
    """Return the last step, or epoch, and how it is known; None if nothing says it."""
    if found.progress is None:
        return None
    series = found.progress.series
    counts = EPOCH if EPOCH in (series.counts, found.saves.counts) else "step"
    option = length_of(found.numbers, counts)
    if option is not None:
        return option.value, f"{option.option} {option.value}"
    total = series.total if not series.is_within_epoch and counts != EPOCH else None
    return (total, f"its lines count up to {total}") if total else None


def _stop_s(found: Rehearsal) -> int:
    took = found.stop_s
    if took is None:
        return STOP_S_MIN
    return (
        max(STOP_S_SAVING, int(3 * took) + 1) if found.saved_on_stop else max(STOP_S_MIN, int(2 * took) + 1)
    )


def _disk_gib(found: Rehearsal) -> int:
    size = max((save.size for save in found.saves.saves), default=0)
    return max(DISK_GIB_MIN, int(6 * size / _GIB) + DISK_GIB_MIN)


_FREE = ("command", "kind", "settled_s", "stop_s", "every_steps", "steps")
"""Keys of which the config's own value stands, whatever was found."""


def differences(values: Mapping[str, Plain], given: Mapping[str, Plain], spec: RunSpec) -> list[str]:
    """Return where a config says otherwise than what was found, a sentence each. `given`: the values that it
    writes; `spec`: with the defaults of the others.
    """
    said = []
    full = spec.model_dump(mode="json")
    for section in ("trainer", "checkpoints"):
        found, written = values.get(section), given.get(section)
        own = written if isinstance(written, Mapping) else {}
        if not isinstance(found, Mapping):
            continue
        for key, value in found.items():
            if key in _FREE or _is_same(value, full[section][key]):
                continue
            if key not in own:
                said.append(f"{section}.{key} is not in the config; found: {value!r}")
            else:
                said.append(f"{section}.{key}: the config says {own[key]!r}; found: {value!r}")
    return said


def _is_same(found: Plain, own: object) -> bool:
    """Return whether the config's value, with its defaults, is the one that was found."""
    if isinstance(found, Mapping) and isinstance(own, Mapping):
        # A pattern of one's own for the same number is as good.
        if found.get("kind") == own.get("kind") == "regex" and found.get("first", 1) == own.get("first"):
            return True
        return all(own.get(key) == value for key, value in found.items())
    return found == own or (isinstance(own, list | tuple) and isinstance(found, list) and list(own) == found)
