"""What the settings of AReaL say, in the words of every trainer."""

from prime_train.estimate.memory.training_setup import Method, Recompute, Sharding
from prime_train.spec.rule import Document, Subject
from prime_train.trainers.settings.launched import processes
from prime_train.trainers.settings.view import Reader, Saving, Setting, TrainingSettings

PASS_TOKENS = 32_768
"""The tokens of one pass that are assumed where the config sets no limit."""
_FREQUENCIES = ("freq_steps", "freq_epochs", "freq_secs")


def settings(subject: Subject) -> TrainingSettings | None:
    """Return the settings of a subject; None if it has none of AReaL."""
    config = subject.trainer
    if config is None:
        return None
    read = Reader(config)
    is_lora = read.switch("actor.use_lora", default=False)
    backend = read.text("actor.backend", "allocation_mode")
    checked = read.switch("actor.gradient_checkpointing", default=False)
    return TrainingSettings(
        "AReaL",
        model=read.text("actor.path"),
        method=Setting(Method.LORA if is_lora.value else Method.FULL, is_lora.path, is_lora.place),
        optimizer=read.text("actor.optimizer.type", default="adam"),
        seq_len=read.integer("actor.mb_spec.max_tokens_per_mb", default=PASS_TOKENS),
        micro_batch=Setting(1),
        accumulation=Setting(1),
        recompute=Setting(Recompute.FULL if checked.value else Recompute.NONE, checked.path, checked.place),
        sharding=Setting(
            Sharding.ZERO1 if "megatron" in backend.value else Sharding.FSDP2, backend.path, backend.place
        ),
        saving=_saving(config, read),
        processes=processes(subject),
        steps=read.maybe("total_train_steps"),
        epochs=read.number("total_train_epochs"),
        resume=read.text("recover.mode"),
    )


def _saving(config: Document, read: Reader) -> Saving:
    """Return how the state for recovery is saved; what `saver` writes are exports, from which nothing
    resumes.
    """
    mode = config.value("recover", "mode")
    is_on = mode not in (None, False, "off", "disabled")
    every = read.maybe("recover.freq_steps")
    return Saving(read.at("recover.mode", is_on), every, folder=read.text("cluster.fileroot"))
