"""Reading of prime-rl's metrics file, separated by the component that wrote each row.

Trainer and orchestrator append to the same file, and both write `time/step` and `time/save_ckpt` for the same
step. Merging rows by step would confuse their seconds. So each row is first assigned to its writer by the
keys that only this writer uses.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from prime_train.trainers.prime_rl.profile.metric_keys import (
    NEEDED,
    PROMPTS,
    amount,
    figures_of,
    key_of,
    number,
    step_of,
)
from prime_train.trainers.prime_rl.profile.orchestrator import (
    Load,
    Shipped,
    batch_of,
    is_orchestrators,
    load_of,
)
from prime_train.trainers.prime_rl.profile.trainer_steps import StepRow, Trained, in_turn


@dataclass(frozen=True)
class LoggedRows:
    """The contents of the metrics file, each part in the order of steps or time; of a step that was made
    twice, only the last.
    """

    trained: tuple[Trained, ...] = ()
    shipped: tuple[Shipped, ...] = ()
    loads: tuple[Load, ...] = ()
    lacking: tuple[str, ...] = ()
    """Required keys that are missing or not numeric in rows of the trainer."""
    prompt_tokens: int | None = None
    """Tokens of the longest prompt; None if it is not reported."""
    unread: int = 0
    """Lines that are not JSON objects."""


def read(lines: Iterable[str]) -> LoggedRows:
    """Parse the lines of a metrics file. No line causes an exception."""
    rows, unread = list[Mapping[str, object]](), 0
    for line in lines:
        figures = figures_of(line)
        if figures is not None:
            rows.append(figures)
        elif line.strip():
            unread += 1
    loads = tuple(load for row in rows if (load := load_of(row)) is not None)
    trained, lacking = _trained(rows)
    prompts = [tokens for row in rows if (tokens := amount(row, PROMPTS)) is not None]
    longest = round(max(prompts)) if prompts else None
    return LoggedRows(trained, _shipped(rows), loads, lacking, longest, unread)


def _trained(rows: Iterable[Mapping[str, object]]) -> tuple[tuple[Trained, ...], tuple[str, ...]]:
    """Return the trainer's steps, and the required keys that at least one of its rows lacks."""
    needed, mfu = [key_of(part) for part in NEEDED], dict[int, float]()
    steps: list[StepRow] = []
    for figures in rows:
        step, used = step_of(figures), number(figures.get("perf/mfu"))
        if step is not None and used is not None:
            mfu[step] = used
        if step is not None and _is_trainers(figures):
            steps.append(StepRow(step, figures))
    complete = [row for row in steps if all(amount(row.figures, key) is not None for key in needed)]
    lacking = [key for key in needed if not steps or any(amount(row.figures, key) is None for row in steps)]
    return in_turn(complete, mfu), tuple(lacking)


def _is_trainers(figures: Mapping[str, object]) -> bool:
    return any(key_of(part) in figures for part in NEEDED)


def _shipped(rows: Iterable[Mapping[str, object]]) -> tuple[Shipped, ...]:
    found: dict[int, Shipped] = {}
    for figures in rows:
        step = step_of(figures)
        batch = (
            batch_of(step, figures)
            if step is not None and not _is_trainers(figures) and is_orchestrators(figures)
            else None
        )
        if batch is not None:
            found[batch.step] = batch
    return tuple(found[step] for step in sorted(found))
