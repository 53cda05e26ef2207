"""Trainer `verl`: its programs for reinforcement learning and supervised training, which take settings as
KEY=VALUE.

verl finds its newest checkpoint by a file beside the folders, and starts from scratch without an error if
that file or the folder that it names is missing. So this kind always names the folder to resume from. No file
marks a folder as complete; it is complete with the parts of every process, and with the state of the data,
which is written last.
"""

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence

from prime_train.spec.causes import Cause
from prime_train.spec.spec import ProgressSpec, RunSpec
from prime_train.text.finite import number_of
from prime_train.trainers.checkpoint_folders import FileInfo
from prime_train.trainers.command import CommandTrainer
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.log_lines import clean
from prime_train.trainers.log_rules import LogRule
from prime_train.trainers.patterns import matches
from prime_train.trainers.progress import LineReader, Progress, is_not_finite, names_not_finite, true_loss
from prime_train.trainers.verl import conventions as verl

RULES = (
    LogRule(r"Checkpoint does not exist", Cause.RESUME_IGNORED, stop=True, resumed_only=True),
    LogRule(r"invalid literal for int\(\) with base 10: ''", Cause.BAD_CHECKPOINT),
)

_SHARD = re.compile(
    r"(?P<engine>(?:actor/|critic/)?)(?P<part>model|optim|"
    r"extra_state)_world_size_(?P<of>\d{1,5})_rank_(?P<rank>\d{1,5})\.pt"
)
_MEGATRON = re.compile(r"(?P<engine>actor/|critic/)dist_ckpt/.+")
_MEGATRON_LAST = ("dist_ckpt/.metadata", "dist_ckpt/common.pt", "dist_ckpt/metadata.json")
"""Megatron's parts in versions of verl before 0.9."""
_SPLIT = re.compile(
    r"(?P<engine>(?:actor/|critic/)?)(?P<part>model|optimizer|extra)/(?:dist_ckpt|huggingface)/.+"
)
"""Megatron's parts since verl 0.9."""
_SPLIT_LAST = "ckpt_contents.json"
"""The file that Megatron's engine writes once all of its parts are written, even if they are written in the
background.
"""
_PARTS = ("model", "optim", "extra_state")
_DATA = re.compile(r"data(?:_(?P<rank>\d{1,5}))?\.pt")

_STEP = r"\bstep:(?P<step>\d{1,12}) - "
_NAMES = (
    r"critic/score/mean|critic/rewards/mean|actor/pg_loss|(?:actor|train)/grad_norm|"
    r"train/loss|"
    r"(?:actor|train)/lr"
)
_FIGURE = rf" - (?P<name>{_NAMES}):(?:np\.float\d+\()?(?P<value>[-+.\w]+)"
_NORMS, _RATES = ("actor/grad_norm", "train/grad_norm"), ("actor/lr", "train/lr")
_REWARDS, _LOSSES = ("critic/score/mean", "critic/rewards/mean"), ("actor/pg_loss", "train/loss")


class VerlTrainer(CommandTrainer):
    def command(
        self, spec: RunSpec, *, checkpoints: str, resume_step: int | None, resume_folder: str | None
    ) -> str:
        line = super().command(
            spec, checkpoints=checkpoints, resume_step=resume_step, resume_folder=resume_folder
        )
        # By default it would take up whatever checkpoint it finds.
        mode = "" if resume_step is not None else f" {verl.MODE}=disable"
        return f"{line} {verl.FOLDER}={shlex.quote(checkpoints)}{mode}"

    def reader(self, spec: RunSpec) -> LineReader:
        """Return a reader of verl's output on the console, unless the config says how progress is read."""
        return VerlReader() if spec.trainer.progress == ProgressSpec() else super().reader(spec)

    def is_complete(self, spec: RunSpec, files: Sequence[FileInfo], now_s: int) -> bool:
        return _has_all_parts(files, verl.sharing_data(spec)) and super().is_complete(spec, files, now_s)

    def known_errors(self) -> tuple[LogRule, ...]:
        return (*RULES, *BUILT_IN)


