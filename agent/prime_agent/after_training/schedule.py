"""When the steps under `after` are run: one after the other once training has succeeded, and as evaluations
of checkpoints while it goes on.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from prime_agent import effects as e
from prime_train.spec.spec import AfterSpec

RETRY_FIRST_S, RETRY_MAX_S = 2.0, 60.0
FAILED_CHARS_MAX = 500


@dataclass(frozen=True)
class StepEnd:
    """The end of the command of a step. `problem`: why it failed, "" if it did not; `uploads`: the number of
    uploads of outputs that had started by then. It is over once a later one has ended.
    """

    problem: str
    log_tail: str
    uploads: int


@dataclass(frozen=True)
class AfterSteps:
    """State of the steps after training. Times are seconds of the machine's monotonic clock."""

    trained: bool = False
    """Whether training has succeeded, and all that it left is durable."""
    done: int = 0
    """Number of steps that are over, those of earlier attempts included."""
    running: bool = False
    tries: int = 0
    """Number of tries of the current step that have ended."""
    next_s: float = 0.0
    end: StepEnd | None = None
    """The end of the current step, whose outputs are being uploaded."""
    failed: str = ""
    """The steps that failed, in this attempt or an earlier one, and why."""
    refused: str = ""
    """Outputs that were known to be refused when the last step was over."""


def begun(after: AfterSteps, now_s: float) -> AfterSteps:
    """Record that training has succeeded."""
    return replace(after, trained=True, next_s=now_s)


def pace(
    after: AfterSteps, now_s: float, steps: Sequence[AfterSpec], checkpoint_step: int
) -> tuple[AfterSteps, tuple[e.Effect, ...]]:
    """Return the effects that are due, and the state with them recorded as started."""
    if after.running or after.end is not None or after.done >= len(steps) or now_s < after.next_s:
        return after, ()
    return replace(after, running=True), (e.RunStep(after.done, checkpoint_step, after.tries + 1),)


def due_s(after: AfterSteps) -> float | None:
    """Return when `pace` has something to do."""
    return None if not after.trained or after.running or after.end is not None else after.next_s


def command_ended(
    after: AfterSteps, step: AfterSpec, problem: str, log_tail: str, now_s: float, *, uploads: int
) -> AfterSteps:
    """Record the end of the command of the current step: it is tried again later, or its outputs are uploaded
    next.
    """
    tried = replace(after, running=False, tries=after.tries + 1)
    if problem and tried.tries <= step.retries:
        return replace(tried, next_s=now_s + min(RETRY_MAX_S, RETRY_FIRST_S * 2 ** (tried.tries - 1)))
    return replace(tried, end=StepEnd(problem, log_tail, uploads))


def is_over(after: AfterSteps, last_upload: int) -> bool:
    """Return whether the command of the current step has ended, and an upload of outputs has ended that
    started afterwards. `last_upload`: the number of the newest upload that did not fail.
    """
    return after.end is not None and last_upload > after.end.uploads


def problem_of(after: AfterSteps, refused: str) -> str:
    """Return why the step that is over failed; "" if it did not. `refused`: the outputs that cannot be
    uploaded as they are.
    """
    problem = after.end.problem if after.end is not None else ""
    return problem or (
        f"its outputs are not uploaded: {refused}" if refused and refused != after.refused else ""
    )


def over(after: AfterSteps, step: AfterSpec, problem: str, now_s: float, *, refused: str) -> AfterSteps:
    """Record that the current step is over, and go on with the next one."""
    failed = "; ".join(filter(None, [after.failed, f"{step.name} failed: {problem}" if problem else ""]))
    return replace(
        after,
        done=after.done + 1,
        tries=0,
        end=None,
        next_s=now_s,
        failed=failed[:FAILED_CHARS_MAX],
        refused=refused,
    )


# -------------------------------------------------------------------------------------------------
# evaluations while training goes on


@dataclass(frozen=True)
class Evaluations:
    """State of the evaluations while training goes on. `newest`: for each step under `after`, the newest
    checkpoint that was chosen for it; `waiting`: those of them that have not been evaluated yet, 0 for none.
    """

    newest: tuple[int, ...] = ()
    waiting: tuple[int, ...] = ()
    running: bool = False
    cancelled: bool = False


def scheduled(steps: Sequence[AfterSpec], resume_step: int) -> Evaluations:
    return Evaluations(newest=(resume_step,) * len(steps), waiting=(0,) * len(steps))


def checkpoint_made(
    state: Evaluations, step: int, steps: Sequence[AfterSpec], last_step: int | None
) -> tuple[Evaluations, tuple[e.Effect, ...]]:
    """Record a complete checkpoint, which takes the place of an older one that waits. The one of the last
    step is left to the steps after training.
    """
    effects: list[e.Effect] = []
    newest, waiting = list(state.newest), list(state.waiting)
    for index, each in enumerate(steps):
        every = each.evaluate_every
        if (
            every is None
            or (last_step is not None and step >= last_step)
            or step // every <= newest[index] // every
        ):
            continue
        if waiting[index]:
            effects.append(e.PassOver(index, waiting[index], step))
        newest[index] = waiting[index] = step
    return replace(state, newest=tuple(newest), waiting=tuple(waiting)), tuple(effects)


def never_uploaded(
    state: Evaluations, waited: Sequence[int], newer: int, steps: Sequence[AfterSpec]
) -> tuple[e.Effect, ...]:
    """Return what to note about the checkpoints `waited`, which would have been evaluated and are not
    uploaded.
    """
    return tuple(
        e.PassOver(index, step, newer)
        for index, each in enumerate(steps)
        for step in waited
        if each.evaluate_every is not None
        and step // each.evaluate_every > state.newest[index] // each.evaluate_every
    )


def pace_evaluations(state: Evaluations) -> tuple[Evaluations, tuple[e.Effect, ...]]:
    """Return the effects that are due: at most one evaluation at a time, of the step that waits for the
    oldest checkpoint.
    """
    due = [(step, index) for index, step in enumerate(state.waiting) if step]
    if state.running or state.cancelled or not due:
        return state, ()
    step, index = min(due)
    waiting = tuple(0 if place == index else each for place, each in enumerate(state.waiting))
    return replace(state, waiting=waiting, running=True), (e.Evaluate(index, step),)


def given_up(state: Evaluations, checkpoint_step: int) -> tuple[Evaluations, tuple[e.Effect, ...]]:
    """Give up the evaluations that wait, because training has succeeded. `checkpoint_step`: the step of its
    last checkpoint.
    """
    waiting = [(index, step) for index, step in enumerate(state.waiting) if step and step != checkpoint_step]
    return replace(state, waiting=(0,) * len(state.waiting)), tuple(
        e.PassOver(index, step, checkpoint_step) for index, step in waiting
    )
