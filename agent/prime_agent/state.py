"""The complete state of the agent's core, and the heartbeat that reports it."""

from dataclasses import dataclass, field

from prime_agent.checkpoints.disk_forecast import Room, full_s
from prime_agent.checkpoints.stats import Saves, behind, report, too_fast
from prime_agent.checkpoints.transfers import Transfers
from prime_agent.events import Sensed
from prime_agent.gpu.health import GpuHealth
from prime_agent.gpu.report import mean_util_pct, report_gpus, used_mib
from prime_agent.health import Illness
from prime_agent.heartbeat_channel import Link
from prime_agent.trainer.services import Services
from prime_agent.trainer.steps import Steps, slow_s
from prime_train.core.causes import Cause
from prime_train.core.spec import RunSpec
from prime_train.core.wire import UPLOAD_TROUBLE_CHARS_MAX, Heartbeat, JobExit, Phase

NOTE_CHARS_MAX = 200
DETAIL_CHARS_MAX = 500
FAILURES_TOLD = 3
"""Consecutive failed uploads before people are notified; one or two usually resolve by themselves."""
LONG_FLUSH_S = 10


@dataclass(frozen=True)
class Job:
    """The attempt's job. `train_s_max` is the training time left in seconds, counted from the first step. `deadline_in_s` is when to save
    and exit, in seconds from the start."""

    run_id: str
    attempt: int
    spec: RunSpec
    resume_step: int | None = None
    train_s_max: int | None = None
    identity: str = ""
    deadline_in_s: int | None = None


@dataclass(frozen=True)
class Stop:
    """The reason for which the trainer was asked to exit; at `kill_s` it is killed."""

    cause: Cause
    detail: str
    asked_s: float
    kill_s: float
    killed: bool = False


@dataclass(frozen=True)
class Flush:
    """The end of an attempt, in which only checkpoints are still uploaded.

    The flush ends at `until_s` at the latest; if that is None, it lasts until everything is durable. It needs a scan of the folder that
    started after scan number `scans`. `clean` says that the trainer exited by itself or as requested, so that the files it left are
    complete.
    """

    exit: JobExit
    clean: bool
    until_s: float | None
    scans: int
    begun_s: float = 0.0


@dataclass(frozen=True)
class AgentState:
    """State of one attempt. Times are seconds of the machine's monotonic clock."""

    job: Job
    link: Link
    phase: Phase = Phase.PREFLIGHT
    steps: Steps = field(default_factory=Steps)
    transfers: Transfers = field(default_factory=Transfers)
    saves: Saves = field(default_factory=Saves)
    room: Room = field(default_factory=Room)
    running: bool = False
    """Whether the trainer has been started and has not ended."""
    stop: Stop | None = None
    flush: Flush | None = None
    train_until_s: float | None = None
    deadline_s: float | None = None
    sensed: Sensed = field(default_factory=Sensed)
    gpus: GpuHealth = field(default_factory=GpuHealth)
    services: Services = ()
    illness: Illness | None = None
    preempting: bool = False
    evidence_asked: bool = False
    evidence: bool = False
    keeping_log: bool = False
    committed_step: int = 0
    damaged_step: int = 0
    """Steps up to this one cannot be restored even if the control plane reports them as committed; an older checkpoint was restored
    instead."""
    note: str = ""
    upload_trouble: str = ""
    exit_until_s: float | None = None
    exit_flying: bool = False
    over: bool = False


def initial(job: Job) -> AgentState:
    transfers = Transfers(uploaded_step=job.resume_step or 0)
    return AgentState(job, Link(heartbeat_s=job.spec.health.heartbeat_s), transfers=transfers, committed_step=job.resume_step or 0)


def reached(state: AgentState) -> int:
    """Return the newest step over all attempts, as far as this one knows."""
    return max(state.steps.step, state.job.resume_step or 0)


def saved_before(state: AgentState, step: int) -> int:
    """Return the newest checkpoint before `step`, as far as this attempt knows. Metrics of the steps after it belong to the checkpoint of
    `step`."""
    return max((save.step for save in state.saves.saves if save.step < step), default=state.job.resume_step or 0)


def is_upload_pending(state: AgentState, now_s: float) -> bool:
    """Return whether the trainer has finished and its checkpoints are not all durable. A flush longer than `LONG_FLUSH_S` counts, whatever
    it waits for."""
    flush, moved = state.flush, state.transfers
    if flush is None or flush.exit.cause is not Cause.FINISHED or state.phase is not Phase.FLUSH:
        return False
    return not moved.is_idle or moved.uncommitted is not None or now_s >= flush.begun_s + LONG_FLUSH_S


def upload_trouble(state: AgentState, now_s: float) -> str:
    """Return why checkpoints do not become durable; "" if they do.

    A reason stays until the newest checkpoint is durable, so that uploads whose delay varies around the limit are reported only once.
    """
    moved, newest = state.transfers, state.saves.saves[-1].step if state.saves.saves else 0
    if moved.failures_in_a_row >= FAILURES_TOLD:
        told = f"{moved.failures_in_a_row} uploads in a row have failed; {moved.trouble}"
        return told[:UPLOAD_TROUBLE_CHARS_MAX] if moved.trouble else state.upload_trouble
    if (late := behind(state.saves, state.committed_step, now_s)) is not None:
        reason = f"; {too_fast(state.saves)}" if too_fast(state.saves) else ""
        return f"{late}{reason}"[:UPLOAD_TROUBLE_CHARS_MAX]
    is_over = moved.failures_in_a_row == 0 and newest <= state.committed_step
    return "" if is_over else state.upload_trouble


def heartbeat(state: AgentState, now_s: float) -> Heartbeat:
    """Return the current heartbeat, with the sequence number `state.link.seq`."""
    steps, loads = state.steps, state.gpus.snapshot.loads
    illness = state.illness if state.illness is not None and state.illness.said else None
    return Heartbeat(
        run=state.job.run_id,
        attempt=state.job.attempt,
        identity=state.job.identity,
        seq=state.link.seq,
        phase=state.phase,
        step=steps.step,
        step_age_s=0 if steps.rose_s is None else max(0, int(now_s - steps.rose_s)),
        step_slow_s=slow_s(steps),
        saving=state.transfers.saving and state.running,
        preempting=state.preempting,
        sick=illness.cause if illness is not None else None,
        sick_detail=illness.detail[:DETAIL_CHARS_MAX] if illness is not None else "",
        evidence=state.evidence,
        uploaded_step=state.transfers.uploaded_step,
        upload_pending=is_upload_pending(state, now_s),
        upload_trouble=state.upload_trouble,
        gpu_util_pct=mean_util_pct(loads),
        gpu_mem_mib=used_mib(loads),
        gpus=report_gpus(state.gpus.snapshot),
        disk_free_gib=state.sensed.disk_free_gib,
        disk_full_s=full_s(state.room),
        saves=report(state.saves, now_s),
        loss=steps.loss,
        reward=steps.reward,
        note=(state.transfers.trouble or too_fast(state.saves) or state.note)[:NOTE_CHARS_MAX],
        news=state.link.said_news,
        exit=state.flush.exit if state.flush is not None and state.phase is Phase.EXITED else None,
    )
