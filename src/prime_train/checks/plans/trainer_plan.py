"""The plan of a config for the Trainer of transformers, TRL, axolotl or LLaMA-Factory, whose names for
settings are those of trainers/hf/settings.py.

A full training keeps 32-bit weights, gradients and AdamW states, and computes in 16 bits; under DeepSpeed it
keeps 16-bit weights and gradients, and a 32-bit copy beside the states; axolotl, `pure_bf16` and a model that
is loaded in 16 bits keep all in 16 bits. Adapters have 32 bits over a base of 16, 8 or 4. Where a file that
is not here may say it, or a script's own code, the usual is assumed.

`least_training` is the same config with all that it leaves open decided in its favour, so that what does not
fit then, fits in no case.
"""

import math
import re
from dataclasses import replace

from prime_train.estimate.job import GPUS_MAX, QUANTISED, SHORTEST, JobDescription
from prime_train.estimate.memory.phases import Logits, Method, Recompute, Serving, Sharding, Training
from prime_train.estimate.memory.software_factors import MadeWith, software
from prime_train.estimate.models.dimensions import Model
from prime_train.spec.rule import Subject
from prime_train.trainers.hf.settings import (
    AXOLOTL,
    LLAMA_FACTORY,
    LLAMA_FACTORY_1,
    SCRIPT,
    SWIFT,
    TRL,
    Offloaded,
    Spread,
    TrainerSettings,
    trainer_settings,
)
from prime_train.trainers.hf.training import (
    is_rl,
    kind_of_training,
    length,
    method,
    micro_batch,
    recompute,
)
from prime_train.trainers.settings.launched import processes

TRANSFORMERS = software(MadeWith("transformers"))
COLOCATED, APART = 0.3, 0.9
"""The share of each GPU that a server of TRL has by default, on the trainer's GPUs and on its own."""
PACKED, RAGGED = 0.9, 0.1
"""The least share of a step's tokens that packed samples fill, and samples of mixed lengths, for which the
length is only a limit.
"""
SHORT = 256
"""Tokens of a sequence where the data may have no longer ones."""
_STATE_BYTES = (
    ("8bit", 2.0),
    ("4bit", 1.0),
    ("adafactor", 0.1),
    ("sgd", 0.0),
    ("lion", 4.0),
    ("muon", 4.0),
    ("adam_mini", 4.0),
)
"""Bytes of an optimizer's states by a part of its name, the first one that matches; AdamW's are 8."""
_ADAMW_BYTES, LEAST_STATE_BYTES = 8.0, 2.0
_MLP = re.compile(r"gate|up|down|fc|w[123]|mlp|dense|all|c_proj|linear_fc", re.IGNORECASE)
_QUANTISED_NAME = (
    (re.compile(r"nvfp4|mxfp4|nf4|4[-_]?bit|int4|w4a16", re.IGNORECASE), QUANTISED["bitsandbytes"]),
    (re.compile(r"awq|gptq", re.IGNORECASE), QUANTISED["awq"]),
    (re.compile(r"aqlm|2[-_]?bit", re.IGNORECASE), 0.3),
    (re.compile(r"fp8|int8|8[-_]?bit", re.IGNORECASE), QUANTISED["fp8"]),
)
_COMPARED = frozenset(("dpo", "kto", "ipo", "ppo"))
"""Kinds of training that keep the untrained model to compare with; with adapters it is the base itself."""


def plan_of_trainer(subject: Subject, model: Model) -> JobDescription | None:
    """Return the plan; None if the config is for more GPUs than are known."""
    settings = trainer_settings(subject)
    gpus = _gpus(subject, settings) if settings is not None else 0
    if settings is None or not 1 <= gpus <= GPUS_MAX:
        return None
    assumed: list[str] = []
    if settings.is_on("use_kt"):
        assumed.append(
            "the experts are in the host's memory (use_kt), and the GPU holds no more than what one token "
            "passes"
        )
        model = replace(model, params=model.active, experts=model.experts_used)
    training = _training(settings, model, gpus, assumed)
    rented = subject.spec.hardware.count if subject.spec is not None and subject.spec.hardware.gpus else gpus
    serves, is_beside = (
        is_rl(settings) and settings.is_on("use_vllm"),
        settings.text("vllm_mode") != "colocate",
    )
    apart = max(1, min(rented - gpus, settings.integer("vllm_tensor_parallel_size") or 1))
    share = settings.number("vllm_gpu_memory_utilization")
    return JobDescription(
        model,
        training,
        gpus,
        Serving(seq_len=length(settings).value, sequences=1),
        serve_gpus=apart if serves else 0,
        utilization=share if share is not None and 0 < share <= 1 else (APART if is_beside else COLOCATED),
        together=serves and not is_beside,
        batch_tokens=0 if is_rl(settings) and not serves else _batch_tokens(settings, gpus, training),
        shortest=SHORTEST if is_rl(settings) else PACKED if _is_packed(settings) else RAGGED,
        assumed=tuple(assumed),
    )


