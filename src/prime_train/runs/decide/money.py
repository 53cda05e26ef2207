"""Decisions required by money or by the user's requests, in a state that has an attempt."""

from prime_train.runs import budget, ledger
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.budget import Limit
from prime_train.runs.decide.uploading import given_up, upload_left_usd
from prime_train.runs.decision import AllClear, Decision, Drain, Finish, Notify, Recover
from prime_train.runs.funds import RESERVE_S, WARN_S, Funds
from prime_train.runs.run import DesiredState, DrainReason, Run, RunState, Severity
from prime_train.runs.verdict import Finished, Healthy, Verdict
from prime_train.spec.causes import Cause
from prime_train.text.formatting import usd

WARN_SHARE = 0.8
"""Used share of a limit of the budget at which people are notified."""
REASONS = {
    DrainReason.BUDGET: Limit.USD,
    DrainReason.HOURS: Limit.HOURS,
    DrainReason.DEADLINE: Limit.DEADLINE,
}
_WORDS = {Limit.USD: "dollars", Limit.HOURS: "hours of training", Limit.DEADLINE: "time until the deadline"}


def required_by_money_or_user(run: Run, verdict: Verdict, funds: Funds | None, now_s: int) -> Decision | None:
    """Return the decision required by money or by the user's request, or None; for a state that has an
    attempt.
    """
    if isinstance(verdict, Finished):
        return None
    if run.desired is DesiredState.CANCEL:
        return Finish(RunState.CANCELLED, None, "cancelled by the user")
    if run.state is RunState.UPLOADING and (over := given_up(run, verdict, now_s)) is not None:
        return over
    if ledger.spent(run, now_s).usd >= budget.end_usd(run):
        return ended(run, Limit.USD)
    end_s = budget.deadline_s(run)
    if end_s is not None and now_s >= end_s:
        return ended(run, Limit.DEADLINE)
    reason = _drain_reason(run, verdict, funds, now_s)
    if reason is not None and run.state is not RunState.DRAINING:
        if run.state in (RunState.STARTING, RunState.TRAINING, RunState.UPLOADING, RunState.FINISHING):
            return Drain(*reason)
        if reason[0] is DrainReason.FUNDS:
            return Recover(Cause.NO_FUNDS, reason[1])
        if reason[0] is not DrainReason.PREEMPTION:
            return (
                ended(run, REASONS[reason[0]])
                if reason[0] in REASONS
                else Finish(RunState.STOPPED, None, reason[1])
            )
    return _warned(run, now_s) or _warned_of_funds(run, funds)


def ended(run: Run, limit: Limit) -> Finish:
    """Return the decision that ends the run because it has reached that limit."""
    return Finish(RunState.STOPPED, budget.CAUSES[limit], budget.limit_reason(run, limit))


def _drain_reason(
    run: Run, verdict: Verdict, funds: Funds | None, now_s: int
) -> tuple[DrainReason, str] | None:
    flush_s = budget.flush_from_s(run)
    if run.desired is DesiredState.STOP:
        return DrainReason.USER, "stopped by the user"
    # the run is flushing already; whether that has cost too much is checked before
    if run.state is RunState.UPLOADING:
        return _warned_away(run, verdict, funds)
    if ledger.spent(run, now_s).usd >= budget.save_usd(run):
        return DrainReason.BUDGET, f"the budget of {usd(run.spec.budget.usd)} is nearly spent"
    if (
        run.spec.budget.hours is not None
        and run.trained_step is None
        and budget.training_s(run, now_s) >= run.spec.budget.hours * 3600
    ):
        return DrainReason.HOURS, budget.limit_reason(run, Limit.HOURS)
    if flush_s is not None and now_s >= flush_s:
        return DrainReason.DEADLINE, f"the deadline ({run.spec.budget.deadline}) is near"
    return _warned_away(run, verdict, funds)


def _warned_away(run: Run, verdict: Verdict, funds: Funds | None) -> tuple[DrainReason, str] | None:
    """Return the reason to leave the machine whatever the budget is: a preemption notice or a nearly empty
    wallet; else None.
    """
    if isinstance(verdict, Healthy) and verdict.preempting:
        return DrainReason.PREEMPTION, "the machine received a notice that it will be preempted"
    if funds is not None and funds.left_s() < RESERVE_S + run.spec.health.drain_s:
        return DrainReason.FUNDS, f"the wallet is nearly empty: {in_wallet(funds)}"
    return None


def in_wallet(funds: Funds) -> str:
    left_s = funds.left_s()
    lasts = (
        f", enough for {left_s / 60:.0f} min of all machines that it pays for"
        if left_s < float("inf")
        else ""
    )
    return f"${funds.balance_usd:.2f} at {funds.provider}{lasts}"


def _warned_of_funds(run: Run, funds: Funds | None) -> Decision | None:
    """Return a notice that funds are low, given once, or the all-clear after the wallet was filled up; else
    None.
    """
    if funds is None or run.state is RunState.DRAINING:
        return None
    notified, left_s = run.noted_s(AlertKind.FUNDS) is not None, funds.left_s()
    if notified:
        return AllClear((AlertKind.FUNDS,)) if left_s > 2 * WARN_S else None
    text = f"{in_wallet(funds)}; add credit, otherwise runs save, release their machines and wait"
    return (
        Notify(AlertKind.FUNDS, Severity.WARNING, "the wallet is running empty", text)
        if left_s < WARN_S
        else None
    )


def _warned(run: Run, now_s: int) -> Notify | None:
    if run.noted_s(AlertKind.BUDGET) is not None:
        return None
    used = budget.shares(run, now_s)
    limit = max(used, key=lambda each: used[each])
    if used[limit] < WARN_SHARE:
        return None
    title = f"{WARN_SHARE:.0%} of the budget is used"
    return Notify(
        AlertKind.BUDGET,
        Severity.WARNING,
        title,
        f"the run is saved and stopped when its {_WORDS[limit]} are spent",
    )


def budget_moment_s(run: Run, now_s: int) -> int | None:
    """Return the second at which money or hours next require an action at the present spending rate: the
    warning, the flush or the end; None if there is none.
    """
    spent, limits, burn = ledger.spent(run, now_s), run.spec.budget, ledger.burn_usd_per_s(run)
    is_warned = run.noted_s(AlertKind.BUDGET) is not None
    marks = [budget.end_usd(run), budget.save_usd(run)] + ([] if is_warned else [limits.usd * WARN_SHARE])
    moments = [(mark - spent.usd) / burn for mark in marks if burn > 0 and mark > spent.usd]
    upload_usd = upload_left_usd(run, now_s)
    if upload_usd is not None and burn > 0:
        moments.append(upload_usd / burn)
    training = next(
        (a.first_step_s for a in run.attempts if a.first_step_s is not None and a.fenced_s is None), None
    )
    if limits.hours is not None and training is not None:
        from_now_s = max(0, training - now_s) - budget.training_s(run, now_s)
        moments += [limits.hours * 3600 * share + from_now_s for share in (WARN_SHARE, 1.0)]
    end_s, flush_s = budget.deadline_s(run), budget.flush_from_s(run)
    if end_s is not None and flush_s is not None:
        moments += [
            at_s - now_s for at_s in (run.created_s + (end_s - run.created_s) * WARN_SHARE, flush_s, end_s)
        ]
    ahead = [m for m in moments if m > 0]
    return now_s + int(min(ahead)) + 1 if ahead else None
