"""How soon to look again."""

from prime_train.core.decide.money import budget_moment_s
from prime_train.core.decide.orphans import unsettled
from prime_train.core.run import Run

CHECK_S = 15
BACKOFF_FIRST_S = 15
BACKOFF_S_MAX = 600


def check_s(run: Run) -> int:
    """How soon to look again where something is expected that no heartbeat will tell of."""
    return min(CHECK_S, run.spec.health.heartbeat_s)


def back_off_until_s(run: Run, not_before_s: int, now_s: int) -> int:
    """When to look again while backing off: pods that are not known to be gone do not wait."""
    return min(not_before_s, now_s + check_s(run)) if unsettled(run) else not_before_s


def backoff_s(failures: int) -> int:
    """Seconds to wait after this many infrastructure failures in a row: 15 s doubling up to 10 min."""
    return min(BACKOFF_S_MAX, BACKOFF_FIRST_S << min(10, max(0, failures - 1)))


def healthy_until_s(run: Run, heartbeat_s: int | None, deadline_s: int | None, now_s: int) -> int:
    """The next second that matters for a healthy attempt: a missed heartbeat, the step deadline or money. `heartbeat_s`: the last
    heartbeat's arrival."""
    health = run.spec.health
    heard_s = heartbeat_s if heartbeat_s is not None else now_s
    missed_s = heard_s + health.heartbeat_s + max(1, health.heartbeat_s // 4) + 1
    if missed_s <= now_s:  # seen already: not each second from now on, but whenever the provider may know more, and when it is overdue
        missed_s = min(now_s + check_s(run), max(now_s + 1, heard_s + health.overdue_s + 1))
    # A deadline that has passed and was not found to be missed waits for the next heartbeat, and so does the next look.
    moments = [missed_s, *(m for m in (deadline_s, budget_moment_s(run, now_s)) if m is not None and m > now_s)]
    return max(now_s + 1, min(moments))
