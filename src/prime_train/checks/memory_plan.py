"""The plan of a trainer's config, whichever trainer it is for. There is none for a model that is not known
and whose name has no size.
"""

from collections.abc import Callable
from functools import lru_cache

from prime_train.checks.plans.areal_plan import plan_of_areal
from prime_train.checks.plans.prime_rl_plan import plan_of_prime_rl
from prime_train.checks.plans.prime_rl_sft_plan import plan_of_sft
from prime_train.checks.plans.torchtitan_plan import plan_of_torchtitan
from prime_train.checks.plans.trainer_plan import plan_of_trainer
from prime_train.checks.plans.verl_plan import plan_of_verl
from prime_train.estimate.job import JobDescription
from prime_train.estimate.models import lookup as models
from prime_train.estimate.models.dimensions import Model
from prime_train.spec.rule import Subject
from prime_train.trainers.prime_rl.conventions import KIND
from prime_train.trainers.prime_rl.rules.lengths import train_environments
from prime_train.trainers.prime_rl.rules.schema import Same
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig
from prime_train.trainers.settings.of_subject import training_of

_PLANNERS: dict[str, Callable[[Subject, Model], JobDescription | None]] = {
    KIND: plan_of_prime_rl,
    "areal": plan_of_areal,
    "hf": plan_of_trainer,
    "prime_rl_sft": plan_of_sft,
    "torchtitan": plan_of_torchtitan,
    "verl": plan_of_verl,
}
"""How the plan for a model is made of the configs of each format."""


def model_name(subject: Subject) -> str:
    """Return the model's name; empty if the config does not name it, or is of no trainer whose memory is
    known.
    """
    training = training_of(subject)
    return training.model.value if training is not None else ""


def plan_of(subject: Subject, model: Model | None = None) -> JobDescription | None:
    """Return the plan of a config; None if it is of no trainer whose memory is known, its model is not
    recognised (and `model` is not given), or its numbers make no sense.
    """
    return _plan_of(Same(subject), model)


def steps_of(subject: Subject) -> int | None:
    """Return the number of steps that the trainer's own settings say; None if they do not."""
    # A run of prime-rl has its steps in the spec.
    training = training_of(subject) if subject.format != KIND else None
    return training.steps.value if training is not None else None


def environments_of(subject: Subject) -> str:
    """Return the environments that a config trains on, in words; empty if it is of no trainer that has
    any.
    """
    if subject.format != KIND or subject.trainer is None:
        return ""
    return ", ".join(
        sorted(set(filter(None, train_environments(ReceivedConfig(subject.trainer.root, subject.spec)))))
    )


@lru_cache(maxsize=4)
def _plan_of(same: Same[Subject], model: Model | None) -> JobDescription | None:
    """Return the plan, cached because several rules request that of one subject."""
    subject = same.it
    plan = _PLANNERS.get(subject.format)
    known = model or models.resolve_path(model_name(subject))
    return plan(subject, known) if plan is not None and known is not None else None
