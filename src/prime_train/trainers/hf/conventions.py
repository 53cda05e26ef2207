"""Conventions of the Trainer of transformers: the names of its checkpoints, and how the programs that use it
are told to resume.
"""

import re
from itertools import pairwise
from pathlib import PurePosixPath

from prime_train.trainers.kind import Configured, Layout

PATTERN = "checkpoint-{step}"
STATE = "trainer_state.json"
"""The file that the Trainer writes last, except for a few small ones."""

_SCRIPT_RESUME = "--resume_from_checkpoint {checkpoint}"
_AXOLOTL_RESUME = "--resume-from-checkpoint {checkpoint}"
_OVERRIDE_RESUME = "resume_from_checkpoint={checkpoint}"
_BY_STEP = re.compile(r"resume.from.checkpoint[ =]['\"]?\{step\}")
_LLAMA_FACTORY = ("llamafactory-cli", "lmf")
_CONFIG_SUFFIXES = (".yaml", ".yml", ".json")


def layout(spec: Configured) -> Layout:
    """Return the checkpoint names of the Trainer, and the arguments with which this command resumes."""
    return Layout(None, PATTERN, files=(STATE,), resume=resume_of(spec.trainer.command))


def conflicts(spec: Configured) -> tuple[str, ...]:
    """Return descriptions of what would make a run of this kind save nothing or start over."""
    if not _BY_STEP.search(spec.trainer.resume):
        return ()
    return (
        f"trainer.resume {spec.trainer.resume!r} passes a step, but the Trainer takes a folder; write "
        f"{{checkpoint}} or delete this key",
    )


def resume_of(command: str) -> str:
    """Return the arguments with which the command resumes: those of axolotl or LLaMA-Factory, or else those
    of the Trainer's own parser.
    """
    words = [PurePosixPath(word).name for word in command.split()]
    for at, (program, action) in enumerate(pairwise(words)):
        if (program, action) == ("axolotl", "train"):
            return _AXOLOTL_RESUME
        if program in _LLAMA_FACTORY and action == "train":
            config = words[at + 2] if at + 2 < len(words) else ""
            return _OVERRIDE_RESUME if config.endswith(_CONFIG_SUFFIXES) else _SCRIPT_RESUME
    return _SCRIPT_RESUME
