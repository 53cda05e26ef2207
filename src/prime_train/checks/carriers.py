"""Rules about what a run trains and saves, whatever says so: the command, a file that it names, a file that this
one names, or a shell script (TR46x). They read the one view of settings (trainers/settings), and are for trainers
whose own rules do not say the same.
"""

import posixpath
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prime_train.checks.spec_rules import only_installs
from prime_train.spec.launchers import is_within
from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.spec.shell_scripts import script_named
from prime_train.trainers.registry import TRAINERS
from prime_train.trainers.settings.of_subject import training_of

if TYPE_CHECKING:
    from prime_train.trainers.settings.view import Setting, T, TrainingSettings

TOPIC = "settings of trainers"
_OWN_RULES = frozenset(("hf", "areal", "prime_rl", "trm"))
"""Formats whose own rules say when nothing is saved."""
_NAMING = (("deepspeed",), ("dist_config", "config_file"))
"""Settings that may name another file of settings."""


RULES = Rules(TOPIC, requires="trainer")


def _viewed(subject: Subject) -> "TrainingSettings | None":
    """Return the settings of a trainer that has no such rules of its own, and that no kind makes save."""
    if subject.format in _OWN_RULES:
        return None
    is_plain = subject.spec is not None and subject.started is None
    if is_plain and subject.spec is not None and TRAINERS[subject.spec.trainer.kind].names_folder:
        return None  # what contradicts the arguments of such a kind is reported as a conflict
    return training_of(subject)


def _violation(setting: "Setting[T]", message: str, fix: str = "", *, otherwise: str = "") -> Violation:
    path = setting.path or tuple(otherwise.split("."))
    return Violation(path, message, fix, document="trainer")


@RULES.warning(
    "TR466",
    "no checkpoint is switched on",
    why="A run that loses its machine starts from step 0.",
    fix="switch the trainer's checkpoints on, every few hundred steps",
)
def nothing_saved(subject: Subject) -> Iterator[Violation]:
    training = _viewed(subject)
    if training is not None and not training.saving.is_on.value:
        name = {"verl": "trainer.save_freq", "torchtitan": "checkpoint.enable"}.get(
            subject.format, "ckpt.interval"
        )
        fix = {
            "verl": "write trainer.save_freq=20",
            "torchtitan": "write enable = true below checkpoint",
        }.get(subject.format, "write interval = 100 below ckpt")
        yield _violation(
            training.saving.is_on,
            f"{training.program} saves nothing before the end: {name} is off",
            fix,
            otherwise=name,
        )


@RULES.warning(
    "TR467",
    "a first checkpoint after the last step",
    why="A run that loses its machine starts from step 0.",
    fix="save every tenth of the steps",
)
def after_the_end(subject: Subject) -> Iterator[Violation]:
    training = training_of(subject) if subject.format not in _OWN_RULES else None
    if training is None or not training.saving.is_on.value:
        return
    last = training.steps.value or (subject.spec.trainer.steps if subject.spec is not None else None)
    every = training.saving.every
    if every.value is not None and last is not None and every.value > last and not every.is_default:
        yield _violation(
            every,
            f"a checkpoint every {every.value} steps in a run of {last}: none is saved before the end",
            f"write {max(1, last // 10)}",
        )


@RULES.warning(
    "TR468",
    "checkpoints outside of the watched folder",
    why="The agent uploads only checkpoints.folder. Checkpoints saved elsewhere are lost with the machine, "
    "and no attempt can resume from them.",
    fix="write the same folder in both, or {checkpoints} in the command",
)
def elsewhere(subject: Subject) -> Iterator[Violation]:
    training, spec = _viewed(subject), subject.spec
    if training is None or spec is None or TRAINERS[spec.trainer.kind].names_folder:
        return
    folder = training.saving.folder
    if folder.is_default or "$" in folder.value or "{" in folder.value:
        return
    if any("ln -s" in command for command in spec.setup):
        return
    saved, watched = posixpath.normpath(folder.value), posixpath.normpath(spec.checkpoints.folder)
    # Some trainers put folders of their own between the two.
    is_same = saved == watched or watched.startswith(f"{saved}/") or saved.endswith(f"/{watched}")
    if not is_same:
        message = (
            f"the trainer saves in {folder.value[:100]}, but the agent looks for checkpoints in "
            f"{spec.checkpoints.folder[:100]}"
        )
        yield _violation(folder, message)


@RULES.warning(
    "TR469",
    "a script that drops what each launch adds",
    why="prime-train appends arguments to the command: the checkpoint to resume from and, for some kinds, the "
    'folder to save in. A script hands them on with "$@"; without it the trainer starts over each time.',
    fix='put "$@" at the end of the training command in the script',
    requires="spec",
)
def dropped(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or subject.started is None or subject.started.hands_on:
        return
    named = script_named(spec.trainer.command)
    if named is not None and (spec.trainer.resume or TRAINERS[spec.trainer.kind].names_folder):
        message = f"{named[0]} does not hand its arguments on to the training that it starts"
        yield Violation(("trainer", "command"), message, word=named[0])


@RULES.warning(
    "TR470",
    "a file of settings that is missing",
    why="The trainer stops with an error when it reads the file, on a machine that is already paid for.",
    fix="check the path, which is relative to the working tree",
)
def missing_settings(subject: Subject) -> Iterator[Violation]:
    """Yield a violation for each file that the trainer's own settings name and that is not in the tree."""
    spec, config = subject.spec, subject.trainer
    if spec is None or config is None or subject.files is None or not subject.has_code:
        return
    if spec.hardware.image is not None or not only_installs(spec.setup) or subject.is_by_flags:
        return
    there = dict(subject.named)
    for path in _NAMING:
        name = config.text(*path)
        if name is None or name in there or not name.endswith((".json", ".yaml", ".yml")):
            continue
        if is_within(name):
            yield Violation(path, f"there is no file {name} in the working tree", document="trainer")
