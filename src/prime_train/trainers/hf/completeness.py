"""Whether a checkpoint of the Trainer has all of its parts.

The Trainer writes into the final folder: model, optimizer, scheduler, the state of random numbers of each process, and `trainer_state.json`
last. Nothing marks a folder as complete. A folder that is written again in place still has the old `trainer_state.json`, which is then
older than the weights.
"""

import re
from collections.abc import Collection, Iterable, Sequence

from prime_train.trainers.checkpoint_folders import FileInfo
from prime_train.trainers.conventions.hf import STATE

INCOMPLETE = "checkpoint-is-incomplete.txt"
"""The file that exists while a checkpoint on SIGTERM is written."""

_ADAPTER = r"(?:[^/]+/)?"
"""A named adapter of PEFT has a folder of its own."""
_DEEPSPEED = r"global_step\d+/"

_WEIGHTS = re.compile(
    rf"{_ADAPTER}(?:model|pytorch_model|adapter_model)\.(?:safetensors|bin)"
    rf"|pytorch_model_fsdp(?:_\d+/\.metadata|\.bin)|{_DEEPSPEED}.*model_states\.pt"
)
_INDEX = re.compile(rf"(?P<stem>{_ADAPTER}(?:model|pytorch_model|adapter_model))\.(?P<kind>safetensors|bin)\.index\.json")
_OPTIMIZER = re.compile(rf"optimizer\.(?:pt|bin)|optimizer(?:_\d+)?/\.metadata|{_DEEPSPEED}.*optim_states\.pt")
_SCHEDULER = re.compile(rf"scheduler\.pt|{_DEEPSPEED}.*optim_states\.pt")
"""DeepSpeed keeps its own schedule with the optimizer."""
_RANK = re.compile(r"rng_state_(\d{1,5})\.pth")
_BEFORE_STATE = re.compile(
    rf"{_ADAPTER}(?:model|pytorch_model|adapter_model)[^/]*\.(?:safetensors|bin)|pytorch_model_fsdp.*|optimizer.*|scheduler\.pt|{_DEEPSPEED}.*"
)
"""Files that are written before `trainer_state.json`. Scripts may write further ones of their own after it."""


def has_all_parts(files: Sequence[FileInfo], *, workers: int | None) -> bool:
    """Return whether the model, the optimizer, the scheduler, and the random state of each of `workers` processes are there, none of them
    newer than `trainer_state.json` is. `workers` is None if the number of processes is not known."""
    paths = {file.path for file in files}
    state = next((file for file in files if file.path == STATE), None)
    if state is None or INCOMPLETE in paths or not paths >= _random_states(workers or _workers_seen(paths)):
        return False
    if not all(any(part.fullmatch(path) for path in paths) for part in (_OPTIMIZER, _SCHEDULER)) or not _has_weights(paths):
        return False
    if any(re.match(_DEEPSPEED, path) for path in paths) and "latest" not in paths:
        return False
    return all(file.mtime_s <= state.mtime_s for file in _before_state(files))


def _has_weights(paths: Collection[str]) -> bool:
    """Return whether the weights are there: whole, or in parts. An index is none, and without a part beside it nothing was written yet."""
    if any(_WEIGHTS.fullmatch(path) for path in paths):
        return True
    indexes = [found for path in paths if (found := _INDEX.fullmatch(path))]
    return any(_has_part(paths, found["stem"], found["kind"]) for found in indexes)


def _has_part(paths: Collection[str], stem: str, kind: str) -> bool:
    return any(path.startswith(f"{stem}-") and path.endswith(f".{kind}") for path in paths)


def _before_state(files: Iterable[FileInfo]) -> Iterable[FileInfo]:
    return (file for file in files if _BEFORE_STATE.fullmatch(file.path))


def _workers_seen(paths: Collection[str]) -> int:
    """Return the number of processes, as far as their random states show it."""
    ranks = [int(found[1]) for path in paths if (found := _RANK.fullmatch(path))]
    return 1 + max(ranks, default=0)


def _random_states(workers: int) -> set[str]:
    return {"rng_state.pth"} if workers == 1 else {f"rng_state_{rank}.pth" for rank in range(workers)}
