"""Rules about what a run loses when its machine is preempted (RE5xx)."""

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from prime_train.checks.save_interval import interval_in
from prime_train.providers.kinds import allowed_providers, is_own_machine
from prime_train.spec.checkpoint_names import counting_field, counts_epochs
from prime_train.spec.config_format import COMMAND_CHARS_MAX
from prime_train.spec.rule import Rules, Subject, Violation
from prime_train.spec.tree import Path, Scalar
from prime_train.trainers.conventions.own_scripts import (
    finds_by_itself,
    is_given_step,
    is_told_to_resume,
    resume_arguments,
)
from prime_train.trainers.registry import TRAINERS
from prime_train.trainers.settings.of_subject import training_of

if TYPE_CHECKING:
    from prime_train.spec.spec import RunSpec

TOPIC = "resilience"
SMOKE_USD = 200
"""The budget in dollars above which a smoke test is worthwhile."""
_PACED = frozenset(("prime_rl", "areal"))
"""Trainers whose time between two checkpoints can be estimated."""

_SAVES = re.compile(
    r"(?:save|ckpt|checkpoint|snapshot|recover|eval)[\w.-]{0,24}(?:every|interval|freq|steps|epochs|"
    r"strategy)",
    re.IGNORECASE,
)
"""Pattern of a setting for how often a trainer saves."""
_RESUME_BY_THEMSELVES = re.compile(r"\bverl\.trainer\.|\btorchtitan\b")
"""Programs that look for their newest checkpoint at each start, also under a kind that does not know them."""
_BUILDS = re.compile(
    r"(?:^|[\s/.])(?:build|prepare|make|create|generate|preprocess|tokenize)(?:_[a-z0-9]+)*_(?:data|"
    r"datasets?|corpus)(?:_\w+)?(?:\.py|\.sh)?(?=\s|$)"
)
"""Pattern of a script whose name says that it builds data: build_arc_dataset.py, prepare_data.sh,
dataset.build_sudoku_dataset.
"""


RULES = Rules(TOPIC, requires="spec")


