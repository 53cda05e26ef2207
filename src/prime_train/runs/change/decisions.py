"""The change for each decision, and the time of the run's next check."""

from dataclasses import replace

from prime_train.runs import decide as d
from prime_train.runs.change.deletions import see_deletions
from prime_train.runs.change.fences import finish, recover
from prime_train.runs.change.launches import adopted, no_offer
from prime_train.runs.change.machines import settle, terminate
from prime_train.runs.change.progress import (
    all_clear,
    drain,
    note,
    put_agent,
    request_evidence,
    see_after,
    see_heartbeat,
    see_step,
    see_upload,
)
from prime_train.runs.run import CHECK_S_MAX, Change, Lease, Run
from prime_train.runs.verdict import current_step_limit_s, step_rose_s


def change(run: Run, lease: Lease, decision: d.Decision, now_s: int) -> Change:
    """Return the change for `decision`. Launch, ChooseResume and CleanUp need more facts: see `launch`,
    `resume_chosen`, `cleaned_up`.
    """
    match decision:
        case d.Wait():
            until_s = next_check_s(run, lease, decision, now_s)
            return Change(replace(run, next_check_s=until_s, version=run.version + 1))
        case d.Adopt(pod_id, usd_per_hour, created_s):
            return adopted(run, pod_id, now_s, usd_per_hour=usd_per_hour, created_s=created_s)
        case d.PutAgent():
            return put_agent(run, now_s)
        case d.SeeHeartbeat():
            return see_heartbeat(run, lease, now_s)
        case d.SeeStep(step):
            return see_step(run, lease, step, now_s)
        case d.SeeUpload(step):
            return see_upload(run, step, now_s)
        case d.SeeDeletions(deleted):
            return see_deletions(run, deleted, now_s)
        case d.SeeAfter(step):
            return see_after(run, lease, step, now_s)
        case d.Hold(kind, title, why):
            return no_offer(run, why, now_s, kind=kind, title=title)
        case d.Notify():
            return note(run, decision, now_s)
        case d.AllClear(kinds):
            return all_clear(run, lease, kinds, now_s)
        case d.RequestEvidence():
            return request_evidence(run, lease, decision, now_s)
        case d.Drain():
            return drain(run, lease, decision, now_s)
        case d.Recover():
            return recover(run, lease, decision, now_s)
        case d.Finish():
            return finish(run, lease, decision, now_s)
        case d.Terminate(pods):
            return terminate(run, pods, now_s)
        case d.Settle():
            return settle(run, decision, now_s)
        case d.Launch() | d.ChooseResume() | d.CleanUp():
            raise ValueError(
                f"{type(decision).__name__} needs external facts: use launch(), resume_chosen() or "
                "cleaned_up()"
            )


def next_check_s(run: Run, lease: Lease, decision: d.Wait, now_s: int) -> int | None:
    """Return the second of the next check: the decision's own, or for a healthy attempt the next moment that
    can change anything; at the latest `CHECK_S_MAX` from now.
    """
    wanted_s = _wanted_check_s(run, lease, decision, now_s)
    return min(wanted_s, now_s + CHECK_S_MAX) if wanted_s is not None else None


def _wanted_check_s(run: Run, lease: Lease, decision: d.Wait, now_s: int) -> int | None:
    if run.is_over:
        return decision.until_s
    if decision.until_s is not None:
        money_s = d.budget_moment_s(run, now_s)
        return decision.until_s if money_s is None else min(decision.until_s, money_s)
    heartbeat = lease.heartbeat
    rose_s = step_rose_s(lease)
    deadline_s = None
    attempt = run.current_attempt
    if heartbeat is not None and rose_s is not None and attempt is not None and heartbeat.step > 0:
        deadline_s = rose_s + current_step_limit_s(run, attempt, heartbeat) + 1
    return d.healthy_until_s(run, lease.heartbeat_s, deadline_s, now_s)
