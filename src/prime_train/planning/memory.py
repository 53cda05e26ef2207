"""Estimate the GPU memory that a training takes in each phase, and whether it fits."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from prime_train.advice import Advice, Option, SettingAdvice
from prime_train.checks.memory_plan import model_name, plan_of
from prime_train.checks.plans.own_script_plan import plan_of_script
from prime_train.configs.loader import loaded_config
from prime_train.errors import UsageError
from prime_train.estimate import gpus
from prime_train.estimate.job import JobDescription
from prime_train.estimate.memory.phases import Method, Serving
from prime_train.estimate.memory.training_setup import usual_training
from prime_train.estimate.models import lookup as models
from prime_train.estimate.models.dimensions import Model
from prime_train.exit_codes import Exit
from prime_train.planning.hugging_face_hub import Hub
from prime_train.planning.limits import GPUS_MAX, MICRO_BATCH_MAX, SEQ_LEN_MAX
from prime_train.planning.memory_report import MemoryReport, memory_report
from prime_train.spec.rule import Subject


@dataclass(frozen=True)
class MemoryRequest:
    """A request to estimate the memory of a training. Fields that are None or empty are taken from the
    config.

    `config`: a run's config, or a trainer's; None: a training of `model` alone. `model`: an id such as
    `Qwen/Qwen3-8B`, or a size such as `8B`. `kinds`: kinds of GPU with their memory, such as `H100_80GB`.
    `gpus`: the number of GPUs that train. `seq_len`: tokens per sequence. `micro_batch`: sequences that a GPU
    processes at once. `lora`: train adapters. `bf16`: weights, gradients and AdamW states in 16 bit. `hub`:
    request the model's shape from Hugging Face.
    """

    config: Path | None = None
    model: str = ""
    kinds: tuple[str, ...] = ()
    gpus: int | None = None
    seq_len: int | None = None
    micro_batch: int | None = None
    lora: bool = False
    bf16: bool = False
    hub: bool = False

    def __post_init__(self) -> None:
        check_range(SettingAdvice.GPUS, self.gpus, 1, GPUS_MAX)
        check_range(SettingAdvice.SEQ_LEN, self.seq_len, 1, SEQ_LEN_MAX)
        check_range(SettingAdvice.MICRO_BATCH, self.micro_batch, 1, MICRO_BATCH_MAX)


def estimate_memory(request: MemoryRequest, environment: Mapping[str, str]) -> MemoryReport:
    """Return what the training takes of each GPU in each phase, in bytes, and whether that fits each kind of
    GPU.

    Sends requests only if `request.hub` is set, with `HF_ENDPOINT` and `HF_TOKEN` of the environment. Raises
    UsageError if the config or the model is not understood, and ExternalError if Hugging Face does not
    answer.
    """
    for kind in request.kinds:
        if not gpus.named_gb(kind):
            raise UsageError(
                f"{kind} does not contain the memory of a GPU",
                fix="write the kind with its memory, such as H100_80GB",
            )
    hub = Hub.of(environment) if request.hub else None
    if request.config is None:
        plan = plan_for(None, request.model, None, hub=hub)
        return memory_report(request.model, _changed(plan, request), request.kinds)
    judged = loaded_config(request.config, environment).judged
    found = [_of_config(request, title, subject, hub) for title, subject in judged]
    return replace(found[0], others=tuple(found[1:]))


def _of_config(request: MemoryRequest, variant: str, subject: Subject, hub: Hub | None) -> MemoryReport:
    """Return the report on the config, or on one of its variants."""
    plan = plan_for(subject, request.model, request.config, hub=hub)
    kinds = request.kinds or (subject.spec.hardware.gpus if subject.spec is not None else ())
    return memory_report(str(request.config), _changed(plan, request), kinds, variant)


def plan_for(
    subject: Subject | None, name: str, config: Path | None, *, hub: Hub | None = None
) -> JobDescription:
    """Return the memory plan of the config, or one for the model alone. `hub`: where to ask for the model's
    shape. Raises UsageError if neither specifies what is trained, and ExternalError if the hub does not
    answer.
    """
    named = name or (model_name(subject) if subject is not None and hub is not None else "")
    model = None if not named else _understood(named) if hub is None else _of_hub(named, hub)
    plan = plan_of(subject, model) if subject is not None else None
    if plan is None and model is None and subject is not None:
        plan = plan_of_script(subject)
    if plan is not None:
        return plan
    if model is not None:
        count = subject.spec.hardware.count if subject is not None and subject.spec is not None else 1
        return JobDescription(model, usual_training(Method.FULL), count, Serving())
    if config is None:
        fix = Advice("give a config, or ", Option(SettingAdvice.MODEL, "Qwen/Qwen3-8B"))
        raise UsageError("no config and no model was given", fix=fix)
    unknown = model_name(subject) if subject is not None else ""
    if unknown and models.resolve_path(unknown) is not None:
        message = f"{config} trains {unknown[:200]!r} on several machines, or does not say on how many GPUs"
        raise UsageError(
            message, fix=Advice("write the number with ", Option(SettingAdvice.MODEL, unknown[:200]))
        )
    if unknown:
        message = (
            f"{config} trains {unknown[:200]!r}, which is unknown, and its name does not contain its size"
        )
        fix = Advice(
            "write its size, such as ",
            Option(SettingAdvice.MODEL, "7B"),
            ", or read Hugging Face with ",
            Option(SettingAdvice.HUB),
        )
        raise UsageError(message, fix=fix)
    ways = [
        Option(one)
        for one in (SettingAdvice.MODEL, SettingAdvice.GPUS, SettingAdvice.SEQ_LEN, SettingAdvice.LORA)
    ]
    fix = Advice("set it with ", ways[0], ", ", ways[1], ", ", ways[2], " and ", ways[3])
    raise UsageError(f"{config} does not say which model is trained, and how", fix=fix)


def check_range(setting: SettingAdvice, value: float | None, low: float, high: float) -> None:
    """Raise UsageError unless the value lies between `low` and `high`, or is None."""
    if value is not None and not low <= value <= high:
        raise UsageError(f"{setting.value} is {value:g}", fix=f"write a number from {low:g} to {high:,g}")


def _understood(name: str) -> Model:
    model = models.resolve_model(name) or models.sized(name)
    if model is None:
        fix = Advice(
            "write its size, such as ",
            Option(SettingAdvice.MODEL, "7B"),
            ", or read Hugging Face with ",
            Option(SettingAdvice.HUB),
        )
        raise UsageError(f"the model {name} is unknown, and its name does not contain its size", fix=fix)
    return model


def _of_hub(name: str, hub: Hub) -> Model:
    found = hub.model(name)
    if found is None or found.shape is None:
        what = (
            "the model does not exist, or you have no access to it"
            if found is None
            else "its config.json does not describe a known architecture"
        )
        fix = Advice(
            "check the spelling and HF_TOKEN, or write its size: ", Option(SettingAdvice.MODEL, "7B")
        )
        raise UsageError(f"Hugging Face on {name}: {what}", fix=fix, code=Exit.FINDINGS)
    return found.shape


def _changed(plan: JobDescription, request: MemoryRequest) -> JobDescription:
    training = replace(
        plan.training,
        seq_len=request.seq_len or plan.training.seq_len,
        micro_batch=request.micro_batch or plan.training.micro_batch,
        method=Method.LORA if request.lora else plan.training.method,
    )
    if request.bf16:
        training = replace(
            training, weight_bytes=2, gradient_bytes=2, state_bytes=training.state_bytes / 2, adapter_bytes=2
        )
    return replace(plan, training=training, train_gpus=request.gpus or plan.train_gpus)