@RULES.note(
    "RE501",
    "an unknown checkpoint interval on spot",
    why="Spot machines can be preempted without notice. The cost of a preemption, and the best interval, can "
    "only be estimated when the interval is known.",
    fix="add checkpoints: {every_steps: ...} with the trainer's interval",
)
def no_interval(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if (
        spec is None
        or not _on_spot(spec)
        or spec.trainer.prime_rl is not None
        or spec.checkpoints.every_steps is not None
    ):
        return
    if (not _is_requested(subject) or _is_given_elsewhere(subject)) and not _is_interval_known(subject):
        yield Violation(_interval(subject), "the checkpoint interval is not known", _every(spec), on_key=True)


def _is_interval_known(subject: Subject) -> bool:
    """Return whether the trainer's own settings say after how many steps, or epochs, it saves, in its file or
    on the command line.
    """
    training = training_of(subject)
    every = training.saving.every if training is not None and training.saving.is_on.value else None
    is_said = every is not None and every.value is not None and not every.is_default
    return is_said or (subject.spec is not None and interval_in(subject.spec) is not None)


@RULES.warning(
    "RE508",
    "no checkpoint interval on spot",
    why="Spot machines can be preempted without notice: a run that saves only at its end starts from step 0 "
    "each time.",
    fix="add checkpoints: {every_steps: ...} with the trainer's interval",
)
def never_saved(subject: Subject) -> Iterator[Violation]:
    """Yield a violation if the config sets spot explicitly and neither the command nor a known trainer config
    mentions saving.
    """
    spec = subject.spec
    if (
        spec is None
        or not _on_spot(spec)
        or spec.trainer.prime_rl is not None
        or spec.checkpoints.every_steps is not None
    ):
        return
    if _is_requested(subject) and not _is_given_elsewhere(subject):
        message = (
            "the machine may be preempted, and no setting shows that a checkpoint is saved before the end"
        )
        yield Violation(_interval(subject), message, _every(spec), on_key=True)


def _every(spec: "RunSpec") -> str:
    """Return the line to write for checkpoints whose names count epochs; empty for others, to which the fix
    of the rule applies.
    """
    return (
        "add checkpoints: {every_steps: 1}, or as many epochs as the trainer makes between two saves"
        if counts_epochs(spec)
        else ""
    )


def _interval(subject: Subject) -> tuple[str, ...]:
    config = subject.config
    has_part = config is not None and config.at("checkpoints") is not None
    return ("checkpoints", "every_steps") if has_part or not _is_requested(subject) else ("hardware", "spot")


def _is_requested(subject: Subject) -> bool:
    return subject.config is not None and subject.config.at("hardware", "spot") is not None


def _is_given_elsewhere(subject: Subject) -> bool:
    spec = subject.spec
    if subject.format or spec is None:
        return bool(subject.format)
    return (
        interval_in(spec) is not None or _SAVES.search(spec.trainer.command[:COMMAND_CHARS_MAX]) is not None
    )


@RULES.warning(
    "RE509",
    "checkpoints far too seldom, or too often",
    why="Saving costs time, and so does repeating steps after a preemption. Young's and Daly's formula gives "
    "the interval that loses least in total. This interval is off by more than a factor of three, and loses "
    "at least 5 % more of the paid time.",
    fix="use the suggested interval",
)
def off_pace(subject: Subject) -> Iterable[Violation]:
    spec = subject.spec
    if spec is None or not _on_spot(spec) or subject.format not in _PACED or any(_slow_upload(subject)):
        return ()
    # Imported here because the estimates are slow to import.
    from prime_train.checks import checkpoint_pace as resilience_pace

    return resilience_pace.off(subject)


@RULES.warning(
    "RE502",
    "no checkpoint before the end",
    why="The first checkpoint would come after the last step: a run that loses its machine starts from step "
    "0.",
    fix="save every tenth of the steps, or every ten minutes",
)
def after_the_end(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    # For prime-rl this interval becomes part of its own config, which other rules check.
    if spec is None or spec.trainer.steps is None or spec.trainer.prime_rl is not None:
        return
    path: Path = ("checkpoints", "every_steps")
    every = spec.checkpoints.every_steps
    if every is None and not subject.format:
        path, every = ("trainer", "command"), interval_in(spec)
    if every is not None and every > spec.trainer.steps:
        unit = "epochs" if counts_epochs(spec) else "steps"
        message = (
            f"a checkpoint every {every} {unit} in a run of {spec.trainer.steps} {unit}: none before the end"
        )
        yield Violation(path, message, f"write for example {max(1, spec.trainer.steps // 10)}")


def _slow_upload(subject: Subject) -> Iterable[Violation]:
    spec = subject.spec
    if spec is None or spec.checkpoints.upload_mb_per_s_max is None or subject.format not in _PACED:
        return ()
    from prime_train.checks import checkpoint_pace as resilience_pace

    return resilience_pace.slow_upload(subject, spec.checkpoints.upload_mb_per_s_max)


@RULES.warning(
    "RE504",
    "data that is built but not verified",
    why="A run may train for hours on data from an incomplete build or download before anyone notices.",
    fix='add verification: [{path: "data/**/*.json", exactly: 2}], for the files that the build creates',
)
def unverified(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.verification:
        return
    for at, command in enumerate(spec.setup):
        built = _BUILDS.search(command)
        if built is not None:
            yield Violation(
                ("setup", at), "the data that these commands build is not verified", word=built[0].strip()
            )
            return


@RULES.warning(
    "RE505",
    "an expensive run without a smoke test",
    why=f"A run of more than ${SMOKE_USD} that fails at its first evaluation or save has already paid for "
    "all training before it.",
    fix="add smoke: {command: ..., steps: ...} with a few steps, a save and an evaluation",
)
def untried(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is not None and spec.smoke is None and spec.budget.usd > SMOKE_USD:
        yield Violation(("budget", "usd"), f"${spec.budget.usd:g} may be spent, but there is no smoke test")


@RULES.warning(
    "RE506",
    "a smoke test as long as the run",
    why="Every attempt would run the full training twice.",
    fix="a few steps",
)
def smoke_as_long(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.smoke is None or spec.smoke.steps is None or spec.trainer.steps is None:
        return
    if spec.smoke.steps >= spec.trainer.steps:
        yield Violation(
            ("smoke", "steps"),
            f"the smoke test has {spec.smoke.steps} steps and the run {spec.trainer.steps}: it is as long as "
            "the run",
        )


@RULES.warning(
    "RE507",
    "keep_every_steps does not match the saved steps",
    why="A checkpoint is kept permanently if its step is a multiple of keep_every_steps, but most of these "
    "steps are never saved.",
    fix="write a multiple of checkpoints.every_steps",
)
def kept_by_metric_only_rarely(subject: Subject) -> Iterator[Violation]:
    spec = subject.spec
    if spec is None or spec.checkpoints.keep_every_steps is None or spec.checkpoints.every_steps is None:
        return
    if spec.checkpoints.keep_every_steps % spec.checkpoints.every_steps:
        every, kept = spec.checkpoints.every_steps, spec.checkpoints.keep_every_steps
        message = (
            f"checkpoints are saved every {every} steps, and few of these steps are multiples "
            "of "
            f"keep_every_steps {kept}"
        )
        yield Violation(
            ("checkpoints", "keep_every_steps"),
            message,
            f"write a multiple of {every}, such as {-(-kept // every) * every}",
        )


@RULES.warning(
    "RE510",
    "no folder of checkpoints",
    why="Only files in this folder are uploaded to the bucket. A run whose trainer saves elsewhere, or not "
    "at all, loses all its work when its machine is terminated.",
    fix="add checkpoints: {folder: ..., pattern: ..., sentinel: ...}, as the trainer saves, or put "
    "{checkpoints} into its command",
)
def unsaid(subject: Subject) -> Iterator[Violation]:
    """Yield a violation if neither the config nor the command mentions checkpoints, as the trainer then
    probably saves where the agent does not look.
    """
    spec, config = subject.spec, subject.config
    if (
        spec is None
        or config is None
        or TRAINERS[spec.trainer.kind].names_folder
        or config.at("checkpoints") is not None
    ):
        return
    if "{checkpoints}" not in spec.trainer.command:
        where = f"{spec.checkpoints.folder}/{spec.checkpoints.pattern}"
        yield Violation(
            ("trainer", "command"),
            f"only files in {where} are uploaded, and no setting shows that the trainer saves there",
        )


@RULES.warning(
    "RE511",
    "checkpoints from which nothing resumes",
    why="A checkpoint is restored on the next machine, but a script that is not told so, and does not look "
    "for it, starts over: the same steps are paid for again, until the budget is spent.",
    fix="write trainer: {resume: '--resume {checkpoint}'}, or what the script calls it",
)
def not_resumed(subject: Subject) -> Iterator[Violation]:
    """Yield a violation if the run saves checkpoints, and nothing shows that a start on another machine goes
    on from them.
    """
    spec, config = subject.spec, subject.config
    if (
        spec is None
        or config is None
        or TRAINERS[spec.trainer.kind].layout is not None
        or subject.format == "areal"
    ):
        return
    saves = config.at("checkpoints") is not None or "{checkpoints}" in spec.trainer.command
    if saves and not spec.trainer.resume and not _is_resumed_otherwise(subject):
        message = (
            "checkpoints are saved, but nothing says how the script resumes from one: the next machine would "
            "train from step 0 again"
        )
        found = next(filter(None, map(resume_arguments, subject.scripts)), "")
        by_format = (
            "--resume_from_checkpoint {checkpoint}" if subject.format == "hf" else "--resume {checkpoint}"
        )
        given = (
            "write trainer: "
            f"{{resume: "
            f"'{found or by_format}'}}{'' if found else ', or what the script calls it'}"
        )
        yield Violation(
            ("trainer", "command"),
            message,
            f"{given}; if it finds its newest checkpoint by itself, write trainer: {{resume: ''}}",
        )


def _is_resumed_otherwise(subject: Subject) -> bool:
    """Return whether the script needs no resume arguments: the config says so by an empty `resume`, by a
    pointer to the newest checkpoint that is restored with it, or in the command; or its text shows it.
    """
    spec, config = subject.spec, subject.config
    if spec is None or config is None:
        return False
    command = spec.trainer.command[:COMMAND_CHARS_MAX]
    node = config.at("trainer", "resume")
    has_pointer = counting_field(spec.checkpoints.pattern) and not all(
        map(counting_field, spec.checkpoints.also)
    )
    return (
        (isinstance(node, Scalar) and node.value == "")
        or bool(has_pointer)
        or _RESUME_BY_THEMSELVES.search(command) is not None
        or is_told_to_resume(command)
        or any(is_given_step(command, text) or finds_by_itself(text) for text in subject.scripts)
    )


def _on_spot(spec: "RunSpec") -> bool:
    """Return whether the run rents spot machines. A user's own machine is not preempted, and without a GPU or
    a provider none is rented.
    """
    return (
        spec.hardware.spot != "never"
        and bool(spec.hardware.gpus)
        and not is_own_machine(allowed_providers(spec.hardware))
    )


RULES.warning(
    "RE503",
    "checkpoints more frequent than they can be uploaded",
    why="Checkpoints pile up on the disk, and the newest one in the bucket falls further and further behind.",
    fix="save less often, or raise checkpoints.upload_mb_per_s_max",
)(_slow_upload)
