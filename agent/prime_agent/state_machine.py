"""The agent's decisions as a pure function: `step(state, event, now_s)` returns the next state and the
effects to execute.

An event only updates the state. What is due then (a heartbeat, a scan of the checkpoint folder, SIGKILL after
SIGTERM, the end) is derived from state and time alone, in `ACTS`, so that no order of events can leave
something undone.

The agent never stops a healthy trainer because the control plane does not respond. It always obeys `fenced`
at once and then does nothing more for the run, because another attempt owns it.
"""

import math
from collections.abc import Callable
from dataclasses import replace

from prime_agent import effects as e
from prime_agent import events as v
from prime_agent import health as health_problem
from prime_agent import heartbeat_channel as channel
from prime_agent.after_training import schedule as steps_after
from prime_agent.checkpoints import disk_forecast, promise, transfers
from prime_agent.checkpoints import stats as saves
from prime_agent.checkpoints.promise import Seen
from prime_agent.gpu import health as gpu_health
from prime_agent.outputs import schedule as outputs
from prime_agent.state import (
    AgentState,
    Flush,
    Stop,
    are_outputs_pending,
    good,
    heartbeat,
    reached,
    unsaved,
    upload_problem,
)
from prime_agent.trainer import services
from prime_agent.trainer import steps as progress
from prime_train.runs.wire import JobExit, Order, Outcome, Phase, Reply
from prime_train.spec.after_steps import REFUSED, is_done_despite, is_trained
from prime_train.spec.causes import FLUSHED, Cause
from prime_train.spec.choices import OnDivergence, Verify
from prime_train.text.formatting import usd
from prime_train.trainers.of_spec import Progress

ORDER = (Phase.PREFLIGHT, Phase.SETUP, Phase.VERIFY, Phase.SMOKE, Phase.RESTORE, Phase.TRAIN)
DETAIL_CHARS_MAX, TAIL_CHARS_MAX = 2000, 8000
EXIT_S_MAX = 3600
"""Seconds for which the exit is sent again and again while the control plane does not respond."""

STUCK_S_MAX = 60
"""Seconds after SIGKILL from which on a process that still exists counts as stuck in the kernel."""

EARLY_FLUSH_S_MAX = 30
"""Limit in seconds for an attempt that never trained, which has only its log to upload."""

FLUSH_S_MIN = 10
SPENT_EXIT_S = 3
"""Seconds for reporting the exit of an attempt whose dollars are spent."""
FIRST_LOG_S = 10
"""Seconds from the trainer's start to the first upload of its log, so that a trainer or a machine that ends
early leaves one.
"""

LOG_TRIES_MAX = 3
"""How often the upload of logs and metrics is tried at the end of an attempt that has no outputs to wait
for.
"""

TICK_S_MAX = 60.0
NOT_KEPT = (Cause.PREEMPTED,)
"""Causes of an end that leaves no time to upload the trainer's log."""

Out = tuple[AgentState, tuple[e.Effect, ...]]


def step(state: AgentState, event: v.Event, now_s: float) -> Out:
    """Return the state after `event` and the effects in the order of execution. After `Exit` there are
    none.
    """
    if state.over:
        return state, ()
    state, effects = _handled(state, event, now_s)
    for act in ACTS:
        if state.over:
            break
        state, more = act(state, now_s)
        effects = (*effects, *more)
    return state, effects


def next_tick_s(state: AgentState, now_s: float) -> float:
    """Return the next time after `now_s` at which something becomes due even without an event. Anything due
    earlier is handled at the next event.
    """
    moments = [*transfers.due_s(state.transfers), outputs.due_s(state.outputs), channel.due_s(state.channel)]
    moments += [state.train_until_s, state.deadline_s, state.save_s, state.spent_s, state.exit_until_s]
    if state.stop is not None and state.running:
        moments.append(state.stop.kill_s + (STUCK_S_MAX if state.stop.killed else 0))
    if state.flush is not None and state.flush.until_s is not None:
        moments.append(state.flush.until_s)
    if (step_s := steps_after.due_s(state.after)) is not None and state.phase is Phase.AFTER:
        moments.append(step_s)
    if state.health_problem is not None and not state.health_problem.is_reported:
        moments.append(state.health_problem.report_s)
    return min(
        (moment for moment in moments if moment is not None and moment > now_s), default=now_s + TICK_S_MAX
    )


# ------------------------------------------------------------------------------------------------------------
# the events


def _handled(state: AgentState, event: v.Event, now_s: float) -> Out:
    if isinstance(event, v.PhaseEvent):
        return _of_phase(state, event, now_s)
    if isinstance(event, v.TrainerEvent):
        return _of_trainer(state, event, now_s)
    if isinstance(event, v.MachineEvent):
        return _of_machine(state, event, now_s)
    if isinstance(event, v.CheckpointEvent):
        return _of_checkpoints(state, event, now_s)
    if isinstance(event, v.OutputEvent):
        return _of_outputs(state, event, now_s), ()
    match event:
        case v.HeartbeatAnswered(reply):
            return _heartbeat_answered(state, reply, now_s)
        case v.HeartbeatFailed():
            return replace(state, channel=channel.failed(state.channel), exit_flying=False), ()
        case v.Noted(text):
            return replace(state, note=text), ()
        case v.Tick():
            return state, ()


