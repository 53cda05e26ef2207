"""Rules about tiny recursive models (TR44x): settings of `pretrain.py` that end a run late or make it start over."""

from collections.abc import Callable, Iterable, Iterator

from prime_train.core.finding import Severity
from prime_train.rules.rule import Rule, Subject, Violation
from prime_train.rules.words import words

FAMILY = "TRM"
_NEW_KEYS = ("run_name", "project_name", "checkpoint_path", "load_checkpoint")
"""Keys that no config file of TRM has, so hydra requires a + before them."""


def _is_own(subject: Subject) -> bool:
    """Return whether the subject is a spec whose command starts TRM."""
    return subject.spec is not None and subject.kind == "trm"


def _remainder(subject: Subject) -> Iterator[Violation]:
    config = subject.trainer
    epochs, interval = (config.number(key) if config is not None else None for key in ("epochs", "eval_interval"))
    if epochs is not None and interval is not None and interval > 0 and epochs % interval:
        near = max(1, round(epochs / interval))
        message = f"{interval:g} does not divide epochs, which are {epochs:g}"
        yield Violation(("eval_interval",), message, f"epochs: {near * interval:g}, or another interval", document="trainer")


def _last_only(subject: Subject) -> Iterator[Violation]:
    if subject.trainer is not None and subject.trainer.value("checkpoint_every_eval") is False:
        yield Violation(("checkpoint_every_eval",), "only the last checkpoint is saved", document="trainer")


def _one_process(subject: Subject) -> Iterator[Violation]:
    if not _is_own(subject) or subject.spec is None or subject.trainer is None or subject.spec.trainer.kind == "torchrun":
        return
    split = words(subject.spec.trainer.command)
    if "torchrun" not in {word.rpartition("/")[2] for word in split} and subject.trainer.value("evaluators") != "[]":
        message = "without torchrun the first evaluation dies, before the first checkpoint"
        yield Violation(("trainer", "command"), message, word="pretrain.py")


def _no_plus(subject: Subject) -> Iterator[Violation]:
    if not _is_own(subject) or subject.spec is None:
        return
    for word in words(subject.spec.trainer.command):
        key, sign, _ = word.partition("=")
        if sign and key in _NEW_KEYS:
            yield Violation(("trainer", "command"), f"{key} is in no config of TRM", f"write +{key}=...", word=f"{key}=")
            return


def _unnamed(subject: Subject) -> Iterator[Violation]:
    if not _is_own(subject) or subject.trainer is None:
        return
    if subject.trainer.at("checkpoint_path") is None:
        message = "no checkpoint_path: each launch invents a name, and saves where nobody looks"
        yield Violation(("trainer", "command"), message, word="pretrain.py")


def _starts_over(subject: Subject) -> Iterator[Violation]:
    if _is_own(subject) and subject.spec is not None and subject.spec.hardware.spot != "never":
        yield Violation(("hardware", "spot"), "TRM resumes its weights alone: steps, optimizer and learning rate start anew")


def _row(code: str, severity: Severity, title: str, why: str, fix: str, check: Callable[[Subject], Iterable[Violation]]) -> Rule:
    return Rule(code, severity, title, why, fix, FAMILY, check, "trm")


RULES = (
    _row(
        "TR441",
        Severity.ERROR,
        "epochs that do not divide",
        "pretrain.py asserts that eval_interval divides epochs, after the data was built and the machine set up.",
        "an interval that divides epochs",
        _remainder,
    ),
    _row(
        "TR442",
        Severity.WARNING,
        "one checkpoint, at the end",
        "A run that loses its machine starts from zero.",
        "checkpoint_every_eval: true",
        _last_only,
    ),
    _row(
        "TR443",
        Severity.WARNING,
        "an evaluation that needs a process group",
        "The ARC evaluator gathers from all processes, also from one alone; it comes before the save.",
        "torchrun --nproc-per-node 1 pretrain.py ..., or evaluators=[]",
        _one_process,
    ),
    _row(
        "TR444",
        Severity.ERROR,
        "a setting that must be added",
        "hydra refuses to set what no config has: Could not override.",
        "a + before it",
        _no_plus,
    ),
    _row(
        "TR445",
        Severity.WARNING,
        "checkpoints in a place with a random name",
        "The default folder ends in a name that is invented on each launch: the agent finds no checkpoint there, and a resume neither.",
        "+checkpoint_path={checkpoints}",
        _unnamed,
    ),
    _row(
        "TR446",
        Severity.NOTE,
        "a trainer that resumes in part",
        "load_checkpoint loads weights (of the moving average, if there is one) and nothing else.",
        "spot: never, or a patch that saves all of its state",
        _starts_over,
    ),
)
