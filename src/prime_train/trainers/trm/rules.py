"""Rules about tiny recursive models (TR44x): settings of `pretrain.py` that end a run late or make it start
over.
"""

from collections.abc import Iterator

from prime_train.spec.config_format import words
from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.trainers.registry import TRAINERS

TOPIC = "TRM"
_NEW_KEYS = ("run_name", "project_name", "checkpoint_path", "load_checkpoint")
"""Keys that no config file of TRM has, so hydra requires a + before them."""


RULES = Rules(TOPIC, requires="trm")


def _is_own(subject: Subject) -> bool:
    """Return whether the subject is a spec whose command starts TRM."""
    return subject.spec is not None and subject.format == "trm"


@RULES.error(
    "TR441",
    "epochs that eval_interval does not divide",
    why="pretrain.py asserts that eval_interval divides epochs, but only after the machine is set up and the "
    "data is built.",
    fix="choose an interval that divides epochs",
)
def remainder(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    epochs, interval = (
        config.number(key) if config is not None else None for key in ("epochs", "eval_interval")
    )
    if epochs is not None and interval is not None and interval > 0 and epochs % interval:
        rounded = max(1, round(epochs / interval))
        message = f"eval_interval {interval:g} does not divide epochs {epochs:g}"
        yield Violation(
            ("eval_interval",),
            message,
            f"write epochs: {rounded * interval:g}, or another interval",
            document="trainer",
        )


@RULES.warning(
    "TR442",
    "a single checkpoint, at the end",
    why="A run that loses its machine starts from step 0.",
    fix="write checkpoint_every_eval: true",
)
def last_only(subject: Subject) -> Iterator[Violation]:
    if subject.trainer is not None and subject.trainer.value("checkpoint_every_eval") is False:
        yield Violation(("checkpoint_every_eval",), "only the last checkpoint is saved", document="trainer")


@RULES.warning(
    "TR443",
    "an evaluation that needs a process group",
    why="The ARC evaluator needs a process group even with a single process, and it runs before the save.",
    fix="write torchrun --nproc-per-node 1 pretrain.py ..., or evaluators=[]",
)
def one_process(subject: Subject) -> Iterator[Violation]:
    if (
        not _is_own(subject)
        or subject.spec is None
        or subject.trainer is None
        or TRAINERS[subject.spec.trainer.kind].starts_workers
    ):
        return
    split = words(subject.spec.trainer.command)
    if (
        "torchrun" not in {word.rpartition("/")[2] for word in split}
        and subject.trainer.value("evaluators") != "[]"
    ):
        message = "without torchrun the first evaluation crashes, before the first checkpoint is saved"
        yield Violation(("trainer", "command"), message, word="pretrain.py")


@RULES.error(
    "TR444",
    "a setting that hydra does not know",
    why="hydra refuses to set a key that no config has, with: Could not override.",
    fix="write a + before it",
)
def no_plus(subject: Subject) -> Iterator[Violation]:
    if not _is_own(subject) or subject.spec is None:
        return
    for word in words(subject.spec.trainer.command):
        key, sign, _ = word.partition("=")
        if sign and key in _NEW_KEYS:
            yield Violation(
                ("trainer", "command"),
                f"no TRM config has the setting {key}",
                f"write +{key}=...",
                word=f"{key}=",
            )
            return


@RULES.warning(
    "TR445",
    "checkpoints in a folder with a random name",
    why="The default folder gets a new random name on each launch, so neither the agent nor a resume finds "
    "the checkpoints.",
    fix="+checkpoint_path={checkpoints}",
)
def unnamed(subject: Subject) -> Iterator[Violation]:
    if not _is_own(subject) or subject.trainer is None:
        return
    if subject.trainer.at("checkpoint_path") is None:
        message = (
            "no checkpoint_path: each launch saves in a folder with a random name, where the agent does not "
            "look"
        )
        yield Violation(("trainer", "command"), message, word="pretrain.py")


@RULES.note(
    "TR446",
    "a trainer that restores only part of its state",
    why="load_checkpoint loads only the weights (of the moving average, if there is one).",
    fix="write spot: never, or patch the trainer to save all of its state",
)
def starts_over(subject: Subject) -> Iterator[Violation]:
    if _is_own(subject) and subject.spec is not None and subject.spec.hardware.spot != "never":
        yield Violation(
            ("hardware", "spot"),
            "TRM restores only the weights: steps, optimizer and learning-rate schedule start again",
        )