def least_training(subject: Subject, model: Model) -> tuple[Training, int] | None:
    """Return how the config trains if all that it leaves open is decided in its favour, and on how many GPUs;
    None if it is not the Trainer's.
    """
    settings = trainer_settings(subject)
    gpus = _gpus(subject, settings) if settings is not None else 0
    if (
        settings is None
        or not 1 <= gpus <= GPUS_MAX
        or settings.is_set("unfrozen_parameters")
        or settings.is_on("use_kt")
    ):
        return None
    return _training(settings, model, gpus, [], least=True), gpus


def _gpus(subject: Subject, settings: TrainerSettings) -> int:
    """Return the GPUs that train: one for each process that the command starts, or else all that are
    rented.
    """
    spec = subject.spec
    if spec is None:
        by_degrees = math.prod(degrees) if (degrees := _degrees(settings)) is not None else 1
        return processes(subject).value or by_degrees
    return processes(subject).value or (spec.hardware.count if spec.hardware.gpus else 1)


def _degrees(settings: TrainerSettings) -> tuple[int, int, int] | None:
    """Return Megatron's degrees of tensor, pipeline and expert parallelism; None if the settings are not for
    Megatron.
    """
    names = ("tensor_model_parallel_size", "pipeline_model_parallel_size", "expert_model_parallel_size")
    sizes = [settings.integer(name) for name in names]
    if not any(sizes) or any((size or 1) > GPUS_MAX for size in sizes):
        return None
    return sizes[0] or 1, sizes[1] or 1, sizes[2] or 1


