"""Steps of the trainer, out of its rows: once a step it waits for a batch, loads it, computes, sends the weights, saves.

Some versions leave the last two out of their `time/step`, so a step is as long as the clock says from one row to the next.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from prime_train.trainers.prime_rl.profile.metric_keys import TOLD, Part, amount, key_of, number

WARM_UP = 2
"""The first steps of a launch: the first waits for the first batch of all, and kernels are compiled."""

PAUSE_S = 30.0
PAUSE_FACTOR = 1.5
"""A gap between two rows that is so much longer than what they account for is a launch in between."""


@dataclass(frozen=True)
class Trained:
    """One step. `settled`: not among the first ones after a launch. `at_s`: by its clock, when the step had ended."""

    step: int
    length_s: float
    parts: Mapping[Part, float]
    """Seconds, only of what was told, and the rest."""
    settled: bool
    at_s: float | None
    mfu_pct: float | None


@dataclass
class Row:
    """One of the trainer, with all that is needed of it."""

    step: int
    figures: Mapping[str, object]
    settled: bool = False
    length_s: float = 0.0
    parts: dict[Part, float] = field(default_factory=dict)


def in_turn(rows: Iterable[Row], mfu: Mapping[int, float]) -> tuple[Trained, ...]:
    """Steps in order. One that comes again replaces itself and all after it: an earlier launch had made them."""
    kept: list[Row] = []
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
        Trained(row.step, row.length_s, row.parts, row.settled, number(row.figures.get("time")), mfu.get(row.step)) for row in kept
    )


def _measure(row: Row, before: Row | None) -> bool:
    """Fills in the row's seconds. True if it is the next step of the same launch as `before`."""
    parts = {part: amount(row.figures, key_of(part)) for part in TOLD}
    row.parts = {part: value for part, value in parts.items() if value is not None}
    accounted_s = max(sum(row.parts.values()), amount(row.figures, "time/step") or 0.0)
    gap_s = _gap_s(before, row)
    follows = before is not None and row.step == before.step + 1 and (gap_s is None or gap_s <= accounted_s * PAUSE_FACTOR + PAUSE_S)
    row.length_s = max(accounted_s, gap_s) if follows and gap_s is not None else accounted_s
    row.parts[Part.OTHER] = max(0.0, row.length_s - sum(row.parts.values()))
    return follows


def _gap_s(before: Row | None, row: Row) -> float | None:
    if before is None:
        return None
    earlier, later = number(before.figures.get("time")), number(row.figures.get("time"))
    return later - earlier if earlier is not None and later is not None else None
