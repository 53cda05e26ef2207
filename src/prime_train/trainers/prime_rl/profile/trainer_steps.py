"""Steps of the trainer, parsed from its rows: in each step it waits for a batch, loads it, computes,
broadcasts the weights and saves.

Some versions exclude broadcast and save from their `time/step`, so the length of a step is the clock time
from one row to the next.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prime_train.trainers.prime_rl.profile.metric_keys import REPORTED, StepPart, amount, key_of, number

WARM_UP = 2
"""Number of first steps of a launch that are slower: they include the wait for the very first batch and the
compilation of kernels.
"""

PAUSE_S = 30.0
PAUSE_FACTOR = 1.5
"""Factor for detecting a launch between two rows: one is assumed if the gap exceeds the time that the rows
account for, times `PAUSE_FACTOR`, plus `PAUSE_S`.
"""


@dataclass(frozen=True)
class Trained:
    """The times of one training step. `settled` is False for the first steps after a launch. `at_s` is the
    time of its end by the trainer's clock.
    """

    step: int
    length_s: float
    parts: Mapping[StepPart, float]
    """Seconds by reported part, and the remainder."""
    settled: bool
    at_s: float | None
    mfu_pct: float | None


@dataclass
class StepRow:
    """A row of the trainer's metrics, with the figures that are computed from it."""

    step: int
    figures: Mapping[str, object]
    settled: bool = False
    length_s: float = 0.0
    parts: dict[StepPart, float] = field(default_factory=dict)


def in_turn(rows: Iterable[StepRow], mfu: Mapping[int, float]) -> tuple[Trained, ...]:
    """Return the steps in order. A repeated step replaces itself and all later ones, which an earlier launch
    had made.
    """
    kept: list[StepRow] = []
    since_launch = 0
    for row in rows:
        again = bool(kept) and row.step <= kept[-1].step
        before = kept[-1] if kept and not again else None
        while kept and kept[-1].step >= row.step:
            kept.pop()
        since_launch = since_launch + 1 if _measure(row, before) else 1
        row.settled = since_launch > WARM_UP
        kept.append(row)
    return tuple(
        Trained(
            row.step, row.length_s, row.parts, row.settled, number(row.figures.get("time")), mfu.get(row.step)
        )
        for row in kept
    )


def _measure(row: StepRow, before: StepRow | None) -> bool:
    """Fill in the row's seconds. Return True if the row is the next step of the same launch as `before`."""
    parts = {part: amount(row.figures, key_of(part)) for part in REPORTED}
    row.parts = {part: value for part, value in parts.items() if value is not None}
    accounted_s = max(sum(row.parts.values()), amount(row.figures, "time/step") or 0.0)
    gap_s = _gap_s(before, row)
    follows = (
        before is not None
        and row.step == before.step + 1
        and (gap_s is None or gap_s <= accounted_s * PAUSE_FACTOR + PAUSE_S)
    )
    row.length_s = max(accounted_s, gap_s) if follows and gap_s is not None else accounted_s
    row.parts[StepPart.OTHER] = max(0.0, row.length_s - sum(row.parts.values()))
    return follows


def _gap_s(before: StepRow | None, row: StepRow) -> float | None:
    if before is None:
        return None
    earlier, later = number(before.figures.get("time")), number(row.figures.get("time"))
    return later - earlier if earlier is not None and later is not None else None
