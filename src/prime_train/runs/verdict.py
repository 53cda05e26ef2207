"""Judges an attempt by the evidence. A source that could not be read leads to no conclusion.

The order of the checks matters. An exit that the agent itself reported is believed first. Fresh heartbeats
are believed before the provider: a machine that sends heartbeats exists, whatever a lagging list contains.
Only if heartbeats are missing is the provider's state considered, and "could not be read" never counts as
"gone". The tracker receives reports as long as its client runs, whether or not the trainer steps, so it is
evidence for a run only while the reported step rises.
"""

from dataclasses import dataclass, field, replace
from enum import StrEnum

from prime_train.runs.forecast import kind_of
from prime_train.runs.links import LAG_S_MAX
from prime_train.runs.resuming.trust import failed_to_resume
from prime_train.runs.run import Attempt, Lease, Run, TrackedStep, with_attempt
from prime_train.runs.wire import Heartbeat, Phase
from prime_train.spec.after_steps import is_done_despite, is_trained
from prime_train.spec.causes import Action, Cause
from prime_train.spec.spec import HealthSpec

FLOOR_FACTOR = 3
"""An early step may take this many times `health.stall_s` at least."""
STEP_FACTOR = 10
"""An early step may take this many times what was measured of a few steps, or estimated."""
FIRST_FACTOR = 2
"""An early step may take this many times what it took from the first heartbeat to the first step."""


class PodStatus(StrEnum):
    PENDING = "pending"
    ACTIVE = "active"
    GONE = "gone"
    UNKNOWN = "unknown"
    """A status of the provider that is unknown to prime-train; never taken as gone."""
    BROKEN = "broken"
    """The provider reports that the pod failed. It may still run, and is paid for, so this counts only while
    no agent has come up on it.
    """


@dataclass(frozen=True)
class Pod:
    """A rented machine as the provider reports it."""

    pod_id: str
    name: str
    status: PodStatus
    created_s: int = 0
    usd_per_hour: float = 0.0
    ended_s: int | None = None
    """When the pod ended, as the provider reports it; None if it has not ended or the provider does not
    report the time.
    """


@dataclass(frozen=True)
class PodsObserved:
    """Every pod of the run in the provider's list. `gone` holds ids it once gave out and now reports as
    terminated or unknown (404).
    """

    pods: tuple[Pod, ...] = ()
    gone: frozenset[str] = frozenset()
    listed_s: int | None = None
    """When the list was requested, because a list proves nothing about pods created later; None means that it
    is still current.
    """
    unlisted: frozenset[str] = frozenset()
    """Providers whose pods are missing in `pods` because their list could not be read."""

    def living(self) -> tuple[Pod, ...]:
        return tuple(p for p in self.pods if p.status is not PodStatus.GONE and p.pod_id not in self.gone)

    def as_of_s(self, now_s: int) -> int:
        """Return the second as of which the list is valid."""
        return now_s if self.listed_s is None else min(now_s, self.listed_s)


@dataclass(frozen=True)
class PodsUnknown:
    """The provider of the current pod could not be read."""

    why: str
    others: PodsObserved | None = None
    """What is known of the run's other pods all the same; None: nothing."""


PodsView = PodsObserved | PodsUnknown


@dataclass(frozen=True)
class TrackerObserved:
    """The last report of the run in the experiment tracker; `received_s` 0: the tracker was read and has no
    report of it.
    """

    step: int
    received_s: int


UNHEARD = TrackerObserved(0, 0)


@dataclass(frozen=True)
class Evidence:
    """Everything known of a run at one moment. `blind`: the reason why silence proves nothing now;
    `seen_since_s`: when heartbeats could first be received again, so that time in which none could be
    received does not count as silence; `unheard_s`: seconds since then, and since the last heartbeat, in
    which it is not known that one could be received.
    """

    lease: Lease
    pods: PodsView
    tracker: TrackerObserved | None = None
    blind: str | None = None
    seen_since_s: int = 0
    unheard_s: int = 0


@dataclass(frozen=True)
class Healthy:
    phase: Phase | None
    """Phase of the agent; None if it has sent no heartbeat yet and still has time for that."""
    step: int
    cut_off: bool = False
    preempting: bool = False
    is_durable: bool = False
    """The trainer has exited successfully, and its result is committed, although its agent has not received
    the confirmation.
    """
    heartbeat: Heartbeat | None = field(default=None, compare=False)
    """The fresh heartbeat that shows it; None: there is none, because none has come yet, or none arrives any
    more."""


@dataclass(frozen=True)
class Gone:
    why: str
    was_alive: bool = False
    """Whether the agent on the machine had come up."""


