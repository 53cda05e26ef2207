"""What money and the user ask for, in a state that has an attempt."""

from prime_train.core import ledger
from prime_train.core.causes import Cause
from prime_train.core.decide.uploading import given_up, upload_left_usd
from prime_train.core.decision import AllClear, Decision, Drain, Finish, Note, Recover
from prime_train.core.funds import RESERVE_S, WARN_S, Funds
from prime_train.core.run import DrainReason, Run, RunState, Severity, Want
from prime_train.core.verdict import Finished, Healthy, Verdict

WARN_SHARE = 0.8
DRAIN_SHARE_MAX = 0.05


def wished(run: Run, verdict: Verdict, funds: Funds | None, now_s: int) -> Decision | None:
    """What money and the user ask for, in a state that has an attempt."""
    if isinstance(verdict, Finished):
        return None
    if run.want is Want.CANCEL:
        return Finish(RunState.CANCELLED, None, "cancelled by the user")
    if run.state is RunState.UPLOADING and (ended := given_up(run, now_s)) is not None:
        return ended
    spent = ledger.spent(run, now_s)
    budget = run.spec.budget
    if spent.usd >= budget.usd:
        return Finish(RunState.STOPPED, Cause.BUDGET_SPENT, f"the budget is spent: ${spent.usd:.2f} of ${budget.usd:.2f}")
    reason = _drain_reason(run, verdict, funds, now_s)
    if reason is not None and run.state is not RunState.DRAINING:
        if run.state in (RunState.STARTING, RunState.TRAINING, RunState.UPLOADING):
            return Drain(*reason)
        if reason[0] is DrainReason.FUNDS:
            return Recover(Cause.NO_FUNDS, reason[1])
        if reason[0] is not DrainReason.PREEMPTION:
            return Finish(RunState.STOPPED, Cause.BUDGET_SPENT if reason[0] is DrainReason.BUDGET else None, reason[1])
    return _warned(run, now_s) or _warned_of_funds(run, funds)


def _drain_reason(run: Run, verdict: Verdict, funds: Funds | None, now_s: int) -> tuple[DrainReason, str] | None:
    spent, budget = ledger.spent(run, now_s), run.spec.budget
    if run.want is Want.STOP:
        return DrainReason.USER, "stopped by the user"
    if run.state is RunState.UPLOADING:  # the flush is what it does; when it has cost too much is asked before
        return _warned_away(run, verdict, funds)
    if spent.usd >= budget.usd - drain_reserve_usd(run):
        return DrainReason.BUDGET, f"the budget is nearly spent: ${spent.usd:.2f} of ${budget.usd:.2f}"
    if budget.hours is not None and spent.paid_s >= budget.hours * 3600:
        return DrainReason.BUDGET, f"the hours are used up: {spent.paid_s / 3600:.2f} of {budget.hours:.2f}"
    return _warned_away(run, verdict, funds)


def _warned_away(run: Run, verdict: Verdict, funds: Funds | None) -> tuple[DrainReason, str] | None:
    """What makes the machine go, whatever the run's own budget says."""
    if isinstance(verdict, Healthy) and verdict.preempting:
        return DrainReason.PREEMPTION, "the machine has been told that it will be taken away"
    if funds is not None and funds.left_s() < RESERVE_S + run.spec.health.drain_s:
        return DrainReason.FUNDS, f"the wallet is nearly empty: {in_wallet(funds)}"
    return None


def in_wallet(funds: Funds) -> str:
    left_s = funds.left_s()
    lasts = f", enough for {left_s / 60:.0f} min of all that is paid from it" if left_s < float("inf") else ""
    return f"${funds.balance_usd:.2f} at {funds.provider}{lasts}"


def _warned_of_funds(run: Run, funds: Funds | None) -> Decision | None:
    """Told once, and anew after it had been filled up."""
    if funds is None or run.state is RunState.DRAINING:
        return None
    told, left_s = run.noted_s("funds") is not None, funds.left_s()
    if told:
        return AllClear(("funds",)) if left_s > 2 * WARN_S else None
    text = f"{in_wallet(funds)}; add credit, or runs are told to save and leave, and wait"
    return Note("funds", Severity.WARNING, "the wallet runs dry", text) if left_s < WARN_S else None


def _warned(run: Run, now_s: int) -> Note | None:
    spent, budget = ledger.spent(run, now_s), run.spec.budget
    share = max(spent.usd / budget.usd, spent.paid_s / 3600 / budget.hours if budget.hours else 0.0)
    if share < WARN_SHARE or run.noted_s("budget") is not None:
        return None
    text = f"${spent.usd:.2f} of ${budget.usd:.2f} are spent, {spent.paid_s / 3600:.2f} paid hours"
    return Note("budget", Severity.WARNING, f"{share:.0%} of the budget is used", text)


def drain_reserve_usd(run: Run) -> float:
    """Money kept back for the flush, so that the flush ends before the budget does."""
    flush_usd = ledger.burn_usd_per_s(run) * run.spec.health.drain_s
    return min(flush_usd, run.spec.budget.usd * DRAIN_SHARE_MAX)


def budget_moment_s(run: Run, now_s: int) -> int | None:
    """When money or hours next ask for something at the present burn: the warning, the flush or the end."""
    spent, budget, burn = ledger.spent(run, now_s), run.spec.budget, ledger.burn_usd_per_s(run)
    paid_each_s = sum(1 for a in run.attempts if a.ended_s is None) + len(ledger.unowned(run))
    marks = [budget.usd, budget.usd - drain_reserve_usd(run)] + ([] if run.noted_s("budget") is not None else [budget.usd * WARN_SHARE])
    moments = [(mark - spent.usd) / burn for mark in marks if burn > 0 and mark > spent.usd]
    if budget.hours is not None and paid_each_s:
        moments += [(budget.hours * 3600 * share - spent.paid_s) / paid_each_s for share in (WARN_SHARE, 1.0)]
    upload_usd = upload_left_usd(run, now_s)
    if upload_usd is not None and burn > 0:
        moments.append(upload_usd / burn)
    ahead = [m for m in moments if m > 0]
    return now_s + int(min(ahead)) + 1 if ahead else None