def _of_phase(state: AgentState, event: v.PhaseEvent, now_s: float) -> Out:
    match event:
        case v.Started():
            job = state.job
            state = replace(state, outputs=outputs.schedule(state.outputs, now_s + job.spec.outputs_every_s))
            deadline_s, save_s, spent_s = (
                now_s + left_s if left_s is not None else None
                for left_s in (job.deadline_in_s, job.save_in_s, job.spent_in_s)
            )
            return _enter(
                replace(state, deadline_s=deadline_s, save_s=save_s, spent_s=spent_s), Phase.PREFLIGHT, now_s
            )
        case v.PhaseDone(phase):
            return _phase_done(state, phase, now_s)
        case v.PhaseFailed(phase, cause, detail, tail):
            if phase is not state.phase or state.flush is not None:
                return state, ()
            return _end(replace(state, keeping_log=True), _job_exit(cause, detail, tail=tail), now_s), (
                e.KeepLog(phase),
            )
        case v.Restored(fresh_below):
            return replace(state, fresh_below=fresh_below), ()
        case v.FellBack(point, damaged_step, digests, why):
            # The attempt goes on from an older checkpoint: the steps after it are trained again, and what
            # earlier attempts evaluated and exported was another model.
            job = replace(state.job, resume_step=point.step, trained=False)
            moved = replace(state.transfers, uploaded_step=point.step)
            evaluations = steps_after.scheduled(job.spec.after, point.step)
            state = replace(
                state, job=job, transfers=moved, after=steps_after.AfterSteps(), evaluations=evaluations
            )
            note = f"resumes from step {point.step}: {why}"
            state = replace(state, committed_step=point.step, damaged_step=damaged_step, note=note)
            return state, (e.FallBack(point, digests),)


def _of_trainer(state: AgentState, event: v.TrainerEvent, now_s: float) -> Out:
    match event:
        case v.StepsReported(rows):
            return _steps_seen(state, rows, now_s)
        case v.RuleFired(cause, line):
            return _stopping(state, cause, f"log rule: {line}", now_s)
        case v.ResumeMissed(reached):
            detail = (
                f"the trainer made a step (counted as {reached}) without loading the checkpoint "
                "of "
                f"step {state.job.resume_step}"
            )
            return _stopping(state, Cause.RESUME_IGNORED, detail, now_s)
        case v.TrainerExited():
            if not state.running or state.flush is not None:
                return replace(state, running=False), ()
            state = replace(state, running=False)
            ended = _how_it_ended(state, event)
            effects: tuple[e.Effect, ...] = (e.FreeDiskSpace(),) if ended.cause is Cause.DISK_FULL else ()
            keep = ended.cause not in NOT_KEPT
            state = _end(replace(state, keeping_log=keep), ended, now_s)
            return state, (*effects, e.KeepLog(Phase.TRAIN)) if keep else effects


def _of_machine(state: AgentState, event: v.MachineEvent, now_s: float) -> Out:
    match event:
        case v.Sensed():
            gpus = gpu_health.seen(state.gpus, event.gpus, now_s, training=_is_training(state))
            found = services.sensed(state.services, event.gpus.loads if gpus.is_fresh else (), now_s)
            free_space = disk_forecast.sensed(state.free_space, event.disk_free_gib, now_s)
            return replace(state, sensed=event, gpus=gpus, services=found, free_space=free_space), ()
        case v.ServicesFound(found):
            return replace(state, services=found), ()
        case v.ServiceAnswered(name, answer):
            return replace(state, services=services.answered(state.services, name, answer, now_s)), ()
        case v.SigTerm():
            if state.preempting:
                return state, ()
            # Send a heartbeat now even while the control plane does not respond, because there will be no
            # later chance.
            talk = replace(channel.with_news(state.channel), next_s=min(state.channel.next_s, now_s))
            state = replace(state, preempting=True, channel=talk)
            return _stopping(state, Cause.PREEMPTED, "SIGTERM: the machine is being preempted", now_s)


