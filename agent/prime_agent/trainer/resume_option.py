"""The resume arguments of a script whose config names none.

No argument is invented: a script that finds its checkpoint by itself would be stopped by an option that it does not know. Only a script
that has the option of prime-train's own examples is given it.
"""

from pathlib import Path

from prime_train.core.registry.trainers import TRAINERS
from prime_train.core.spec import RunSpec
from prime_train.core.spec_choices import RESUME_ARGUMENTS
from prime_train.core.trainer_conventions.own_scripts import SCRIPT_BYTES_MAX, is_given_step, scripts_of


def resume_of(spec: RunSpec, work: Path) -> RunSpec:
    """Return the spec with the arguments of a resume, if it names none and the script that it starts in the tree `work` has the option."""
    if spec.trainer.resume or TRAINERS[spec.trainer.kind].layout is not None or not _has_option(spec.trainer.command, work):
        return spec
    return spec.model_copy(update={"trainer": spec.trainer.model_copy(update={"resume": RESUME_ARGUMENTS})})


def _has_option(command: str, work: Path) -> bool:
    return any(is_given_step(command, _text(work / path)) for path in scripts_of(command))


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(SCRIPT_BYTES_MAX).decode(errors="replace")
    except OSError:
        return ""
