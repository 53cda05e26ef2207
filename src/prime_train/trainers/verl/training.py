"""What the settings of verl say, with its defaults as of January 2026 (cc7e283f6): of reinforcement learning
(`actor_rollout_ref`), and of supervised training.
"""

from prime_train.estimate.memory.training_setup import Method, Recompute, Sharding
from prime_train.spec.rule import Subject
from prime_train.trainers.settings.launched import processes
from prime_train.trainers.settings.view import Reader, Saving, Setting, TrainingSettings

ACTOR = "actor_rollout_ref.actor"
MODEL = "actor_rollout_ref.model"
ROLLOUT = "actor_rollout_ref.rollout"
PROMPT, ANSWER = 512, 512
SFT_LENGTH, SFT_PASS = 1024, 8192
"""Tokens of a sample of supervised training, and of a pass of its newer trainer."""
PASS = 16_384
"""Tokens of a pass if passes are filled by their tokens."""
_RL_GPUS = 8
_SFT_MODULES = ("sft_trainer", "fsdp_sft_trainer", "sft_trainer_ray")


def is_sft(subject: Subject) -> bool:
    """Return whether the settings are those of supervised training."""
    document = subject.trainer
    if document is None or document.at("actor_rollout_ref") is not None:
        return False
    return document.at("model") is not None or any(name in subject.command for name in _SFT_MODULES)


def passes_by_tokens(subject: Subject, read: Reader) -> bool:
    """Return whether a pass is filled up to a number of tokens, and has no fixed number of samples."""
    if is_sft(subject):
        newer = "fsdp_sft_trainer" not in subject.command
        return read.switch("data.use_dynamic_bsz", default=newer).value
    return read.switch(f"{ACTOR}.use_dynamic_bsz", default=False).value


def is_megatron(subject: Subject, read: Reader) -> bool:
    chosen = read.text(f"{ACTOR}.strategy", "engine.strategy", "engine", "model_engine").value
    named = "megatron" in chosen or "megatron_trainer" in subject.command
    return named or "megatron" in read.keys(ACTOR)


def settings(subject: Subject) -> TrainingSettings | None:
    """Return the settings of a subject; None if it has none of verl."""
    if subject.trainer is None:
        return None
    read = Reader(subject.trainer)
    is_supervised = is_sft(subject)
    rank = read.maybe(f"{MODEL}.lora_rank", f"{MODEL}.lora.rank", "model.lora_rank", "model.lora.rank")
    every = read.integer("trainer.save_freq", default=-1, least=-1)
    saved = read.at("trainer.save_freq", every.value > 0)
    kept = read.maybe("trainer.max_actor_ckpt_to_keep", "trainer.max_ckpt_to_keep")
    return TrainingSettings(
        "verl",
        model=read.text(f"{MODEL}.path", "model.path", "model.partial_pretrain"),
        method=Setting(Method.LORA, rank.path, rank.place) if rank.value else Setting(Method.FULL),
        optimizer=read.text(f"{ACTOR}.optim.optimizer", "optim.optimizer", default="AdamW"),
        seq_len=_length(read, is_supervised=is_supervised),
        micro_batch=_micro_batch(subject, read),
        accumulation=Setting(1),
        recompute=_recompute(read),
        sharding=Setting(_sharding(subject, read)),
        saving=Saving(
            saved,
            Setting(every.value if every.value > 0 else None, every.path, every.place),
            kept=kept,
            folder=read.text("trainer.default_local_dir"),
        ),
        processes=_processes(subject, read, is_supervised=is_supervised),
        machines=read.maybe("trainer.nnodes"),
        steps=read.maybe("trainer.total_training_steps"),
        epochs=read.number("trainer.total_epochs"),
        resume=read.text("trainer.resume_from_path", "trainer.resume_mode", default="auto"),
    )


def _length(read: Reader, *, is_supervised: bool) -> Setting[int]:
    if is_supervised:
        return read.integer("data.max_length", default=SFT_LENGTH)
    prompt = read.integer("data.max_prompt_length", default=PROMPT)
    answer = read.integer("data.max_response_length", default=ANSWER)
    return Setting(prompt.value + answer.value, answer.path or prompt.path, answer.place or prompt.place)


def _micro_batch(subject: Subject, read: Reader) -> Setting[int]:
    if passes_by_tokens(subject, read):
        return Setting(1)
    each = read.maybe(f"{ACTOR}.ppo_micro_batch_size_per_gpu", "data.micro_batch_size_per_gpu")
    if each.value is not None:
        return Setting(each.value, each.path, each.place)
    total = read.maybe(f"{ACTOR}.ppo_micro_batch_size", "data.micro_batch_size")
    if total.value is not None:
        count = read.integer("trainer.n_gpus_per_node", default=_RL_GPUS).value
        return Setting(max(1, total.value // count), total.path, total.place)
    return Setting(4 if is_sft(subject) else 1)


def _recompute(read: Reader) -> Setting[Recompute]:
    name = next(
        (
            name
            for name in (f"{MODEL}.enable_gradient_checkpointing", "model.enable_gradient_checkpointing")
            if read.has(name) or read.document.at(*name.split(".")) is not None
        ),
        f"{MODEL}.enable_gradient_checkpointing",
    )
    is_on = read.switch(name, default=True)
    return Setting(Recompute.FULL if is_on.value else Recompute.NONE, is_on.path, is_on.place)


def _sharding(subject: Subject, read: Reader) -> Sharding:
    if is_megatron(subject, read):
        return Sharding.ZERO1
    named = read.text(f"{ACTOR}.strategy", "engine.strategy", "model.strategy").value
    return Sharding.FSDP2 if named == "fsdp2" else Sharding.FSDP1


def _processes(subject: Subject, read: Reader, *, is_supervised: bool) -> Setting[int | None]:
    started = processes(subject)
    if started.value is not None:
        return started
    given = read.maybe("trainer.n_gpus_per_node")
    if given.value is None and not is_supervised and subject.trainer is not None:
        return Setting(_RL_GPUS)
    return given
