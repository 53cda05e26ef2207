"""Conventions of torchtitan: the names of its checkpoints, how a complete one is recognised, and how it is
told to resume.
"""

import re

from prime_train.trainers.kind import Configured, Layout

_OTHER_CHECKPOINTER = re.compile(r"torch_?checkpointing_?manager", re.IGNORECASE)
"""The checkpointer of the library torch_checkpointing, which torchtitan 0.3 contains, but which can neither
save nor load there.
"""
_CHOICE = re.compile(
    r"--checkpoint\.(no_)?(enable|load_only|load_step|folder|last_save_model_only|last_save_in_hf)"
)


def layout(spec: Configured) -> Layout:
    """Return the checkpoint names and resume arguments of a run of torchtitan."""
    return Layout(None, "step-{step}", sentinel=".metadata", resume="--checkpoint.load_step {step}")


def conflicts(spec: Configured) -> tuple[str, ...]:
    """Return descriptions of what would make a run of this kind save nothing or start over."""
    chosen = choices(spec.trainer.command)
    found = []
    if chosen.get("enable") is False or chosen.get("load_only"):
        found.append(
            "the command switches off checkpoints, so the run starts over on each machine; delete this "
            "argument"
        )
    found += [
        f"kind torchtitan sets --checkpoint.{name} itself, from the checkpoint that was restored; delete "
        "this argument"
        for name in ("load_step", "folder")
        if name in chosen
    ]
    if _OTHER_CHECKPOINTER.search(spec.trainer.command.replace("-", "_")):
        found.append(
            "torchtitan's TorchCheckpointingManager neither saves nor loads in version 0.3; use "
            "CheckpointManager"
        )
    if spec.trainer.resume and "load_step" not in choices(spec.trainer.resume):
        found.append(
            f"trainer.resume {spec.trainer.resume!r} does not say which step torchtitan loads; delete this "
            "key"
        )
    return tuple(found)


def choices(arguments: str) -> dict[str, bool]:
    """Return the settings of the checkpointer in these arguments, each with whether it is switched on.
    Hyphens count as underscores.
    """
    return {
        found[2]: not found[1]
        for found in _CHOICE.finditer(arguments.replace("-", "_").replace("__checkpoint", "--checkpoint"))
    }