@dataclass(frozen=True)
class Silent:
    silent_s: int
    past_limit: bool


@dataclass(frozen=True)
class Stalled:
    cause: Cause
    waited_s: int
    limit_s: int
    evidence: bool = False


@dataclass(frozen=True)
class Sick:
    cause: Cause
    detail: str
    exited: bool
    """Whether the agent has ended the attempt itself."""
    is_checkpoint: bool = False
    """Whether this counts against the checkpoint that the attempt restored."""
    action: Action | None = None
    """What follows by the trainer's own words; None: what follows from the cause."""
    code: int | None = None
    """The trainer's exit code, if it has exited."""
    step: int = field(default=0, compare=False)
    """The step that the attempt had reached."""
    durable_step: int = field(default=0, compare=False)
    """The newest step that the attempt had made durable."""


@dataclass(frozen=True)
class Finished:
    step: int
    note: str = ""
    """How the trainer's process ended, if not well, although all its work was done and durable."""


@dataclass(frozen=True)
class Unknown:
    why: str
    breaker: bool = False


Verdict = Healthy | Gone | Silent | Stalled | Sick | Finished | Unknown


def judge(run: Run, evidence: Evidence, now_s: int) -> Verdict:
    """Return the verdict on the run's newest attempt. Raises ValueError if the run has no attempt; its lease
    must be open.
    """
    run = with_tracker_report(run, evidence)
    attempt = run.current_attempt
    if attempt is None:
        raise ValueError(f"run {run.run_id} has no attempt to judge")
    lease = evidence.lease
    heartbeat = lease.heartbeat if lease.attempt == attempt.number else None
    if heartbeat is None or lease.heartbeat_s is None:
        return _before_first_heartbeat(run, attempt, evidence, now_s)
    if heartbeat.exit is not None:
        return _exited(run, lease, heartbeat)
    age_s = now_s - lease.heartbeat_s
    if age_s > run.spec.health.heartbeat_s and _is_gone(attempt, evidence.pods):
        return Gone(
            f"the provider reports that the machine is gone; its last heartbeat came {age_s} s ago",
            was_alive=True,
        )
    if age_s <= run.spec.health.overdue_s:
        return _with_fresh_heartbeat(run, attempt, heartbeat, evidence, now_s)
    return _overdue(run, attempt, heartbeat, evidence, now_s)


def step_limit_s(
    health: HealthSpec, step_slow_s: float | None, *, saving: bool, early_s: int | None = None
) -> int:
    """Return the step deadline in seconds: `stall_factor` x the slow end of the step times, at least
    `stall_s`, plus the saving allowance.

    Until step times are known, a step may take `early_s`; without that, as long as the first one, because
    some trainers have steps of many minutes.
    """
    unknown_s = early_s if early_s is not None else health.first_step_s
    longest_s = int(health.stall_factor * step_slow_s) if step_slow_s else unknown_s
    return max(health.stall_s, longest_s) + (health.saving_s if saving else 0)


def current_step_limit_s(run: Run, attempt: Attempt, heartbeat: Heartbeat) -> int:
    """Return the step deadline in seconds that holds for the attempt's next step."""
    slow_s = max(heartbeat.step_slow_s or 0.0, run.step_slow_s or 0.0)
    return step_limit_s(
        run.spec.health, slow_s, saving=is_saving(heartbeat), early_s=_early_limit_s(run, attempt, heartbeat)
    )


def is_saving(heartbeat: Heartbeat) -> bool:
    """Return whether steps may pause for a while because a checkpoint or evaluation is being made."""
    return heartbeat.saving or heartbeat.phase is Phase.FLUSH


def step_rose_s(lease: Lease) -> int | None:
    """Return the second when the trainer's step last rose, by the server's clock; None without a
    heartbeat.
    """
    if lease.heartbeat is None or lease.heartbeat_s is None:
        return None
    return lease.heartbeat_s - lease.heartbeat.step_age_s


def _is_gone(attempt: Attempt, pods: PodsView) -> bool:
    return isinstance(pods, PodsObserved) and attempt.pod_id is not None and attempt.pod_id in pods.gone