def _of_checkpoints(state: AgentState, event: v.CheckpointEvent, now_s: float) -> Out:
    moved = state.transfers
    match event:
        case v.CheckpointsScanned():
            state, effects = _scanned(state, event, now_s)
            return _compared(state, event.seen, now_s), effects
        case v.Uploaded(step_, key, sent, owes_best):
            spec, is_first = state.job.spec, step_ > moved.uploaded_step
            moved = transfers.uploaded(moved, step_, key, now_s, owes_best=owes_best)
            kept = replace(state.saves, moved=sent or state.saves.moved)
            state = replace(state, transfers=moved, saves=kept)
            if not is_first:
                return state, ()
            evaluations, made = steps_after.checkpoint_made(
                state.evaluations, step_, spec.after, spec.trainer.steps
            )
            return replace(state, evaluations=evaluations), made
        case v.UploadFailed(step_, why):
            return replace(state, transfers=transfers.upload_failed(moved, step_, why, now_s)), ()
        case v.CommitAnswered(step_, reply):
            if reply.outcome is Outcome.FENCED:
                return _fenced(state)
            committed, kept = max(_committed(state, reply), step_), saves.committed(state.saves, step_, now_s)
            state = replace(
                state,
                transfers=transfers.committed(moved, step_, now_s),
                committed_step=committed,
                saves=kept,
            )
            return state, (e.Settle(step_),)
        case v.CommitFailed():
            return replace(
                state, transfers=transfers.commit_failed(moved, now_s, heartbeat_s=state.channel.heartbeat_s)
            ), ()
        case v.Settled():
            return replace(state, transfers=transfers.settled(moved)), ()
        case v.CheckpointVerified(step_, damage):
            return replace(state, verifying=False, verified_step=step_, damage=damage), ()
        case v.Deleted(total):
            return replace(state, deleted=total), ()


def _scanned(state: AgentState, scan: v.CheckpointsScanned, now_s: float) -> Out:
    """Record a scan's result. A flush needs a scan that started after the flush did, so an earlier one is
    repeated at once.
    """
    before, kept = state.transfers, state.saves
    moved = transfers.scanned(
        before,
        scan.steps,
        now_s,
        saving=scan.saving,
        took_s=scan.took_s,
        begun=scan.begun,
        removed=scan.removed,
        again=scan.again,
    )
    moved = replace(moved, waits_to_look=scan.waits_to_look)
    # These waited for their upload and will not be uploaded, because they are no longer the newest.
    skipped = (
        [step_ for step_ in before.found if step_ not in moved.found and step_ != moved.uploading]
        if moved.found
        else []
    )
    newest = moved.found[-1] if moved.found else 0
    if moved.found:
        kept = saves.seen(kept, newest, now_s, durations_s=state.steps.durations_s, skipped=bool(skipped))
    effects = steps_after.never_uploaded(state.evaluations, skipped, newest, state.job.spec.after)
    if kept.saves != state.saves.saves and state.flush is None:
        # A resume from the new checkpoint goes on with the outputs as they are now.
        state = replace(
            state, outputs=outputs.schedule_soon(state.outputs, now_s, every_s=state.job.spec.outputs_every_s)
        )
    stale = state.flush is not None and moved.seen <= state.flush.scans
    return replace(state, saves=kept, transfers=transfers.scan_now(moved, now_s) if stale else moved), effects


def _compared(state: AgentState, seen: Seen | None, now_s: float) -> AgentState:
    """Compare what a scan has seen with what the run promises about checkpoints."""
    if not state.running:
        kept = (
            state.promise
            if good(state) <= state.promise.good_step
            else promise.Promise(state.promise.seen, good_step=good(state))
        )
        return replace(state, promise=replace(kept, seen=seen or kept.seen))
    told = promise.watched(
        state.promise,
        state.job.spec,
        seen,
        now_s,
        good_step=good(state),
        reached=reached(state),
        base_step=state.job.resume_step or 0,
        first_s=state.steps.first_s,
    )
    is_news = bool(told.problem) != bool(state.promise.problem)
    state = replace(state, promise=told)
    return _with_news(state) if is_news else state


def _of_outputs(state: AgentState, event: v.OutputEvent, now_s: float) -> AgentState:
    match event:
        case v.OutputsUploaded(refused, failed):
            done = outputs.ended(state.outputs, refused=refused, failed=failed)
            before = state.flush.output_uploads if state.flush is not None else None
            if state.after.end is not None:
                before = state.after.end.uploads
            return replace(
                state, outputs=done if before is None else outputs.reschedule(done, now_s, before=before)
            )
        case v.StepEnded(index, problem, tail):
            if state.phase is not Phase.AFTER or index != state.after.done:
                return state
            uploads, step_ = state.outputs, state.job.spec.after[index]
            after = steps_after.command_ended(
                state.after, step_, problem, tail, now_s, uploads=uploads.started
            )
            # of what the step has left
            return replace(state, after=after, outputs=outputs.schedule(uploads, now_s))
        case v.EvaluationEnded():
            ended = replace(state.evaluations, running=False)
            return replace(state, evaluations=ended, outputs=outputs.schedule(state.outputs, now_s))
        case v.EvidenceDone(kept, why):
            # The heartbeat and the report of a failure have waited for it.
            note = state.note if kept else f"the evidence could not be uploaded to the bucket: {why}"
            ill = replace(state.health_problem, report_s=now_s) if state.health_problem is not None else None
            return replace(_with_news(state), evidence=state.evidence or kept, note=note, health_problem=ill)
        case v.LogKept():
            return replace(state, keeping_log=False)


def _with_news(state: AgentState) -> AgentState:
    return replace(state, channel=channel.with_news(state.channel))


