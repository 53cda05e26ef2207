"""Computes what is left of a run's limits: dollars, hours of training, and the time until its deadline.

Dollars always count, from the create call until the provider confirms that the machine is gone. So that they
are not exceeded, a part of them is reserved: for the last save and its upload, and for the time until the
machine is given back. Hours are hours of training: in each attempt from its first step to its last sign of
life; set-up, verification and restore have limits of their own. The deadline is a moment: by then progress is
saved, and the machine given back.
"""

from collections.abc import Iterator
from enum import StrEnum

from prime_train.runs import ledger
from prime_train.runs.run import Run
from prime_train.spec.causes import Cause
from prime_train.text.deadline import parse_deadline
from prime_train.text.formatting import usd

SAVE_SHARE = 0.05
"""The largest share of the dollars that is reserved for the last save and its upload."""
GIVE_BACK_S = 90
"""Seconds reserved for giving the machine back: until a watcher that looks every minute sees that it is time,
and the provider has ended the machine.
"""
GIVE_BACK_SHARE = 0.02
"""The largest share of the dollars that is reserved for that."""
RESERVED_SHARE = SAVE_SHARE + GIVE_BACK_SHARE
"""With no larger share of the dollars left, no machine is rented."""


class Limit(StrEnum):
    USD = "usd"
    HOURS = "hours"
    DEADLINE = "deadline"


CAUSES = {Limit.USD: Cause.BUDGET_SPENT, Limit.HOURS: Cause.HOURS_SPENT, Limit.DEADLINE: Cause.DEADLINE}
"""The cause with which a run ends when it reaches a limit, by limit."""
LIMITS = {cause: limit for limit, cause in CAUSES.items()}


class Exhausted(Exception):
    """The run cannot continue within its budget; `limits` are those that are used up."""

    def __init__(self, run: Run, limits: tuple[Limit, ...]) -> None:
        super().__init__("; ".join(limit_reason(run, limit) for limit in limits))
        self.limits = limits


def training_s(run: Run, now_s: int) -> int:
    """Return the seconds of training so far, over all attempts: useful and recomputed in the ledger."""
    total = ledger.totals(run, now_s)
    return total.useful_s + total.recomputed_s


def deadline_s(run: Run) -> int | None:
    deadline = run.spec.budget.deadline
    return parse_deadline(deadline) if deadline is not None else None


def flush_from_s(run: Run) -> int | None:
    """Return the second at which saving must begin to be done by the deadline, including one heartbeat
    interval until the order arrives; None if there is no deadline.
    """
    end_s, health = deadline_s(run), run.spec.health
    return None if end_s is None else end_s - health.drain_s - health.heartbeat_s


def end_usd(run: Run) -> float:
    """Return the dollars at which the run's machine is given back, so that the budget is not exceeded until
    it is gone.
    """
    return run.spec.budget.usd - min(
        ledger.burn_usd_per_s(run) * GIVE_BACK_S, run.spec.budget.usd * GIVE_BACK_SHARE
    )


def save_usd(run: Run) -> float:
    """Return the dollars at which the last save begins, so that it is uploaded before the machine is given
    back.
    """
    health = run.spec.health
    flush_usd = ledger.burn_usd_per_s(run) * (health.drain_s + health.heartbeat_s)
    return end_usd(run) - min(flush_usd, run.spec.budget.usd * SAVE_SHARE)


def agent_limits_s(run: Run, now_s: int) -> tuple[int | None, int | None]:
    """Return the seconds until the agent saves and exits by itself, and those until it has ended, because the
    run's dollars are spent; None for a machine that costs nothing.

    The control plane orders this half a reserve earlier, by figures that are newer. The agent's own limits
    are for a control plane that is away.
    """
    return _seconds_until(run, (save_usd(run) + end_usd(run)) / 2, now_s), _seconds_until(
        run, end_usd(run), now_s
    )


def _seconds_until(run: Run, dollars: float, now_s: int) -> int | None:
    """Return the seconds until the run has cost these dollars at the price of its newest machine; None if
    that costs nothing. Others are on their way back: what a lost create call has left is paid for a while,
    and does not shorten the whole attempt.
    """
    burn, own = ledger.burn_usd_per_s(run), 0.0
    if run.current_attempt is not None and run.current_attempt.ended_s is None:
        own = ledger.attempt_usd_per_s(run, run.current_attempt)
    if burn <= 0:
        return None
    left_usd = dollars - ledger.spent(run, now_s).usd
    after_usd = left_usd - burn * GIVE_BACK_S
    seconds = left_usd / burn if after_usd <= 0 or own <= 0 else GIVE_BACK_S + after_usd / own
    return max(1, int(seconds))


def used_up(run: Run, now_s: int) -> tuple[Limit, ...]:
    """Return the limits that prevent the rental of another machine."""
    return tuple(_used_up(run, now_s))


def _used_up(run: Run, now_s: int) -> Iterator[Limit]:
    budget, flush_s = run.spec.budget, flush_from_s(run)
    if ledger.spent(run, now_s).usd >= budget.usd * (1 - RESERVED_SHARE):
        yield Limit.USD
    if (
        budget.hours is not None
        and run.trained_step is None
        and training_s(run, now_s) >= budget.hours * 3600
    ):
        yield Limit.HOURS
    if flush_s is not None and now_s >= flush_s:
        yield Limit.DEADLINE


def shares(run: Run, now_s: int) -> dict[Limit, float]:
    """Return the used share of each limit; 1.0 is all of it."""
    budget, end_s = run.spec.budget, deadline_s(run)
    used = {Limit.USD: ledger.spent(run, now_s).usd / budget.usd}
    if budget.hours is not None:
        used[Limit.HOURS] = training_s(run, now_s) / 3600 / budget.hours
    if end_s is not None:
        used[Limit.DEADLINE] = (now_s - run.created_s) / max(1, end_s - run.created_s)
    return used


def limit_reason(run: Run, limit: Limit) -> str:
    """Return a sentence stating that the limit is reached, without figures that would change a moment
    later.
    """
    budget = run.spec.budget
    match limit:
        case Limit.USD:
            return f"the budget of {usd(budget.usd)} is spent"
        case Limit.HOURS:
            return f"the budget's {hours_text(budget.hours or 0.0)} of training are spent"
        case Limit.DEADLINE:
            return f"the deadline ({budget.deadline}) is reached"


def hours_text(hours: float) -> str:
    return f"{hours:g} hour{'' if hours == 1 else 's'}"


def least(run: Run, limit: Limit, now_s: int) -> float:
    """Return the value that a new limit must exceed for the run to continue: dollars, hours, or a Unix time
    in seconds.
    """
    match limit:
        case Limit.USD:
            return ledger.spent(run, now_s).usd / (1 - RESERVED_SHARE)
        case Limit.HOURS:
            return training_s(run, now_s) / 3600
        case Limit.DEADLINE:
            return now_s + run.spec.health.drain_s + run.spec.health.heartbeat_s
