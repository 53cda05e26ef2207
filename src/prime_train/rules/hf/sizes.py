"""Rules about the minimum needs of full training with the Trainer of transformers (HW108, ME206), for models of known size.

The minimum is 16-bit weights and gradients and both AdamW states in 8 bit: 6 bytes per parameter, over all GPUs. Adapters and states in
host memory need less; if a config mentions them, or refers to a file for them, nothing is reported.
"""

from collections.abc import Iterator

from prime_train.core.finding import Severity
from prime_train.core.registry.providers import allowed_providers, is_own_machine
from prime_train.estimate import gpus
from prime_train.rules.command_line import flags
from prime_train.rules.rule import Document, Rule, Subject, Violation

GIB = 2**30
MODEL_BYTES = 2
STATE_BYTES = 6
"""Bytes per parameter, on GPUs or in a checkpoint; no full training today needs less."""
_ADAPTERS = frozenset(("use_peft", "lora_r", "lora_rank", "finetuning_type", "load_in_4bit", "load_in_8bit", "quant_method", "adapter"))
_SMALLER = _ADAPTERS | {"deepspeed", "fsdp", "fsdp_config"}
_ELSEWHERE = frozenset(("config_file", "deepspeed", "use_peft", "use_deepspeed", "use_fsdp", "fsdp"))
_NOT_SMALLER = (False, None, "full")
"""Values of such settings that train the whole model all the same, such as finetuning_type: full."""
_DISK = ("hardware", "disk_gib")


def _disk(subject: Subject) -> Iterator[Violation]:
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
            f"{spec.hardware.disk_gib} GiB of disk are less than the {needed / GIB:.0f} GiB needed: {params * MODEL_BYTES / GIB:.0f} "
            f"for the model, and "
            f"{kept} checkpoints of at least {params * each / GIB:.0f} (those kept and the one being written)"
        )
        yield Violation(_DISK, message, f"set hardware.disk_gib to {-int(-(needed / GIB * 2 + 20) // 10) * 10}")


def _memory(subject: Subject) -> Iterator[Violation]:
    spec, params = subject.spec, _params(subject)
    if spec is None or params is None:
        return
    for place, kind in enumerate(spec.hardware.gpus):
        total_gib = gpus.named_gb(kind) * gpus.USABLE_SHARE * spec.hardware.count
        if total_gib and params * STATE_BYTES > total_gib * GIB:
            message = (
                f"weights, gradients and optimizer take at least {params * STATE_BYTES / GIB:.0f} GiB, but "
                f"{spec.hardware.count} x {kind} have {total_gib:.0f} GiB together"
            )
            yield Violation(("hardware", "gpus", place), message)


def _params(subject: Subject) -> float | None:
    """Return the parameters of the model if all of it is trained; None if that is not known."""
    config, spec = subject.trainer, subject.spec
    if config is None or spec is None or _is_smaller(config, spec.trainer.command):
        return None
    from prime_train.estimate.models.lookup import resolve_model

    model = resolve_model(config.text("model_name_or_path") or config.text("base_model") or "")
    return float(model.params) if model is not None else None


def _is_smaller(config: Document, command: str) -> bool:
    is_reduced = any(entry.key in _SMALLER and config.value(entry.key) not in _NOT_SMALLER for entry in config.root.entries)
    return is_reduced or any(name in _ELSEWHERE for name, _ in flags(command))


RULES = (
    Rule(
        "HW108",
        Severity.ERROR,
        "less disk than the trainer will fill",
        "The disk fills up and saving fails, possibly as early as the first checkpoints.",
        "set a larger hardware.disk_gib",
        "hardware",
        _disk,
        "hf",
    ),
    Rule(
        "ME206",
        Severity.ERROR,
        "a model whose full training state does not fit its GPUs",
        "The run fails with an out-of-memory error in its first step, after the machine, its setup and the download were paid for.",
        "use more GPUs, a larger kind, or LoRA",
        "memory",
        _memory,
        "hf",
    ),
)
