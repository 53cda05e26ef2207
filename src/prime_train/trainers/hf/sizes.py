"""Rules about the minimum needs of training with the Trainer of transformers (HW108, ME206), for models of
known size.

The minimum of GPU memory is the estimate of it, with all that the config leaves open decided in its favour.
On the disk it is 16-bit weights and both AdamW states in 8 bit: 6 bytes per parameter of a full training;
adapters need less, and so do states in host memory: if a config mentions them, or refers to a file for them,
nothing is reported of the disk.
"""

from collections.abc import Iterator

from prime_train.checks.memory_plan import model_name
from prime_train.checks.plans.trainer_plan import least_training
from prime_train.estimate import gpus
from prime_train.estimate.memory.phases import Method, training_need
from prime_train.estimate.models.lookup import resolve_path
from prime_train.providers.kinds import allowed_providers, is_own_machine
from prime_train.runs.forecast import usable_bytes
from prime_train.spec.config_format import flags
from prime_train.spec.rule import Document, Rules, Subject, Violation

GIB = 2**30
MODEL_BYTES = 2
STATE_BYTES = 6
"""Bytes per parameter, on GPUs or in a checkpoint; no full training today needs less."""
_ADAPTERS = frozenset(
    (
        "use_peft",
        "lora_r",
        "lora_rank",
        "finetuning_type",
        "load_in_4bit",
        "load_in_8bit",
        "quant_method",
        "adapter",
    )
)
_SMALLER = _ADAPTERS | {"deepspeed", "fsdp", "fsdp_config"}
_ELSEWHERE = frozenset(("config_file", "deepspeed", "use_peft", "use_deepspeed", "use_fsdp", "fsdp"))
_NOT_SMALLER = (False, None, "full")
"""Values of such settings that train the whole model all the same, such as finetuning_type: full."""
_DISK = ("hardware", "disk_gib")


RULES = Rules("hardware", requires="hf")


@RULES.error(
    "HW108",
    "less disk than the trainer will fill",
    why="The disk fills up and saving fails, possibly as early as the first checkpoints.",
    fix="set a larger hardware.disk_gib",
)
def disk_rule(subject: Subject) -> Iterator[Violation]:
    config, spec, params = subject.trainer, subject.spec, _params(subject)
    if config is None or spec is None or params is None or subject.config is None:
        return
    if (
        subject.config.at(*_DISK) is None
        or is_own_machine(allowed_providers(spec.hardware))
        or config.value("save_strategy") in (False, "no")
    ):
        return
    each = MODEL_BYTES if config.value("save_only_model") is True else STATE_BYTES
    limit = config.number("save_total_limit")
    kept = 1 + max(1, int(limit)) if limit is not None else 2
    needed = params * (MODEL_BYTES + each * kept)
    if needed > spec.hardware.disk_gib * GIB:
        message = (
            f"{spec.hardware.disk_gib} GiB of disk are less than the {needed / GIB:.0f} GiB needed: "
            f"{params * MODEL_BYTES / GIB:.0f} for the model, and {kept} checkpoints of at least "
            f"{params * each / GIB:.0f} (those kept and the one being written)"
        )
        yield Violation(
            _DISK, message, f"set hardware.disk_gib to {-int(-(needed / GIB * 2 + 20) // 10) * 10}"
        )


@RULES.error(
    "ME206",
    "a model whose training does not fit its GPUs",
    why="The run fails with an out-of-memory error in its first step, after the machine, its setup and the "
    "download were paid for.",
    fix="use more GPUs and shard over them (DeepSpeed or FSDP), a larger kind, or LoRA",
    topic="memory",
)
def memory_rule(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or not spec.hardware.gpus:
        return
    model = resolve_path(model_name(subject))
    least = least_training(subject, model) if model is not None else None
    if model is None or least is None:
        return
    training, count = least
    need = training_need(model, training, count)
    for place, kind in enumerate(spec.hardware.gpus):
        usable = usable_bytes(gpus.named_gb(kind))
        if usable and need.low > usable:
            what = (
                "the weights, gradients and optimizer"
                if training.method is Method.FULL
                else "the weights and adapters"
            )
            each = f"each of {count} GPUs" if count > 1 else "the GPU"
            message = (
                f"{what} of {model.name} take at least {need.low / GIB:.0f} GiB of {each}; {kind} "
                "has "
                f"{usable / GIB:.0f} GiB"
            )
            yield Violation(("hardware", "gpus", place), message)


def _params(subject: Subject) -> float | None:
    """Return the parameters of the model if all of it is trained; None if that is not known."""
    config, spec = subject.trainer, subject.spec
    if config is None or spec is None or _is_smaller(config, spec.trainer.command):
        return None
    model = resolve_path(model_name(subject))
    return float(model.params) if model is not None else None


def _is_smaller(config: Document, command: str) -> bool:
    is_reduced = any(
        entry.key in _SMALLER and config.value(entry.key) not in _NOT_SMALLER for entry in config.root.entries
    )
    return is_reduced or any(name in _ELSEWHERE for name, _ in flags(command))
