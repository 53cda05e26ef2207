"""Profile of a prime-rl run from its metrics file: where a step's time goes, what the bottleneck is, and what
to change.

A wrong diagnosis costs more than none, so there is none if steps are too few or essential metrics are
missing.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from prime_train.trainers.prime_rl.profile import STEPS
from prime_train.trainers.prime_rl.profile.bottlenecks import (
    Bottleneck,
    Bound,
    Certainty,
    Critical,
    ProfileSummary,
)
from prime_train.trainers.prime_rl.profile.diagnosis import diagnose
from prime_train.trainers.prime_rl.profile.recommendations import Recommendation, recommend
from prime_train.trainers.prime_rl.profile.rows import LoggedRows, read
from prime_train.trainers.prime_rl.profile.times import Times, settled, times
from prime_train.trainers.prime_rl.profile.trainer_steps import WARM_UP

STEPS_MIN = 5


@dataclass(frozen=True)
class Profile:
    """Result of profiling a run. `times` is None if no step could be measured. `unread` counts lines that are
    not JSON objects. `prompt_tokens`: the tokens of the longest prompt in the file; None if it is not
    reported.
    """

    times: Times | None
    diagnosis: ProfileSummary
    advice: tuple[Recommendation, ...]
    unread: int
    prompt_tokens: int | None = None


def profile(lines: Iterable[str], *, steps: int = STEPS) -> Profile:
    """Return the profile of the last `steps` steps, not counting the first ones of each launch."""
    rows = read(lines)
    window = settled(rows)[-steps:]
    measured = times(rows, window) if window else None
    if measured is None or measured.mean_s <= 0 or measured.steps < STEPS_MIN:
        return Profile(measured, _unknown(rows, measured), (), rows.unread, rows.prompt_tokens)
    half = len(window) // 2
    diagnosis = diagnose(measured, times(rows, window[:half]), times(rows, window[half:]))
    return Profile(
        measured, diagnosis, recommend(measured, diagnosis.bottleneck), rows.unread, rows.prompt_tokens
    )


def _unknown(rows: LoggedRows, measured: Times | None) -> ProfileSummary:
    return ProfileSummary(
        Bottleneck.UNKNOWN,
        Bound.UNKNOWN,
        Certainty.UNKNOWN,
        Critical.UNKNOWN,
        doubts=tuple(_why_unknown(rows, measured)),
    )


def _why_unknown(rows: LoggedRows, measured: Times | None) -> Iterable[str]:
    if rows.lacking and not rows.trained:
        yield f"the trainer's metrics do not contain {' and '.join(rows.lacking)}"
    elif measured is not None and measured.steps >= STEPS_MIN:
        yield "every step took 0 s"
    else:
        left_out = len(rows.trained) - (measured.steps if measured is not None else 0)
        steps = measured.steps if measured is not None else 0
        warm = (
            f" ({left_out} left out: the first {WARM_UP} of a launch are not representative)"
            if left_out
            else ""
        )
        yield f"{steps} steps are too few{warm}; at least {STEPS_MIN} are needed"
