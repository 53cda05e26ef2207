"""Decisions about surplus pods, and about attempts that are over."""

from dataclasses import dataclass

from prime_train.buckets.keys import pod_name
from prime_train.runs.decision import Decision, Settle, Terminate
from prime_train.runs.run import Attempt, Run, RunState
from prime_train.runs.verdict import Pod, PodsObserved, PodStatus, PodsUnknown, PodsView

ORPHAN_RETRY_S = 30
"""Seconds after which the termination of an orphan pod is requested again, until the provider reports it as
gone.
"""


def housekeeping(run: Run, pods: PodsView, now_s: int) -> Decision | None:
    """Return the action required by orphan pods or ended attempts, or None; it takes precedence in every
    state of the run, and does not wait until the provider of the current pod can be read, because orphans at
    others are paid for meanwhile.
    """
    if isinstance(pods, PodsUnknown):
        return housekeeping(run, pods.others, now_s) if pods.others is not None else None
    requested = {orphan.pod_id: orphan.requested_s for orphan in run.orphans}
    due = tuple(
        p
        for p in orphan_pods(run, pods)
        if requested.get(p.pod_id, -ORPHAN_RETRY_S) + ORPHAN_RETRY_S <= now_s
    )
    if due:
        return Terminate(due)
    attempts = tuple(a.number for a in run.attempts if _is_settled(run, a, pods, now_s))
    orphans = tuple(orphan.pod_id for orphan in run.orphans if orphan.pod_id in pods.gone)
    if not (attempts or orphans):
        return None
    ids = {*orphans, *(a.pod_id for a in run.attempts if a.number in attempts)}
    names = {name_of(run, a.number) for a in run.attempts if a.number in attempts and a.pod_id is None}
    return Settle(
        attempts,
        orphans,
        tuple(p for p in pods.pods if p.status is PodStatus.GONE and (p.pod_id in ids or p.name in names)),
    )


def current_attempt(run: Run) -> int | None:
    """Return the number of the attempt whose pod may run, or None if no pod may."""
    return None if run.is_over or run.state is RunState.QUEUED else run.attempt


def orphan_pods(run: Run, pods: PodsObserved) -> tuple[Pod, ...]:
    """Return the live pods of this run other than the one pod of its current attempt, including a second pod
    with the current name.
    """
    attempt = run.current_attempt
    mine = attempt.pod_id if attempt is not None and current_attempt(run) is not None else None
    return tuple(p for p in pods.living() if p.pod_id != mine and not may_be_adopted(run, p))


def may_be_adopted(run: Run, pod: Pod) -> bool:
    from_now = (
        run.state is RunState.LAUNCHING
        and run.current_attempt is not None
        and run.current_attempt.pod_id is None
    )
    return from_now and pod.name == name_of(run, run.attempt)


def _is_settled(run: Run, attempt: Attempt, pods: PodsObserved, now_s: int) -> bool:
    """Return whether a past attempt is settled: the provider reports its pod as gone, or its launch had no
    pod for long enough.
    """
    if attempt.ended_s is not None or attempt.number == current_attempt(run):
        return False
    if attempt.pod_id is not None:
        return attempt.pod_id in pods.gone
    if attempt.offer.provider in pods.unlisted:
        return False
    since_s = attempt.fenced_s if attempt.fenced_s is not None else attempt.launched_s
    return since_s + run.spec.health.settle_s <= pods.as_of_s(now_s)


@dataclass(frozen=True)
class Maker:
    """The attempt for which a control plane has rented a pod. `over_s`: since when the attempt is over, which
    no attempt ever ceases to be; None: it may still hold the pod.
    """

    attempt: int
    over_s: int | None


def maker_of(recorded: Run, pod: Pod) -> Maker | None:
    """Return the attempt for which the pod was rented, by the sealed record of its run; None if the record
    does not show that. A name without the attempt's identity may have been given twice, so that only the
    pod's id proves anything then.
    """
    mine = next(
        (one for one in recorded.attempts if pod.pod_id == one.pod_id or _is_named_for(recorded, one, pod)),
        None,
    )
    if mine is None:
        return None
    run_ended_s = recorded.ended_s if recorded.is_over else None
    over_s = next((at_s for at_s in (mine.fenced_s, mine.ended_s, run_ended_s) if at_s is not None), None)
    return Maker(mine.number, None if mine.number == current_attempt(recorded) else over_s)


def grace_s(recorded: Run) -> int:
    """Return the seconds after the end of an attempt in which its pod may still be ended, or a lost create
    call be found, by the control plane that has the run in its store.
    """
    return recorded.spec.health.settle_s


def _is_named_for(recorded: Run, attempt: Attempt, pod: Pod) -> bool:
    return bool(attempt.identity) and pod.name == name_of(recorded, attempt.number)


def unsettled(run: Run) -> bool:
    return bool(run.orphans) or any(a.ended_s is None for a in run.attempts)


def name_of(run: Run, attempt: int) -> str:
    """Return the name of the pod of that attempt."""
    return pod_name(run.run_id, attempt, next((a.identity for a in run.attempts if a.number == attempt), ""))
