"""What the command of a script of one's own says: by the names that most scripts give their options. Nothing is
known of its defaults, so what is not said is not in the view.
"""

from prime_train.estimate.memory.training_setup import SEQ_LEN, Method, Recompute, Sharding
from prime_train.spec.config_format import changes, words
from prime_train.spec.rule import Document, Subject
from prime_train.spec.tree import SourcePosition
from prime_train.trainers.settings.launched import processes
from prime_train.trainers.settings.view import Reader, Saving, Setting, TrainingSettings

_MODEL = (
    "model_name_or_path",
    "model",
    "model_name",
    "model_id",
    "base_model",
    "pretrained_model_name_or_path",
    "pretrained",
    "pretrain",
    "model_path",
    "student_model_name_or_path",
    "student_model_name",
    "hf_model",
)
_LENGTH = (
    "max_seq_length",
    "max_seq_len",
    "seq_len",
    "seq_length",
    "max_length",
    "max_len",
    "sequence_length",
    "block_size",
    "context_length",
    "cutoff_len",
)
_BATCH = (
    "per_device_train_batch_size",
    "micro_batch_size",
    "micro_batch",
    "micro_train_batch_size",
    "train_batch_size",
    "per_device_batch_size",
    "batch_size",
)
_ADAPTERS = ("use_peft", "use_lora", "lora", "lora_r", "lora_rank", "qlora", "use_qlora", "load_in_4bit")


def settings(subject: Subject) -> TrainingSettings | None:
    """Return what the command says; None if it names no model."""
    command = subject.command
    if not words(command):
        return None
    read = Reader(Document("", changes(command, "hf", SourcePosition())))
    model = read.text(*_MODEL)
    if not model.value:
        return None
    adapts = next((name for name in _ADAPTERS if read.has(name)), "")
    sharded = any(read.has(name) for name in ("fsdp", "use_fsdp", "deepspeed")) or "deepspeed" in words(
        command
    )
    return TrainingSettings(
        "the script",
        model=model,
        method=read.at(adapts, Method.LORA) if adapts else Setting(Method.FULL),
        optimizer=read.text("optim", "optimizer", default="AdamW"),
        seq_len=read.integer(*_LENGTH, default=SEQ_LEN),
        micro_batch=read.integer(*_BATCH, default=1),
        accumulation=read.integer("gradient_accumulation_steps", "grad_accum", default=1),
        recompute=Setting(Recompute.FULL if read.has("gradient_checkpointing") else Recompute.NONE),
        sharding=Setting(Sharding.FSDP2 if sharded else Sharding.NONE),
        saving=Saving(Setting(True), read.maybe("save_steps", "save_every"), folder=read.text("output_dir")),
        processes=processes(subject),
        steps=read.maybe("max_steps", "steps", "num_steps"),
        epochs=read.number("num_train_epochs", "epochs", "num_epochs"),
    )