def _enter(state: AgentState, phase: Phase, now_s: float) -> Out:
    state = _with_news(replace(state, phase=phase, note=""))
    if phase is not Phase.TRAIN:
        return state, (e.RunPhase(phase),)
    moved = transfers.begin(state.transfers, now_s, resumed=state.job.resume_step is not None)
    state = replace(
        state,
        outputs=outputs.schedule(state.outputs, now_s + min(FIRST_LOG_S, state.job.spec.outputs_every_s)),
    )
    return replace(state, running=True, steps=progress.started(now_s), transfers=moved), (e.StartTrainer(),)


def _phase_done(state: AgentState, phase: Phase, now_s: float) -> Out:
    if phase is not state.phase or phase not in ORDER[:-1]:
        return state, ()
    after = ORDER[ORDER.index(phase) + 1]
    if after is Phase.SMOKE and (state.job.spec.smoke is None or state.job.trained):
        after = Phase.RESTORE
    if after is Phase.RESTORE and state.job.resume_step is None:
        after = Phase.TRAIN
    if after is Phase.TRAIN and state.job.trained:
        return _begin_after(state, now_s)
    return _enter(state, after, now_s)


def _committed(state: AgentState, reply: Reply) -> int:
    """Return the newest committed step, with that in the reply if it can be restored."""
    return max(state.committed_step, reply.committed_step if reply.committed_step > state.damaged_step else 0)


def _steps_seen(state: AgentState, rows: tuple[Progress, ...], now_s: float) -> Out:
    if not state.running or (state.stop is not None and state.stop.cause is Cause.RESUME_IGNORED):
        return state, ()
    first = state.steps.step == 0
    resume_step = state.job.resume_step
    if first and resume_step is not None:
        # A line such as "resumed from step 25" names the step, but without a loss it does not report a
        # completed step.
        rows = tuple(row for row in rows if row.step != resume_step or row.loss is not None)
        if rows and _began_anew(rows[0].step, resume_step, state.fresh_below):
            detail = f"the first step after a resume from step {resume_step} was step {rows[0].step}"
            return _stopping(state, Cause.RESUME_IGNORED, detail, now_s)
    if resume_step is None:
        state = _with_first_numbers(state, rows)
    state = replace(state, steps=progress.seen(state.steps, rows, now_s))
    if first and state.steps.step > 0:
        left_s = state.job.train_s_max
        state = replace(state, transfers=transfers.release(state.transfers, now_s))
        state = _with_news(replace(state, train_until_s=now_s + left_s if left_s is not None else None))
    limit = state.job.spec.health.zero_reward_steps
    if limit and state.steps.zeros >= limit:
        return _stopping(
            state,
            Cause.ZERO_REWARD,
            f"reward 0 in {state.steps.zeros} steps in a row, up to step {state.steps.step}",
            now_s,
        )
    return _diverged(state, now_s)


def _diverged(state: AgentState, now_s: float) -> Out:
    """Stop a trainer whose loss has not been finite for as many steps as the config allows."""
    health, made = state.job.spec.health, progress.not_finite_steps(state.steps)
    if made < health.not_finite_steps or health.on_divergence is OnDivergence.ALERT:
        return state, ()
    where = f"from step {state.steps.not_finite_since} to step {state.steps.not_finite_step}"
    detail = f"the loss, or the norm of its gradients, was NaN or infinite in {made} steps in a row, {where}"
    return _stopping(state, Cause.NOT_FINITE, detail, now_s)


def _began_anew(step: int, resume_step: int, fresh_below: int | None) -> bool:
    """Return whether the first step that was reported after a resume shows that the trainer has started over.

    A trainer that has resumed may report the step of the checkpoint once more, the next one, or the next that
    it reports at all. One that started over reports the number with which the first attempt began, which lies
    below the second number of that attempt.
    """
    return step < resume_step and (fresh_below is None or step < fresh_below)


def _with_first_numbers(state: AgentState, rows: tuple[Progress, ...]) -> AgentState:
    """Record the first two steps that the trainer reports when it begins at the beginning."""
    for row in rows:
        if state.first_number is None:
            state = replace(state, first_number=row.step)
        elif state.fresh_below is None and row.step > state.first_number:
            state = replace(state, fresh_below=row.step)
    return state


def _is_training(state: AgentState) -> bool:
    """Return whether the trainer should be making steps: it has made one, has more to make, and was not asked
    to stop.
    """
    last = state.job.spec.trainer.steps
    return (
        state.running
        and state.stop is None
        and state.steps.step > 0
        and (last is None or reached(state) < last)
    )


