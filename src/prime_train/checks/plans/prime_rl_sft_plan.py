"""The plan of a config of prime-rl's supervised training, whose model has the same settings as the trainer of its
reinforcement learning; the loss is computed from all logits.
"""

from dataclasses import replace

from prime_train.checks.plans.prime_rl_plan import training_with
from prime_train.estimate.job import GPUS_MAX, JobDescription
from prime_train.estimate.memory.phases import Logits, Serving
from prime_train.estimate.models.dimensions import Model
from prime_train.spec.merge import nested
from prime_train.spec.rule import Subject
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig
from prime_train.trainers.settings.of_subject import training_of
from prime_train.trainers.settings.view import Reader

BATCH = 128


def plan_of_sft(subject: Subject, model: Model) -> JobDescription | None:
    """Return the plan; None if the config is for several machines, or for more GPUs than are known."""
    given = training_of(subject)
    if given is None or subject.trainer is None:
        return None
    read = Reader(subject.trainer)
    gpus = given.processes.value or 1
    if read.text("deployment.type").value == "multi_node" or not 1 <= gpus <= GPUS_MAX:
        return None
    settings = ReceivedConfig(nested(("trainer",), subject.trainer.root, subject.trainer.root.place))
    training = replace(
        training_with(settings, given.seq_len.value),
        micro_batch=given.micro_batch.value,
        logits=Logits.FULL,
    )
    assumed = [f"sequences of {given.seq_len.value} tokens: prime-rl's default (data.seq_len)"]
    return JobDescription(
        model,
        training,
        gpus,
        Serving(seq_len=given.seq_len.value, sequences=1),
        batch_tokens=read.integer("data.batch_size", default=BATCH).value * given.seq_len.value,
        shortest=1.0,
        assumed=tuple(assumed if given.seq_len.is_default else ()),
    )
