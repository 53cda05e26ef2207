"""`prime-train memory CONFIG`: estimate the GPU memory of a run in each phase, and whether it fits."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from prime_train.core.errors import UsageError
from prime_train.core.exit_codes import Exit

if TYPE_CHECKING:
    from prime_train.estimate.models.table import Model
    from prime_train.rules.hardware.memory_plan import Plan
    from prime_train.rules.rule import Subject

SEQ_LEN_MAX = 2**21
GPUS_MAX = 1024
MICRO_BATCH_MAX = 1024


def memory(
    config: Annotated[Path | None, typer.Argument(help="A run's config, or a trainer's, such as rl.toml.", show_default=False)] = None,
    model: Annotated[str, typer.Option(help="Model, where the config does not tell: Qwen/Qwen3-8B, or 8B.", show_default=False)] = "",
    gpu: Annotated[str, typer.Option(help="Kinds of GPU with their memory, such as H100_80GB.", show_default=False)] = "",
    gpus: Annotated[int, typer.Option(min=0, max=GPUS_MAX, help="GPUs that train; 0: as the config says, or 1.")] = 0,
    seq_len: Annotated[int, typer.Option(min=0, max=SEQ_LEN_MAX, help="Tokens of a sequence; 0: as the config says, or 4096.")] = 0,
    micro_batch: Annotated[int, typer.Option(min=1, max=MICRO_BATCH_MAX, help="Sequences that a GPU has at once.")] = 1,
    bf16: Annotated[bool, typer.Option("--bf16", help="Weights, gradients and AdamW in 16 bit.")] = False,
    hub: Annotated[bool, typer.Option("--hub", help="Ask Hugging Face for the model's shape (HF_ENDPOINT, HF_TOKEN).")] = False,
    lora: Annotated[bool, typer.Option("--lora", help="Train adapters instead of all weights.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> Exit:
    """Show what a run takes of GPU memory.

    Leaves with 1 where it does not fit one of its kinds of GPU. Nothing is asked of the network but with --hub.
    """
    from prime_train.cli.amounts import kinds
    from prime_train.cli.memory import show as memory_show
    from prime_train.reports.memory import as_json as memory_json
    from prime_train.reports.memory.report import told

    subject = subject_of(config) if config is not None else None
    plan = _changed(plan_for(subject, model, config, hub=hub), gpus=gpus, seq_len=seq_len, micro_batch=micro_batch, lora=lora, bf16=bf16)
    asked = kinds(gpu)
    for kind in asked:
        _check_kind(kind)
    if not asked and subject is not None and subject.spec is not None:
        asked = subject.spec.hardware.gpus
    found = told(str(config) if config is not None else model, plan, asked)
    if as_json:
        print(memory_json.text(found))
    else:
        memory_show.show(found)
    return Exit.OK if found.fits else Exit.FINDINGS


def subject_of(config: Path) -> "Subject":
    """Read the config and the files it refers to. Raises UsageError if it cannot be parsed."""
    from prime_train.configs.loader import matters

    found = next(iter(matters([config])), None)
    if found is None or found.subject is None:
        raise UsageError(f"{config} cannot be understood as a config", fix=f"prime-train validate {config} tells why")
    return found.subject


def plan_for(subject: "Subject | None", name: str, config: Path | None, *, hub: bool = False) -> "Plan":
    """Return the memory plan of the config, or one for the model alone. Raises UsageError if neither specifies what is trained."""
    from prime_train.estimate.memory.phases import Serving, Training
    from prime_train.rules.hardware.memory_plan import Plan, model_name, plan_of

    named = name or (model_name(subject) if subject is not None and hub else "")
    model = _of_hub(named) if named and hub else _understood(named) if named else None
    plan = plan_of(subject, model) if subject is not None else None
    if plan is not None:
        return plan
    if model is not None:
        count = subject.spec.hardware.count if subject is not None and subject.spec is not None else 1
        return Plan(model, Training(), count, Serving())
    if config is None:
        raise UsageError("which config, or which model?", fix="write a config's name, or --model Qwen/Qwen3-8B")
    raise UsageError(f"{config} does not tell which model is trained, and how", fix="say it with --model, --gpus, --seq-len and --lora")


def _understood(name: str) -> "Model":
    from prime_train.estimate.models import lookup as models

    model = models.understand(name) or models.sized(name)
    if model is None:
        fix = "write its size, such as --model 7B, or ask Hugging Face with --hub"
        raise UsageError(f"the model {name} is not known, and its name does not tell its size", fix=fix)
    return model


def _of_hub(name: str) -> "Model":
    from prime_train.adapters.hub import Hub

    told = Hub.of(os.environ).model(name)
    if told is None or told.shape is None:
        what = "there is none, or none that you may see" if told is None else "its config.json does not tell its shape"
        raise UsageError(
            f"Hugging Face on {name}: {what}", fix="check the spelling and HF_TOKEN, or write its size: --model 7B", code=Exit.FINDINGS
        )
    return told.shape


def _changed(plan: "Plan", *, gpus: int, seq_len: int, micro_batch: int, lora: bool, bf16: bool) -> "Plan":
    from prime_train.estimate.memory.phases import Method

    training = replace(
        plan.training,
        seq_len=seq_len or plan.training.seq_len,
        micro_batch=micro_batch,
        method=Method.LORA if lora else plan.training.method,
    )
    if bf16:
        training = replace(training, weight_bytes=2, gradient_bytes=2, state_bytes=training.state_bytes / 2, adapter_bytes=2)
    return replace(plan, training=training, train_gpus=gpus or plan.train_gpus)


def _check_kind(kind: str) -> None:
    from prime_train.estimate import gpus

    if not gpus.named_gb(kind):
        raise UsageError(f"{kind} does not tell how much memory a GPU has", fix="write the kind with its memory, such as H100_80GB")
