"""The plan of a torchtitan config: 32-bit weights, gradients and AdamW states, sharded over all GPUs by FSDP2, and
computed in 16 bits, unless `training.dtype` says otherwise.
"""

from prime_train.estimate.job import GPUS_MAX, NUMBER_MAX, JobDescription
from prime_train.estimate.memory.phases import Logits, Method, Serving, Sharding, Training
from prime_train.estimate.memory.software_factors import LogitsPrecision, MadeWith, software
from prime_train.estimate.models.dimensions import Model
from prime_train.spec.rule import Subject
from prime_train.trainers.settings.of_subject import training_of
from prime_train.trainers.settings.view import Reader

_SPREAD = ("tensor", "pipeline", "context")


def plan_of_torchtitan(subject: Subject, model: Model) -> JobDescription | None:
    """Return the plan; None if the config is for more GPUs than are known."""
    given = training_of(subject)
    if given is None or subject.trainer is None:
        return None
    read = Reader(subject.trainer)
    degrees = {
        name: read.integer(f"parallelism.{name}_parallel_degree", default=1).value
        for name in (*_SPREAD, "expert")
    }
    replicas = read.integer("parallelism.data_parallel_replicate_degree", default=1).value
    sharded = read.integer("parallelism.data_parallel_shard_degree", default=1).value
    together = degrees["tensor"] * degrees["pipeline"] * degrees["context"]
    gpus = _gpus(subject, together * replicas * sharded)
    if not 1 <= gpus <= GPUS_MAX or given.seq_len.value > NUMBER_MAX:
        return None
    is_half = read.text("training.dtype", default="float32").value == "bfloat16"
    width = 2.0 if is_half else 4.0
    compiled = read.switch("compile.enable", "training.compile", default=False).value
    assumed = [
        f"{value} ({name}): torchtitan's default"
        for name, value, is_default in (
            ("training.seq_len", given.seq_len.value, given.seq_len.is_default),
            ("training.local_batch_size", given.micro_batch.value, given.micro_batch.is_default),
        )
        if is_default
    ]
    training = Training(
        method=given.method.value,
        seq_len=max(1, -(-given.seq_len.value // degrees["context"])),
        micro_batch=given.micro_batch.value,
        weight_bytes=width if given.method.value is Method.FULL else 2.0,
        gradient_bytes=width,
        state_bytes=2 * width,
        recompute=given.recompute.value,
        logits=Logits.FULL,
        sharding=given.sharding.value or Sharding.NONE,
        tensor_parallel=degrees["tensor"],
        pipeline_parallel=degrees["pipeline"],
        expert_parallel=max(1, degrees["expert"] // degrees["tensor"]),
        states_offloaded=read.switch("training.enable_cpu_offload", default=False).value,
        compiled=compiled,
        software=software(
            MadeWith("torchtitan", loss=LogitsPrecision.COMPILED if compiled else LogitsPrecision.WIDE)
        ),
    )
    total = read.maybe("training.global_batch_size").value
    samples = total or given.micro_batch.value * max(1, gpus // together)
    return JobDescription(
        model,
        training,
        max(1, gpus // replicas),
        Serving(seq_len=given.seq_len.value, sequences=1),
        batch_tokens=samples * given.seq_len.value,
        shortest=1.0,
        assumed=tuple(assumed),
    )


def _gpus(subject: Subject, by_degrees: int) -> int:
    """Return the GPUs that train: one for each process, or else all that are rented, or what the degrees of
    parallelism need at least.
    """
    given, spec = training_of(subject), subject.spec
    started = given.processes.value if given is not None else None
    if spec is not None and (started or 1) == 1:
        started = spec.hardware.count if spec.hardware.gpus else started
    return started or by_degrees
