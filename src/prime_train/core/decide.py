"""The one next thing to do with a run.

Theory of operation
-------------------
`decide` is asked again and again, by watchers that may overlap, crash anywhere and see stale facts. It keeps its promises by four habits:

1. One decision a call. What was decided is saved (compare-and-set) before anything outside is touched; so a second watcher either loses
   the write or sees the new state and decides the next thing.
2. A pod of any epoch but the current one is a stray and goes first, whatever state the run is in. That one rule covers lost create
   answers, machines that outlive their fence, doubled launches and runs that have ended.
3. The fence is the lease closing, in the same write as the change of state. From then on the old attempt can neither beat nor commit.
   What the next attempt restores is chosen once, after that.
4. Nothing is destroyed on Unknown.

Money is checked in every state that costs money, before anything else about the attempt.
"""

from collections.abc import Sequence

from prime_train.core import ledger
from prime_train.core.causes import POLICY, Cause, Retry
from prime_train.core.decision import (
    Adopt,
    AllClear,
    AskEvidence,
    ChooseResume,
    Decision,
    Drain,
    Finish,
    Hold,
    Launch,
    Note,
    PutAgent,
    Recover,
    SeeBeat,
    SeeStep,
    Settle,
    Terminate,
    Wait,
)
from prime_train.core.funds import LAUNCH_S, RESERVE_S, WARN_S, Funds
from prime_train.core.keys import pod_name
from prime_train.core.run import Attempt, DrainReason, Run, RunState, Severity, Want
from prime_train.core.verdict import (
    Finished,
    Gone,
    Healthy,
    Pod,
    PodsSeen,
    PodStatus,
    PodsUnknown,
    PodsView,
    Sick,
    Silent,
    Stalled,
    Unknown,
    Verdict,
)

# The decisions are spoken of together with what decides: `d.Launch`, `d.decide`.
__all__ = [
    "Adopt",
    "AllClear",
    "AskEvidence",
    "ChooseResume",
    "Decision",
    "Drain",
    "Finish",
    "Hold",
    "Launch",
    "Note",
    "PutAgent",
    "Recover",
    "SeeBeat",
    "SeeStep",
    "Settle",
    "Terminate",
    "Wait",
]
STRAY_ASK_AGAIN_S = 30
EVIDENCE_WAIT_S = 60
CHECK_S = 15
BACKOFF_FIRST_S = 15
BACKOFF_S_MAX = 600
PREEMPTIONS_AN_HOUR_MAX = 3
PREEMPTION_DRAIN_S = 120
BEHIND_SHARE_MAX = 0.1
"""How far progress may lag behind the hours."""

WARN_SHARE = 0.8
DRAIN_SHARE_MAX = 0.05


SILENCE_NOTICES = ("silent", "cut_off", "unknown", "blind", "boot_late")


def decide(
    run: Run, verdict: Verdict | None, pods: PodsView, now_s: int, *, lacking: Sequence[str] = (), funds: Funds | None = None
) -> Decision:
    """The next thing to do with `run`. `verdict` is None where no attempt holds the lease (queued and terminal states); `lacking` names
    the secrets of the run that the control plane can not hand out; `funds` is the wallet that pays for the run, None where there is none
    or it can not be asked."""
    housekeeping = _housekeeping(run, pods, now_s)
    if housekeeping is not None:
        return housekeeping
    if run.is_over:
        return Wait(
            now_s + check_s(run) if _unsettled(run) else None,
            "waiting for the provider to confirm that its pods are gone",
        )
    if run.state is RunState.QUEUED:
        return _queued(run, pods, now_s, lacking, funds)
    attempt = run.attempt
    if attempt is None or verdict is None:
        raise ValueError(f"run {run.run_id} is {run.state.value}, so it has an attempt, and its verdict is needed")
    return _wished(run, verdict, funds, now_s) or _by_state(run, attempt, verdict, pods, now_s)


# ------------------------------------------------------------------------------------------- pods that should not be there


