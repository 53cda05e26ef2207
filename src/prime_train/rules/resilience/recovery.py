"""Rules about what a run loses when its machine is preempted (RE5xx)."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prime_train.core.finding import Severity
from prime_train.core.registry.providers import is_own_machine
from prime_train.rules.rule import Rule, Subject, Violation
from prime_train.rules.words import COMMAND_CHARS_MAX

if TYPE_CHECKING:
    from prime_train.core.spec import RunSpec

FAMILY = "resilience"
SMOKE_USD = 200
"""The budget in dollars above which a smoke test is worthwhile."""
_PACED = frozenset(("prime_rl", "areal"))
"""Trainers whose time between two checkpoints can be estimated."""

_SAVES = re.compile(r"(?:save|ckpt|checkpoint|snapshot|eval)[\w.-]{0,24}(?:every|interval|freq|steps|epochs|strategy)", re.IGNORECASE)
"""A setting for how often a trainer saves."""
_BUILDS = re.compile(
    r"(?:^|[\s/.])(?:build|prepare|make|create|generate|preprocess|tokenize)(?:_[a-z0-9]+)*_(?:data|datasets?|corpus)(?:_\w+)?(?:\.py|\.sh)?(?=\s|$)"
)
"""A script whose name says that it builds data: build_arc_dataset.py, prepare_data.sh, dataset.build_sudoku_dataset."""


def _no_interval(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or not _on_spot(spec) or spec.trainer.prime_rl is not None or spec.checkpoints.every_steps is not None:
        return
    if not _is_asked_for(subject) or _is_said_elsewhere(subject):
        yield Violation(_interval(subject), "how often the trainer saves is not said", on_key=True)


def _never_saved(subject: Subject) -> Iterator[Violation]:
    """Yield a violation if the config sets spot explicitly and neither the command nor a known trainer config mentions saving."""
    spec = subject.spec
    if spec is None or not _on_spot(spec) or spec.trainer.prime_rl is not None or spec.checkpoints.every_steps is not None:
        return
    if _is_asked_for(subject) and not _is_said_elsewhere(subject):
        message = "the machine may be taken away, and nothing says that anything is saved before the end"
        yield Violation(_interval(subject), message, on_key=True)


def _interval(subject: Subject) -> tuple[str, ...]:
    config = subject.config
    has_part = config is not None and config.at("checkpoints") is not None
    return ("checkpoints", "every_steps") if has_part or not _is_asked_for(subject) else ("hardware", "spot")


def _is_asked_for(subject: Subject) -> bool:
    return subject.config is not None and subject.config.at("hardware", "spot") is not None


def _is_said_elsewhere(subject: Subject) -> bool:
    spec = subject.spec
    return bool(subject.kind) or (spec is not None and _SAVES.search(spec.trainer.command[:COMMAND_CHARS_MAX]) is not None)


def _off_pace(subject: Subject) -> Iterable[Violation]:
    spec = subject.spec
    if spec is None or not _on_spot(spec) or subject.kind not in _PACED or any(_slow_upload(subject)):
        return ()
    # Imported here because the estimates are slow to import.
    from prime_train.rules.resilience import checkpoint_pace as resilience_pace

    return resilience_pace.off(subject)


def _after_the_end(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.checkpoints.every_steps is None or spec.trainer.steps is None:
        return
    # For prime-rl this interval becomes part of its own config, which other rules check.
    if spec.trainer.prime_rl is None and spec.checkpoints.every_steps > spec.trainer.steps:
        message = f"a checkpoint every {spec.checkpoints.every_steps} steps, and {spec.trainer.steps} steps in all: none before the end"
        yield Violation(("checkpoints", "every_steps"), message, f"such as {max(1, spec.trainer.steps // 10)}")


def _slow_upload(subject: Subject) -> Iterable[Violation]:
    spec = subject.spec
    if spec is None or spec.checkpoints.upload_mb_per_s_max is None or subject.kind not in _PACED:
        return ()
    from prime_train.rules.resilience import checkpoint_pace as resilience_pace

    return resilience_pace.slow_upload(subject, spec.checkpoints.upload_mb_per_s_max)


def _unverified(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.verification:
        return
    for at, command in enumerate(spec.setup):
        built = _BUILDS.search(command)
        if built is not None:
            yield Violation(("setup", at), "the data that this builds is not verified", word=built[0].strip())
            return


def _untried(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is not None and spec.smoke is None and spec.budget.usd > SMOKE_USD:
        yield Violation(("budget", "usd"), f"${spec.budget.usd:g} may be spent, and nothing is tried out before")


def _smoke_as_long(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.smoke is None or spec.smoke.steps is None or spec.trainer.steps is None:
        return
    if spec.smoke.steps >= spec.trainer.steps:
        yield Violation(("smoke", "steps"), f"the smoke test has {spec.smoke.steps} steps, the run {spec.trainer.steps}: it is the run")


def _kept_by_metric_only_rarely(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.checkpoints.keep_every_steps is None or spec.checkpoints.every_steps is None:
        return
    if spec.checkpoints.keep_every_steps % spec.checkpoints.every_steps:
        every, kept = spec.checkpoints.every_steps, spec.checkpoints.keep_every_steps
        message = f"checkpoints are made every {every} steps; few of them are at a multiple of {kept}"
        yield Violation(("checkpoints", "keep_every_steps"), message, f"a multiple of {every}, such as {-(-kept // every) * every}")


def _unsaid(subject: Subject) -> Iterator[Violation]:
    """Yield a violation if neither the config nor the command mentions checkpoints, as the trainer then probably saves where the agent does
    not look."""
    spec, config = subject.spec, subject.config
    if spec is None or config is None or spec.trainer.prime_rl is not None or config.at("checkpoints") is not None:
        return
    if "{checkpoints}" not in spec.trainer.command:
        where = f"{spec.checkpoints.folder}/{spec.checkpoints.pattern}"
        yield Violation(("trainer", "command"), f"only what the trainer saves in {where} is kept, and nothing says that it saves there")


def _on_spot(spec: "RunSpec") -> bool:
    """Return whether the run rents spot machines. A user's own machine is not preempted, and without a GPU or a provider none is rented."""
    return spec.hardware.spot != "never" and bool(spec.hardware.gpus) and not is_own_machine(spec.hardware.provider)


