"""Rules about what prime-rl's supervised training refuses when it reads its settings (TR479)."""

from collections.abc import Iterator

from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.trainers.settings.view import Reader

TOPIC = "prime-rl"
BATCH = 128


RULES = Rules(TOPIC, requires="prime_rl_sft")


@RULES.error(
    "TR479",
    "a batch that micro batches do not divide",
    why="prime-rl refuses the config when it starts.",
    fix="write a micro_batch_size that divides batch_size",
)
def uneven(subject: Subject) -> Iterator[Violation]:
    if subject.trainer is None:
        return
    read = Reader(subject.trainer)
    batch, micro = (
        read.integer("data.batch_size", default=BATCH),
        read.integer("data.micro_batch_size", default=1),
    )
    if batch.value % micro.value:
        message = f"data.batch_size {batch.value} is not divisible by micro_batch_size {micro.value}"
        yield Violation(("data", "micro_batch_size"), message, document="trainer")
