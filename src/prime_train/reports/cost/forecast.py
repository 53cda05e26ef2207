"""What is estimated of a config when its run is launched, for ranking machines later without its trainer's files."""

from collections.abc import Callable, Iterator, Sequence

from prime_train.core.market.forecast import ESTIMATES_MAX, FAMILY_CHARS_MAX, Forecast, StepEstimate
from prime_train.core.market.gpu_names import PCIE, on_board
from prime_train.core.spec import RunSpec
from prime_train.estimate import gpus
from prime_train.estimate.cost.training_speed import Pass, tokens_per_s
from prime_train.estimate.memory.phases import Method
from prime_train.rules.hardware.gpu_need import gpu_need
from prime_train.rules.hardware.host_bytes import disk_bytes
from prime_train.rules.hardware.memory_plan import Plan, environments_of, model_name, plan_of, steps_of
from prime_train.rules.resilience.checkpoint_pace import save_plan_of
from prime_train.rules.rule import Subject


def forecast_of(subjects: Sequence[Subject], plan: Callable[[Subject], Plan | None] = plan_of) -> Forecast:
    """Return the forecast of a config. `subjects`: the config as machines of each of its variants get it, or the config itself; `plan`:
    what each of them trains."""
    estimates = {one.kind: one for subject in reversed(subjects) for one in _estimates(subject, plan(subject))}
    first = subjects[0] if subjects else Subject()
    trained, saving = plan(first), save_plan_of(first)
    return Forecast(
        tuple(estimates.values())[:ESTIMATES_MAX],
        every_steps=saving.steps if saving is not None else None,
        every_s=saving.every_s.expected if saving is not None and saving.steps is None else None,
        stall_s=saving.stall_s.expected if saving is not None else None,
        checkpoint_bytes=saving.saved_b if saving is not None else disk_bytes(trained, first)[1] if trained is not None else 0.0,
        model_bytes=2.0 * trained.model.params if trained is not None else 0.0,
        family=_family(first, trained) if trained is not None else "",
        last_step=steps_of(first),
        environment=environments_of(first)[:FAMILY_CHARS_MAX],
        batch_tokens=float(trained.batch_tokens) if trained is not None else 0.0,
        needs=tuple(
            gpu_need(one, subject.spec.hardware.count)
            for subject in subjects
            if subject.spec is not None and (one := plan(subject)) is not None
        ),
    )


def _family(subject: Subject, plan: Plan) -> str:
    """Return in words what runs have in common whose steps differ from their estimates by about the same factor."""
    return f"{subject.format}: {trained_words(model_name(subject), plan.training.method, rl=plan.serve_gpus > 0)}"[:FAMILY_CHARS_MAX]


def trained_words(model: str, method: Method, *, rl: bool) -> str:
    """Return a model and how it is trained in words: Qwen/Qwen3-8B lora"""
    return f"{model} {method}{' with rollouts' if rl else ''}"


def _estimates(subject: Subject, plan: Plan | None) -> Iterator[StepEstimate]:
    """Yield the estimated time of a step on each kind of machine that the config allows; if it allows all, on all whose speed is known."""
    spec = subject.spec
    if spec is None or plan is None or plan.batch_tokens < 1:
        return
    training = plan.training
    done = Pass(training.seq_len, training.micro_batch, training.method, training.recompute, rl=plan.serve_gpus > 0)
    for kind in _kinds(spec):
        for name, socket in {on_board(kind, PCIE): PCIE, kind: ""}.items():
            gpu = gpus.facts(kind, socket)
            if gpu is not None:
                slow, fast = tokens_per_s(plan.model, done, gpu, spec.hardware.count)
                low_s, high_s = plan.batch_tokens * plan.shortest / fast, plan.batch_tokens / slow
                estimate = StepEstimate(name, spec.hardware.count, low_s, high_s)
                if estimate.is_possible:
                    yield estimate


def _kinds(spec: RunSpec) -> Sequence[str]:
    return spec.hardware.gpus or sorted(kind for kind in gpus.RENTED if gpus.has_bf16(kind) and not gpus.has_arm64(kind))
