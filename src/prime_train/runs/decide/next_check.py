"""Computes the time of the next check."""

from itertools import takewhile

from prime_train.runs.decide.money import budget_moment_s
from prime_train.runs.decide.orphans import unsettled
from prime_train.runs.run import Run
from prime_train.spec.causes import Cause

CHECK_S = 15
"""Longest time in seconds between two checks while a change is expected that no heartbeat will report."""
BACKOFF_FIRST_S = 15
"""Seconds to wait after the first infrastructure failure; each further failure in a row doubles them."""
QUICK_RETRY_S = 5
"""Seconds to wait before another offer is requested after one that was sold out in the meantime."""
QUICK_TRIES_MAX = 6
"""Number of sold-out offers in a row up to which another one is requested so soon."""
BACKOFF_S_MAX = 600
"""Longest wait in seconds after consecutive infrastructure failures."""
OUTAGE_BACKOFF_S_MAX = 1800
"""Longest wait in seconds while a service outside, such as a hub of models, does not answer the trainer."""


def check_s(run: Run) -> int:
    """Return the seconds until the next check in a state in which a change is expected that no heartbeat will
    report.
    """
    return min(CHECK_S, run.spec.health.heartbeat_s)


def back_off_until_s(run: Run, not_before_s: int, now_s: int) -> int:
    """Return the second of the next check while backing off; earlier if pods are not yet confirmed gone."""
    return min(not_before_s, now_s + check_s(run)) if unsettled(run) else not_before_s


def backoff_s(failures: int, longest_s: int = BACKOFF_S_MAX) -> int:
    """Return the seconds to wait after this many consecutive infrastructure failures: 15 s, doubling up to
    `longest_s`.
    """
    return min(longest_s, BACKOFF_FIRST_S << min(10, max(0, failures - 1)))


def refusals_in_a_row(run: Run) -> int:
    """Return the number of the run's last attempts that ended because their machine was no longer for
    rent.
    """
    return sum(
        1 for _ in takewhile(lambda attempt: attempt.cause is Cause.NO_CAPACITY, reversed(run.attempts))
    )


def healthy_until_s(run: Run, heartbeat_s: int | None, deadline_s: int | None, now_s: int) -> int:
    """Return the next second that matters for a healthy attempt: a missed heartbeat, the step deadline or
    money. `heartbeat_s`: when the last heartbeat arrived; `deadline_s`: the step deadline, None if there is
    none yet.
    """
    health = run.spec.health
    received_s = heartbeat_s if heartbeat_s is not None else now_s
    missed_s = received_s + health.heartbeat_s + max(1, health.heartbeat_s // 4) + 1
    if missed_s <= now_s:  # already missed: check when the provider may report more, and when it is overdue
        missed_s = min(now_s + check_s(run), max(now_s + 1, received_s + health.overdue_s + 1))
    # A deadline that has passed without being judged as missed is checked again with the next heartbeat.
    moments = [
        missed_s,
        *(m for m in (deadline_s, budget_moment_s(run, now_s)) if m is not None and m > now_s),
    ]
    return max(now_s + 1, min(moments))