def _housekeeping(run: Run, pods: PodsView, now_s: int) -> Decision | None:
    if isinstance(pods, PodsUnknown):
        return None
    asked = {stray.pod_id: stray.asked_s for stray in run.strays}
    due = tuple(p for p in stray_pods(run, pods) if asked.get(p.pod_id, -STRAY_ASK_AGAIN_S) + STRAY_ASK_AGAIN_S <= now_s)
    if due:
        return Terminate(due)
    epochs = tuple(a.epoch for a in run.attempts if _is_settled(run, a, pods, now_s))
    strays = tuple(stray.pod_id for stray in run.strays if stray.pod_id in pods.gone)
    return Settle(epochs, strays) if epochs or strays else None


def current_epoch(run: Run) -> int | None:
    """The epoch whose pod may run, or None when no pod may."""
    return None if run.is_over or run.state is RunState.QUEUED else run.epoch


def stray_pods(run: Run, pods: PodsSeen) -> tuple[Pod, ...]:
    """Living pods of this run that are not its current attempt's one pod, a second pod of the current name included."""
    attempt = run.attempt
    mine = attempt.pod_id if attempt is not None and current_epoch(run) is not None else None
    return tuple(p for p in pods.living() if p.pod_id != mine and not _may_be_adopted(run, p))


def _may_be_adopted(run: Run, pod: Pod) -> bool:
    from_now = run.state is RunState.LAUNCHING and run.attempt is not None and run.attempt.pod_id is None
    return from_now and pod.name == pod_name(run.run_id, run.epoch)


def _is_settled(run: Run, attempt: Attempt, pods: PodsSeen, now_s: int) -> bool:
    """A past attempt is settled when the provider says its pod is gone, or when its launch stayed without a pod for long enough."""
    if attempt.ended_s is not None or attempt.epoch == current_epoch(run):
        return False
    if attempt.pod_id is not None:
        return attempt.pod_id in pods.gone
    return (attempt.fenced_s if attempt.fenced_s is not None else attempt.launched_s) + run.spec.health.settle_s <= now_s


def _unsettled(run: Run) -> bool:
    return bool(run.strays) or any(a.ended_s is None for a in run.attempts)


# ---------------------------------------------------------------------------------------------------------- money and wishes


def check_s(run: Run) -> int:
    """How soon to look again where something is expected that no beat will tell of."""
    return min(CHECK_S, run.spec.health.beat_s)


def drain_reserve_usd(run: Run) -> float:
    """Money kept back for the flush, so that the flush ends before the budget does."""
    flush_usd = ledger.burn_usd_per_s(run) * run.spec.health.drain_s
    return min(flush_usd, run.spec.budget.usd * DRAIN_SHARE_MAX)


def _wished(run: Run, verdict: Verdict, funds: Funds | None, now_s: int) -> Decision | None:
    """What money and the user ask for, in a state that has an attempt."""
    if isinstance(verdict, Finished):
        return None
    if run.want is Want.CANCEL:
        return Finish(RunState.CANCELLED, None, "cancelled by the user")
    spent = ledger.spent(run, now_s)
    budget = run.spec.budget
    if spent.usd >= budget.usd:
        return Finish(RunState.STOPPED, Cause.BUDGET_SPENT, f"the budget is spent: ${spent.usd:.2f} of ${budget.usd:.2f}")
    reason = _drain_reason(run, verdict, funds, now_s)
    if reason is not None and run.state is not RunState.DRAINING:
        if run.state in (RunState.STARTING, RunState.TRAINING):
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
    if spent.usd >= budget.usd - drain_reserve_usd(run):
        return DrainReason.BUDGET, f"the budget is nearly spent: ${spent.usd:.2f} of ${budget.usd:.2f}"
    if budget.hours is not None and spent.paid_s >= budget.hours * 3600:
        return DrainReason.BUDGET, f"the hours are used up: {spent.paid_s / 3600:.2f} of {budget.hours:.2f}"
    if isinstance(verdict, Healthy) and verdict.preempting:
        return DrainReason.PREEMPTION, "the machine has been told that it will be taken away"
    if funds is not None and funds.left_s() < RESERVE_S + run.spec.health.drain_s:
        return DrainReason.FUNDS, f"the wallet is nearly empty: {_in_wallet(funds)}"
    return None


