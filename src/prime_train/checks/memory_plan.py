"""The plan of a trainer's config, whichever trainer it is for. There is none for a model that is not known
and whose name has no size.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

from prime_train.checks.plans.areal_plan import model_of_areal, plan_of_areal
from prime_train.checks.plans.prime_rl_plan import model_of_prime_rl, plan_of_prime_rl
from prime_train.checks.plans.prime_rl_sft_plan import model_of_sft, plan_of_sft
from prime_train.checks.plans.torchtitan_plan import model_of_torchtitan, plan_of_torchtitan
from prime_train.checks.plans.trainer_plan import model_of_trainer, plan_of_trainer
from prime_train.checks.plans.verl_plan import model_of_verl, plan_of_verl
from prime_train.estimate.job import JobDescription
from prime_train.estimate.models import lookup as models
from prime_train.estimate.models.dimensions import Model
from prime_train.spec.rule import Subject
from prime_train.trainers.prime_rl.conventions import KIND
from prime_train.trainers.prime_rl.rules.lengths import train_environments
from prime_train.trainers.prime_rl.rules.schema import Same
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig
from prime_train.trainers.settings.of_subject import training_of


@dataclass(frozen=True)
class _Planner:
    """How the configs of one format are read: the name of the model, and the plan for it."""

    model: Callable[[Subject], str]
    plan: Callable[[Subject, Model], JobDescription | None]


_PLANNERS: dict[str, _Planner] = {
    KIND: _Planner(model_of_prime_rl, plan_of_prime_rl),
    "areal": _Planner(model_of_areal, plan_of_areal),
    "hf": _Planner(model_of_trainer, plan_of_trainer),
    "prime_rl_sft": _Planner(model_of_sft, plan_of_sft),
    "torchtitan": _Planner(model_of_torchtitan, plan_of_torchtitan),
    "verl": _Planner(model_of_verl, plan_of_verl),
}


def model_name(subject: Subject) -> str:
    """Return the model's name; empty if the config does not name it, or is of no trainer whose memory is
    known.
    """
    planner = _PLANNERS.get(subject.format)
    return planner.model(subject) if planner is not None else ""


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
    planner = _PLANNERS.get(subject.format)
    known = model or (models.resolve_path(planner.model(subject)) if planner is not None else None)
    return planner.plan(subject, known) if planner is not None and known is not None else None
