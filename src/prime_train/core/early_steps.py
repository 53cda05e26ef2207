"""How long a step may take before the run's own step times are known.

A trainer may hang after its first step. Its first step, the probe and the estimate say what a step is likely to take; a generous multiple
of the longest of these is enough for what makes early steps slow, such as compilation and a first evaluation.
"""

from prime_train.core.run import Attempt, Run
from prime_train.core.wire import Heartbeat

FLOOR_FACTOR = 3
"""An early step may take this many times `health.stall_s` at least."""
STEP_FACTOR = 10
"""An early step may take this many times what was measured of a few steps, or estimated."""
FIRST_FACTOR = 2
"""An early step may take this many times what it took from the first heartbeat to the first step."""


def early_limit_s(run: Run, attempt: Attempt, heartbeat: Heartbeat) -> int:
    """Return the step deadline in seconds as long as `step_slow_s` is not known, never above `health.first_step_s` or below `stall_s`."""
    health = run.spec.health
    first_s = _first_s(attempt)
    if first_s is None:
        return health.first_step_s
    longest_s = max(FLOOR_FACTOR * health.stall_s, FIRST_FACTOR * first_s, int(STEP_FACTOR * _step_s(run, attempt, heartbeat)))
    return max(health.stall_s, min(longest_s, health.first_step_s))


def _first_s(attempt: Attempt) -> int | None:
    if attempt.first_heartbeat_s is None or attempt.first_step_s is None:
        return None
    return max(0, attempt.first_step_s - attempt.first_heartbeat_s)


def _step_s(run: Run, attempt: Attempt, heartbeat: Heartbeat) -> float:
    """Return the likely seconds of a step, the longest of what is known; 0: nothing is known."""
    measured = [(one.timed_s, one.timed_steps) for one in run.attempts] + [(heartbeat.timed_s or 0.0, heartbeat.timed_steps)]
    kind = (attempt.offer.gpu, attempt.offer.gpu_count)
    estimated = [one.high_s for one in run.forecast.steps if one.kind == kind]
    return max([0.0, *estimated, *(seconds / steps for seconds, steps in measured if steps)])