def _heartbeat_answered(state: AgentState, reply: Reply, now_s: float) -> Out:
    was_sent = state.exit_flying
    state = replace(state, exit_flying=False)
    match reply.outcome:
        case Outcome.FENCED:
            return _fenced(state)
        case Outcome.REPEATED:
            return replace(state, channel=channel.refused(state.channel)), ()
        case Outcome.OK:
            pass
    if was_sent:
        return replace(state, over=True), (e.Exit(e.Leave.REPORTED),)
    moved = transfers.commit_now(state.transfers, now_s) if state.channel.failures else state.transfers
    talk = channel.answered(state.channel, heartbeat_s=reply.heartbeat_s)
    state = replace(state, channel=talk, committed_step=_committed(state, reply), transfers=moved)
    match reply.order:
        case Order.NONE:
            return replace(state, evidence_requested=False, evidence=False), ()
        case Order.DRAIN:
            if state.flush is not None and state.flush.until_s is None:
                # From now on the flush has a time limit for the last checkpoint.
                return replace(
                    state, flush=replace(state.flush, until_s=now_s + state.job.spec.health.drain_s)
                ), ()
            return _stopping(
                state,
                Cause.STOPPED_GRACEFULLY,
                reply.reason or "the control plane ordered a flush and stop",
                now_s,
            )
        case Order.EVIDENCE:
            if state.evidence_requested:
                return state, ()
            return replace(state, evidence_requested=True, outputs=outputs.schedule(state.outputs, now_s)), (
                e.GatherEvidence(),
            )


# ------------------------------------------------------------------------------------------------------------
# the end


def _fenced(state: AgentState) -> Out:
    """Kill the trainer now, and upload and report nothing more, because another attempt owns the run."""
    effects: tuple[e.Effect, ...] = (e.SignalTrainer(e.Force.KILL),) if state.running else (e.CancelPhase(),)
    return replace(state, over=True), (*effects, e.Exit(e.Leave.FENCED))


def _stopping(state: AgentState, cause: Cause, detail: str, now_s: float) -> Out:
    """Stop the attempt; only the first reason counts.

    A running trainer is asked to save and exit, or killed if it would do harm. Before the trainer has
    started, the attempt ends here.
    """
    if state.stop is not None or state.flush is not None:
        return state, ()
    at_once = cause is Cause.RESUME_IGNORED
    kill_s = now_s if at_once else _affordable(state, now_s + state.job.spec.trainer.stop_s)
    # What there is of the log is uploaded now, because the trainer may take its time, and the machine may go
    # before it has ended.
    state = replace(
        state,
        stop=Stop(cause, detail, now_s, kill_s, killed=at_once),
        outputs=outputs.schedule(state.outputs, now_s),
    )
    if at_once:
        # What such a trainer saves has the steps of this run, but belongs to a training that began anew.
        state = replace(state, transfers=transfers.close(state.transfers))
    if state.running:
        return state, (e.SignalTrainer(e.Force.KILL if at_once else e.Force.ASK),)
    return _end(state, _job_exit(cause, detail), now_s), (e.CancelPhase(),)


def _how_it_ended(state: AgentState, event: v.TrainerExited) -> JobExit:
    """Return how the trainer ended. A reason to stop outranks the trainer's own exit, unless its last step
    was reached and what it trained is wanted.
    """
    steps = state.job.spec.trainer.steps
    is_refused = state.stop is not None and state.stop.cause in REFUSED
    finished = event.code == 0 and steps is not None and reached(state) >= steps and not is_refused
    if state.stop is None and state.gpus.fault and event.code != 0:
        # The trainer's own error is a consequence of the GPU's fault.
        return _job_exit(
            Cause.GPU_HARDWARE,
            f"{state.gpus.fault}; then {event.detail}",
            code=event.code,
            tail=event.log_tail,
        )
    if state.stop is None or finished:
        ended = _job_exit(
            Cause.FINISHED if finished else event.cause, event.detail, code=event.code, tail=event.log_tail
        )
        return ended if finished else ended.model_copy(update={"action": event.action})
    return _job_exit(state.stop.cause, state.stop.detail, code=event.code, tail=event.log_tail)


def _affordable(state: AgentState, until_s: float) -> float:
    """Return the time, or the earlier one at which the run's dollars are spent."""
    return until_s if state.spent_s is None else min(until_s, state.spent_s)


def _job_exit(cause: Cause, detail: str, *, code: int | None = None, tail: str = "") -> JobExit:
    return JobExit(cause=cause, detail=detail[:DETAIL_CHARS_MAX], code=code, log_tail=tail[-TAIL_CHARS_MAX:])


def _end(state: AgentState, ended: JobExit, now_s: float) -> AgentState:
    """Enter the flush, after which nothing else is left to do."""
    trained = state.transfers.open or state.after.trained
    # Without a sentinel file, only the absence of changes distinguishes a complete checkpoint from one
    # truncated by a crash. So after a crash only checkpoints that were unchanged before it count.
    clean = ended.code == 0 or (state.stop is not None and not state.stop.killed)
    begun_s = state.stop.requested_s if state.stop is not None else now_s
    health = state.job.spec.health
    until_s = max(begun_s + health.drain_s, now_s + FLUSH_S_MIN) if trained else now_s + EARLY_FLUSH_S_MAX
    # A finished run has no time limit: this disk has the only copy, and the control plane decides for how
    # long the machine is worth its price.
    limit_s = None if ended.cause is Cause.FINISHED and trained else until_s
    flush = Flush(
        ended,
        clean=clean,
        until_s=limit_s,
        scans=state.transfers.scans,
        begun_s=now_s,
        output_uploads=state.outputs.started,
    )
    moved, last = transfers.scan_now(state.transfers, now_s), outputs.schedule(state.outputs, now_s)
    return _with_news(replace(state, phase=Phase.FLUSH, flush=flush, transfers=moved, outputs=last))


