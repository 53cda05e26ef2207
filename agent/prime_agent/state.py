"""The complete state of the agent's core, and the heartbeat that reports it."""

from dataclasses import dataclass, field
from typing import Self

from prime_agent.after_training.schedule import AfterSteps, Evaluations, scheduled
from prime_agent.checkpoints.disk_forecast import FreeSpaceSamples, full_s
from prime_agent.checkpoints.promise import Promise, left_behind
from prime_agent.checkpoints.stats import SaveHistory, behind, report, too_fast
from prime_agent.checkpoints.transfers import Transfers
from prime_agent.events import Sensed
from prime_agent.gpu.health import GpuHealth
from prime_agent.gpu.report import mean_util_pct, report_gpus, used_mib
from prime_agent.health import HealthProblem
from prime_agent.heartbeat_channel import HeartbeatChannel
from prime_agent.outputs.schedule import OutputUploads
from prime_agent.trainer.services import Services
from prime_agent.trainer.steps import Steps, slow_s, timed_s, timed_spread_s
from prime_train.runs.wire import UPLOAD_PROBLEM_CHARS_MAX, Bootstrap, Deletions, Heartbeat, JobExit, Phase
from prime_train.spec.causes import Cause
from prime_train.spec.spec import RunSpec

NOTE_CHARS_MAX = 200
DETAIL_CHARS_MAX = 500
FAILURES_REPORTED_MIN = 3
"""Number of consecutive failed uploads before people are notified; one or two usually resolve by
themselves.
"""
LONG_FLUSH_S = 10


@dataclass(frozen=True)
class Job:
    """The attempt's job. `train_s_max` is the training time left in seconds, counted from the first step.
    `deadline_in_s` is when to save and exit, in seconds from the start; `save_in_s` and `spent_in_s` likewise
    for the run's dollars: when to save and exit, and when the attempt must have ended.
    """

    run_id: str
    attempt: int
    spec: RunSpec
    resume_step: int | None = None
    train_s_max: int | None = None
    identity: str = ""
    deadline_in_s: int | None = None
    save_in_s: int | None = None
    spent_in_s: int | None = None
    trained: bool = False
    """Whether an earlier attempt has trained to the end, with the checkpoint of `resume_step`."""
    after_done: int = 0
    """Number of steps under `after` that earlier attempts have done."""
    after_failed: str = ""
    """The steps among these that failed, and why."""

    @classmethod
    def of(cls, job: Bootstrap) -> Self:
        """Return what the core needs of what the control plane has sent."""
        return cls(
            job.run,
            job.attempt,
            job.spec,
            job.resume.step if job.resume is not None else None,
            job.train_s_max,
            job.identity,
            job.deadline_in_s,
            save_in_s=job.save_in_s,
            spent_in_s=job.spent_in_s,
            trained=job.trained,
            after_done=job.after_done,
            after_failed=job.after_failed,
        )


@dataclass(frozen=True)
class Stop:
    """The reason for which the trainer was asked to exit; at `kill_s` it is killed."""

    cause: Cause
    detail: str
    requested_s: float
    kill_s: float
    killed: bool = False


@dataclass(frozen=True)
class Flush:
    """The end of an attempt, in which only checkpoints are still uploaded.

    The flush ends at `until_s` at the latest; if that is None, it lasts until everything is durable. It needs
    a scan of the folder that started after scan number `scans`. `clean` says that the trainer exited by
    itself or as requested, so that the files it left are complete.
    """

    exit: JobExit
    clean: bool
    until_s: float | None
    scans: int
    begun_s: float = 0.0
    output_uploads: int = 0
    """Number of uploads of outputs that had started before the flush; it needs a later one."""