def _in_wallet(funds: Funds) -> str:
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
    text = f"{_in_wallet(funds)}; add credit, or runs are told to save and leave, and wait"
    return Note("funds", Severity.WARNING, "the wallet runs dry", text) if left_s < WARN_S else None


def _warned(run: Run, now_s: int) -> Note | None:
    spent, budget = ledger.spent(run, now_s), run.spec.budget
    share = max(spent.usd / budget.usd, spent.paid_s / 3600 / budget.hours if budget.hours else 0.0)
    if share < WARN_SHARE or run.noted_s("budget") is not None:
        return None
    text = f"${spent.usd:.2f} of ${budget.usd:.2f} are spent, {spent.paid_s / 3600:.2f} paid hours"
    return Note("budget", Severity.WARNING, f"{share:.0%} of the budget is used", text)


def budget_moment_s(run: Run, now_s: int) -> int | None:
    """When money or hours next ask for something at the present burn: the warning, the flush or the end."""
    spent, budget, burn = ledger.spent(run, now_s), run.spec.budget, ledger.burn_usd_per_s(run)
    paid_each_s = sum(1 for a in run.attempts if a.ended_s is None) + len(ledger.unowned(run))
    marks = [budget.usd, budget.usd - drain_reserve_usd(run)] + ([] if run.noted_s("budget") is not None else [budget.usd * WARN_SHARE])
    moments = [(mark - spent.usd) / burn for mark in marks if burn > 0 and mark > spent.usd]
    if budget.hours is not None and paid_each_s:
        moments += [(budget.hours * 3600 * share - spent.paid_s) / paid_each_s for share in (WARN_SHARE, 1.0)]
    ahead = [m for m in moments if m > 0]
    return now_s + int(min(ahead)) + 1 if ahead else None


# ------------------------------------------------------------------------------------------------------------------- queued


def _queued(run: Run, pods: PodsView, now_s: int, lacking: Sequence[str], funds: Funds | None) -> Decision:
    if run.want is not Want.RUN:
        state = RunState.CANCELLED if run.want is Want.CANCEL else RunState.STOPPED
        return Finish(state, None, "stopped by the user " + ("between two machines" if run.attempts else "before a machine was rented"))
    if not run.resume_chosen:
        return ChooseResume()
    spent, budget = ledger.spent(run, now_s), run.spec.budget
    if spent.usd >= budget.usd * (1 - DRAIN_SHARE_MAX):
        return Finish(RunState.STOPPED, Cause.BUDGET_SPENT, f"the budget is spent: ${spent.usd:.2f} of ${budget.usd:.2f}")
    if budget.hours is not None and spent.paid_s >= budget.hours * 3600:
        return Finish(
            RunState.STOPPED,
            Cause.BUDGET_SPENT,
            f"the hours are used up: {spent.paid_s / 3600:.2f} of {budget.hours:.2f}",
        )
    if len(run.strikes) >= budget.restarts_without_progress:
        return Finish(
            RunState.STOPPED,
            run.strikes[-1],
            f"{len(run.strikes)} attempts in a row made no new checkpoint: {in_common(run.strikes)}",
        )
    if isinstance(pods, PodsUnknown):
        return _unknown(run, Unknown(pods.why), now_s)
    if now_s < run.not_before_s:
        return Wait(back_off_until_s(run, run.not_before_s, now_s), "backing off before the next machine")
    if lacking:
        why = f"the control plane's environment lacks {', '.join(lacking)}; start it again with them, nothing is rented before"
        return Hold("secrets", "secrets are missing", why)
    if funds is not None and funds.left_s(_likely_usd_per_hour(run)) < LAUNCH_S:
        return Hold("funds", "the wallet is nearly empty", f"{_in_wallet(funds)}; nothing is rented before there is credit for an hour")
    return Launch(on_demand=wants_on_demand(run, now_s))


