"""Decisions for a run whose attempt holds the lease, by its state and the verdict."""

from prime_train.runs import budget, ledger
from prime_train.runs.alert_kinds import AlertKind, policy_of
from prime_train.runs.decide.draining import decide_draining
from prime_train.runs.decide.next_check import check_s
from prime_train.runs.decide.orphans import may_be_adopted
from prime_train.runs.decide.outcomes import finished, sick, unknown
from prime_train.runs.decide.uploading import of_kept_machine
from prime_train.runs.decision import (
    Adopt,
    AllClear,
    Decision,
    Drain,
    Finish,
    Move,
    Notify,
    PutAgent,
    Recover,
    RequestEvidence,
    SeeAfter,
    SeeDeletions,
    SeeHeartbeat,
    SeeStep,
    SeeUpload,
    Wait,
)
from prime_train.runs.deletions import TOLD_S
from prime_train.runs.run import Attempt, DrainReason, Run, RunState, Severity
from prime_train.runs.verdict import (
    Finished,
    Gone,
    Healthy,
    PodsObserved,
    PodStatus,
    PodsUnknown,
    PodsView,
    Sick,
    Silent,
    Stalled,
    Unknown,
    Verdict,
)
from prime_train.runs.wire import Heartbeat, Phase
from prime_train.spec.causes import Cause
from prime_train.spec.choices import Migrate, OnDivergence
from prime_train.text.formatting import usd

EVIDENCE_WAIT_S = 60
"""Seconds to wait for the evidence of a stall before the machine is replaced without it."""


def decide_active(
    run: Run, attempt: Attempt, verdict: Verdict, pods: PodsView, now_s: int, move: Move | None = None
) -> Decision:
    if run.state is RunState.LAUNCHING:
        return _launching(run, attempt, verdict, pods, now_s)
    if run.state is RunState.DRAINING:
        return decide_draining(run, verdict, now_s)
    match verdict:
        case Healthy():
            return _healthy(run, attempt, verdict, pods, now_s, move)
        case Finished():
            if run.state is RunState.BOOTING:  # all its earlier heartbeats were lost
                return SeeHeartbeat()
            return finished(verdict)
        case Sick():
            return sick(run, verdict)
        case Gone(why, was_alive):
            return Recover(_loss(attempt, was_alive=was_alive), why)
        case Silent():
            return _silent(run, verdict, now_s)
        case Stalled():
            return _stalled(run, attempt, verdict, pods, now_s)
        case Unknown():
            return unknown(run, verdict, now_s)


def _loss(attempt: Attempt, *, was_alive: bool) -> Cause:
    if attempt.first_heartbeat_s is None and not was_alive:
        return Cause.BOOT_LOST
    return Cause.PREEMPTED if attempt.offer.spot else Cause.MACHINE_LOST


def _launching(run: Run, attempt: Attempt, verdict: Verdict, pods: PodsView, now_s: int) -> Decision:
    if isinstance(pods, PodsUnknown):
        return unknown(run, Unknown(pods.why), now_s)
    mine = [p for p in pods.pods if may_be_adopted(run, p)]
    if mine:  # includes a pod that is gone already: it was paid for, and there is nothing to wait for
        first = min(mine, key=lambda p: (p not in pods.living(), p.pod_id))
        return _too_dear(run, first.pod_id, first.usd_per_hour) or Adopt(
            first.pod_id, first.usd_per_hour, first.created_s
        )
    settled_s = attempt.launched_s + run.spec.health.settle_s
    heartbeats = isinstance(verdict, Healthy) and verdict.phase is not None
    if pods.as_of_s(now_s) < settled_s or heartbeats:
        return Wait(now_s + check_s(run), "waiting to see whether the create call rented a machine")
    return Recover(Cause.LAUNCH_LOST, "the create call got no answer, and the provider lists no such pod")


def _healthy(
    run: Run, attempt: Attempt, verdict: Healthy, pods: PodsView, now_s: int, move: Move | None
) -> Decision:
    if verdict.phase is None and not verdict.cut_off:
        return _booting(run, attempt, pods, now_s)
    if verdict.cut_off:
        if run.noted_s(AlertKind.CUT_OFF) is None:
            text = (
                "no heartbeats arrive, but the tracker's step still advances: the machine is kept while it "
                "does"
            )
            return Notify(AlertKind.CUT_OFF, Severity.WARNING, "no heartbeats, but training", text)
        return Wait(now_s + check_s(run), "no heartbeats, but training")
    if run.state is RunState.BOOTING:
        return SeeHeartbeat()
    if run.state is RunState.STARTING and verdict.step > 0:
        return SeeStep(verdict.step)
    if verdict.phase is Phase.AFTER and run.state is not RunState.FINISHING:
        return SeeAfter(verdict.step)
    if (
        verdict.heartbeat is not None
        and (decision := _by_heartbeat(run, attempt, verdict.heartbeat, now_s, move)) is not None
    ):
        return decision
    # A notice lasts at least one heartbeat interval; otherwise two watchers with different clocks would
    # alternately clear and repeat a notice that is late for only one of them.
    before_s = now_s - run.spec.health.heartbeat_s
    past = tuple(
        notice.kind for notice in run.notices if policy_of(notice.kind).is_silence and notice.at_s <= before_s
    )
    if attempt.evidence_requested_s is not None and attempt.evidence_requested_s <= before_s:
        past = (*past, AlertKind.STALLED)
    if past:
        return AllClear(past)
    return Wait(None, "healthy")


