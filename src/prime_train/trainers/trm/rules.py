"""Rules about tiny recursive models (TR44x): settings of `pretrain.py` that end a run late or make it start over."""

from collections.abc import Callable, Iterable, Iterator

from prime_train.spec.config_format import words
from prime_train.spec.finding import Severity
from prime_train.spec.rule import Rule, Subject, Violation
from prime_train.trainers.registry import TRAINERS

TOPIC = "TRM"
_NEW_KEYS = ("run_name", "project_name", "checkpoint_path", "load_checkpoint")
"""Keys that no config file of TRM has, so hydra requires a + before them."""


def _is_own(subject: Subject) -> bool:
    """Return whether the subject is a spec whose command starts TRM."""
    return subject.spec is not None and subject.format == "trm"


def _remainder(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    epochs, interval = (config.number(key) if config is not None else None for key in ("epochs", "eval_interval"))
    if epochs is not None and interval is not None and interval > 0 and epochs % interval:
        rounded = max(1, round(epochs / interval))
        message = f"eval_interval {interval:g} does not divide epochs {epochs:g}"
        yield Violation(("eval_interval",), message, f"write epochs: {rounded * interval:g}, or another interval", document="trainer")


def _last_only(subject: Subject) -> Iterator[Violation]:
    if subject.trainer is not None and subject.trainer.value("checkpoint_every_eval") is False:
        yield Violation(("checkpoint_every_eval",), "only the last checkpoint is saved", document="trainer")


def _one_process(subject: Subject) -> Iterator[Violation]:
    if not _is_own(subject) or subject.spec is None or subject.trainer is None or TRAINERS[subject.spec.trainer.kind].starts_workers:
        return
    split = words(subject.spec.trainer.command)
    if "torchrun" not in {word.rpartition("/")[2] for word in split} and subject.trainer.value("evaluators") != "[]":
        message = "without torchrun the first evaluation crashes, before the first checkpoint is saved"
        yield Violation(("trainer", "command"), message, word="pretrain.py")


def _no_plus(subject: Subject) -> Iterator[Violation]:
    if not _is_own(subject) or subject.spec is None:
        return
    for word in words(subject.spec.trainer.command):
        key, sign, _ = word.partition("=")
        if sign and key in _NEW_KEYS:
            yield Violation(("trainer", "command"), f"no TRM config has the setting {key}", f"write +{key}=...", word=f"{key}=")
            return


def _unnamed(subject: Subject) -> Iterator[Violation]:
    if not _is_own(subject) or subject.trainer is None:
        return
    if subject.trainer.at("checkpoint_path") is None:
        message = "no checkpoint_path: each launch saves in a folder with a random name, where the agent does not look"
        yield Violation(("trainer", "command"), message, word="pretrain.py")


def _starts_over(subject: Subject) -> Iterator[Violation]:
    if _is_own(subject) and subject.spec is not None and subject.spec.hardware.spot != "never":
        yield Violation(("hardware", "spot"), "TRM restores only the weights: steps, optimizer and learning-rate schedule start again")


def _row(code: str, severity: Severity, title: str, why: str, fix: str, check: Callable[[Subject], Iterable[Violation]]) -> Rule:
    return Rule(code, severity, title, why, fix, TOPIC, check, "trm")


RULES = (
    _row(
        "TR441",
        Severity.ERROR,
        "epochs that eval_interval does not divide",
        "pretrain.py asserts that eval_interval divides epochs, but only after the machine is set up and the data is built.",
        "choose an interval that divides epochs",
        _remainder,
    ),
    _row(
        "TR442",
        Severity.WARNING,
        "a single checkpoint, at the end",
        "A run that loses its machine starts from step 0.",
        "write checkpoint_every_eval: true",
        _last_only,
    ),
    _row(
        "TR443",
        Severity.WARNING,
        "an evaluation that needs a process group",
        "The ARC evaluator needs a process group even with a single process, and it runs before the save.",
        "write torchrun --nproc-per-node 1 pretrain.py ..., or evaluators=[]",
        _one_process,
    ),
    _row(
        "TR444",
        Severity.ERROR,
        "a setting that hydra does not know",
        "hydra refuses to set a key that no config has, with: Could not override.",
        "write a + before it",
        _no_plus,
    ),
    _row(
        "TR445",
        Severity.WARNING,
        "checkpoints in a folder with a random name",
        "The default folder gets a new random name on each launch, so neither the agent nor a resume finds the checkpoints.",
        "+checkpoint_path={checkpoints}",
        _unnamed,
    ),
    _row(
        "TR446",
        Severity.NOTE,
        "a trainer that restores only part of its state",
        "load_checkpoint loads only the weights (of the moving average, if there is one).",
        "write spot: never, or patch the trainer to save all of its state",
        _starts_over,
    ),
)