# ------------------------------------------------------------------------------------------------------------
# what is due


def _enforce_limits(state: AgentState, now_s: float) -> Out:
    """Enforce the limits on time and money in the agent as well, because the control plane may be
    unavailable.
    """
    if (
        state.deadline_s is not None
        and now_s >= state.deadline_s
        and (state.running or state.phase is Phase.AFTER)
    ):
        return _stopping(
            state, Cause.DEADLINE, f"the deadline ({state.job.spec.budget.deadline}) is near", now_s
        )
    if state.save_s is not None and now_s >= state.save_s and state.phase is not Phase.EXITED:
        return _stopping(
            state,
            Cause.BUDGET_SPENT,
            f"the budget of {usd(state.job.spec.budget.usd)} is nearly spent",
            now_s,
        )
    if state.train_until_s is None or now_s < state.train_until_s or state.after.trained:
        return state, ()
    return _stopping(
        state,
        Cause.HOURS_SPENT,
        f"the {state.job.train_s_max} s of training left to this run are spent",
        now_s,
    )


def _kill_what_stays(state: AgentState, now_s: float) -> Out:
    stop = state.stop
    if stop is None or not state.running or now_s < stop.kill_s:
        return state, ()
    if not stop.killed:
        return replace(state, stop=replace(stop, killed=True, kill_s=now_s)), (e.SignalTrainer(e.Force.KILL),)
    if now_s < stop.kill_s + STUCK_S_MAX:
        return state, ()
    detail = f"{stop.detail}; the trainer still exists {STUCK_S_MAX} s after SIGKILL"
    return _end(replace(state, running=False), _job_exit(stop.cause, detail), now_s), ()


def _diagnose(state: AgentState, now_s: float) -> Out:
    """Gather evidence first and report the health problem afterwards, because the control plane replaces the
    machine after the report.
    """
    if state.phase in (Phase.FLUSH, Phase.AFTER, Phase.EXITED):
        return replace(state, health_problem=None), ()
    saving, training = state.transfers.saving, _is_training(state)
    found = health_problem.found(
        state.gpus,
        state.services,
        state.steps,
        now_s,
        health=state.job.spec.health,
        training=training,
        saving=saving,
    )
    now = health_problem.changed(state.health_problem, found, now_s)
    if now is not None and now is not state.health_problem:
        return replace(state, health_problem=now), (e.GatherEvidence(),)
    if now is None or now.is_reported or now_s < now.report_s:
        return replace(state, health_problem=now), ()
    return _with_news(replace(state, health_problem=health_problem.reported(now))), ()


def _transfer(state: AgentState, now_s: float) -> Out:
    job, settled = state.job, state.flush is not None and state.flush.clean
    moved, effects = transfers.pace(
        state.transfers, now_s, run_id=job.run_id, attempt=job.attempt, identity=job.identity, settled=settled
    )
    return replace(state, transfers=moved), effects


def _upload_outputs(state: AgentState, now_s: float) -> Out:
    if state.phase is Phase.EXITED:
        return state, ()
    every_s, has_ended = (
        state.job.spec.outputs_every_s,
        state.flush is not None or state.after.end is not None,
    )
    uploads, effects = outputs.pace(state.outputs, now_s, every_s=every_s, trainer_ended=has_ended)
    return replace(state, outputs=uploads), effects


def _watch_uploads(state: AgentState, now_s: float) -> Out:
    return replace(state, upload_problem=upload_problem(state, now_s)), ()


def _done_despite_crash(state: AgentState) -> AgentState:
    """Return the state with a flush after success, if the trainer's process ended badly after its last step
    was reached and durable: what is finished stays finished, and the crash is a note.
    """
    flush = state.flush
    if flush is None or flush.exit.code is None or flush.exit.cause is Cause.FINISHED:
        return state
    steps, durable = state.job.spec.trainer.steps, state.committed_step
    if not is_done_despite(flush.exit.cause, steps, reached=reached(state), durable_step=durable):
        return state
    ended = flush.exit.model_copy(update={"cause": Cause.FINISHED, "action": None})
    return replace(state, flush=replace(flush, exit=ended, until_s=None))


