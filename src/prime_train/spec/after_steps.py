"""The steps under `after` in a config, as a whole."""

from collections.abc import Iterable, Sequence

from prime_train.spec.causes import Cause

OUR_VARIABLES = "PRIME_TRAIN_"
CHECKPOINT_VARIABLE, STEP_VARIABLE, RESULTS_VARIABLE = (
    f"{OUR_VARIABLES}{name}" for name in ("CHECKPOINT", "STEP", "RESULTS")
)

REFUSED = frozenset({Cause.RESUME_IGNORED, Cause.NOT_FINITE, Cause.ZERO_REWARD, Cause.LOG_RULE})
"""Causes for which a trainer is stopped because what it trains is not wanted, whatever step was reached and
however it exits.
"""
_NOT_DONE = REFUSED | {Cause.UPLOAD_FAILED, Cause.AFTER_FAILED, Cause.FENCED}
"""Causes of an end after which something is left to do, whatever step was reached."""


def is_trained(steps: int | None, reached: int) -> bool:
    """Return whether a trainer that exited with code 0 has trained to the end. `steps`: the last step of the
    config, None if it has none; `reached`: the newest step over all attempts.
    """
    return steps is None or reached >= steps


def is_done_despite(cause: Cause | None, steps: int | None, *, reached: int, durable_step: int) -> bool:
    """Return whether all the work is done although the attempt ended by `cause`: what is finished stays so if
    the process then crashes, or the machine is lost. `reached`: the newest step that was reported;
    `durable_step`: the newest durable one.

    A trainer that reports every few steps may end after its last report: then the checkpoint of the last step
    itself shows that it was reached. The number of any later one may count something else, such as samples.
    """
    if steps is None or cause in _NOT_DONE:
        return False
    return durable_step == steps or min(reached, durable_step) >= steps


def violation_of_env(names: Iterable[str]) -> str | None:
    """Return what is wrong with the names of a step's environment variables; None if nothing is."""
    ours = sorted(name for name in names if name.startswith(OUR_VARIABLES))
    return (
        f"env.{ours[0]}: prime-train sets the variables that begin with {OUR_VARIABLES}; choose another name"
        if ours
        else None
    )


def kept_steps(before: Sequence[object], now: Sequence[object], done: int) -> int:
    """Return how many of the first `done` steps a changed config still has, unchanged and in their places."""
    same = 0
    while same < min(done, len(before), len(now)) and before[same] == now[same]:
        same += 1
    return same