def _likely_usd_per_hour(run: Run) -> float:
    """What its next machine may cost: what the last one did, or else the most that is allowed."""
    return run.attempt.offer.usd_per_hour if run.attempt is not None else run.spec.hardware.usd_per_hour_max or 0.0


def in_common(causes: tuple[Cause, ...]) -> str:
    """What attempts that led nowhere had in common, in words."""
    kinds = list(dict.fromkeys(causes))
    if len(kinds) == 1:
        return f"all ended by '{POLICY[kinds[0]].title}'. {POLICY[kinds[0]].advice}".strip()
    return "they ended by " + ", ".join(f"'{POLICY[kind].title}' ({causes.count(kind)})" for kind in kinds)


def wants_on_demand(run: Run, now_s: int) -> bool:
    """After several preemptions in an hour, or when durable steps lag well behind the share of the hours that is used up, spot is the
    dearer choice."""
    lately = [at_s for at_s in run.preempted_s if at_s > now_s - 3600]
    steps, hours = run.spec.trainer.steps, run.spec.budget.hours
    if len(lately) >= PREEMPTIONS_AN_HOUR_MAX or steps is None or hours is None:
        return len(lately) >= PREEMPTIONS_AN_HOUR_MAX
    return run.durable_step / steps + BEHIND_SHARE_MAX < ledger.paid_hours(run, now_s) / hours


def avoided_offers(run: Run, now_s: int) -> frozenset[str]:
    """Offers whose machines were taken away within the hour: it is likely to happen there again soon."""
    recent = (a for a in run.attempts if a.cause is Cause.PREEMPTED and (a.fenced_s or 0) > now_s - 3600)
    return frozenset(a.offer.offer_id for a in recent)


def back_off_until_s(run: Run, not_before_s: int, now_s: int) -> int:
    """When to look again while backing off: pods that are not known to be gone do not wait."""
    return min(not_before_s, now_s + check_s(run)) if _unsettled(run) else not_before_s


def backoff_s(failures: int) -> int:
    """Seconds to wait after this many infrastructure failures in a row: 15 s doubling up to 10 min."""
    return min(BACKOFF_S_MAX, BACKOFF_FIRST_S << min(10, max(0, failures - 1)))


# --------------------------------------------------------------------------------------------------- states with an attempt


def _by_state(run: Run, attempt: Attempt, verdict: Verdict, pods: PodsView, now_s: int) -> Decision:
    if run.state is RunState.LAUNCHING:
        return _launching(run, attempt, verdict, pods, now_s)
    if run.state is RunState.DRAINING:
        return _draining(run, verdict, now_s)
    match verdict:
        case Healthy():
            return _healthy(run, attempt, verdict, pods, now_s)
        case Finished(step):
            if run.state is RunState.BOOTING:  # all its earlier beats were lost
                return SeeBeat()
            return Finish(RunState.SUCCEEDED, Cause.FINISHED, f"finished at step {step}")
        case Sick():
            return _sick(verdict)
        case Gone(why, beaten):
            return Recover(_loss(attempt, beaten=beaten), why)
        case Silent():
            return _silent(run, verdict, now_s)
        case Stalled():
            return _stalled(run, attempt, verdict, now_s)
        case Unknown():
            return _unknown(run, verdict, now_s)


def _loss(attempt: Attempt, *, beaten: bool) -> Cause:
    if attempt.first_beat_s is None and not beaten:
        return Cause.BOOT_LOST
    return Cause.PREEMPTED if attempt.offer.spot else Cause.MACHINE_LOST


