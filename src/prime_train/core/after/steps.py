"""The steps under `after` in a config, as a whole."""

from collections.abc import Iterable
from typing import TYPE_CHECKING

from prime_train.core.causes import Cause
from prime_train.core.text.globs import violation_of_outputs

if TYPE_CHECKING:
    from prime_train.core.spec import AfterSpec, RunSpec

STEPS_MAX = 20
"""Number of steps that a config may have."""
OUR_VARIABLES = "PRIME_TRAIN_"
CHECKPOINT_VARIABLE, STEP_VARIABLE, RESULTS_VARIABLE = (f"{OUR_VARIABLES}{name}" for name in ("CHECKPOINT", "STEP", "RESULTS"))

REFUSED = frozenset({Cause.RESUME_IGNORED, Cause.NOT_FINITE, Cause.ZERO_REWARD, Cause.LOG_RULE})
"""Causes for which a trainer is stopped because what it trains is not wanted, whatever step was reached and however it exits."""
_NOT_DONE = REFUSED | {Cause.UPLOAD_FAILED, Cause.AFTER_FAILED, Cause.FENCED}
"""Causes of an end after which something is left to do, whatever step was reached."""


def is_trained(steps: int | None, reached: int) -> bool:
    """Return whether a trainer that exited with code 0 has trained to the end. `steps`: the last step of the config, None if it has none;
    `reached`: the newest step over all attempts."""
    return steps is None or reached >= steps


def is_done_despite(cause: Cause | None, steps: int | None, *, reached: int, durable_step: int) -> bool:
    """Return whether all the work is done although the attempt ended by `cause`: what is finished stays so if the process then crashes, or
    the machine is lost. `reached`: the newest step that was reported; `durable_step`: the newest durable one.

    A trainer that reports every few steps may end after its last report: then the checkpoint of the last step itself shows that it was
    reached. The number of any later one may count something else, such as samples.
    """
    if steps is None or cause in _NOT_DONE:
        return False
    return durable_step == steps or min(reached, durable_step) >= steps


def violation_of_env(names: Iterable[str]) -> str | None:
    """Return what is wrong with the names of a step's environment variables; None if nothing is."""
    ours = sorted(name for name in names if name.startswith(OUR_VARIABLES))
    return f"env.{ours[0]}: prime-train sets the variables that begin with {OUR_VARIABLES}; choose another name" if ours else None


def patterns_of(step: "AfterSpec") -> tuple[str, ...]:
    """Return the glob patterns of the files that a step leaves: its outputs, by default what a ready step packs."""
    return step.outputs or ((f"{step.kaggle.folder}/**",) if step.kaggle is not None else ())


def violation_of_step(step: "AfterSpec") -> str | None:
    """Return what is wrong with what a step does; None if nothing is."""
    if step.kaggle is None:
        return None if step.run else "run: a step needs a command; write run: COMMAND, or a ready step such as kaggle"
    if step.run:
        return "run: the step has a ready step, too (kaggle); make two steps of them"
    return "evaluate_every: kaggle packs the last checkpoint; delete this key" if step.evaluate_every is not None else None


def violation_of_steps(spec: "RunSpec") -> str | None:
    """Return what is wrong with the steps together, or with their outputs; None if nothing is."""
    names = [step.name for step in spec.after]
    if len(names) > STEPS_MAX:
        return f"after: {len(names)} steps are too many; at most {STEPS_MAX} are allowed"
    for number, step in enumerate(spec.after):
        if step.name in names[:number]:
            return f"after[{number}].name: another step is called {step.name}, too; give each step a name of its own"
        violation = violation_of_outputs(patterns_of(step), folder=spec.checkpoints.folder, checkpoint=spec.checkpoints.pattern)
        if violation is not None:
            return f"after[{number}].outputs: {violation}"
    return None


def output_patterns(spec: "RunSpec") -> tuple[str, ...]:
    """Return the patterns of all outputs: those of the run, and those of the steps after training."""
    return tuple(dict.fromkeys([*spec.outputs, *(pattern for step in spec.after for pattern in patterns_of(step))]))


def kept_steps(before: tuple["AfterSpec", ...], now: tuple["AfterSpec", ...], done: int) -> int:
    """Return how many of the first `done` steps a changed config still has, unchanged and in their places."""
    same = 0
    while same < min(done, len(before), len(now)) and before[same] == now[same]:
        same += 1
    return same
