"""Metrics from outside the trainer: the orchestrator's batches, and the load of engines and dispatcher every
few seconds.

For a batch, `time/step` is the time since the previous batch, and `time/wait_for_policy` is how long the
finished batch was held back because the engines had not received the trainer's weights yet. The other figures
are means over the batch's rollouts.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from prime_train.trainers.prime_rl.profile.metric_keys import (
    DROPPED,
    ERRORS,
    HELD_BACK,
    LOADS,
    REWARD,
    ROLLOUTS,
    TIMING,
    TURNS,
    amount,
    number,
)


@dataclass(frozen=True)
class Shipped:
    """The figures of one batch of rollouts; a figure is None if it is not reported. Seconds of rollouts are
    means over the batch, except `longest_s`.
    """

    step: int
    cycle_s: float
    held_back_s: float | None
    rollouts: float | None
    dropped: float | None
    """Rollouts discarded because their weights were too old."""
    failed_share: float | None
    total_s: float | None
    longest_s: float | None
    model_s: float | None
    tools_s: float | None
    """Everything outside the model: set-up, the environment's own steps and scoring."""
    agents: int
    """Number of agents in a rollout; 0 if it is not reported."""


@dataclass(frozen=True)
class Load:
    """A sample of the load of engines and dispatcher; `figures` is keyed by the names of `LOADS`."""

    at_s: float | None
    figures: Mapping[str, float]


def is_orchestrators(figures: Mapping[str, object]) -> bool:
    """Return whether a row describes a batch, judged by keys that only the orchestrator writes."""
    if any(key in figures for key in (*HELD_BACK, "time/pack", *ROLLOUTS)):
        return True
    return "time/step" in figures and (REWARD in figures or any(map(TIMING.fullmatch, figures)))


def batch_of(step: int, figures: Mapping[str, object]) -> Shipped | None:
    """Return the batch of a row; None if the row lacks the duration of the batch."""
    cycle_s = amount(figures, "time/step")
    if cycle_s is None:
        return None
    agents = _timing(figures)
    # Use the figures of the agent that takes longest.
    timing = max(agents.values(), key=lambda timing: timing.get("total/mean", 0.0), default={})
    model_s, tools_s = _divided(timing, amount(figures, *TURNS))
    errors = [
        found
        for key, value in figures.items()
        if ERRORS.fullmatch(key) and (found := number(value)) is not None
    ]
    return Shipped(
        step=step,
        cycle_s=cycle_s,
        held_back_s=amount(figures, *HELD_BACK),
        rollouts=amount(figures, *ROLLOUTS),
        dropped=amount(figures, DROPPED),
        failed_share=max(errors, default=None),
        total_s=timing.get("total/mean"),
        longest_s=timing.get("total/max"),
        model_s=model_s,
        tools_s=tools_s,
        agents=len(agents),
    )


def load_of(figures: Mapping[str, object]) -> Load | None:
    """Return the load sample in a row; None if the row has none of its figures."""
    found = {name: amount(figures, *keys) for name, keys in LOADS.items()}
    known = {name: value for name, value in found.items() if value is not None}
    return Load(number(figures.get("time")), known) if known else None


def _timing(figures: Mapping[str, object]) -> Mapping[str, Mapping[str, float]]:
    """Return the seconds of a rollout by agent and part."""
    agents: dict[str, dict[str, float]] = {}
    for key in figures:
        found = TIMING.fullmatch(key)
        value = amount(figures, key) if found else None
        if found and value is not None:
            agents.setdefault(found["agent"] or "", {})[f"{found['part']}/{found['stat']}"] = value
    return agents


def _divided(timing: Mapping[str, float], turns: float | None) -> tuple[float | None, float | None]:
    """Return the seconds spent in the model and outside it, or (None, None) if they cannot be separated.

    Older versions report `generation`, which for agents with several turns includes their use of tools.
    """
    if "agent/model/mean" in timing and "total/mean" in timing:
        model_s = timing["agent/model/mean"]
        return model_s, max(0.0, timing["total/mean"] - model_s)
    if "generation/mean" in timing and turns is not None and turns <= 1:
        return timing["generation/mean"], timing.get("scoring/mean", 0.0)
    return None, None
