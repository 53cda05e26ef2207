"""Trainer `areal`: AReaL's single-controller programs, which take settings as KEY=VALUE.

AReaL has one recoverable state, which each save overwrites in place: from the first byte of a save to the
last there is none on the disk, and a state of which parts are missing makes it start at step 0 without an
error, and then overwrite the rest. So each complete state is copied to a folder of its own, and put back in
its place before a resume. Steps count from 1 here, as AReaL prints them.
"""

import json
import shlex
from collections.abc import Callable, Collection, Iterable, Sequence
from pathlib import PurePosixPath

from prime_train.spec.causes import Cause
from prime_train.spec.spec import ProgressSpec, RunSpec
from prime_train.text.finite import number_of
from prime_train.trainers.areal import conventions as areal
from prime_train.trainers.checkpoint_folders import FileInfo, shards_complete
from prime_train.trainers.command import CommandTrainer
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.log_lines import clean
from prime_train.trainers.log_rules import LogRule
from prime_train.trainers.patterns import matches
from prime_train.trainers.progress import LineReader, Progress, names_not_finite, step_of
from prime_train.trainers.scattered_checkpoints import Gathering, Scattered
from prime_train.trainers.stale_outputs import Move, StaleOutputs

RULES = (
    LogRule(r"Training failed with exception:", Cause.TRAINER_ERROR),
    LogRule(r"cluster\.fileroot '.*' does not exist", Cause.BAD_CONFIG),
)

_ENGINES = ("default", "critic")
_STATE = "recover_checkpoint"
_INFO = ("step_info", "saver_info", "evaluator_info", "stats_logger_info", "checkpoint_info")
_PICKLE_END = b"."

_STEP = r"Train step (?P<step>\d{1,12})/\d+ done\."
_REWARD = r"task_reward/avg\W+?(?P<value>[-+]?(?:\d\.\d+e[-+]\d+|nan|inf))"


class ArealTrainer(CommandTrainer):
    def command(
        self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None
    ) -> str:
        line = super().command(spec, checkpoints=checkpoints, resume_step=None, resume_folder=None)
        own = " ".join(
            f"{key}={shlex.quote(value.format(checkpoints=checkpoints))}"
            for key, value in areal.settings(spec).items()
        )
        state = shlex.quote(f"{checkpoints}/{areal.state_folder(spec)}")
        # AReaL does not begin without these folders.
        made = f"mkdir -p {shlex.quote(f'{checkpoints}/{areal.ROOT}/names')} {state}"
        # Times are kept, because they show which part is newer.
        put_back = "" if resume_folder is None else f" && cp -a {shlex.quote(resume_folder)}/. {state}/"
        return f"{made}{put_back} && {line} {own}"

    def shown_command(self, spec: RunSpec) -> str:
        return spec.trainer.command

    def environment(self, spec: RunSpec, *, attempt: int, run_id: str, link: str = "") -> dict[str, str]:
        # The first variable in which Python looks for the name of the user.
        return super().environment(spec, attempt=attempt, run_id=run_id, link=link) | {"LOGNAME": areal.USER}

    def reader(self, spec: RunSpec) -> LineReader:
        """Return a reader of AReaL's output, unless the config says how progress is read."""
        return ArealReader() if spec.trainer.progress == ProgressSpec() else super().reader(spec)

    def gathering(self, spec: RunSpec) -> Gathering:
        folder = str(PurePosixPath(spec.checkpoints.folder, areal.state_folder(spec)))
        return Gathering(folder, _states, _is_opened, in_place=True)

    def is_complete(self, spec: RunSpec, files: Sequence[FileInfo], now_s: int) -> bool:
        return is_state(files) and super().is_complete(spec, files, now_s)

    def known_errors(self) -> tuple[LogRule, ...]:
        return (*RULES, *BUILT_IN)

    def stale_outputs(self, spec: RunSpec) -> StaleOutputs:
        """Return the state of an earlier launch, which AReaL would take up in place of the one that was
        restored.
        """
        return StaleOutputs(str(PurePosixPath(spec.checkpoints.folder, areal.ROOT)), _earlier_state)


class ArealReader:
    """Reader of AReaL's output, in which the table with a step's reward follows the line that it is done."""

    def __init__(self) -> None:
        self._step: int | None = None

    def read(self, line: str) -> Progress | None:
        text = clean(line)
        done, reward = next(matches(_STEP, text), None), next(matches(_REWARD, text), None)
        if done is not None:
            self._step = int(done["step"])
            return Progress(self._step)
        if reward is None or self._step is None:
            return None
        return Progress(
            self._step,
            reward=number_of(reward["value"]),
            not_finite=names_not_finite({"reward": reward["value"]}),
        )


def is_state(files: Collection[FileInfo]) -> bool:
    """Return whether these are the files of a complete state, as far as their times show: the metadata of an
    engine are no older than its shards, and the last file of the state is no older than the metadata.
    """
    times_s = {file.path: file.mtime_s for file in files}
    engines = [
        engine for engine in _ENGINES if any(path.startswith(f"{engine}/{_STATE}/") for path in times_s)
    ]
    if (
        areal.LAST not in times_s
        or "default" not in engines
        or any(f"{areal.INFO}/{name}.json" not in times_s for name in _INFO)
    ):
        return False
    sentinels = [f"{engine}/{_STATE}/.metadata" for engine in engines]
    return shards_complete(files) and all(
        sentinel in times_s and times_s[sentinel] <= times_s[areal.LAST] for sentinel in sentinels
    )


def _states(files: Sequence[FileInfo], read: Callable[[str], bytes]) -> Iterable[Scattered]:
    """Return the state if it is complete and can be read."""
    if not is_state(files):
        return []
    last_size = next(file.size for file in files if file.path == areal.LAST)
    try:
        parsed = [json.loads(read(f"{areal.INFO}/{name}.json")) for name in _INFO]
        last = read(areal.LAST)
    except (OSError, ValueError, RecursionError):
        return []
    is_cut_off = len(last) == last_size and not last.endswith(_PICKLE_END)
    step = step_of(parsed[0].get("global_step")) if isinstance(parsed[0], dict) else None
    return (
        [] if step is None or is_cut_off else [Scattered(step + 1, {file.path: file.path for file in files})]
    )


def _is_opened(path: PurePosixPath) -> bool:
    """Return whether a folder belongs to the state; beside it are exported weights of each save."""
    return path.parts[0] == areal.INFO or (path.parts[0] in _ENGINES and path.parts[1:2] in ((), (_STATE,)))


def _earlier_state(listing: Collection[str], resume_step: int | None, *, attempt: int) -> Sequence[Move]:
    return [Move("checkpoints", "earlier/checkpoints")] if "checkpoints" in listing else []
