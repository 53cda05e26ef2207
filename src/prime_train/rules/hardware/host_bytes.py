"""Computes the disk and host memory that a trainer's config needs."""

from prime_train.core.prime_rl import KIND
from prime_train.estimate.memory.phases import Method, trained_params
from prime_train.rules.hardware.memory_plan import Plan
from prime_train.rules.prime_rl.rule import settings_of
from prime_train.rules.rule import Subject

DOWNLOAD_BYTES = 2
KEPT = 2
"""Checkpoints on the disk at once, one of them being written, where it is not known how many the trainer keeps."""


def disk_bytes(plan: Plan, subject: Subject) -> tuple[float, float, int]:
    """Return the minimum bytes of the model with two broadcasts, the bytes of one checkpoint, and the number of checkpoints on the disk at
    once."""
    spec, training = subject.spec, plan.training
    settings = settings_of(subject) if subject.format == KIND else None
    trained = trained_params(plan.model, training)
    broadcast = plan.model.params if training.method is Method.FULL else trained
    model = DOWNLOAD_BYTES * plan.model.params + (2 * DOWNLOAD_BYTES * broadcast if plan.serve_gpus else 0.0)
    if subject.format != KIND:
        width = training.adapter_bytes if training.method is Method.LORA else training.weight_bytes
        return model, (width + training.state_bytes) * trained, KEPT
    if settings is None or not (settings.has("ckpt") or settings.has("trainer.ckpt")):
        return model, 0.0, 0
    keep = settings.integer("trainer.ckpt.keep_last")
    states = 0.0 if settings.is_on("trainer.ckpt.skip_optimizer") else training.state_bytes
    every = spec.checkpoints.every_steps if spec is not None else None
    made = spec.trainer.steps // every if spec is not None and spec.trainer.steps and every else None
    # Without keep_last, prime-rl keeps all checkpoints, and the agent deletes those that are in the bucket.
    kept = min(keep or 1, made) if made is not None else (keep or 1)
    return model, (training.weight_bytes + states) * trained, max(1, kept) + 1


def host_bytes(plan: Plan) -> float:
    """Return the bytes offloaded to host memory: optimizer states, or all states. Offloaded layer inputs are not included."""
    trained, training = trained_params(plan.model, plan.training), plan.training
    each = training.state_bytes if training.optimizer_offloaded or training.states_offloaded else 0.0
    each += training.gradient_bytes if training.states_offloaded else 0.0
    weights = plan.model.params * training.weight_bytes if training.states_offloaded else 0.0
    return trained * each + weights
