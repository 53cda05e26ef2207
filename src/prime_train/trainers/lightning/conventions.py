"""Conventions of Lightning's Trainer: where its CSV logger writes, and how a script is told to resume."""

import re
from pathlib import PurePosixPath

from prime_train.trainers.kind import Configured, Layout

CHECKPOINT = "checkpoint.ckpt"
"""The name under which a Lightning checkpoint is stored in a folder of its own. The names that Lightning
chooses contain more than the step.
"""
LOGS = "lightning_logs"
"""The folder of the CSV logger, in which each launch on a machine has a folder of its own."""


_LAUNCH = re.compile(r"version_(?:[0-9]+|\*)")


def saved_in(spec: Configured) -> str:
    """Return the folder in which Lightning saves. In its default folder, that of the launch has the number 0,
    because the logs of earlier launches are moved aside.
    """
    parts = PurePosixPath(spec.checkpoints.folder).parts
    return (
        str(PurePosixPath(LOGS, "version_0", *parts[2:]))
        if _is_of_a_launch(parts)
        else spec.checkpoints.folder
    )


def gathered_in(spec: Configured) -> str:
    """Return the folder in which the agent gathers and restores checkpoints: where Lightning saves, but for
    its default folder, which is one of each launch and would be moved aside with its logs.
    """
    return (
        f"{LOGS}/checkpoints"
        if _is_of_a_launch(PurePosixPath(spec.checkpoints.folder).parts)
        else spec.checkpoints.folder
    )


def _is_of_a_launch(parts: tuple[str, ...]) -> bool:
    return len(parts) > 1 and parts[0] == LOGS and _LAUNCH.fullmatch(parts[1]) is not None


def layout(spec: Configured) -> Layout:
    """Return the checkpoint names, progress file and resume arguments of a run of Lightning's Trainer."""
    # A regular expression may be for the output.
    file = None if spec.trainer.progress.kind == "regex" else f"{LOGS}/version_0/metrics.csv"
    return Layout(None, "step_{step}", progress_file=file, resume=f"--ckpt_path {{checkpoint}}/{CHECKPOINT}")


def conflicts(spec: Configured) -> tuple[str, ...]:
    """Return descriptions of what would make a run of this kind save nothing or start over."""
    if "{checkpoint}" in spec.trainer.resume:
        return ()
    return (
        f"trainer.resume {spec.trainer.resume!r} does not pass the checkpoint: on a new machine Lightning "
        "finds none, and starts over; "
        f"delete this key, or write {{checkpoint}}/{CHECKPOINT} in it",
    )
