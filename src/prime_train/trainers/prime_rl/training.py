"""What the settings of prime-rl's reinforcement learning say, in the words of every trainer."""

from prime_train.estimate.memory.training_setup import Method, Recompute, Sharding
from prime_train.spec.rule import Subject
from prime_train.trainers.prime_rl.rules.rule import settings_of
from prime_train.trainers.prime_rl.rules.settings import ReceivedConfig
from prime_train.trainers.settings.view import Saving, Setting, T, TrainingSettings

_MODEL = "trainer.model"


def settings(subject: Subject) -> TrainingSettings | None:
    """Return the settings of a subject; None if it has none for prime-rl's launcher."""
    given = settings_of(subject)
    if given is None:
        return None
    is_lora = given.has(f"{_MODEL}.lora")
    recomputed = Recompute.SELECTIVE if given.text(f"{_MODEL}.ac.mode") == "selective" else Recompute.FULL
    every = given.integer("trainer.ckpt.interval")
    return TrainingSettings(
        "prime-rl",
        model=_said(given, f"{_MODEL}.name", given.text(f"{_MODEL}.name") or ""),
        method=_said(given, f"{_MODEL}.lora", Method.LORA if is_lora else Method.FULL),
        optimizer=_said(given, "trainer.optim.type", given.text("trainer.optim.type") or "adamw"),
        seq_len=_said(given, f"{_MODEL}.seq_len", given.integer(f"{_MODEL}.seq_len") or 2048),
        micro_batch=Setting(1),
        accumulation=Setting(1),
        recompute=_said(given, f"{_MODEL}.ac", recomputed),
        sharding=Setting(Sharding.FSDP2),
        saving=Saving(
            _said(given, "trainer.ckpt.interval", given.has("trainer.ckpt") and every is not None),
            _said(given, "trainer.ckpt.interval", every),
            kept=_said(given, "trainer.ckpt.keep_last", given.integer("trainer.ckpt.keep_last")),
        ),
        processes=_said(given, "deployment", given.train_gpus),
        steps=_said(given, "max_steps", given.integer("trainer.max_steps")),
    )


def _said(given: ReceivedConfig, path: str, value: T) -> Setting[T]:
    where = given.given_at(path)
    node = given.at(where) if where is not None else None
    return Setting(value, where, node.place) if where is not None and node is not None else Setting(value)