def _by_heartbeat(
    run: Run, attempt: Attempt, heartbeat: Heartbeat, now_s: int, move: Move | None
) -> Decision | None:
    """Return what the newest heartbeat of a healthy machine asks for; None: nothing."""
    if (measured := _measured(run, heartbeat)) is not None:
        return measured
    if heartbeat.upload_pending and run.state is not RunState.UPLOADING:
        return SeeUpload(heartbeat.step)
    if (told := of_heartbeat(run, heartbeat, now_s) or of_kept_machine(run, attempt, heartbeat)) is not None:
        return told
    # The history says from time to time what the agent has deleted since it last did.
    is_due = run.deleted_told_s is None or now_s >= run.deleted_told_s + TOLD_S
    if heartbeat.deleted is not None and heartbeat.deleted != attempt.deleted and is_due:
        return SeeDeletions(heartbeat.deleted)
    return of_move(run, heartbeat, move, now_s) if move is not None else None


def _measured(run: Run, heartbeat: Heartbeat) -> Finish | None:
    """Return the end of a run that was launched only to measure its steps, once it has made enough of them or
    its trainer has ended well, without a last save: nobody resumes from what it left, so no machine is kept
    for it.
    """
    probe = run.probe
    steps, timed_s = heartbeat.timed_steps, heartbeat.timed_s or 0.0
    if probe is None or steps == 0 or run.state not in (RunState.TRAINING, RunState.UPLOADING):
        return None
    if not heartbeat.upload_pending and (steps < probe.steps or timed_s < probe.seconds):
        return None
    return Finish(RunState.SUCCEEDED, Cause.PROBED, f"measured: {steps} steps of {timed_s / steps:.3g} s")


def _too_dear(run: Run, pod_id: str | None, usd_per_hour: float) -> Recover | None:
    """Return the decision to give the machine back if it costs more than the config allows: its final price
    may be above the offer's.
    """
    most_usd = run.spec.hardware.usd_per_hour_max
    if pod_id is None or most_usd is None or usd_per_hour <= most_usd:
        return None
    dear = f"machine {pod_id} costs ${usd_per_hour:.2f}/h, above hardware.usd_per_hour_max {most_usd:.2f}"
    return Recover(Cause.LAUNCH_REFUSED, f"{dear}; it is terminated")


def _booting(run: Run, attempt: Attempt, pods: PodsView, now_s: int) -> Decision:
    if (dear := _too_dear(run, attempt.pod_id, attempt.offer.usd_per_hour)) is not None:
        return dear
    if attempt.pod_id is not None and _lacks_agent(attempt, pods, now_s - run.spec.health.settle_s):
        return PutAgent(attempt.pod_id)
    return Wait(now_s + check_s(run), "waiting for the machine and its agent")


def _lacks_agent(attempt: Attempt, pods: PodsView, since_s: int) -> bool:
    """Return whether the machine is ready and no agent was put on it after second `since_s`."""
    ready = isinstance(pods, PodsObserved) and any(
        p.pod_id == attempt.pod_id and p.status is PodStatus.ACTIVE for p in pods.pods
    )
    return ready and (attempt.agent_put_s is None or attempt.agent_put_s <= since_s)


def _silent(run: Run, verdict: Silent, now_s: int) -> Decision:
    """Notify people first and replace the machine later, so that an agent that could not be heard has time to
    be heard again.
    """
    health = run.spec.health
    text = f"no heartbeat for {verdict.silent_s} s while the provider calls the machine active"
    noted_s = run.noted_s(AlertKind.SILENT)
    if noted_s is None:
        return Notify(
            AlertKind.SILENT,
            Severity.WARNING,
            "the machine is silent",
            f"{text}; it is replaced after {health.silence_s} s",
        )
    act_s = max(now_s + health.silence_s - verdict.silent_s + 1, noted_s + health.overdue_s)
    if verdict.past_limit and now_s >= act_s:
        return Recover(Cause.SILENT, text)
    # Also checks before `act_s`, because the provider may report meanwhile that the machine is gone.
    return Wait(min(now_s + check_s(run), max(now_s + 1, act_s)), "silent")