def _launching(run: Run, attempt: Attempt, verdict: Verdict, pods: PodsView, now_s: int) -> Decision:
    if isinstance(pods, PodsUnknown):
        return _unknown(run, Unknown(pods.why), now_s)
    mine = [p for p in pods.pods if _may_be_adopted(run, p)]
    if mine:  # one that is gone already, too: it was paid for, and nothing has to be waited for
        first = min(mine, key=lambda p: (p not in pods.living(), p.pod_id))
        return Adopt(first.pod_id, first.usd_per_hour)
    settled_s = attempt.launched_s + run.spec.health.settle_s
    beats = isinstance(verdict, Healthy) and verdict.phase is not None
    if now_s < settled_s or beats:
        return Wait(now_s + check_s(run), "waiting for the create call to settle")
    return Recover(Cause.LAUNCH_LOST, "the create call brought no answer and the provider lists no such pod")


def _draining(run: Run, verdict: Verdict, now_s: int) -> Decision:
    if run.drain is None or run.drain_s is None:
        raise ValueError(f"run {run.run_id} is draining without a reason")
    preempted = run.drain is DrainReason.PREEMPTION
    limit_s = min(PREEMPTION_DRAIN_S, run.spec.health.drain_s) if preempted else run.spec.health.drain_s
    over = now_s >= run.drain_s + limit_s
    match verdict:
        case Finished(step):
            return Finish(RunState.SUCCEEDED, Cause.FINISHED, f"finished at step {step}")
        case Sick(exited=True) | Gone():
            return _drained(run, verdict)
        case Silent():
            ended = over or preempted
        case Healthy() | Stalled() | Sick():
            ended = over
        case Unknown():
            ended = over and not preempted
    if ended:
        return _drained(run, verdict)
    return Wait(now_s + check_s(run) if over else min(now_s + check_s(run), run.drain_s + limit_s), "flushing")


def _drained(run: Run, verdict: Verdict) -> Decision:
    if run.drain in (DrainReason.PREEMPTION, DrainReason.FUNDS):
        asked_to_leave = isinstance(verdict, Sick) and verdict.cause is Cause.STOPPED_EARLY
        if isinstance(verdict, Sick) and not asked_to_leave and POLICY[verdict.cause].retry is Retry.NEVER:
            return _sick(verdict)
        if run.drain is DrainReason.FUNDS:
            return Recover(Cause.NO_FUNDS, "told to leave before the wallet was empty")
        return Recover(Cause.PREEMPTED, "taken away after a notice")
    flushed = isinstance(verdict, Sick) and verdict.cause is Cause.DRAINED
    cause = Cause.DRAINED if run.drain is DrainReason.USER else Cause.BUDGET_SPENT
    why = "stopped by the user" if run.drain is DrainReason.USER else "the budget is used up"
    return Finish(RunState.STOPPED, cause, f"{why}; {'flushed' if flushed else 'it was not flushed in time'}")


def _healthy(run: Run, attempt: Attempt, verdict: Healthy, pods: PodsView, now_s: int) -> Decision:
    if verdict.phase is None and not verdict.cut_off:
        return _booting(run, attempt, pods, now_s)
    if verdict.cut_off:
        if run.noted_s("cut_off") is None:
            text = "no beats, yet the tracker still advances: waiting"
            return Note("cut_off", Severity.WARNING, "cut off, but training", text, sign_s=verdict.sign_s)
        return Wait(now_s + check_s(run), "cut off, but training", sign_s=verdict.sign_s)
    if run.state is RunState.BOOTING:
        return SeeBeat()
    if run.state is RunState.STARTING and verdict.step > 0:
        return SeeStep(verdict.step)
    # What was told lasts one beat at least: else two watchers whose clocks differ take back, and tell anew, what is late for one of them.
    before_s = now_s - run.spec.health.beat_s
    told = tuple(notice.kind for notice in run.notices if notice.kind in SILENCE_NOTICES and notice.at_s <= before_s)
    if attempt.evidence_asked_s is not None and attempt.evidence_asked_s <= before_s:
        told = (*told, "stalled")
    if told:
        return AllClear(told)
    return Wait(None, "healthy")


