"""The plan of a prime-rl config.

Defaults are those of prime-rl at the commit whose settings are known: FSDP with 32-bit weights, the optimizer
and the layer inputs in host memory, a fused head.
"""

import math

from prime_train.estimate.job import GPUS_MAX, NUMBER_MAX, QUANTISED, JobDescription
from prime_train.estimate.memory.phases import Logits, Method, Recompute, Serving, Sharding, Training
from prime_train.estimate.models.dimensions import Model
from prime_train.spec.rule import Subject
from prime_train.trainers.prime_rl.rules.rule import settings_of
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig

STATE_BYTES = {"adamw": 8.0, "muon": 4.0, "sgd": 4.0, "sign_sgd": 0.0}
_NODE = "trainer.model"


def plan_of_prime_rl(subject: Subject, model: Model) -> JobDescription | None:
    """Return the plan; None if its numbers make no sense."""
    settings = settings_of(subject)
    if settings is None or not (settings.is_one_node or _nodes(settings)):
        return None
    train, seq_len = _nodes(settings) or settings.train_gpus, settings.integer("trainer.model.seq_len")
    if train is None or seq_len is None or not _sensible(settings, train, seq_len):
        return None
    infer = max(0, settings.infer_gpus or 0)
    if _nodes(settings) and (settings.integer("deployment.num_infer_nodes") or 0) > 0:
        infer = settings.integer("deployment.gpus_per_node") or 0
    tensor_parallel = settings.integer("inference.vllm.tensor_parallel_size") or 1
    utilization = settings.number("inference.vllm.gpu_memory_utilization")
    return JobDescription(
        model,
        training_with(settings, seq_len),
        max(1, train // max(1, settings.integer(f"{_NODE}.dp_replicate") or 1)),
        _serving(settings, seq_len),
        serve_gpus=min(infer, max(1, tensor_parallel)),
        utilization=utilization if utilization is not None and 0 < utilization <= 1 else 0.9,
        together=settings.is_on_one_gpu,
        batch_tokens=max(0, settings.integer("orchestrator.batch_size") or 0) * seq_len,
    )


def _nodes(settings: ReceivedConfig) -> int | None:
    """Return the trainer's GPUs on several machines; None if the config is for one."""
    if settings.value("deployment.type") != "multi_node":
        return None
    nodes, each = (settings.integer(f"deployment.{name}") for name in ("num_train_nodes", "gpus_per_node"))
    return nodes * each if nodes is not None and each is not None and nodes >= 1 and each >= 1 else None


def _sensible(settings: ReceivedConfig, train: int, seq_len: int) -> bool:
    """Return whether the numbers are realistic; other rules report those that are not."""
    others = ("orchestrator.batch_size", "inference.vllm.max_model_len", f"{_NODE}.lora.rank", f"{_NODE}.cp")
    within = all((settings.integer(path) or 1) <= NUMBER_MAX for path in others)
    return within and 1 <= train <= GPUS_MAX and 1 <= seq_len <= NUMBER_MAX


def training_with(settings: ReceivedConfig, seq_len: int) -> Training:
    """Return how prime-rl's trainer trains with these settings."""
    lora, width = (
        settings.has(f"{_NODE}.lora"),
        2.0 if settings.text(f"{_NODE}.optimization_dtype") == "bfloat16" else 4.0,
    )
    state = STATE_BYTES.get(settings.text("trainer.optim.type") or "adamw", 8.0)
    full_offload = (
        settings.has(f"{_NODE}.full_offload") and settings.value(f"{_NODE}.full_offload") is not False
    )
    return Training(
        method=Method.LORA if lora else Method.FULL,
        seq_len=math.ceil(seq_len / max(1, settings.integer(f"{_NODE}.cp") or 1)),
        weight_bytes=width,
        gradient_bytes=0.0 if full_offload else width,
        state_bytes=state * width / 4,
        recompute=_recompute(settings),
        activations_offloaded=not _is_off(settings, f"{_NODE}.ac_offloading"),
        logits=Logits.FULL
        if settings.value(f"{_NODE}.fused_lm_head_token_chunk_size") == "disabled"
        else Logits.FUSED,
        lora_rank=max(1, settings.integer(f"{_NODE}.lora.rank") or 16) if lora else 16,
        sharding=Sharding.FSDP2,
        states_offloaded=settings.is_on(f"{_NODE}.fsdp_cpu_offload"),
        optimizer_offloaded=full_offload or settings.is_on(f"{_NODE}.optim_cpu_offload"),
        compiled=True,
    )


def _recompute(settings: ReceivedConfig) -> Recompute:
    """Return which activations are recomputed. Activation offloading turns recomputation on, even if the
    config turns it off.
    """
    if _is_off(settings, f"{_NODE}.ac") and _is_off(settings, f"{_NODE}.ac_offloading"):
        return Recompute.NONE
    return Recompute.SELECTIVE if settings.text(f"{_NODE}.ac.mode") == "selective" else Recompute.FULL


def _is_off(settings: ReceivedConfig, path: str) -> bool:
    """Return whether a setting that is on by default is set to null."""
    return settings.at(path) is not None and not settings.has(path)


def _serving(settings: ReceivedConfig, seq_len: int) -> Serving:
    length = settings.integer("inference.vllm.max_model_len") or seq_len
    width = QUANTISED.get((settings.text("inference.vllm.quantization") or "").lower(), 2.0)
    if settings.text("inference.vllm.dtype") == "float32":
        width = 4.0
    return Serving(
        seq_len=max(1, length),
        sequences=1,
        weight_bytes=width,
        eager=settings.is_on("inference.vllm.enforce_eager"),
    )