def _stalled(run: Run, attempt: Attempt, verdict: Stalled, pods: PodsView, now_s: int) -> Decision:
    detail = f"waited {verdict.waited_s} s, limit {verdict.limit_s} s"
    if verdict.cause is Cause.BOOT_TIMEOUT:
        return _boot_late(run, attempt, pods, detail, now_s)
    if attempt.evidence_requested_s is None:
        return RequestEvidence(verdict.cause, detail)
    until_s = attempt.evidence_requested_s + EVIDENCE_WAIT_S
    if verdict.evidence or now_s >= until_s:
        return Recover(verdict.cause, detail)
    return Wait(until_s, "waiting for the evidence")


def _boot_late(run: Run, attempt: Attempt, pods: PodsView, detail: str, now_s: int) -> Decision:
    """Decide about a machine without a first heartbeat in time. If the machine is ready and has no agent, it
    is not at fault, because the watcher that should have installed the agent was down. The agent is then
    installed now, once, and gets its full time.
    """
    if (dear := _too_dear(run, attempt.pod_id, attempt.offer.usd_per_hour)) is not None:
        return dear
    health, put_s = run.spec.health, attempt.agent_put_s
    due_s = attempt.launched_s + health.first_heartbeat_s
    if put_s is not None and put_s > due_s:
        if now_s < put_s + health.settle_s:
            return Wait(
                min(now_s + check_s(run), put_s + health.settle_s),
                "late, but the agent was installed only a moment ago",
            )
    elif attempt.pod_id is not None and _lacks_agent(attempt, pods, now_s - 2 * health.settle_s):
        return PutAgent(attempt.pod_id)
    noted_s = run.noted_s(AlertKind.BOOT_LATE)
    if noted_s is None:
        return Notify(AlertKind.BOOT_LATE, Severity.WARNING, "the machine is late", detail)
    until_s = noted_s + health.overdue_s
    return (
        Wait(until_s, "late, waiting one last time")
        if now_s < until_s
        else Recover(Cause.BOOT_TIMEOUT, detail)
    )


def of_move(run: Run, heartbeat: Heartbeat, move: Move, now_s: int) -> Decision | None:
    """Return the order to save and leave, or the proposal of it, given once, or the all-clear when it would
    no longer pay; else None.
    """
    proposed = run.noted_s(AlertKind.CHEAPER) is not None
    left_usd = budget.save_usd(run) - ledger.spent(run, now_s).usd
    is_unsaved = bool(heartbeat.upload_problem or heartbeat.unsaved)
    if run.state is not RunState.TRAINING or is_unsaved or not move.pays or move.cost_usd >= left_usd:
        # Not as soon as a move no longer pays, or people would be told of each turn of a price that is close
        # to that.
        return AllClear((AlertKind.CHEAPER,)) if proposed and move.saves_usd <= 0 else None
    if run.spec.hardware.migrate is Migrate.AUTO:
        return Drain(DrainReason.MOVE, f"a move saves {usd(move.saves_usd)}: {move.why}")
    if proposed:
        return None
    title = f"a move to another machine would save {usd(move.saves_usd)}"
    return Notify(
        AlertKind.CHEAPER, Severity.INFO, title, f"{move.why}; hardware.migrate: auto moves by itself"
    )


# Alerts about what the heartbeat of a healthy machine says, as `runs/alert_kinds` lists them: people are
# notified once while it lasts, whatever is done about it later, and get the all-clear when it is over.
def of_heartbeat(run: Run, heartbeat: Heartbeat, now_s: int) -> Notify | AllClear | None:
    """Return the next notice about a problem that the heartbeat shows, or the all-clear when one is over;
    else None."""
    for kind in AlertKind:
        policy, noted_s = policy_of(kind), run.noted_s(kind)
        problem = policy.problem(heartbeat) if policy.problem is not None else None
        if problem and noted_s is None:
            follows = (
                f"; {_what_follows(run)}. Checkpoints from before are kept"
                if kind is AlertKind.NOT_FINITE
                else ""
            )
            return Notify(kind, Severity.WARNING, policy.title, f"{problem}{follows}")
        if problem == "" and noted_s is not None and now_s >= noted_s + policy.stays_s:
            return AllClear((kind,))
    return None


def _what_follows(run: Run) -> str:
    """Return what is done about a loss that is not finite."""
    health = run.spec.health
    action, after = (
        health.on_divergence,
        f"after {health.not_finite_steps} such steps in a row (health.not_finite_steps)",
    )
    if action is OnDivergence.ROLLBACK and run.rollbacks >= health.rollback_times:
        after += (
            f", because it went back {run.rollbacks} time{'' if run.rollbacks == 1 else 's'} "
            "(health.rollback_times)"
        )
        action = OnDivergence.STOP
    return {
        OnDivergence.ALERT: "the run goes on, because health.on_divergence is alert",
        OnDivergence.STOP: f"the run is stopped {after}",
        OnDivergence.ROLLBACK: f"the run goes back to a checkpoint with finite figures {after}",
    }[action]
