"""The split of paid time and money by purpose.

Each attempt's paid seconds (from the create call until the provider confirms "gone") are split, in order,
into provision (until the agent's first heartbeat), restore (set-up, verification, restore, until the first
step), training and then the steps after it (until the last sign of life), detection (until the fence) and
teardown (until the pod was gone). Training that repeats steps which an earlier attempt had reached is
recomputed, the rest is useful. Traffic that an offer has a price for is counted as the agent reports it, and
spread over these parts like the price of the machine.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise

from prime_train.runs.offer import Offer
from prime_train.runs.record_size import ATTEMPTS_BYTES_MAX, attempt_bytes
from prime_train.runs.run import ATTEMPTS_KEPT_MAX, Attempt, Orphan, Run, Totals
from prime_train.runs.wire import Traffic

GIB = 2**30
RATE_S_MIN = 1800
"""Traffic of an attempt that is younger than this, in seconds, counts as spread over this time: a model is
downloaded once.
"""


def attempt_totals(attempt: Attempt, now_s: int) -> Totals:
    """Return the ledger of one attempt up to `now_s`, or to its end."""
    start_s = paid_from_s(attempt, now_s)
    end_s = max(start_s, attempt.ended_s if attempt.ended_s is not None else now_s)
    marks = [start_s]
    fenced_s = attempt.fenced_s if attempt.fenced_s is not None else end_s
    sign_s = (
        attempt.last_sign_s if attempt.last_sign_s is not None and attempt.fenced_s is not None else fenced_s
    )
    after_s = attempt.after_s if attempt.after_s is not None else sign_s
    first_step_s = attempt.first_step_s if attempt.first_step_s is not None else after_s
    for mark_s in (attempt.first_heartbeat_s, first_step_s, min(after_s, sign_s), sign_s, fenced_s, end_s):
        marks.append(min(end_s, max(marks[-1], mark_s if mark_s is not None else sign_s)))
    provision_s, restore_s, train_s, steps_s, detection_s, teardown_s = (b - a for a, b in pairwise(marks))
    recomputed_s = _recomputed_s(attempt, train_s)
    paid_s = end_s - start_s
    usd = attempt_usd(attempt, paid_s)
    return Totals(
        attempts=1,
        paid_s=paid_s,
        provision_s=provision_s,
        restore_s=restore_s,
        useful_s=train_s - recomputed_s,
        recomputed_s=recomputed_s,
        after_s=steps_s,
        detection_s=detection_s,
        teardown_s=teardown_s,
        usd=usd,
        usd_wasted=usd * (1 - (train_s - recomputed_s + steps_s) / paid_s) if paid_s else usd,
        traffic_usd=traffic_usd(attempt),
    )


def attempt_usd(attempt: Attempt, paid_s: int) -> float:
    """Return the attempt's cost in dollars: the provider's bill if there is one, else its price for `paid_s`
    and for its traffic.
    """
    if attempt.billed_usd is not None:
        return attempt.billed_usd
    return paid_s * (attempt.offer.usd_per_hour / 3600) + traffic_usd(attempt)


def traffic_usd(attempt: Attempt) -> float:
    """Return what the attempt's traffic has cost so far at the prices of its offer; 0 once a bill contains
    it.
    """
    return 0.0 if attempt.billed_usd is not None else _usd_of(attempt.traffic, attempt.offer)


def _usd_of(traffic: Traffic, offer: Offer) -> float:
    return (traffic.down_bytes * offer.usd_per_gib_down + traffic.up_bytes * offer.usd_per_gib_up) / GIB


def paid_from_s(attempt: Attempt, now_s: int) -> int:
    """Return the second from which the machine is paid: its creation by the provider, but not before the
    create call, nor after its first heartbeat or its end.
    """
    if attempt.created_s is None:
        return attempt.launched_s
    latest = [at_s for at_s in (attempt.first_heartbeat_s, attempt.ended_s) if at_s is not None]
    return max(attempt.launched_s, min(attempt.created_s, now_s, *latest))


def _recomputed_s(attempt: Attempt, train_s: int) -> int:
    steps = attempt.last_step - attempt.resumed_step
    again = min(attempt.last_step, attempt.best_step_before) - attempt.resumed_step
    return round(train_s * again / steps) if steps > 0 and again > 0 else 0


def add(rows: Iterable[Totals]) -> Totals:
    """Return the sum of ledgers."""
    total = Totals()
    for row in rows:
        total = Totals(
            **{name: getattr(total, name) + getattr(row, name) for name in Totals.__dataclass_fields__}
        )
    return total


def orphan_totals(orphan: Orphan, now_s: int) -> Totals:
    """Return the ledger of a pod that belongs to no attempt, such as a second one from a lost create call:
    all of it is wasted.
    """
    paid_s = max(0, now_s - orphan.created_s)
    usd = paid_s * orphan.usd_per_hour / 3600
    return Totals(paid_s=paid_s, teardown_s=paid_s, usd=usd, usd_wasted=usd)


def unowned(run: Run) -> tuple[Orphan, ...]:
    """Return the orphans that are no attempt's pod, and so are paid for in addition to the attempts."""
    if not run.orphans:
        return ()
    owned = {attempt.pod_id for attempt in run.attempts}
    return tuple(orphan for orphan in run.orphans if orphan.pod_id not in owned)


