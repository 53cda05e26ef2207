"""Conventions of the published code of tiny recursive models, and the settings that each launch needs."""

from prime_train.trainers.conventions.command_settings import settings_in
from prime_train.trainers.kind import Configured, Layout

CHECKPOINT = "checkpoint.pt"
"""The name under which a weights file is stored in a folder of its own. The published code calls it step_N,
without an extension.
"""


_TRUE = frozenset(("true", "1", "yes", "on", "y", "t"))
_EPOCHS, _EVAL_INTERVAL = "100000", "10000"
"""Of the published config/cfg_pretrain.yaml."""
_CONFIG = ("--config-name", "--config-path", "--config-dir", "-cn", "-cp", "-cd")
"""Arguments of another config file, in which these settings may be."""


def layout(spec: Configured) -> Layout:
    """Return the checkpoint names and resume arguments of a run of TRM's published code."""
    return Layout(
        None, "weights_{step}", files=(CHECKPOINT,), resume=f"++load_checkpoint={{checkpoint}}/{CHECKPOINT}"
    )


def settings(spec: Configured) -> dict[str, str]:
    """Return the settings of every launch; `{checkpoints}` stands for the folder of checkpoints."""
    # No config file of TRM has the first two, so hydra has to add them.
    return {"++run_name": spec.name, "++checkpoint_path": "{checkpoints}", "checkpoint_every_eval": "True"}


def conflicts(spec: Configured) -> tuple[str, ...]:
    """Return descriptions of what would make a run of this kind save nothing or start over."""
    chosen = settings_in(spec.trainer.command)
    found = [
        f"kind trm sets {key} itself, so that the weights are found; delete this setting"
        for key in ("run_name", "checkpoint_path")
        if key in chosen
    ]
    if chosen.get("checkpoint_every_eval", "true").lower() not in _TRUE:
        found.append(
            "the command saves only at the end, so the run starts over on each machine; delete "
            "checkpoint_every_eval"
        )
    iterations = _iterations(spec.trainer.command, chosen)
    first = chosen.get("min_eval_interval", "0")
    if iterations is not None and _number(first) is not None and int(first) >= iterations:
        found.append(
            f"min_eval_interval={first} is not below the {iterations} iterations of this training, so that "
            "it never evaluates and never "
            f"saves, not even at the end; write min_eval_interval={iterations - 1} or less"
        )
    # Settings that no config has, such as a misspelt one, are ignored without an error.
    if "{checkpoint}" not in settings_in(spec.trainer.resume).get("load_checkpoint", ""):
        found.append(
            f"trainer.resume {spec.trainer.resume!r} does not pass the weights, and TRM starts over; delete "
            "this key"
        )
    return tuple(found)


def _iterations(command: str, chosen: dict[str, str]) -> int | None:
    """Return how often the training can evaluate and save; None if the command does not show it."""
    if any(word.split("=", 1)[0] in _CONFIG for word in command.split()):
        return None
    epochs = _number(chosen.get("epochs", _EPOCHS))
    interval = chosen.get("eval_interval", _EVAL_INTERVAL)
    if interval.lower() in ("null", "none"):
        return 1
    every = _number(interval)
    return (epochs // every or None) if epochs and every else None


def _number(text: str) -> int | None:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 12 else None