@dataclass(frozen=True)
class AgentState:
    """State of one attempt. Times are seconds of the machine's monotonic clock."""

    job: Job
    channel: HeartbeatChannel
    phase: Phase = Phase.PREFLIGHT
    steps: Steps = field(default_factory=Steps)
    transfers: Transfers = field(default_factory=Transfers)
    outputs: OutputUploads = field(default_factory=OutputUploads)
    saves: SaveHistory = field(default_factory=SaveHistory)
    promise: Promise = field(default_factory=Promise)
    free_space: FreeSpaceSamples = field(default_factory=FreeSpaceSamples)
    after: AfterSteps = field(default_factory=AfterSteps)
    evaluations: Evaluations = field(default_factory=Evaluations)
    running: bool = False
    """Whether the trainer has been started and has not ended."""
    stop: Stop | None = None
    flush: Flush | None = None
    train_until_s: float | None = None
    deadline_s: float | None = None
    save_s: float | None = None
    """When the run's dollars require to save and exit; the control plane orders this earlier if it can."""
    spent_s: float | None = None
    """When the attempt must have ended, because the run's dollars are spent."""
    sensed: Sensed = field(default_factory=Sensed)
    gpus: GpuHealth = field(default_factory=GpuHealth)
    services: Services = ()
    health_problem: HealthProblem | None = None
    deleted: Deletions | None = None
    """What the agent has deleted since it was started."""
    preempting: bool = False
    evidence_requested: bool = False
    evidence: bool = False
    keeping_log: bool = False
    committed_step: int = 0
    damaged_step: int = 0
    """Steps up to this one cannot be restored even if the control plane reports them as committed; an older
    checkpoint was restored instead.
    """
    verified_step: int = 0
    """The newest step whose checkpoint was read back from the bucket, or is being read back."""
    verifying: bool = False
    damage: str = ""
    """What is damaged in the bucket of the checkpoint of `verified_step`, and could not be sent again."""
    first_number: int | None = None
    """The first step that the trainer reported in this attempt, if it began at the beginning."""
    fresh_below: int | None = None
    """The step below which the first report of a training lies that begins anew: the second step that the
    first attempt reported. None: not known yet, or not by the restored checkpoint.
    """
    note: str = ""
    upload_problem: str = ""
    exit_until_s: float | None = None
    exit_flying: bool = False
    over: bool = False


def initial(job: Job) -> AgentState:
    resume_step = job.resume_step or 0
    return AgentState(
        job,
        HeartbeatChannel(heartbeat_s=job.spec.health.heartbeat_s),
        transfers=Transfers(uploaded_step=resume_step),
        after=AfterSteps(done=job.after_done, failed=job.after_failed) if job.trained else AfterSteps(),
        evaluations=scheduled(job.spec.after, resume_step),
        committed_step=resume_step,
    )


def reached(state: AgentState) -> int:
    """Return the newest step over all attempts that is known to this attempt."""
    return max(state.steps.step, state.job.resume_step or 0)


def good(state: AgentState) -> int:
    """Return the newest step of which a complete checkpoint is known, on this machine or in the bucket; 0 if
    there is none.
    """
    moved, seen = state.transfers, [save.step for save in state.saves.saves[-1:]]
    return max([moved.uploaded_step, moved.uploading or 0, *moved.found, *seen])


def unsaved(state: AgentState) -> str:
    """Return what is true of checkpoints that the run promises and that do not come to be, if they are late,
    or the trainer has finished without them; "" otherwise.
    """
    if state.flush is None:
        return state.promise.problem if state.running else ""
    if not state.transfers.open or state.after.trained or state.flush.exit.cause is not Cause.FINISHED:
        return state.promise.problem
    base_step, first_step = state.job.resume_step or 0, state.steps.step
    moved, seen = state.transfers, state.promise.seen
    if seen is not None and seen.is_empty and (moved.removed or moved.begun_step > moved.uploaded_step):
        # the trainer has removed it, so there is nothing to keep the machine for, and the exit says so
        return ""
    return left_behind(
        state.job.spec,
        state.promise,
        good_step=good(state),
        reached=reached(state),
        base_step=base_step,
        first_step=first_step,
    )


def _has_looked(state: AgentState) -> bool:
    """Return whether it is known what the trainer saved last: while it runs, or once the folder was looked at
    after its end.
    """
    return state.flush is None or not state.transfers.open or state.transfers.seen > state.flush.scans


def saved_before(state: AgentState, step: int) -> int:
    """Return the newest checkpoint before `step` that is known to this attempt. Metrics of the steps after it
    belong to the checkpoint of `step`.
    """
    return max(
        (save.step for save in state.saves.saves if save.step < step), default=state.job.resume_step or 0
    )


def has_gone_on(state: AgentState, step: int) -> bool:
    """Return whether the trainer has reached a step after `step`, or has ended in order, so that its save of
    `step` is over.
    """
    return state.steps.step > step or (state.flush is not None and state.flush.clean)


