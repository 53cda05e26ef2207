"""Derives the settings of a prime-rl run from the user's choices: GPU split, training method, tensor
parallelism and sequence length, with reasons.
"""

import re
from dataclasses import dataclass, replace
from enum import StrEnum

from prime_train.estimate.job import JobDescription, rl_trainers
from prime_train.estimate.memory.phases import GIB, Method, Need, Serving, serving_need
from prime_train.estimate.memory.training_setup import usual_training
from prime_train.estimate.models.dimensions import Model
from prime_train.estimate.models.hardware_presets import Preset
from prime_train.runs.forecast import Fit, usable_bytes
from prime_train.trainers.prime_rl.rules.renderers import renderers

GPUS = (2, 4, 8)
"""Numbers of GPUs that can be chosen for prime-rl: at least two, because its trainer and its inference server
each need GPUs of their own.
"""
SEQ_LENS = (8192, 4096, 2048)
SEQ_LEN_MIN = SEQ_LENS[-1]
KEPT = 2
LORA_RANK = 32
NAME_CHARS_MAX = 32


class How(StrEnum):
    AUTO = "auto"
    FULL = "full"
    LORA = "lora"


@dataclass(frozen=True)
class Wanted:
    """The user's choices for a prime-rl run."""

    model_id: str
    shape: Model
    preset: Preset
    gpus: int
    environment: str
    how: How
    usd: float
    steps: int
    ref: str
    name: str = ""
    context: int = 0
    """The model's context length in tokens; 0 if not known."""
    gated: bool = False


@dataclass(frozen=True)
class InitChoices:
    """The settings of one run. `reasons` are pairs of subject and explanation to show to the user."""

    wanted: Wanted
    name: str
    method: Method
    train_gpus: int
    infer_gpus: int
    tensor_parallel: int
    seq_len: int
    disk_gib: int
    reasons: tuple[tuple[str, str], ...]

    @property
    def completion(self) -> int:
        """Return the largest number of tokens of a completion: half of the sequence, because the other half
        is for the prompt.
        """
        return self.seq_len // 2

    @property
    def learning_rate(self) -> str:
        return "1e-5" if self.method is Method.LORA else "1e-6"

    @property
    def needs_renderer(self) -> bool:
        """Return whether a renderer must be set: `auto` recognises only some models, by their exact ids."""
        return self.wanted.model_id not in renderers()


def settings_for(wanted: Wanted) -> InitChoices | str:
    """Return the settings, or the reason why none fit."""
    train = rl_trainers(wanted.gpus)
    infer = wanted.gpus - train
    parallel = next(
        (
            count
            for count in (1, 2, 4)
            if infer % count == 0 and _serves(wanted, _job(wanted, Method.LORA, SEQ_LEN_MIN, count))
        ),
        None,
    )
    if parallel is None:
        job = _job(wanted, Method.LORA, SEQ_LEN_MIN, infer)
        return _too_small(wanted, "the inference server", _server_need(job))
    methods = {How.AUTO: (Method.FULL, Method.LORA), How.FULL: (Method.FULL,), How.LORA: (Method.LORA,)}[
        wanted.how
    ]
    lengths = [length for length in SEQ_LENS if not wanted.context or length <= wanted.context]
    for method in methods:
        for length in lengths:
            job = _job(wanted, method, length, parallel)
            if job.trainer_need.on(job.train_gpus).fit(wanted.preset.gb) is Fit.YES and _serves(wanted, job):
                return _settings(wanted, job)
    return _too_small(
        wanted, f"{methods[-1].value} training", _job(wanted, methods[-1], SEQ_LEN_MIN, parallel).trainer_need
    )


def name_of(wanted: Wanted, method: Method) -> str:
    """Return the given run name, or one made from the model's name and the method."""
    if wanted.name:
        return wanted.name
    end = f"-{method.value}"
    own = re.sub(r"[^a-z0-9]+", "-", wanted.model_id.rpartition("/")[2].lower()).strip("-")
    return own[: NAME_CHARS_MAX - len(end)].strip("-") + end


def _settings(wanted: Wanted, job: JobDescription) -> InitChoices:
    train, parallel, method, length = (
        job.train_gpus,
        job.serve_gpus,
        job.training.method,
        job.training.seq_len,
    )
    infer, disk_gib = wanted.gpus - train, job.disk_gib(KEPT + 1)
    reasons = (
        (
            "GPUs",
            f"{train} for training, {infer} for generation"
            + (f", {parallel} per copy of the model" if parallel > 1 else ""),
        ),
        ("method", _why(wanted, method)),
        (
            "sequence",
            f"{length:,} tokens, the longest of {', '.join(f'{one:,}' for one in reversed(SEQ_LENS))} that "
            "fits",
        ),
        ("trainer", _memory_text(job.trainer_need, wanted)),
        ("inference", _memory_text(_server_need(job), wanted)),
        ("disk", f"{disk_gib} GiB: the model, {KEPT} checkpoints and the one being written"),
    )
    name = name_of(wanted, method)
    return InitChoices(wanted, name, method, train, infer, parallel, length, disk_gib, reasons)


def _job(wanted: Wanted, method: Method, length: int, parallel: int) -> JobDescription:
    """Return the job as prime-rl carries it out with the settings that are written, its defaults included."""
    training = replace(usual_training(method, length, rl=True), lora_rank=LORA_RANK)
    return JobDescription(
        wanted.shape, training, rl_trainers(wanted.gpus), Serving(length), serve_gpus=parallel
    )


def _serves(wanted: Wanted, job: JobDescription) -> bool:
    """Return whether the server fits its share of the GPUs."""
    return (
        _server_need(job).on(job.serve_gpus).fit_into(usable_bytes(wanted.preset.gb) * job.utilization)
        is Fit.YES
    )


def _server_need(job: JobDescription) -> Need:
    return serving_need(job.model, job.serving, job.serve_gpus)


def _why(wanted: Wanted, method: Method) -> str:
    if wanted.how is not How.AUTO:
        return f"{method.value}, as requested"
    return (
        "full: all weights are trained, because they fit"
        if method is Method.FULL
        else "LoRA: training all weights does not fit, adapters do"
    )


def _memory_text(need: Need, wanted: Wanted) -> str:
    return f"{need.low / GIB:.0f} to {need.high / GIB:.0f} of {wanted.preset.gb} GB on each GPU"


def _too_small(wanted: Wanted, what: str, need: Need) -> str:
    return (
        f"{what} of {wanted.model_id} needs up to {need.high / GIB:.0f} GiB on each GPU; {wanted.gpus} x "
        f"{wanted.preset.kind} have {wanted.preset.gb} GB each"
    )