def rows(run: Run, now_s: int) -> list[Totals]:
    """Return the ledger of each attempt and of each pod without an attempt; attempts that are no longer
    listed share one ledger.
    """
    attempts = [attempt_totals(attempt, now_s) for attempt in run.attempts]
    return [run.folded, *attempts, *(orphan_totals(orphan, now_s) for orphan in unowned(run))]


def totals(run: Run, now_s: int) -> Totals:
    """Return the ledger of the entire run, including ended attempts and orphans. The useful part is only
    correct for a run that includes its newest attempt's last heartbeat: see `figures.heard`.
    """
    return add(rows(run, now_s))


@dataclass(frozen=True)
class Spent:
    """The cost of all attempts so far, and the seconds paid."""

    usd: float
    paid_s: int


def spent(run: Run, now_s: int) -> Spent:
    """Return the two figures of `totals` on which decisions are based; a shortcut, because every step needs
    them.
    """
    usd, paid_s = run.folded.usd, run.folded.paid_s
    for attempt in run.attempts:
        each_s = max(
            0, (attempt.ended_s if attempt.ended_s is not None else now_s) - paid_from_s(attempt, now_s)
        )
        usd, paid_s = usd + attempt_usd(attempt, each_s), paid_s + each_s
    for orphan in unowned(run):
        each_s = max(0, now_s - orphan.created_s)
        usd, paid_s = usd + each_s * orphan.usd_per_hour / 3600, paid_s + each_s
    return Spent(usd, paid_s)


def burn_usd_per_s(run: Run) -> float:
    """Return the dollars paid per second now, for every attempt whose pod is not proven gone and for every
    orphan.
    """
    attempts = sum(attempt_usd_per_s(run, attempt) for attempt in run.attempts if attempt.ended_s is None)
    return attempts + sum(orphan.usd_per_hour for orphan in unowned(run)) / 3600


def attempt_usd_per_s(run: Run, attempt: Attempt) -> float:
    """Return the dollars per second of an attempt: its machine, and traffic at the mean rate of the newest
    attempt that has measured it.
    """
    price, offer = attempt.offer.usd_per_hour / 3600, attempt.offer
    if not (offer.usd_per_gib_down or offer.usd_per_gib_up):
        return price
    measured = next((each.traffic for each in reversed(run.attempts) if each.traffic.seconds), None)
    return price if measured is None else price + _usd_of(measured, offer) / max(measured.seconds, RATE_S_MIN)


def fold(run: Run, bytes_max: int = ATTEMPTS_BYTES_MAX) -> Run:
    """Return the run with its oldest ended attempts merged into `folded`, so that it stays small after a
    thousand preemptions, and however long the words of each. `bytes_max`: what the attempts before the newest
    may take of the run's record.
    """
    kept_max, left = 1, bytes_max
    for attempt in reversed(run.attempts[-ATTEMPTS_KEPT_MAX:-1]):
        left -= attempt_bytes(attempt)
        if left < 0:
            break
        kept_max += 1
    old = [a for a in run.attempts[: max(0, len(run.attempts) - kept_max)] if a.ended_s is not None]
    if not old:
        return run
    kept = tuple(a for a in run.attempts if a not in old)
    return replace(
        run, attempts=kept, folded=add([run.folded, *(attempt_totals(a, a.ended_s or 0) for a in old)])
    )
