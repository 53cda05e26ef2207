"""What the settings of prime-rl's supervised training say."""

from prime_train.estimate.memory.training_setup import Method, Recompute, Sharding
from prime_train.spec.rule import Subject
from prime_train.trainers.settings.launched import processes
from prime_train.trainers.settings.view import Reader, Saving, Setting, TrainingSettings

LENGTH = 128
MODEL = "Qwen/Qwen3-0.6B"
"""The model of prime-rl's default config."""


def settings(subject: Subject) -> TrainingSettings | None:
    """Return the settings of a subject; None if it has none of prime-rl's supervised training."""
    if subject.trainer is None:
        return None
    read = Reader(subject.trainer)
    is_lora, saves = read.has("model.lora"), read.document.at("ckpt") is not None
    every = read.maybe("ckpt.interval")
    mode = read.text("model.ac.mode")
    recomputed = Recompute.SELECTIVE if mode.value == "selective" else Recompute.FULL
    return TrainingSettings(
        "prime-rl's SFT",
        model=read.text("model.name", default=MODEL),
        method=read.at("model.lora", Method.LORA if is_lora else Method.FULL),
        optimizer=read.text("optim.type", default="adamw"),
        seq_len=read.integer("data.seq_len", default=LENGTH),
        micro_batch=read.integer("data.micro_batch_size", default=1),
        accumulation=Setting(1),
        recompute=Setting(recomputed, mode.path, mode.place),
        sharding=Setting(Sharding.FSDP2),
        saving=Saving(
            # A section without an interval saves at the end alone.
            read.at("ckpt.interval" if saves else "ckpt", saves and every.value is not None),
            every,
            kept=read.maybe("ckpt.keep_last"),
            weights_only=read.switch("ckpt.weights_only", default=False),
            folder=read.text("output_dir", default="outputs"),
        ),
        processes=_processes(subject, read),
        machines=_machines(read),
        steps=read.maybe("max_steps"),
        resume=read.text("resume.dir"),
    )


def _machines(read: Reader) -> Setting[int | None]:
    kind = read.text("deployment.type")
    if kind.value != "multi_node":
        return Setting(1, kind.path, kind.place)
    return (
        read.maybe("deployment.num_train_nodes")
        if read.has("deployment.num_train_nodes")
        else Setting(2, kind.path, kind.place)
    )


def _processes(subject: Subject, read: Reader) -> Setting[int | None]:
    started = processes(subject)
    if started.value is not None:
        return started
    # The launcher `sft` starts as many trainers as the file says; the module alone, one.
    return read.maybe("deployment.num_train_gpus")