def _booting(run: Run, attempt: Attempt, pods: PodsView, now_s: int) -> Decision:
    ready = isinstance(pods, PodsSeen) and any(p.pod_id == attempt.pod_id and p.status is PodStatus.ACTIVE for p in pods.pods)
    if ready and attempt.pod_id is not None:
        asked_s = attempt.agent_put_s
        if asked_s is None or asked_s + run.spec.health.settle_s <= now_s:
            return PutAgent(attempt.pod_id)
    return Wait(now_s + check_s(run), "waiting for the machine and its agent")


def _sick(verdict: Sick) -> Decision:
    policy = POLICY[verdict.cause]
    if policy.retry is Retry.NEVER:
        state = RunState.STOPPED if policy.needs_person else RunState.FAILED
        return Finish(state, verdict.cause, f"{policy.title}: {verdict.detail}. {policy.advice}".strip())
    return Recover(verdict.cause, verdict.detail or policy.title)


def _silent(run: Run, verdict: Silent, now_s: int) -> Decision:
    """Told first, acted on later: between the two, an agent that could not be heard has had time to be heard again."""
    health = run.spec.health
    text = f"no beat for {verdict.silent_s} s while the provider calls the machine active"
    noted_s = run.noted_s("silent")
    if noted_s is None:
        return Note("silent", Severity.WARNING, "the machine is silent", f"{text}; it is replaced after {health.silence_s} s")
    act_s = max(now_s + health.silence_s - verdict.silent_s + 1, noted_s + health.overdue_s)
    if verdict.past_limit and now_s >= act_s:
        return Recover(Cause.SILENT, text)
    # Not only at `act_s`: the provider may come to say that it is gone.
    return Wait(min(now_s + check_s(run), max(now_s + 1, act_s)), "silent")


def _stalled(run: Run, attempt: Attempt, verdict: Stalled, now_s: int) -> Decision:
    detail = f"waited {verdict.waited_s} s, limit {verdict.limit_s} s"
    if verdict.cause is Cause.BOOT_TIMEOUT:
        return _boot_late(run, detail, now_s)
    if attempt.evidence_asked_s is None:
        return AskEvidence(verdict.cause, detail)
    until_s = attempt.evidence_asked_s + EVIDENCE_WAIT_S
    if verdict.evidence or now_s >= until_s:
        return Recover(verdict.cause, detail)
    return Wait(until_s, "waiting for the evidence")


def _boot_late(run: Run, detail: str, now_s: int) -> Decision:
    noted_s = run.noted_s("boot_late")
    if noted_s is None:
        return Note("boot_late", Severity.WARNING, "the machine is late", detail)
    until_s = noted_s + run.spec.health.overdue_s
    return Wait(until_s, "late, one last wait") if now_s < until_s else Recover(Cause.BOOT_TIMEOUT, detail)


def _unknown(run: Run, verdict: Unknown, now_s: int) -> Decision:
    kind = "blind" if verdict.breaker else "unknown"
    if run.noted_s(kind) is None:
        title = "the watcher is blind" if verdict.breaker else "the provider does not answer"
        return Note(kind, Severity.WARNING, title, f"{verdict.why}; nothing is destroyed")
    return Wait(now_s + check_s(run), verdict.why)


def healthy_until_s(run: Run, beat_s: int | None, deadline_s: int | None, now_s: int) -> int:
    """The next second that matters for a healthy attempt: a missed beat, the step deadline or money. `beat_s`: the last beat's arrival."""
    health = run.spec.health
    heard_s = beat_s if beat_s is not None else now_s
    missed_s = heard_s + health.beat_s + max(1, health.beat_s // 4) + 1
    if missed_s <= now_s:  # seen already: not each second from now on, but whenever the provider may know more, and when it is overdue
        missed_s = min(now_s + check_s(run), max(now_s + 1, heard_s + health.overdue_s + 1))
    moments = [missed_s, *(m for m in (deadline_s, budget_moment_s(run, now_s)) if m is not None)]
    return max(now_s + 1, min(moments))


def name_of(run: Run, epoch: int) -> str:
    """The name of the pod of that attempt."""
    return pod_name(run.run_id, epoch)
