"""What a run may still use: dollars, hours of training, and the time until its deadline.

Dollars always count, from the create call to the provider's own word that the machine is gone. Hours are those of training: in each
attempt from its first step to its last sign of life; set-up, verification and restore have limits of their own. The deadline is a moment:
what there is by then is saved, and the machine given back.
"""

from collections.abc import Iterator
from enum import StrEnum

from prime_train.core import ledger
from prime_train.core.causes import Cause
from prime_train.core.run import Run
from prime_train.core.text.deadline import parse_deadline
from prime_train.core.text.formatting import usd

RESERVED_SHARE = 0.05
"""Of the dollars, at most so much is kept back for the flush; with no more than that left, no machine is rented."""


class Limit(StrEnum):
    USD = "usd"
    HOURS = "hours"
    DEADLINE = "deadline"


CAUSES = {Limit.USD: Cause.BUDGET_SPENT, Limit.HOURS: Cause.HOURS_SPENT, Limit.DEADLINE: Cause.DEADLINE}
"""What a run ends by that has reached a limit."""
LIMITS = {cause: limit for limit, cause in CAUSES.items()}


class Exhausted(Exception):
    """The run cannot go on within its budget; `limits` are those that are used up."""

    def __init__(self, run: Run, limits: tuple[Limit, ...]) -> None:
        super().__init__("; ".join(said(run, limit) for limit in limits))
        self.limits = limits


def training_s(run: Run, now_s: int) -> int:
    """Seconds of training so far, over all attempts: what the ledger calls useful and recomputed."""
    total = ledger.totals(run, now_s)
    return total.useful_s + total.recomputed_s


def deadline_s(run: Run) -> int | None:
    deadline = run.spec.budget.deadline
    return parse_deadline(deadline) if deadline is not None else None


def flush_from_s(run: Run) -> int | None:
    """When to begin to save, so that it is done by the deadline: the order takes a heartbeat to arrive."""
    end_s, health = deadline_s(run), run.spec.health
    return None if end_s is None else end_s - health.drain_s - health.heartbeat_s


def used_up(run: Run, now_s: int) -> tuple[Limit, ...]:
    """The limits that let no further machine be rented."""
    return tuple(_used_up(run, now_s))


def _used_up(run: Run, now_s: int) -> Iterator[Limit]:
    budget, flush_s = run.spec.budget, flush_from_s(run)
    if ledger.spent(run, now_s).usd >= budget.usd * (1 - RESERVED_SHARE):
        yield Limit.USD
    if budget.hours is not None and training_s(run, now_s) >= budget.hours * 3600:
        yield Limit.HOURS
    if flush_s is not None and now_s >= flush_s:
        yield Limit.DEADLINE


def shares(run: Run, now_s: int) -> dict[Limit, float]:
    """How much of each limit is used, 1.0 for all of it."""
    budget, end_s = run.spec.budget, deadline_s(run)
    used = {Limit.USD: ledger.spent(run, now_s).usd / budget.usd}
    if budget.hours is not None:
        used[Limit.HOURS] = training_s(run, now_s) / 3600 / budget.hours
    if end_s is not None:
        used[Limit.DEADLINE] = (now_s - run.created_s) / max(1, end_s - run.created_s)
    return used


def said(run: Run, limit: Limit) -> str:
    """That the limit is reached; without figures that would be others a moment later."""
    budget = run.spec.budget
    match limit:
        case Limit.USD:
            return f"the budget of {usd(budget.usd)} is spent"
        case Limit.HOURS:
            return f"the budget's {hours_said(budget.hours or 0.0)} of training are used up"
        case Limit.DEADLINE:
            return f"the deadline ({budget.deadline}) is reached"


def hours_said(hours: float) -> str:
    return f"{hours:g} hour{'' if hours == 1 else 's'}"


def least(run: Run, limit: Limit, now_s: int) -> float:
    """What the limit must be more than for the run to go on: dollars, hours, or a second since 1970."""
    match limit:
        case Limit.USD:
            return ledger.spent(run, now_s).usd / (1 - RESERVED_SHARE)
        case Limit.HOURS:
            return training_s(run, now_s) / 3600
        case Limit.DEADLINE:
            return now_s + run.spec.health.drain_s + run.spec.health.heartbeat_s