def _before_first_heartbeat(run: Run, attempt: Attempt, evidence: Evidence, now_s: int) -> Verdict:
    if isinstance(evidence.pods, PodsUnknown):
        return Unknown(evidence.pods.why)
    if _is_gone(attempt, evidence.pods):
        return Gone("the provider reports that the machine is gone, and it never sent a heartbeat")
    if any(pod.pod_id == attempt.pod_id and pod.status is PodStatus.BROKEN for pod in evidence.pods.pods):
        return Sick(
            Cause.BOOT_FAILED,
            "the provider reports that the machine failed, and it never sent a heartbeat",
            exited=False,
        )
    waited_s = now_s - max(attempt.launched_s, evidence.seen_since_s)
    if waited_s <= run.spec.health.first_heartbeat_s:
        return Healthy(phase=None, step=0)
    if _is_cut_off(run, attempt.launched_s, attempt, run.step_slow_s, now_s):
        return Healthy(phase=None, step=0, cut_off=True)
    if evidence.blind is not None:
        return Unknown(evidence.blind, breaker=True)
    return Stalled(Cause.BOOT_TIMEOUT, waited_s, run.spec.health.first_heartbeat_s)


def with_tracker_report(run: Run, evidence: Evidence) -> Run:
    """Return the run with the tracker's report of its current attempt, if that is newer than the last
    heartbeat.

    The report is stored with the next decision of any kind, because at the next check the tracker may not
    answer.
    """
    attempt, seen = run.current_attempt, evidence.tracker
    if (
        attempt is None
        or seen is None
        or seen.received_s <= max(attempt.last_sign_s or 0, evidence.lease.heartbeat_s or 0)
    ):
        return run
    return with_attempt(
        run, replace(attempt, last_sign_s=seen.received_s, tracked=_tracked(attempt, evidence))
    )


def _tracked(attempt: Attempt, evidence: Evidence) -> TrackedStep | None:
    """Return the highest step that the tracker has reported, and when it rose (None for the first report)."""
    known, seen = attempt.tracked, evidence.tracker
    if seen is None or not seen.received_s or (known is not None and seen.step <= known.step):
        return known
    return TrackedStep(seen.step, seen.received_s if known is not None else None)


def _is_cut_off(run: Run, received_s: int, attempt: Attempt, slow_s: float | None, now_s: int) -> bool:
    """Return whether the tracker proves that a run without heartbeats since `received_s` still trains: it has
    recent reports, and their step rose within the time that a step beside a checkpoint may take plus the
    tracker's lag.
    """
    sign_s, tracked = attempt.last_sign_s or 0, attempt.tracked
    if sign_s <= received_s or now_s - sign_s > run.spec.health.silence_s:
        return False
    rose_s = max(received_s, tracked.rose_s or 0 if tracked is not None else 0)
    return now_s - rose_s <= step_limit_s(run.spec.health, slow_s, saving=True) + LAG_S_MAX


def _exited(run: Run, lease: Lease, heartbeat: Heartbeat) -> Verdict:
    assert heartbeat.exit is not None
    steps, ended = run.spec.trainer.steps, heartbeat.exit
    resumed = run.resume.step if run.resume else 0
    step, durable = max(heartbeat.step, resumed), max(lease.committed_step, resumed)
    if ended.cause is not Cause.FINISHED:
        # An agent that knows of this says FINISHED itself, after it has seen to outputs and steps after
        # training.
        done = is_done_despite(ended.cause, steps, reached=step, durable_step=durable)
        if done and ended.code is not None and not run.spec.after and not run.spec.outputs:
            return Finished(max(step, durable), note=ended.detail)
        is_checkpoint = failed_to_resume(run, lease, ended.cause)
        sick = Sick(
            ended.cause,
            ended.detail,
            exited=True,
            is_checkpoint=is_checkpoint,
            action=ended.action,
            code=ended.code,
        )
        return replace(sick, step=step, durable_step=lease.committed_step)
    # A trainer that prints every few steps ends after its last line, and the checkpoint of its last step
    # shows that it did.
    step = step if is_trained(steps, step) else max(step, durable)
    if not is_trained(steps, step) and not heartbeat.trained:
        return Sick(Cause.STOPPED_EARLY, f"exit code 0 at step {step} of {steps}", exited=True)
    if durable < heartbeat.exit.saved_step:
        return Sick(
            Cause.UPLOAD_FAILED,
            f"the checkpoint of step {heartbeat.exit.saved_step} was never committed",
            exited=True,
        )
    return Finished(step, note=ended.detail if ended.code not in (None, 0) else "")


def _with_fresh_heartbeat(
    run: Run, attempt: Attempt, heartbeat: Heartbeat, evidence: Evidence, now_s: int
) -> Verdict:
    if heartbeat.sick is not None:
        return Sick(heartbeat.sick, heartbeat.sick_detail, exited=False)
    late = _late(run, attempt, heartbeat, evidence.lease, now_s)
    if late is None:
        return Healthy(
            heartbeat.phase,
            heartbeat.step,
            preempting=heartbeat.preempting,
            is_durable=_is_durable(run, heartbeat, evidence.lease),
            heartbeat=heartbeat,
        )
    if isinstance(evidence.pods, PodsUnknown):
        return Unknown(f"{late.cause.value}, but {evidence.pods.why}")
    return late