def is_upload_pending(state: AgentState, now_s: float) -> bool:
    """Return whether the trainer has finished and its checkpoints are not all durable. Also True during a
    flush longer than `LONG_FLUSH_S`, whatever that waits for.
    """
    flush, moved = state.flush, state.transfers
    if flush is None or flush.exit.cause is not Cause.FINISHED or state.phase is not Phase.FLUSH:
        return False
    busy = (
        not (moved.is_idle and _has_looked(state))
        or moved.uncommitted is not None
        or are_outputs_pending(state)
        or bool(unsaved(state))
    )
    return busy or now_s >= flush.begun_s + LONG_FLUSH_S


def are_outputs_pending(state: AgentState) -> bool:
    """Return whether outputs that a trainer which has ended left on this disk are not all in the bucket, as
    far as is known.
    """
    outputs, flush = state.outputs, state.flush
    if flush is None or not state.job.spec.output_patterns:
        return False
    # What a step after training leaves, and cannot be uploaded, is that step's failure.
    return outputs.last_done <= flush.output_uploads or (bool(outputs.refused) and not state.after.trained)


def upload_problem(state: AgentState, now_s: float) -> str:
    """Return why checkpoints or outputs do not become durable; "" if they do.

    A reason stays until the newest checkpoint is durable, so that uploads whose delay varies around the limit
    are reported only once.
    """
    moved, newest = state.transfers, state.saves.saves[-1].step if state.saves.saves else 0
    if moved.failures_in_a_row >= FAILURES_REPORTED_MIN:
        message = f"{moved.failures_in_a_row} uploads in a row have failed; {moved.problem}"
        return message[:UPLOAD_PROBLEM_CHARS_MAX] if moved.problem else state.upload_problem
    if (late := behind(state.saves, state.committed_step, now_s)) is not None:
        reason = f"; {too_fast(state.saves)}" if too_fast(state.saves) else ""
        return f"{late}{reason}"[:UPLOAD_PROBLEM_CHARS_MAX]
    if state.outputs.refused or state.outputs.failures_in_a_row >= FAILURES_REPORTED_MIN:
        return f"outputs are not uploaded: {state.outputs.problem}"[:UPLOAD_PROBLEM_CHARS_MAX]
    is_over = moved.failures_in_a_row == 0 and newest <= state.committed_step
    return "" if is_over else state.upload_problem


def heartbeat(state: AgentState, now_s: float) -> Heartbeat:
    """Return the current heartbeat, with the sequence number `state.channel.seq`."""
    steps, loads = state.steps, state.gpus.snapshot.loads
    health_problem = (
        state.health_problem
        if state.health_problem is not None and state.health_problem.is_reported
        else None
    )
    return Heartbeat(
        run=state.job.run_id,
        attempt=state.job.attempt,
        identity=state.job.identity,
        seq=state.channel.seq,
        phase=state.phase,
        step=steps.step,
        step_age_s=0 if steps.rose_s is None else max(0, int(now_s - steps.rose_s)),
        step_slow_s=slow_s(steps),
        timed_steps=steps.rises,
        timed_s=timed_s(steps),
        timed_spread_s=timed_spread_s(steps),
        saving=(state.transfers.saving or state.evaluations.running) and state.running,
        preempting=state.preempting,
        sick=health_problem.cause if health_problem is not None else None,
        sick_detail=health_problem.detail[:DETAIL_CHARS_MAX] if health_problem is not None else "",
        evidence=state.evidence,
        uploaded_step=state.transfers.uploaded_step,
        upload_pending=is_upload_pending(state, now_s),
        upload_problem=state.upload_problem,
        unsaved=unsaved(state) if _has_looked(state) else "",
        outputs_pending=state.phase is Phase.FLUSH and are_outputs_pending(state),
        trained=state.after.trained,
        after_done=state.after.done if state.after.trained else 0,
        after_failed=state.after.failed,
        gpu_util_pct=mean_util_pct(loads),
        gpu_mem_mib=used_mib(loads),
        gpus=report_gpus(state.gpus.snapshot, state.gpus.fullest),
        disk_free_gib=state.sensed.disk_free_gib,
        disk_full_s=full_s(state.free_space),
        saves=report(state.saves, now_s),
        traffic=state.sensed.traffic,
        deleted=state.deleted,
        loss=steps.loss,
        reward=steps.reward,
        learning_rate=steps.learning_rate,
        not_finite_since=steps.not_finite_since,
        finite_step=steps.finite_step,
        restored_step=state.job.resume_step,
        note=(state.transfers.problem or too_fast(state.saves) or state.note)[:NOTE_CHARS_MAX],
        news=state.channel.sent_news,
        exit=state.flush.exit if state.flush is not None and state.phase is Phase.EXITED else None,
    )
