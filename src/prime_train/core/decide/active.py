"""Decisions for a run whose attempt holds the lease, by its state and the verdict."""

from prime_train.core.alert_kinds import AlertKind, policy_of
from prime_train.core.causes import Cause
from prime_train.core.decide.draining import decide_draining
from prime_train.core.decide.figures import of_figures
from prime_train.core.decide.moving import of_move
from prime_train.core.decide.next_check import check_s
from prime_train.core.decide.orphans import may_be_adopted
from prime_train.core.decide.outcomes import finished, sick, unknown
from prime_train.core.decide.uploading import of_uploads
from prime_train.core.decision import (
    Adopt,
    AllClear,
    Decision,
    Finish,
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
from prime_train.core.market.moving import Move
from prime_train.core.run import Attempt, Run, RunState, Severity
from prime_train.core.stored.deletions import TOLD_S
from prime_train.core.verdict import (
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
from prime_train.core.wire import Deletions, Phase

EVIDENCE_WAIT_S = 60
"""Seconds to wait for the evidence of a stall before the machine is replaced without it."""


def decide_active(run: Run, attempt: Attempt, verdict: Verdict, pods: PodsView, now_s: int, move: Move | None = None) -> Decision:
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
        return _too_dear(run, first.pod_id, first.usd_per_hour) or Adopt(first.pod_id, first.usd_per_hour, first.created_s)
    settled_s = attempt.launched_s + run.spec.health.settle_s
    heartbeats = isinstance(verdict, Healthy) and verdict.phase is not None
    if pods.as_of_s(now_s) < settled_s or heartbeats:
        return Wait(now_s + check_s(run), "waiting to see whether the create call rented a machine")
    return Recover(Cause.LAUNCH_LOST, "the create call got no answer, and the provider lists no such pod")


def _healthy(run: Run, attempt: Attempt, verdict: Healthy, pods: PodsView, now_s: int, move: Move | None) -> Decision:
    if verdict.phase is None and not verdict.cut_off:
        return _booting(run, attempt, pods, now_s)
    if verdict.cut_off:
        if run.noted_s(AlertKind.CUT_OFF) is None:
            text = "no heartbeats arrive, but the tracker's step still advances: the machine is kept while it does"
            return Notify(AlertKind.CUT_OFF, Severity.WARNING, "no heartbeats, but training", text)
        return Wait(now_s + check_s(run), "no heartbeats, but training")
    if run.state is RunState.BOOTING:
        return SeeHeartbeat()
    if run.state is RunState.STARTING and verdict.step > 0:
        return SeeStep(verdict.step)
    if verdict.phase is Phase.AFTER and run.state is not RunState.FINISHING:
        return SeeAfter(verdict.step)
    if (measured := _measured(run, verdict)) is not None:
        return measured
    if verdict.upload_pending and run.state is not RunState.UPLOADING:
        return SeeUpload(verdict.step)
    if (decision := of_uploads(run, attempt, verdict) or of_figures(run, verdict, now_s)) is not None:
        return decision
    if verdict.deleted is not None and _is_untold(run, attempt, verdict.deleted, now_s):
        return SeeDeletions(verdict.deleted)
    if move is not None and (moving := of_move(run, verdict, move, now_s)) is not None:
        return moving
    # A notice lasts at least one heartbeat interval; otherwise two watchers with different clocks would alternately clear and repeat a
    # notice that is late for only one of them.
    before_s = now_s - run.spec.health.heartbeat_s
    past = tuple(notice.kind for notice in run.notices if policy_of(notice.kind).is_silence and notice.at_s <= before_s)
    if attempt.evidence_requested_s is not None and attempt.evidence_requested_s <= before_s:
        past = (*past, AlertKind.STALLED)
    if past:
        return AllClear(past)
    return Wait(None, "healthy")


def _is_untold(run: Run, attempt: Attempt, deleted: Deletions, now_s: int) -> bool:
    """Return whether the history is due to say what the agent has deleted since it last did."""
    return deleted != attempt.deleted and (run.deleted_told_s is None or now_s >= run.deleted_told_s + TOLD_S)


def _measured(run: Run, verdict: Healthy) -> Finish | None:
    """Return the end of a run that was launched only to measure its steps, once it has made enough of them or its trainer has ended well,
    without a last save: nobody resumes from what it left, so no machine is kept for it."""
    probe = run.probe
    if probe is None or verdict.timed_steps == 0 or run.state not in (RunState.TRAINING, RunState.UPLOADING):
        return None
    if not verdict.upload_pending and (verdict.timed_steps < probe.steps or verdict.timed_s < probe.seconds):
        return None
    mean_s = verdict.timed_s / verdict.timed_steps
    return Finish(RunState.SUCCEEDED, Cause.PROBED, f"measured: {verdict.timed_steps} steps of {mean_s:.3g} s")


def _too_dear(run: Run, pod_id: str | None, usd_per_hour: float) -> Recover | None:
    """Return the decision to give the machine back if it costs more than the config allows: its final price may be above the offer's."""
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
    ready = isinstance(pods, PodsObserved) and any(p.pod_id == attempt.pod_id and p.status is PodStatus.ACTIVE for p in pods.pods)
    return ready and (attempt.agent_put_s is None or attempt.agent_put_s <= since_s)


def _silent(run: Run, verdict: Silent, now_s: int) -> Decision:
    """Notify people first and replace the machine later, so that an agent that could not be heard has time to be heard again."""
    health = run.spec.health
    text = f"no heartbeat for {verdict.silent_s} s while the provider calls the machine active"
    noted_s = run.noted_s(AlertKind.SILENT)
    if noted_s is None:
        return Notify(AlertKind.SILENT, Severity.WARNING, "the machine is silent", f"{text}; it is replaced after {health.silence_s} s")
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
    """Decide about a machine without a first heartbeat in time. If the machine is ready and has no agent, it is not at fault, because the
    watcher that should have installed the agent was down. The agent is then installed now, once, and gets its full time."""
    if (dear := _too_dear(run, attempt.pod_id, attempt.offer.usd_per_hour)) is not None:
        return dear
    health, put_s = run.spec.health, attempt.agent_put_s
    due_s = attempt.launched_s + health.first_heartbeat_s
    if put_s is not None and put_s > due_s:
        if now_s < put_s + health.settle_s:
            return Wait(min(now_s + check_s(run), put_s + health.settle_s), "late, but the agent was installed only a moment ago")
    elif attempt.pod_id is not None and _lacks_agent(attempt, pods, now_s - 2 * health.settle_s):
        return PutAgent(attempt.pod_id)
    noted_s = run.noted_s(AlertKind.BOOT_LATE)
    if noted_s is None:
        return Notify(AlertKind.BOOT_LATE, Severity.WARNING, "the machine is late", detail)
    until_s = noted_s + health.overdue_s
    return Wait(until_s, "late, waiting one last time") if now_s < until_s else Recover(Cause.BOOT_TIMEOUT, detail)
