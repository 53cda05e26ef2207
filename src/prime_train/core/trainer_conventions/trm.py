"""Conventions of the published code of tiny recursive models, and the settings that each launch needs."""

from typing import TYPE_CHECKING

from prime_train.core.registry.definitions import Layout
from prime_train.core.trainer_conventions.command_settings import settings_in

if TYPE_CHECKING:
    from prime_train.core.spec import RunSpec

CHECKPOINT = "checkpoint.pt"
"""The name under which a weights file is stored in a folder of its own. The published code calls it step_N, without an extension."""


def layout(spec: "RunSpec") -> Layout:
    """Return the checkpoint names and resume arguments of a run of TRM's published code."""
    return Layout(None, "weights_{step}", files=(CHECKPOINT,), resume=f"++load_checkpoint={{checkpoint}}/{CHECKPOINT}")


def settings(spec: "RunSpec") -> dict[str, str]:
    """Return the settings of every launch; `{checkpoints}` stands for the folder of checkpoints."""
    # No config file of TRM has the first two, so hydra has to add them.
    return {"++run_name": spec.name, "++checkpoint_path": "{checkpoints}", "checkpoint_every_eval": "True"}


def conflicts(spec: "RunSpec") -> tuple[str, ...]:
    """Return descriptions of what would make a run of this kind save nothing or start over."""
    chosen = settings_in(spec.trainer.command)
    found = [
        f"kind trm sets {key} itself, so that the weights are found; delete this setting"
        for key in ("run_name", "checkpoint_path")
        if key in chosen
    ]
    if chosen.get("checkpoint_every_eval", "True") != "True":
        found.append("the command saves only at the end, so the run starts over on each machine; delete checkpoint_every_eval")
    if "{checkpoint}" not in spec.trainer.resume:
        found.append(f"trainer.resume {spec.trainer.resume!r} does not pass the weights, and TRM starts over; delete this key")
    return tuple(found)