class VerlReader:
    """Reader of lines such as `step:12 - actor/pg_loss:0.0123 - critic/score/mean:0.41`."""

    def read(self, line: str) -> Progress | None:
        text = clean(line)
        step = next(matches(_STEP, text), None)
        if step is None:
            return None
        figures = {found["name"]: found["value"] for found in matches(_FIGURE, text)}
        norm, reward = _first(figures, _NORMS), _first(figures, _REWARDS)
        loss = true_loss(_first(figures, _LOSSES), norm)
        lost = names_not_finite({"loss": loss, "reward": reward, "grad_norm": norm})
        rate = number_of(_first(figures, _RATES))
        return Progress(
            int(step["step"]),
            number_of(loss),
            number_of(reward),
            not_finite=lost,
            grad_norm=number_of(norm),
            learning_rate=rate,
        )


def _first(figures: Mapping[str, str], names: Iterable[str]) -> str | None:
    numbers = (figures.get(name) for name in names)
    return next(
        (number for number in numbers if number_of(number) is not None or is_not_finite(number)), None
    )


def _has_all_parts(files: Sequence[FileInfo], sharing_data: int | None) -> bool:
    """Return whether each engine has the parts of all processes, none of them newer than the state of the
    data. In supervised training, one of `sharing_data` processes saves the state of its data; None if that is
    not known.
    """
    paths = {file.path for file in files}
    shards = [(file, found) for file in files if (found := _SHARD.fullmatch(file.path))]
    megatron = {found["engine"] for path in paths if (found := _MEGATRON.fullmatch(path))}
    split = {found["engine"] for path in paths if (found := _SPLIT.fullmatch(path))}
    data_s = max((file.mtime_s for file in files if _DATA.fullmatch(file.path)), default=None)
    if data_s is None or not (shards or megatron or split):
        return False
    engines = {found["engine"] for _, found in shards}
    if engines | megatron | split <= {"critic/"} or not all(_is_whole(paths, engine) for engine in engines):
        return False
    if not all(f"{engine}{name}" in paths for engine in megatron for name in _MEGATRON_LAST):
        return False
    if not all(_is_whole_split(files, engine) for engine in split):
        return False
    if split == {""}:
        # How many processes share a part of the data follows from Megatron's layout, which only its own
        # config says.
        return _has_all_data(paths, processes=None, sharing=None)
    if engines == {""}:
        # Supervised training saves without folders of engines, and the state of the data once for each part.
        return _has_all_data(
            paths, processes=max(int(found["of"]) for _, found in shards), sharing=sharing_data
        )
    return all(file.mtime_s <= data_s for file, _ in shards)


def _is_whole_split(files: Sequence[FileInfo], engine: str) -> bool:
    """Return whether Megatron's engine has written all of its parts: the file that it writes last is no older
    than any of them, and there is an optimizer, if only in one part with the model, as with Megatron's FSDP.
    """
    last_s = next((file.mtime_s for file in files if file.path == f"{engine}{_SPLIT_LAST}"), None)
    parts = [
        (file, found["part"])
        for file in files
        if (found := _SPLIT.fullmatch(file.path)) and found["engine"] == engine
    ]
    paths = {file.path for file in files}
    has_optimizer = (
        f"{engine}optimizer/dist_ckpt/.metadata" in paths or f"{engine}model/dist_ckpt/.metadata" in paths
    )
    has_model = any(part == "model" for _, part in parts)
    return (
        has_model
        and has_optimizer
        and last_s is not None
        and all(file.mtime_s <= last_s for file, _ in parts)
    )


def _has_all_data(paths: Collection[str], *, processes: int | None, sharing: int | None) -> bool:
    """Return whether the states of all parts of the data are there, as far as it is known how many there
    are.
    """
    ranks = {int(found["rank"]) for path in paths if (found := _DATA.fullmatch(path)) and found["rank"]}
    if not ranks or ranks != set(range(len(ranks))):
        return False
    if processes is None:
        return True
    return processes % len(ranks) == 0 if sharing is None else len(ranks) * sharing == processes


def _is_whole(paths: Collection[str], engine: str) -> bool:
    """Return whether the parts of all processes of one number of processes are there."""
    counts = {
        int(found["of"]) for path in paths if (found := _SHARD.fullmatch(path)) and found["engine"] == engine
    }
    needed = {
        f"{engine}{part}_world_size_{count}_rank_{rank}.pt"
        for count in counts
        for part in _PARTS
        for rank in range(count)
    }
    return len(counts) == 1 and needed <= set(paths)