def _training(
    settings: TrainerSettings, model: Model, gpus: int, assumed: list[str], *, least: bool = False
) -> Training:
    trained, adapter_params = _method(settings, model)
    # The experts of a mixture are seldom adapted: PEFT does so only where they are named.
    if (
        trained is Method.LORA
        and not adapter_params
        and (not _adapts_mlp(settings) or (least and model.is_moe))
    ):
        adapter_params = _attention_adapters(settings, model)
    spread = _spread(settings, gpus, assumed, least=least)
    weights, gradients, states = _widths(settings, trained, spread, assumed, least=least)
    tokens, size = length(settings), micro_batch(settings)
    if size.is_default:
        assumed.append(
            f"{settings.program.micro_batch_default} samples at once on each GPU: the default of "
            f"{settings.program.title} ({settings.program.micro_batch})"
        )
    if tokens.is_default:
        assumed.append(
            f"sequences of {tokens.value:,} tokens: the default of {settings.program.title} "
            f"({settings.program.seq_len})"
        )
    training = Training(
        method=trained,
        seq_len=max(1, -(-tokens.value // _split(settings))),
        micro_batch=size.value,
        weight_bytes=weights,
        gradient_bytes=gradients,
        state_bytes=states,
        recompute=recompute(settings).value,
        activations_offloaded=settings.value("gradient_checkpointing") in ("offload", "offload_disk")
        or settings.is_set("activation_offloading"),
        eager_attention=settings.text("attn_implementation") == "eager" or settings.is_on("eager_attention"),
        logits=_logits(settings),
        lora_rank=_rank(settings),
        adapter_params=adapter_params,
        adapts_mlp=_adapts_mlp(settings),
        trains_embeddings=_trains_embeddings(settings),
        sharding=spread.sharding or Sharding.NONE,
        tensor_parallel=settings.integer("tensor_parallel_size") or 1,
        expert_parallel=settings.integer("expert_parallel_size") or 1,
        states_offloaded=spread.offloaded is Offloaded.ALL,
        optimizer_offloaded=spread.offloaded is Offloaded.OPTIMIZER,
        frozen_bytes=2.0 if _has_reference(settings, trained) and not least else 0.0,
        software=TRANSFORMERS,
    )
    degrees = _degrees(settings)
    if degrees is not None and trained is Method.FULL:
        widths = replace(
            training,
            weight_bytes=2.0,
            gradient_bytes=4.0,
            state_bytes=4.0 + _ADAMW_BYTES,
            sharding=Sharding.ZERO1,
        )
        training = replace(
            widths, tensor_parallel=degrees[0], pipeline_parallel=degrees[1], expert_parallel=degrees[2]
        )
    if not least:
        return training
    is_full_length = _is_packed(settings) and not settings.is_on("use_vllm")
    short = training.seq_len if is_full_length else min(training.seq_len, SHORT)
    paged = "paged" in settings.text("optimizer") + settings.text("optim")
    offloaded = training.optimizer_offloaded or paged
    return replace(
        training,
        seq_len=short,
        micro_batch=1,
        recompute=Recompute.FULL,
        logits=Logits.FUSED,
        optimizer_offloaded=offloaded,
    )


def _split(settings: TrainerSettings) -> int:
    """Return the GPUs that one sequence is divided over."""
    names = ("context_parallel_size", "cp_size", "sequence_parallel_size")
    return next((size for name in names if (size := settings.integer(name)) is not None), 1)


def _method(settings: TrainerSettings, model: Model) -> tuple[Method, int]:
    """Return what is trained, and its number of parameters if it is a part of the layers; 0 for all and for
    adapters of a rank.
    """
    layer = max(1, round(model.layer_params))
    if settings.program is LLAMA_FACTORY:
        kind = settings.text("finetuning_type") or "lora"
        if kind == "freeze":
            return Method.LORA, layer * min(
                model.layers, abs(int(settings.number("freeze_trainable_layers") or 2)) or 1
            )
        if kind == "full" and settings.is_on("use_badam"):
            return Method.LORA, layer
    if settings.program is LLAMA_FACTORY_1:
        kind = settings.text("peft_config", "name")
        if kind == "freeze":
            trained = abs(int(settings.number("peft_config", "freeze_trainable_layers") or 2)) or 1
            return Method.LORA, layer * min(model.layers, trained)
    return method(settings).value, 0


def _attention_adapters(settings: TrainerSettings, model: Model) -> int:
    """Return the parameters of adapters on the matrices of attention alone."""
    widths = 2 * (model.hidden + model.attention_width) + 2 * (model.hidden + model.kv_width)
    return max(1, _rank(settings) * model.layers * widths)


def _widths(
    settings: TrainerSettings, method: Method, spread: Spread, assumed: list[str], *, least: bool
) -> tuple[float, float, float]:
    """Return the bytes of a weight, of a gradient and of the optimizer's states."""
    adam = _state_bytes(settings)
    if least and adam == _ADAMW_BYTES and not settings.program.shards_itself:
        adam = LEAST_STATE_BYTES  # a script may choose it by its own code
    if method is Method.LORA:
        return _base_bytes(settings, assumed, least=least), 4.0, adam
    is_deepspeed = spread.sharding in (Sharding.ZERO1, Sharding.ZERO2, Sharding.ZERO3)
    is_half = (
        settings.is_set("bf16")
        or settings.is_set("fp16")
        or settings.is_set("bfloat16")
        or settings.is_set("float16")
    )
    if settings.program is LLAMA_FACTORY_1:
        is_half = settings.value("bf16") is not False
    half = (2.0, 2.0, adam / 2 if adam == _ADAMW_BYTES else adam)
    if least and (spread.sharding in (Sharding.FSDP1, Sharding.FSDP2) or not settings.program.shards_itself):
        return half
    layerwise = settings.is_on("galore_layerwise") or settings.is_on("apollo_layerwise")
    if settings.is_on("use_galore") or settings.is_on("use_apollo"):
        each = 2.0 if settings.is_on("pure_bf16") else 4.0
        return each, 0.0 if layerwise else each, 1.0  # states of a low rank
    if is_deepspeed and is_half:
        return 2.0, 2.0, 4.0 + adam
    if settings.is_on("pure_bf16"):
        return half
    if settings.program is AXOLOTL:
        return (4.0, 4.0, adam) if spread.sharding is not Sharding.NONE or not is_half else half
    if settings.program is SWIFT:
        return half if settings.text("torch_dtype") != "float32" else (4.0, 4.0, adam)
    if settings.program in (LLAMA_FACTORY, LLAMA_FACTORY_1):
        return (
            half
            if settings.program is LLAMA_FACTORY_1 and spread.sharding is Sharding.NONE and is_half
            else (4.0, 4.0, adam)
        )
    loaded = next(
        (settings.text(name) for name in ("dtype", "torch_dtype", "model_dtype") if settings.text(name)), ""
    )
    if loaded in ("bfloat16", "float16", "bf16", "fp16"):
        return half if spread.sharding is Sharding.NONE else (4.0, 4.0, adam)
    if loaded not in ("float32", "fp32"):
        assumed.append("32-bit weights: no setting says in which precision the model is loaded")
    return 4.0, 4.0, adam


def _base_bytes(settings: TrainerSettings, assumed: list[str], *, least: bool) -> float:
    """Return the bytes of a weight of the base of adapters."""
    bits = (
        settings.integer("quantization_bit")
        or settings.integer("quant_bits")
        or settings.integer("quant_config", "quantization_bit")
    )
    if settings.is_on("load_in_4bit") or settings.text("adapter") == "qlora":
        bits = 4
    elif settings.is_on("load_in_8bit"):
        bits = 8
    if bits is not None and bits <= 8:
        return QUANTISED["bitsandbytes"] if bits == 4 else bits / 8
    named = settings.model.rstrip("/").rpartition("/")[2]
    quantised = next((width for pattern, width in _QUANTISED_NAME if pattern.search(named)), None)
    if quantised is not None:
        return quantised
    if least and not settings.program.shards_itself:
        return QUANTISED["bitsandbytes"]
    if settings.program in (SCRIPT, TRL) and not any(
        settings.text(name) for name in ("dtype", "torch_dtype", "model_dtype")
    ):
        assumed.append("a 16-bit base: no setting says in which precision the model is loaded")
    return 2.0


def _state_bytes(settings: TrainerSettings) -> float:
    name = " ".join(
        (settings.text("optim"), settings.text("optimizer"), settings.text("optim_config", "name"))
    ).lower()
    for setting, named in (("use_adam_mini", "adam_mini"), ("use_muon", "muon")):
        name += f" {named}" if settings.is_on(setting) else ""
    return next((size for part, size in _STATE_BYTES if part in name), _ADAMW_BYTES)


def _spread(settings: TrainerSettings, gpus: int, assumed: list[str], *, least: bool) -> Spread:
    found = settings.spread
    if least and found.by_name:
        return Spread(found.sharding or Sharding.FSDP2, Offloaded.ALL)
    if found.sharding is not None and (
        found.sharding is not Sharding.NONE or not least or settings.program.shards_itself or gpus == 1
    ):
        return found
    # A script may spread the model by its own code.
    if least:
        return Spread(Sharding.FSDP2, found.offloaded)
    if gpus > 1:
        assumed.append("weights sharded over all GPUs: the file that says so is not read")
    return Spread(Sharding.ZERO3 if gpus > 1 else Sharding.NONE, found.offloaded)


def _has_reference(settings: TrainerSettings, method: Method) -> bool:
    if method is not Method.FULL:
        return False
    return kind_of_training(settings) in _COMPARED or (is_rl(settings) and (settings.number("beta") or 0) > 0)


def _is_packed(settings: TrainerSettings) -> bool:
    packed = any(
        settings.is_on(name) for name in ("packing", "neat_packing", "sample_packing", "pad_to_sequence_len")
    )
    return packed or settings.text("stage") == "pt"


def _logits(settings: TrainerSettings) -> Logits:
    fused = (
        "use_liger_kernel",
        "use_liger",
        "enable_liger_kernel",
        "liger_fused_linear_cross_entropy",
        "cut_cross_entropy",
        "use_unsloth",
    )
    plugins = " ".join(settings.words_at("plugins")).lower()
    if any(settings.is_on(name) for name in fused) or "cut_cross_entropy" in plugins:
        return Logits.FUSED
    return Logits.CHUNKED if settings.is_on("chunked_cross_entropy") else Logits.FULL


def _rank(settings: TrainerSettings) -> int:
    named = (("lora_r",), ("lora_rank",), ("peft_config", "r"))
    return next(
        (rank for path in named if (rank := settings.integer(*path)) is not None), settings.program.lora_rank
    )


def _adapts_mlp(settings: TrainerSettings) -> bool:
    named = (("lora_target_modules",), ("lora_target",), ("peft_config", "target_modules"))
    targets = next((found for path in named if (found := settings.words_at(*path))), ())
    return (
        settings.is_on("lora_target_linear") or not targets or any(_MLP.search(target) for target in targets)
    )


def _trains_embeddings(settings: TrainerSettings) -> bool:
    others = (*settings.words_at("lora_modules_to_save"), *settings.words_at("additional_target"))
    return any(part in other for other in others for part in ("embed", "lm_head"))


def _batch_tokens(settings: TrainerSettings, gpus: int, training: Training) -> int:
    """Return the tokens of one step if every sequence has the full length."""
    again = settings.integer("gradient_accumulation_steps") or 1
    return training.micro_batch * again * gpus * training.seq_len
