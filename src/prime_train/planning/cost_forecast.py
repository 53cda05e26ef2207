"""What is estimated of a config when its run is launched, for ranking machines later without its trainer's
files.
"""

from collections.abc import Callable, Iterator, Sequence

from prime_train.checks.checkpoint_pace import save_plan_of
from prime_train.checks.host_bytes import disk_bytes
from prime_train.checks.memory_plan import environments_of, model_name, plan_of, steps_of
from prime_train.estimate import gpus
from prime_train.estimate.job import JobDescription
from prime_train.estimate.memory.phases import Method
from prime_train.runs.forecast import ESTIMATES_MAX, FAMILY_CHARS_MAX, Forecast, StepEstimate
from prime_train.spec.rule import Subject
from prime_train.spec.spec import RunSpec
from prime_train.text.gpu_names import PCIE, on_board


def forecast_of(
    subjects: Sequence[Subject], plan: Callable[[Subject], JobDescription | None] = plan_of
) -> Forecast:
    """Return the forecast of a config. `subjects`: the config as machines of each of its variants get it, or
    the config itself; `plan`: what each of them trains.
    """
    estimates = {
        one.kind: one for subject in reversed(subjects) for one in _estimates(subject, plan(subject))
    }
    first = subjects[0] if subjects else Subject()
    trained, saving = plan(first), save_plan_of(first)
    return Forecast(
        tuple(estimates.values())[:ESTIMATES_MAX],
        every_steps=saving.steps if saving is not None else None,
        every_s=saving.every_s.expected if saving is not None and saving.steps is None else None,
        stall_s=saving.stall_s.expected if saving is not None else None,
        checkpoint_bytes=saving.saved_b
        if saving is not None
        else disk_bytes(trained, first)[1]
        if trained is not None
        else 0.0,
        model_bytes=2.0 * trained.model.params if trained is not None else 0.0,
        family=_family(first, trained) if trained is not None else "",
        last_step=steps_of(first),
        environment=environments_of(first)[:FAMILY_CHARS_MAX],
        batch_tokens=float(trained.batch_tokens) if trained is not None else 0.0,
        needs=tuple(
            one.gpu_need(subject.spec.hardware.count)
            for subject in subjects
            if subject.spec is not None and (one := plan(subject)) is not None
        ),
    )


def _family(subject: Subject, plan: JobDescription) -> str:
    """Return in words what runs have in common whose steps differ from their estimates by about the same
    factor.
    """
    return f"{subject.format}: {trained_words(model_name(subject), plan.training.method, rl=plan.is_rl)}"[
        :FAMILY_CHARS_MAX
    ]


def trained_words(model: str, method: Method, *, rl: bool) -> str:
    """Return a model and how it is trained in words: Qwen/Qwen3-8B lora"""
    return f"{model} {method}{' with rollouts' if rl else ''}"


def _estimates(subject: Subject, plan: JobDescription | None) -> Iterator[StepEstimate]:
    """Yield the estimated time of a step on each kind of machine that the config allows; if it allows all, on
    all whose speed is known.
    """
    spec = subject.spec
    if spec is None or plan is None or plan.batch_tokens < 1:
        return
    for kind in _kinds(spec):
        for name, socket in {on_board(kind, PCIE): PCIE, kind: ""}.items():
            gpu = gpus.facts(kind, socket)
            if gpu is not None:
                took = plan.step_s(gpu, spec.hardware.count)
                estimate = StepEstimate(name, spec.hardware.count, took.low, took.high)
                if estimate.is_possible:
                    yield estimate


def _kinds(spec: RunSpec) -> Sequence[str]:
    return spec.hardware.gpus or sorted(
        kind for kind in gpus.RENTED if gpus.has_bf16(kind) and not gpus.has_arm64(kind)
    )
