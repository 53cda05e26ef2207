"""The plan of a verl run: an actor, for PPO a critic beside it, and a server of rollouts on the same GPUs.

With FSDP the actor keeps 32-bit weights, gradients and AdamW states, sharded over all GPUs; with Megatron 16-bit
weights and 32-bit gradients, whose optimizer states are sharded. The server frees its cache while the actor
trains, so each of the two has the GPU in turn.
"""

from prime_train.estimate.job import GPUS_MAX, SHORTEST, JobDescription
from prime_train.estimate.memory.phases import Logits, Method, Serving, Sharding, Training
from prime_train.estimate.memory.software_factors import MadeWith, software
from prime_train.estimate.models.dimensions import Model
from prime_train.spec.rule import Subject
from prime_train.trainers.settings.of_subject import training_of
from prime_train.trainers.settings.view import Reader
from prime_train.trainers.verl.training import (
    ACTOR,
    MODEL,
    PASS,
    ROLLOUT,
    SFT_PASS,
    is_megatron,
    is_sft,
    passes_by_tokens,
)

VERL = software(MadeWith("verl"))
UTILIZATION = 0.5
BATCH, SFT_BATCH = 1024, 256
RANK = 16
_MEGATRON = ("tensor", "pipeline", "expert")


def plan_of_verl(subject: Subject, model: Model) -> JobDescription | None:
    """Return the plan; None if the run is for more GPUs than are known."""
    given = training_of(subject)
    if given is None or subject.trainer is None:
        return None
    read, is_supervised = Reader(subject.trainer), is_sft(subject)
    gpus = (given.processes.value or _rented(subject)) * (given.machines.value or 1)
    if not 1 <= gpus <= GPUS_MAX:
        return None
    assumed: list[str] = []
    training = _training(subject, read, assumed)
    parallel = read.integer(f"{ROLLOUT}.tensor_model_parallel_size", default=1 if is_supervised else 2).value
    share = read.number(f"{ROLLOUT}.gpu_memory_utilization").value
    samples = read.integer("data.train_batch_size", default=SFT_BATCH if is_supervised else BATCH).value
    answers = 1 if is_supervised else read.integer(f"{ROLLOUT}.n", default=1).value
    return JobDescription(
        model,
        training,
        gpus,
        Serving(seq_len=given.seq_len.value, sequences=1),
        serve_gpus=0 if is_supervised else min(parallel, gpus),
        utilization=share if share is not None and 0 < share <= 1 else UTILIZATION,
        batch_tokens=samples * answers * given.seq_len.value,
        shortest=SHORTEST,
        assumed=tuple(assumed),
    )


def _rented(subject: Subject) -> int:
    spec = subject.spec
    return spec.hardware.count if spec is not None and spec.hardware.gpus else 1


def _training(subject: Subject, read: Reader, assumed: list[str]) -> Training:
    given = training_of(subject)
    assert given is not None
    is_full, megatron = given.method.value is Method.FULL, is_megatron(subject, read)
    tokens, micro = given.seq_len.value, given.micro_batch.value
    if passes_by_tokens(subject, read):
        longest = SFT_PASS if is_sft(subject) else PASS
        tokens = read.integer(
            f"{ACTOR}.ppo_max_token_len_per_gpu", "data.max_token_len_per_gpu", default=longest
        ).value
    elif given.micro_batch.is_default:
        assumed.append(f"{micro} samples at once on each GPU: no setting of micro batches says how many")
    degrees = {
        name: read.integer(
            f"{ACTOR}.megatron.{name}_model_parallel_size", f"engine.{name}_model_parallel_size", default=1
        ).value
        for name in _MEGATRON
    }
    split = read.integer(
        f"{ACTOR}.ulysses_sequence_parallel_size",
        f"{ACTOR}.megatron.context_parallel_size",
        "engine.ulysses_sequence_parallel_size",
        "ulysses_sequence_parallel_size",
        default=1,
    ).value
    states = 12.0 if megatron else 8.0
    return Training(
        method=given.method.value,
        seq_len=max(1, -(-tokens // split)),
        micro_batch=micro,
        weight_bytes=2.0 if megatron or not is_full else 4.0,
        gradient_bytes=4.0,
        state_bytes=states,
        recompute=given.recompute.value,
        logits=_logits(read),
        lora_rank=read.integer(
            f"{MODEL}.lora_rank", f"{MODEL}.lora.rank", "model.lora_rank", default=RANK
        ).value,
        sharding=given.sharding.value or Sharding.FSDP1,
        tensor_parallel=degrees["tensor"],
        pipeline_parallel=degrees["pipeline"],
        expert_parallel=max(1, degrees["expert"] // degrees["tensor"]),
        states_offloaded=_is_offloaded(read, "param"),
        optimizer_offloaded=_is_offloaded(read, "optimizer"),
        models=2 if _has_critic(subject, read) else 1,
        frozen_bytes=2.0 if is_full and _has_reference(read) else 0.0,
        software=VERL,
    )


def _logits(read: Reader) -> Logits:
    fused = (f"{MODEL}.use_fused_kernels", f"{MODEL}.use_liger", "model.use_liger", "model.use_fused_kernels")
    if any(read.switch(name, default=False).value for name in fused):
        return Logits.FUSED
    return Logits.CHUNKED


def _is_offloaded(read: Reader, part: str) -> bool:
    names = (
        f"{ACTOR}.fsdp_config.{part}_offload",
        f"{ACTOR}.megatron.{part}_offload",
        f"engine.{part}_offload",
    )
    return any(read.switch(name, default=False).value for name in names)


def _has_critic(subject: Subject, read: Reader) -> bool:
    if is_sft(subject):
        return False
    estimator = read.text("algorithm.adv_estimator", default="gae").value
    return estimator == "gae" and read.switch("critic.enable", default=True).value


def _has_reference(read: Reader) -> bool:
    """Return whether a copy of the untrained model is kept on the GPUs to compare with."""
    is_compared = any(
        read.switch(name, default=False).value
        for name in (f"{ACTOR}.use_kl_loss", "algorithm.use_kl_in_reward")
    )
    offloaded = (
        "actor_rollout_ref.ref.fsdp_config.param_offload",
        "actor_rollout_ref.ref.megatron.param_offload",
    )
    return is_compared and not any(read.switch(name, default=False).value for name in offloaded)
