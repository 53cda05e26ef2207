"""The plan of a script of one's own, by what its command says: the usual where it says nothing."""

from dataclasses import replace

from prime_train.estimate.job import GPUS_MAX, NUMBER_MAX, QUANTISED, JobDescription
from prime_train.estimate.memory.phases import Method, Serving, Sharding
from prime_train.estimate.memory.training_setup import Training, usual_training
from prime_train.estimate.models.lookup import resolve_path
from prime_train.spec.config_format import flags
from prime_train.spec.rule import Subject
from prime_train.trainers.settings import own_script
from prime_train.trainers.settings.view import TrainingSettings

_FOUR_BITS = ("load_in_4bit", "qlora", "use_qlora")


def plan_of_script(subject: Subject) -> JobDescription | None:
    """Return the plan; None if the command names no model that is known."""
    given = own_script.settings(subject) if not subject.format else None
    model = resolve_path(given.model.value) if given is not None else None
    if given is None or model is None or given.seq_len.value > NUMBER_MAX:
        return None
    spec = subject.spec
    rented = spec.hardware.count if spec is not None and spec.hardware.gpus else 1
    gpus = min(GPUS_MAX, given.processes.value or rented)
    unsaid = [
        f"{what}: the command does not say otherwise"
        for what, setting in (
            (f"sequences of {given.seq_len.value:,} tokens", given.seq_len),
            (f"{given.micro_batch.value} samples at once on each GPU", given.micro_batch),
        )
        if setting.is_default
    ]
    training = replace(
        _usual(given, subject.command),
        micro_batch=given.micro_batch.value,
        recompute=given.recompute.value,
        sharding=given.sharding.value or Sharding.NONE,
    )
    return JobDescription(
        model,
        training,
        gpus,
        Serving(given.seq_len.value, sequences=1),
        batch_tokens=given.micro_batch.value * given.accumulation.value * gpus * given.seq_len.value,
        assumed=("what a script of one's own usually keeps: its code is not read", *unsaid),
    )


def _usual(given: TrainingSettings, command: str) -> Training:
    """Return the usual training with a method: adapters are over a base of 16 bits, or of 4 if a flag says so."""
    usual = usual_training(given.method.value, given.seq_len.value)
    if given.method.value is Method.FULL:
        return usual
    is_quantised = any(name in _FOUR_BITS for name, _ in flags(command))
    return replace(usual, weight_bytes=QUANTISED["bitsandbytes"] if is_quantised else 2.0)
