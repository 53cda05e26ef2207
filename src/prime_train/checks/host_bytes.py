"""Computes the disk and host memory that a trainer's config needs."""

from prime_train.estimate.job import KEPT, JobDescription
from prime_train.spec.rule import Subject
from prime_train.trainers.prime_rl.conventions import KIND
from prime_train.trainers.prime_rl.rules.rule import settings_of


def disk_bytes(plan: JobDescription, subject: Subject) -> tuple[float, float, int]:
    """Return the minimum bytes of the model with two broadcasts, the bytes of one checkpoint, and the number
    of checkpoints on the disk at once.
    """
    spec, training = subject.spec, plan.training
    settings = settings_of(subject) if subject.format == KIND else None
    if subject.format != KIND:
        return plan.model_bytes, plan.checkpoint_bytes, KEPT
    if settings is None or not (settings.has("ckpt") or settings.has("trainer.ckpt")):
        return plan.model_bytes, 0.0, 0
    keep = settings.integer("trainer.ckpt.keep_last")
    states = 0.0 if settings.is_on("trainer.ckpt.skip_optimizer") else training.state_bytes
    every = spec.checkpoints.every_steps if spec is not None else None
    made = spec.trainer.steps // every if spec is not None and spec.trainer.steps and every else None
    # Without keep_last, prime-rl keeps all checkpoints, and the agent deletes those that are in the bucket.
    kept = min(keep or 1, made) if made is not None else (keep or 1)
    return plan.model_bytes, (training.weight_bytes + states) * plan.trained, max(1, kept) + 1


def host_bytes(plan: JobDescription) -> float:
    """Return the bytes offloaded to host memory: optimizer states, or all states. Offloaded layer inputs are
    not included.
    """
    trained, training = plan.trained, plan.training
    each = training.state_bytes if training.optimizer_offloaded or training.states_offloaded else 0.0
    each += training.gradient_bytes if training.states_offloaded else 0.0
    weights = plan.model.params * training.weight_bytes if training.states_offloaded else 0.0
    return trained * each + weights