def _finish_flush(state: AgentState, now_s: float) -> Out:
    state = _done_despite_crash(state)
    if state.phase is not Phase.FLUSH or state.flush is None or not _is_flushed(state, state.flush, now_s):
        return state, ()
    if state.verifying:
        if not _is_pressed_out(state, state.flush, now_s):
            return state, ()
    elif _needs_verification(state, state.flush, now_s):
        step_ = state.transfers.uploaded_step
        return replace(state, verifying=True, note=f"reading the checkpoint of step {step_} back"), (
            e.VerifyCheckpoint(step_),
        )
    flush = _honest(state, state.flush)
    if (
        flush.exit.cause is Cause.FINISHED
        and state.after.done < len(state.job.spec.after)
        and _has_trained(state)
    ):
        order = _order_instead(state, flush)
        if order is None:
            return _begin_after(state, now_s)
        flush = replace(flush, exit=order)
        state = replace(state, after=replace(state.after, trained=True))
    closed = replace(state.transfers, open=False)
    until_s = max(_affordable(state, now_s + EXIT_S_MAX), now_s + SPENT_EXIT_S)
    return _with_news(
        replace(state, phase=Phase.EXITED, flush=flush, transfers=closed, exit_until_s=until_s)
    ), ()


def _needs_verification(state: AgentState, flush: Flush, now_s: float) -> bool:
    """Return whether the last checkpoint has to be read back before the run may succeed. One that was
    restored was verified then.
    """
    step_ = state.transfers.uploaded_step
    is_new = step_ > max(state.verified_step, state.job.resume_step or 0) and step_ <= state.committed_step
    wanted = state.job.spec.checkpoints.verify is not Verify.OFF and flush.exit.cause is Cause.FINISHED
    return is_new and wanted and not _is_pressed_out(state, flush, now_s)


def _is_pressed_out(state: AgentState, flush: Flush, now_s: float) -> bool:
    """Return whether no time is left for the flush."""
    return (flush.until_s is not None and now_s >= flush.until_s) or now_s >= _affordable(state, math.inf)


def _has_trained(state: AgentState) -> bool:
    """Return whether training is over in this attempt or was in an earlier one; a trainer that exits early
    has not succeeded.
    """
    return state.after.trained or is_trained(
        state.job.spec.trainer.steps, max(reached(state), state.committed_step)
    )


def _order_instead(state: AgentState, flush: Flush) -> JobExit | None:
    """Return how the attempt ends, although training has succeeded and steps after it are left, because it
    has to leave; None if it may stay.
    """
    if state.stop is not None and state.stop.cause in (*FLUSHED, Cause.PREEMPTED):
        return _job_exit(state.stop.cause, state.stop.detail)
    if state.preempting:
        return _job_exit(Cause.PREEMPTED, "SIGTERM: the machine is being preempted")
    return (
        _job_exit(Cause.STOPPED_GRACEFULLY, "the control plane ordered a flush and stop")
        if flush.until_s is not None
        else None
    )


def _begin_after(state: AgentState, now_s: float) -> Out:
    """Go on with the steps after training, which has succeeded, and all that it left is durable."""
    evaluations, effects = steps_after.given_up(state.evaluations, state.transfers.uploaded_step)
    after = steps_after.begun(state.after, now_s)
    state = replace(
        state, phase=Phase.AFTER, flush=None, stop=None, note="", after=after, evaluations=evaluations
    )
    return _with_news(state), effects


def _run_steps(state: AgentState, now_s: float) -> Out:
    """Run the steps after training, one after the other. The first one waits for an evaluation that goes
    on.
    """
    steps_ = state.job.spec.after
    if state.phase is not Phase.AFTER or state.evaluations.running:
        return state, ()
    if steps_after.is_over(state.after, state.outputs.last_done):
        return _step_over(state, now_s)
    if state.after.done >= len(steps_):
        return _end(state, JobExit(cause=Cause.FINISHED, code=0), now_s), ()
    after, effects = steps_after.pace(state.after, now_s, steps_, state.transfers.uploaded_step)
    if not effects:
        return state, ()
    step_ = steps_[after.done]
    tried = f", try {after.tries + 1} of {step_.retries + 1}" if step_.retries else ""
    note = f"step {after.done + 1} of {len(steps_)} after training: {step_.name}{tried}"
    return _with_news(replace(state, after=after, note=note)), effects


def _step_over(state: AgentState, now_s: float) -> Out:
    assert state.after.end is not None
    step_, end, refused = state.job.spec.after[state.after.done], state.after.end, state.outputs.refused
    problem = steps_after.problem_of(state.after, refused)
    if problem and step_.required:
        detail = f"{step_.name}: {problem}"
        failed = _job_exit(Cause.AFTER_FAILED, detail, tail=end.log_tail)
        return _end(replace(state, keeping_log=True), failed, now_s), (e.KeepLog(Phase.AFTER),)
    after = steps_after.over(state.after, step_, problem, now_s, refused=refused)
    return _run_steps(_with_news(replace(state, after=after)), now_s)


def _evaluate(state: AgentState, now_s: float) -> Out:
    """Evaluate checkpoints while training goes on, and no longer once the attempt ends without success."""
    if state.evaluations.cancelled:
        return state, ()
    ends = state.stop is not None or (
        state.flush is not None and state.flush.exit.cause is not Cause.FINISHED
    )
    if ends and state.evaluations.running:
        return replace(state, evaluations=replace(state.evaluations, cancelled=True)), (e.CancelSteps(),)
    if not state.running or ends:
        return state, ()
    evaluations, effects = steps_after.pace_evaluations(state.evaluations)
    return replace(state, evaluations=evaluations), effects


