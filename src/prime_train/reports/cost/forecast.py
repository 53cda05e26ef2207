"""What is estimated of a config when its run is launched, for ranking machines later without its trainer's files."""

from collections.abc import Iterator, Sequence

from prime_train.core.market.forecast import ESTIMATES_MAX, FAMILY_CHARS_MAX, Forecast
from prime_train.core.market.step_times import StepEstimate
from prime_train.core.spec import RunSpec
from prime_train.estimate import gpus
from prime_train.estimate.cost.bill import Rate
from prime_train.reports.cost.machine import Machine
from prime_train.reports.cost.report import published
from prime_train.rules.hardware.host_bytes import disk_bytes
from prime_train.rules.hardware.memory_plan import Plan, model_name, plan_of
from prime_train.rules.resilience.checkpoint_pace import save_plan_of
from prime_train.rules.rule import Subject


def forecast_of(subjects: Sequence[Subject]) -> Forecast:
    """Return the forecast of a config. `subjects`: the config as machines of each of its variants get it, or the config itself."""
    estimates = {one.kind: one for subject in reversed(subjects) for one in _estimates(subject)}
    first = subjects[0] if subjects else Subject()
    plan, saving = plan_of(first), save_plan_of(first)
    return Forecast(
        tuple(estimates.values())[:ESTIMATES_MAX],
        every_steps=saving.steps if saving is not None else None,
        every_s=saving.every_s.expected if saving is not None and saving.steps is None else None,
        stall_s=saving.stall_s.expected if saving is not None else None,
        checkpoint_bytes=saving.saved_b if saving is not None else disk_bytes(plan, first)[1] if plan is not None else 0.0,
        model_bytes=2.0 * plan.model.params if plan is not None else 0.0,
        family=_family(first, plan) if plan is not None else "",
    )


def _family(subject: Subject, plan: Plan) -> str:
    """Return in words what runs have in common whose steps differ from their estimates by about the same factor."""
    trained = f"{plan.training.method} with rollouts" if plan.serve_gpus else f"{plan.training.method}"
    return f"{subject.format}: {model_name(subject)} {trained}"[:FAMILY_CHARS_MAX]


def _estimates(subject: Subject) -> Iterator[StepEstimate]:
    """Yield the estimated time of a step on each kind of machine that the config allows; if it allows all, on all whose speed is known."""
    spec, plan = subject.spec, plan_of(subject)
    if spec is None or plan is None:
        return
    for kind in _kinds(spec):
        step = published(plan, Machine("", kind, spec.hardware.count, Rate(0.0, spot=False)))
        estimate = StepEstimate(kind, spec.hardware.count, step.seconds.low, step.seconds.high) if step is not None else None
        if estimate is not None and estimate.is_possible:
            yield estimate


def _kinds(spec: RunSpec) -> Sequence[str]:
    return spec.hardware.gpus or sorted(kind for kind in gpus.RENTED if gpus.has_bf16(kind) and not gpus.has_arm64(kind))