RULES = (
    Rule(
        "RE501",
        Severity.NOTE,
        "how often a run on spot saves is not known",
        "Spot machines are taken away without notice. What a preemption costs, and whether another interval would cost less, can only be "
        "said when the interval is known.",
        "add checkpoints: {every_steps: ...}, as the trainer has it",
        FAMILY,
        _no_interval,
        "spec",
    ),
    Rule(
        "RE502",
        Severity.WARNING,
        "no checkpoint before the end",
        "The first checkpoint would come after the last step: a run that loses its machine starts from zero.",
        "a tenth of the steps, or what ten minutes hold",
        FAMILY,
        _after_the_end,
        "spec",
    ),
    Rule(
        "RE503",
        Severity.WARNING,
        "uploads slower than the checkpoints come",
        "Checkpoints pile up on the disk, and what is in the bucket falls behind further and further.",
        "save less often, or lift checkpoints.upload_mb_per_s_max",
        FAMILY,
        _slow_upload,
        "spec",
    ),
    Rule(
        "RE504",
        Severity.WARNING,
        "data is built and not verified",
        "A build that failed half-way, or downloaded half, is trained on for hours before anybody sees it.",
        'add verification: [{path: "data/**/*.json", exactly: 2}], with what the build makes',
        FAMILY,
        _unverified,
        "spec",
    ),
    Rule(
        "RE505",
        Severity.WARNING,
        "a dear run without a smoke test",
        f"A run of more than ${SMOKE_USD} that fails on its first evaluation or save has paid for all before it.",
        "add smoke: {command: ..., steps: ...} with a few steps, a save and an evaluation",
        FAMILY,
        _untried,
        "spec",
    ),
    Rule(
        "RE506",
        Severity.WARNING,
        "a smoke test as long as the run",
        "Every attempt would train twice.",
        "a few steps",
        FAMILY,
        _smoke_as_long,
        "spec",
    ),
    Rule(
        "RE507",
        Severity.WARNING,
        "kept steps that are seldom saved",
        "A checkpoint is kept for good when its step is a multiple of keep_every_steps; most of these steps are never saved.",
        "a multiple of checkpoints.every_steps",
        FAMILY,
        _kept_by_metric_only_rarely,
        "spec",
    ),
    Rule(
        "RE508",
        Severity.WARNING,
        "no interval of checkpoints on spot",
        "Spot machines are taken away without notice: a run that saves at its end alone starts from zero each time.",
        "add checkpoints: {every_steps: ...}, as the trainer has it",
        FAMILY,
        _never_saved,
        "spec",
    ),
    Rule(
        "RE509",
        Severity.WARNING,
        "saved far too seldom, or too often",
        "Saving costs time, and so does what is trained again after a preemption. Young's and Daly's formula has the interval that loses "
        "least of both; this one is more than three times off, and loses 5 % of the paid time more, at the least.",
        "the interval that loses least",
        FAMILY,
        _off_pace,
        "spec",
    ),
    Rule(
        "RE510",
        Severity.WARNING,
        "where checkpoints are is not said",
        "Checkpoints are all that is brought into the bucket. A run whose trainer saves elsewhere, or nothing, loses all that it made when "
        "its machine is given back.",
        "add checkpoints: {folder: ..., pattern: ..., marker: ...}, as the trainer saves, or put {checkpoints} into its command",
        FAMILY,
        _unsaid,
        "spec",
    ),
)
