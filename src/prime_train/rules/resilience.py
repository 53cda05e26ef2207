"""What a run loses when its machine is taken away, and what it may lose (RE5xx)."""

import re
from collections.abc import Iterator

from prime_train.core.finding import Severity
from prime_train.core.spec import RunSpec, Spot
from prime_train.rules.rule import Flaw, Rule, Subject

FAMILY = "resilience"
SMOKE_USD = 100
"""A run of so many dollars is worth trying out first."""
CHECKPOINT_BYTES = 12
"""Of a trained parameter: weight and both AdamW states in 32 bit."""

_BUILDS = re.compile(
    r"(?:^|[\s/.])(?:build|prepare|make|create|generate|preprocess|tokenize)(?:_[a-z0-9]+)*_(?:data|datasets?|corpus)(?:_\w+)?(?:\.py|\.sh)?(?=\s|$)"
)
"""A script that by its name builds data: build_arc_dataset.py, prepare_data.sh, dataset.build_sudoku_dataset."""


def _no_interval(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is None or not _on_spot(spec) or spec.trainer.prime_rl is not None or spec.checkpoints.every_steps is not None:
        return
    yield Flaw(("checkpoints", "every_steps"), "how often the trainer saves is not said", on_key=True)


def _after_the_end(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is None or spec.checkpoints.every_steps is None or spec.trainer.steps is None:
        return
    # What prime-rl saves is told by its own config, this interval in it.
    if spec.trainer.prime_rl is None and spec.checkpoints.every_steps > spec.trainer.steps:
        message = f"a checkpoint every {spec.checkpoints.every_steps} steps, and {spec.trainer.steps} steps in all: none before the end"
        yield Flaw(("checkpoints", "every_steps"), message, f"such as {max(1, spec.trainer.steps // 10)}")


def _slow_upload(subject: Subject) -> Iterator[Flaw]:
    """Certain only: at the slowest pace at which the run can end within its hours, an upload takes longer than the steps between two."""
    spec, saved_b = subject.spec, _checkpoint_bytes(subject)
    if spec is None or saved_b is None or spec.checkpoints.upload_mb_per_s_max is None:
        return
    every, steps, hours = spec.checkpoints.every_steps, spec.trainer.steps, spec.budget.hours
    if every is None or steps is None or hours is None:
        return
    between_s, upload_s = hours * 3600 / steps * every, saved_b / 1e6 / spec.checkpoints.upload_mb_per_s_max
    if upload_s > between_s:
        message = (
            f"a checkpoint of {saved_b / 1e9:.0f} GB takes {upload_s / 60:.0f} min at {spec.checkpoints.upload_mb_per_s_max:g} MB/s; "
            f"the next one is made {between_s / 60:.0f} min later at the latest"
        )
        yield Flaw(("checkpoints", "upload_mb_per_s_max"), message)


def _unverified(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is None or spec.verification:
        return
    for at, command in enumerate(spec.setup):
        if _BUILDS.search(command):
            yield Flaw(("setup", at), "the data that this builds is not verified")
            return


def _untried(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is not None and spec.smoke is None and spec.budget.usd > SMOKE_USD:
        yield Flaw(("budget", "usd"), f"${spec.budget.usd:g} may be spent, and nothing is tried out before")


def _smoke_as_long(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is None or spec.smoke is None or spec.smoke.steps is None or spec.trainer.steps is None:
        return
    if spec.smoke.steps >= spec.trainer.steps:
        yield Flaw(("smoke", "steps"), f"the smoke test has {spec.smoke.steps} steps, the run {spec.trainer.steps}: it is the run")


def _kept_by_metric_only_rarely(subject: Subject) -> Iterator[Flaw]:
    spec = subject.spec
    if spec is None or spec.checkpoints.keep_every_steps is None or spec.checkpoints.every_steps is None:
        return
    if spec.checkpoints.keep_every_steps % spec.checkpoints.every_steps:
        every, kept = spec.checkpoints.every_steps, spec.checkpoints.keep_every_steps
        message = f"checkpoints are made every {every} steps; few of them are at a multiple of {kept}"
        yield Flaw(("checkpoints", "keep_every_steps"), message, f"a multiple of {every}, such as {-(-kept // every) * every}")


def _on_spot(spec: RunSpec) -> bool:
    """A machine of one's own is not taken away; and nobody rents one without a GPU or a provider."""
    return spec.hardware.spot is not Spot.NEVER and bool(spec.hardware.gpus) and spec.hardware.provider != "local"


def _checkpoint_bytes(subject: Subject) -> float | None:
    """Of full training of a model that is known; None for an adapter, whose checkpoints are small."""
    trainer = subject.trainer
    if trainer is None or subject.kind != "prime_rl" or trainer.at("trainer", "model", "lora") is not None:
        return None
    from prime_train.core.models import understand

    name = trainer.text("trainer", "model", "name") or trainer.text("model", "name")
    model = understand(name) if name else None
    return CHECKPOINT_BYTES * model.params if model is not None else None


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
        Severity.NOTE,
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
)
