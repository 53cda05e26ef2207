"""Rules about what verl refuses when it starts (TR475, TR476), as of January 2026 (cc7e283f6)."""

from collections.abc import Iterator

from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.trainers.settings.of_subject import training_of
from prime_train.trainers.settings.view import Reader, Setting
from prime_train.trainers.verl.training import ACTOR, ROLLOUT, is_megatron, is_sft, passes_by_tokens

TOPIC = "verl"


RULES = Rules(TOPIC, requires="verl")


def _violation(setting: Setting[int | None], message: str, fix: str = "") -> Violation:
    return Violation(setting.path, message, fix, document="trainer")


def _gpus(subject: Subject) -> int | None:
    """Return the processes of one machine, if the command says how many and names no further machines."""
    training = training_of(subject)
    if training is None or subject.trainer is None or training.processes.is_default:
        return None
    several = Reader(subject.trainer).integer("trainer.nnodes", default=1).value > 1
    return None if several else training.processes.value


@RULES.error(
    "TR475",
    "a batch that verl refuses",
    why="verl stops when it checks its settings, after the machine, its setup and the download were paid for.",
    fix="use a larger train_batch_size, or a smaller mini batch",
)
def batch(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    if config is None or is_sft(subject):
        return
    read = Reader(config)
    total, mini = read.maybe("data.train_batch_size"), read.maybe(f"{ACTOR}.ppo_mini_batch_size")
    if passes_by_tokens(subject, read):
        return
    if total.value is not None and mini.value is not None and total.value < mini.value:
        message = f"{ACTOR}.ppo_mini_batch_size {mini.value} is more than data.train_batch_size {total.value}"
        yield _violation(mini, message, f"write {total.value} or less")
    gpus = _gpus(subject)
    answers = read.integer(f"{ROLLOUT}.n", default=1).value
    if gpus and total.value is not None and not is_megatron(subject, read) and total.value * answers % gpus:
        message = f"{total.value} x {answers} samples of a step are not divisible by {gpus} GPUs"
        yield _violation(total, message, f"write a multiple of {gpus}")


@RULES.error(
    "TR476",
    "a server that does not divide the GPUs",
    why="verl stops when it makes the servers of rollouts, after the model was loaded.",
    fix="use a tensor_model_parallel_size that divides the number of GPUs",
)
def undivided(subject: Subject) -> Iterator[Violation]:
    config, gpus = subject.trainer, _gpus(subject)
    if config is None or gpus is None or is_sft(subject):
        return
    parallel = Reader(config).maybe(f"{ROLLOUT}.tensor_model_parallel_size")
    if parallel.value is not None and gpus % parallel.value:
        message = f"a server on {parallel.value} GPUs does not divide {gpus} GPUs"
        yield _violation(parallel, message)
