"""What follows from figures that are not as they should be: the command after a rollback, and training that
began anew.
"""

import shlex

from prime_train.runs.run import Figures
from prime_train.spec.spec import RunSpec

SHARE_MIN = 0.3
"""How far a figure must have moved since the run began, as a share of the larger value, to tell whether it
began anew.
"""


def after_rollback(spec: RunSpec) -> RunSpec:
    """Return the config of an attempt after a rollback, with `health.rollback_arguments` added to the
    trainer's command.
    """
    arguments, trainer = spec.health.rollback_arguments.strip(), spec.trainer
    if not arguments:
        return spec
    if trainer.prime_rl is None:
        changed = trainer.model_copy(update={"command": f"{trainer.command.strip()} {arguments}"})
    else:
        overrides = (*trainer.prime_rl.overrides, *shlex.split(arguments))
        changed = trainer.model_copy(
            update={"prime_rl": trainer.prime_rl.model_copy(update={"overrides": overrides})}
        )
    return spec.model_copy(update={"trainer": changed})


def began_anew(first: Figures, saved: Figures, now: Figures, *, step: int) -> str:
    """Return how training seems to have begun anew at `step`, after a resume, in words; "" if it does not.
    `first`: the figures when the run began; `saved`: those of the checkpoint that was restored. A figure
    counts if it has moved much since the beginning, and is nearer to what it was then than to that of the
    checkpoint.
    """
    pairs = (
        ("loss", first.loss, saved.loss, now.loss),
        ("learning rate", first.learning_rate, saved.learning_rate, now.learning_rate),
    )
    found = [
        f"the {name} is {new:.4g}: it was {old:.4g} in the checkpoint, and {begun:.4g} when the run began"
        for name, begun, old, new in pairs
        if begun is not None and old is not None and new is not None and _is_nearer(new, begun, old)
    ]
    why = "the checkpoint's weights, optimizer or schedule may not have been loaded"
    return f"at step {step}, the first after the resume, {'; '.join(found)}. {why}" if found else ""


def _is_nearer(new: float, begun: float, old: float) -> bool:
    return abs(begun - old) >= SHARE_MIN * max(abs(begun), abs(old)) > 0 and abs(new - begun) < abs(new - old)
