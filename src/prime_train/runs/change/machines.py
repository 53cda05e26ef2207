"""Changes about machines: termination requested, their end confirmed, and their bill."""

from dataclasses import replace

from prime_train.runs import decide as d
from prime_train.runs import ledger
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.change.parts import happened, mirrored, saved, turned
from prime_train.runs.run import Attempt, Change, Orphan, Run
from prime_train.runs.signing import CLOCK_SKEW_S_MAX
from prime_train.runs.verdict import Pod
from prime_train.text.formatting import usd as dollars


def terminate(run: Run, pods: tuple[Pod, ...], now_s: int) -> Change:
    orphans = {orphan.pod_id: orphan for orphan in run.orphans}
    attempts = run.attempts
    for pod in pods:
        old = orphans.get(pod.pod_id)
        orphans[pod.pod_id] = (
            replace(old, requested_s=now_s, times=old.times + 1)
            if old
            else Orphan(
                pod.pod_id,
                pod.name,
                requested_s=now_s,
                first_requested_s=now_s,
                created_s=_created_s(run, pod, now_s),
                usd_per_hour=pod.usd_per_hour,
            )
        )
        attempts = tuple(_retried(attempt, pod, run, now_s) for attempt in attempts)
    after = replace(run, orphans=tuple(orphans.values()), attempts=attempts, next_check_s=now_s)
    return saved(
        after,
        happened(
            run, now_s, "terminate", "asked the provider to terminate " + ", ".join(p.pod_id for p in pods)
        ),
    )


def _created_s(run: Run, pod: Pod, now_s: int) -> int:
    """Return when a surplus pod was created as the provider reports it, but not before the launch of its
    attempt and not in the future, because the provider's clock may be wrong. Return `now_s` if the provider
    reports nothing.
    """
    launched_s = next(
        (a.launched_s for a in run.attempts if pod.name == d.name_of(run, a.number)), run.created_s
    )
    return min(now_s, max(pod.created_s or now_s, launched_s))


def _retried(attempt: Attempt, pod: Pod, run: Run, now_s: int) -> Attempt:
    """Return the attempt with its termination requested if this pod is its own, including a pod that appears
    only now because the response to its create call was lost.
    """
    if attempt.pod_id is None and pod.name == d.name_of(run, attempt.number):
        return replace(_with_pod(attempt, pod), terminate_requested_s=now_s, ended_s=None)
    return (
        replace(attempt, terminate_requested_s=now_s, ended_s=None)
        if attempt.pod_id == pod.pod_id
        else attempt
    )


def settle(run: Run, decision: d.Settle, now_s: int) -> Change:
    reports = {pod.pod_id: pod for pod in decision.reports}
    attempts = tuple(
        _gone(run, a, decision.reports, now_s) if a.number in decision.attempts and a.ended_s is None else a
        for a in run.attempts
    )
    owned = {a.pod_id for a in attempts}
    paid = [
        ledger.orphan_totals(s, _ended_s(reports.get(s.pod_id), s.created_s, now_s))
        for s in ledger.unowned(run)
        if s.pod_id in decision.orphans and s.pod_id not in owned
    ]
    after = replace(
        turned(run),
        attempts=attempts,
        orphans=tuple(s for s in run.orphans if s.pod_id not in decision.orphans),
        folded=ledger.add([run.folded, *paid]),
        next_check_s=now_s,
    )
    names = [f"attempt {attempt}" for attempt in decision.attempts] or list(decision.orphans)
    line = happened(
        run, now_s, "settled", f"the provider confirms that the machine is gone ({', '.join(names)})"
    )
    return saved(after, line, alerts=mirrored(after, AlertKind.SETTLED, now_s) if run.is_over else ())


def _gone(run: Run, attempt: Attempt, reports: tuple[Pod, ...], now_s: int) -> Attempt:
    """Return the attempt as of the end of its machine, with that end recorded. A pod that was created during
    a crash, and was gone before its id was saved, is found by its name; an attempt for which no pod was
    created cost nothing.
    """
    name = d.name_of(run, attempt.number)
    pod = next(
        (p for p in reports if p.pod_id == attempt.pod_id or (attempt.pod_id is None and p.name == name)),
        None,
    )
    if attempt.pod_id is None:
        if pod is None:
            return replace(attempt, ended_s=attempt.launched_s)
        attempt = _with_pod(attempt, pod)
    return replace(attempt, ended_s=_ended_s(pod, _least_s(attempt), now_s))


def _with_pod(attempt: Attempt, pod: Pod) -> Attempt:
    """Return the attempt with its pod, creation time and final price, as far as the provider reports them."""
    offer = replace(attempt.offer, usd_per_hour=pod.usd_per_hour) if pod.usd_per_hour > 0 else attempt.offer
    return replace(attempt, pod_id=pod.pod_id, created_s=pod.created_s or None, offer=offer)


def _least_s(attempt: Attempt) -> int:
    """Return before which second the attempt's machine has not ended. Its last heartbeat may have waited for
    a control plane that stood still: it counts as received when it was read, and was sent up to
    `CLOCK_SKEW_S_MAX` before.
    """
    return max(attempt.launched_s, (attempt.last_sign_s or 0) - CLOCK_SKEW_S_MAX)


def _ended_s(pod: Pod | None, least_s: int, now_s: int) -> int:
    """Return when the pod ended as the provider reports it, but not before `least_s`, and not in the future.
    Return `now_s` if the provider reports nothing.
    """
    reported_s = pod.ended_s if pod is not None and pod.ended_s is not None else now_s
    return min(now_s, max(reported_s, least_s))


def billed(run: Run, number: int, pod: Pod, usd: float, now_s: int) -> Change:
    """Record the total cost of that attempt's pod from the provider's bill, and when the pod existed."""

    def booked(attempt: Attempt) -> Attempt:
        is_known = attempt.pod_id is not None
        known, latest_s = (
            (attempt, attempt.ended_s or now_s) if is_known else (_with_pod(attempt, pod), now_s)
        )
        return replace(known, billed_usd=usd, ended_s=_ended_s(pod, _least_s(attempt), latest_s))

    attempts = tuple(booked(a) if a.number == number else a for a in run.attempts)
    text = f"attempt {number} was billed at {dollars(usd)}"
    after = replace(run, attempts=attempts)
    return saved(after, happened(run, now_s, "billed", text), alerts=mirrored(after, AlertKind.BILLED, now_s))