def _is_durable(run: Run, heartbeat: Heartbeat, lease: Lease) -> bool:
    if not heartbeat.upload_pending or heartbeat.outputs_pending or heartbeat.unsaved:
        return False
    return 0 < max(heartbeat.step, run.spec.trainer.steps or 0) <= lease.committed_step


def _late(run: Run, attempt: Attempt, heartbeat: Heartbeat, lease: Lease, now_s: int) -> Stalled | None:
    """Return the stall proven by the last heartbeat, or None. What happened after that heartbeat is unknown,
    and missing heartbeats are judged as silence.
    """
    if heartbeat.phase is Phase.AFTER:
        return None  # the agent limits the time of each step after training
    if heartbeat.upload_pending:
        return None  # no further step is expected; how long the machine is kept is a question of money
    health = run.spec.health
    received_s = min(now_s, (lease.heartbeat_s or now_s) + health.heartbeat_s)
    if heartbeat.step == 0:
        since_s = attempt.first_heartbeat_s if attempt.first_heartbeat_s is not None else now_s
        cause, limit_s = Cause.START_TIMEOUT, health.first_step_s
    else:
        since_s = step_rose_s(lease) or now_s
        cause, limit_s = Cause.STALLED, current_step_limit_s(run, attempt, heartbeat)
    waited_s = received_s - since_s
    requested_s = attempt.evidence_requested_s
    given = (
        heartbeat.evidence
        and requested_s is not None
        and lease.heartbeat_s is not None
        and lease.heartbeat_s >= requested_s
    )
    return Stalled(cause, waited_s, limit_s, evidence=given) if waited_s > limit_s else None


def _overdue(run: Run, attempt: Attempt, heartbeat: Heartbeat, evidence: Evidence, now_s: int) -> Verdict:
    assert evidence.lease.heartbeat_s is not None
    if isinstance(evidence.pods, PodsUnknown):
        return Unknown(evidence.pods.why)
    if _is_cut_off(
        run,
        evidence.lease.heartbeat_s,
        attempt,
        max(heartbeat.step_slow_s or 0.0, run.step_slow_s or 0.0),
        now_s,
    ):
        step = max(heartbeat.step, evidence.tracker.step if evidence.tracker is not None else 0)
        return Healthy(heartbeat.phase, step, cut_off=True, preempting=heartbeat.preempting)
    if evidence.blind is not None:
        return Unknown(evidence.blind, breaker=True)
    silent_s = now_s - max(evidence.lease.heartbeat_s, evidence.seen_since_s) - evidence.unheard_s
    if silent_s <= run.spec.health.overdue_s:
        return Unknown("heartbeats have been received again for only a moment", breaker=True)
    return Silent(silent_s, past_limit=silent_s > run.spec.health.silence_s)


def _early_limit_s(run: Run, attempt: Attempt, heartbeat: Heartbeat) -> int:
    """Return the step deadline in seconds as long as the run's own step times are not known, never above
    `health.first_step_s` or below `stall_s`.

    A trainer may hang after its first step. That step, the probe and the estimate say what a step is likely
    to take; a generous multiple of the longest of these is enough for what makes early steps slow, such as
    compilation and a first evaluation.
    """
    health = run.spec.health
    first_s = _to_first_step_s(attempt)
    if first_s is None:
        return health.first_step_s
    longest_s = max(
        FLOOR_FACTOR * health.stall_s,
        FIRST_FACTOR * first_s,
        int(STEP_FACTOR * _likely_step_s(run, attempt, heartbeat)),
    )
    return max(health.stall_s, min(longest_s, health.first_step_s))


def _to_first_step_s(attempt: Attempt) -> int | None:
    if attempt.first_heartbeat_s is None or attempt.first_step_s is None:
        return None
    return max(0, attempt.first_step_s - attempt.first_heartbeat_s)


def _likely_step_s(run: Run, attempt: Attempt, heartbeat: Heartbeat) -> float:
    """Return the likely seconds of a step, the longest of what is known; 0: nothing is known."""
    measured = [(one.timed_s, one.timed_steps) for one in run.attempts] + [
        (heartbeat.timed_s or 0.0, heartbeat.timed_steps)
    ]
    kinds = (kind_of(attempt.offer), (attempt.offer.gpu, attempt.offer.gpu_count))
    estimated = [one.high_s for one in run.forecast.steps if one.kind in kinds and one.is_possible]
    return max([0.0, *estimated, *(seconds / steps for seconds, steps in measured if steps)])