def _honest(state: AgentState, flush: Flush) -> Flush:
    """Return the flush with an exit that does not claim success: while the last checkpoint or outputs are not
    in the bucket, the attempt may not report that it finished or flushed.
    """
    moved, finished = state.transfers, flush.exit.cause is Cause.FINISHED
    if not (moved.open or state.after.trained) or flush.exit.cause not in (Cause.FINISHED, *FLUSHED):
        return flush
    detail = "" if moved.is_idle else moved.problem or "the upload of the last checkpoint did not end in time"
    lost = detail or unsaved(state) or (_lost(state) if finished else "")
    if not lost and state.damage:
        which = f"the checkpoint of step {state.verified_step}"
        lost = f"{which} is damaged in the bucket, and this machine no longer has it: {state.damage}"
    if not lost and state.job.spec.output_patterns and not _are_outputs_done(state, flush):
        lost = f"outputs were not uploaded: {state.outputs.problem or 'their upload did not end in time'}"
    saved = max(moved.begun_step, moved.uploaded_step) if finished else 0
    failed = {"cause": Cause.UPLOAD_FAILED, "detail": lost[:DETAIL_CHARS_MAX]} if lost else {}
    return replace(flush, exit=flush.exit.model_copy(update={"saved_step": saved, **failed}))


def _lost(state: AgentState) -> str:
    """Return a description of checkpoints that the trainer saved, or may have saved, and removed before they
    could be uploaded; "" if there are none.
    """
    moved = state.transfers
    newest = (
        f"the newest checkpoint in the bucket is of step {moved.uploaded_step}"
        if moved.uploaded_step
        else "no checkpoint is in the bucket"
    )
    if moved.begun_step > moved.uploaded_step:
        return (
            f"the trainer's checkpoint of step {moved.begun_step} was removed or incomplete when "
            "the "
            f"trainer ended; {newest}"
        )
    if moved.removed and reached(state) > moved.uploaded_step:
        return f"the trainer removed its checkpoint folder at the end, at step {reached(state)}; {newest}"
    return ""


def _is_flushed(state: AgentState, flush: Flush, now_s: float) -> bool:
    moved = state.transfers
    if now_s >= _affordable(state, math.inf):
        return True
    if flush.until_s is not None:
        if moved.uncommitted is not None and state.channel.failures and now_s < flush.until_s + EXIT_S_MAX:
            # The exit could not be reported now either, so waiting costs nothing, and the commit must precede
            # it.
            return False
        if now_s >= flush.until_s:
            return True
    looked = not moved.open or moved.seen > flush.scans
    # Who ordered the end of a run that has finished does not wait for outputs that would only be refused
    # again.
    given_up = (
        flush.until_s is not None
        and bool(state.outputs.refused)
        and state.outputs.last_done > flush.output_uploads
    )
    if not given_up and not _are_outputs_done(state, flush):
        return False
    busy = moved.uncommitted is not None or transfers.is_settling(moved, now_s) or state.keeping_log
    # The disk has the only copy of weights that are in no checkpoint, so the machine of a finished run is
    # kept until somebody has decided.
    is_kept = flush.until_s is None and bool(unsaved(state))
    return looked and moved.is_idle and not busy and not is_kept


def _are_outputs_done(state: AgentState, flush: Flush) -> bool:
    """Return whether the flush may end without waiting for outputs any longer. Logs and metrics are tried a
    few times. Outputs that would only be refused again delay the end only of a run that has finished.
    """
    uploads, finished = state.outputs, flush.exit.cause is Cause.FINISHED
    if not state.job.spec.output_patterns:
        has_tried = uploads.started >= flush.output_uploads + LOG_TRIES_MAX and not uploads.in_flight
        return has_tried or uploads.last_done > flush.output_uploads
    return not are_outputs_pending(state) if finished else uploads.last_done > flush.output_uploads


def _send_heartbeat_if_due(state: AgentState, now_s: float) -> Out:
    spent = now_s >= _affordable(state, math.inf)
    if state.exit_until_s is not None and now_s >= state.exit_until_s and (spent or not state.channel.flying):
        return replace(state, over=True), (e.Exit(e.Leave.SPENT if spent else e.Leave.UNHEARD),)
    if not channel.is_due(state.channel, now_s):
        return state, ()
    state = replace(
        state, channel=channel.sent(state.channel, now_s, salt=f"{state.job.run_id}/{state.job.attempt}")
    )
    message = heartbeat(state, now_s)
    if message.exit is None:
        return state, (e.SendHeartbeat(message),)
    return replace(state, exit_flying=True), (e.SendExit(message),)


ACTS: tuple[Callable[[AgentState, float], Out], ...] = (
    _enforce_limits,
    _kill_what_stays,
    _diagnose,
    _transfer,
    _upload_outputs,
    _watch_uploads,
    _evaluate,
    _finish_flush,
    _run_steps,
    _send_heartbeat_if_due,
)
