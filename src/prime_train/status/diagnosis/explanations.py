"""Diagnoses what happened to a run: each conclusion comes with its evidence and with advice."""

from collections.abc import Iterator

from prime_train.advice import Advice, Call, Operation, Option, SettingAdvice
from prime_train.runs.decide.tracker_alerts import TRACKER_LAG_S_MAX, UNHEARD_ADVICE
from prime_train.runs.headline import stopped_by_user
from prime_train.runs.open_alerts import open_alerts
from prime_train.runs.remedies import go_on, remedy
from prime_train.runs.run import RunState
from prime_train.runs.verdict import (
    Finished,
    Gone,
    Healthy,
    Sick,
    Silent,
    Stalled,
    Unknown,
    Verdict,
    current_step_limit_s,
)
from prime_train.runs.wire import Gpus, Heartbeat, Phase
from prime_train.spec.causes import POLICY
from prime_train.status.diagnosis.diagnosis_model import Diagnosis, DiagnosisKind, Facts
from prime_train.status.diagnosis.history import ended_before, failed_steps, repeated, zero_reward
from prime_train.text.formatting import span
from prime_train.tracker.tracked_run import RUNNING, TrackerRun

SHARE_OF_LIMIT = 1 / 3
"""Share of the step deadline after which a step is late enough to be said."""
LATE_S_MIN = 60
IDLE_PCT_MAX = 1.0


def diagnosis_of(facts: Facts) -> list[Diagnosis]:
    """Return the run's state first, then all other findings."""
    found = [
        _state(facts),
        *_unserved(facts),
        *failed_steps(facts),
        *ended_before(facts),
        *repeated(facts.record.run),
    ]
    return [*found, *zero_reward(facts), *of_tracker(facts)]


def _unserved(facts: Facts) -> Iterator[Diagnosis]:
    if not facts.served:
        because = "no machine is replaced, and none is given back"
        advice = Advice("Start one: ", Call(Operation.SERVE, options=(Option(SettingAdvice.BACKGROUND),)))
        yield Diagnosis(DiagnosisKind.UNSERVED, "no control plane serves this home", because, advice)


def _state(facts: Facts) -> Diagnosis:
    run = facts.record.run
    if facts.verdict is not None:
        return _of_verdict(facts, facts.verdict)
    if run.state is RunState.SUCCEEDED:
        return Diagnosis(DiagnosisKind.FINISHED, "it has finished", run.why or f"step {run.best_step:,}")
    return _ended(facts) if run.is_over else _waiting(facts)


def _ended(facts: Facts) -> Diagnosis:
    """Return the diagnosis of an ended run. The advice is removed from the reason, so that it appears only
    once.
    """
    run = facts.record.run
    general = POLICY[run.cause].advice if run.cause is not None else ""
    why = run.why.removesuffix(general).strip().rstrip(".") or "no reason was recorded"
    last = run.current_attempt
    where = f" (attempt {last.number}, at step {last.last_step:,})" if last is not None else ""
    if stopped_by_user(run) or run.state is RunState.CANCELLED:
        return Diagnosis(DiagnosisKind.ENDED, f"it was {run.state.value} at the user's request", why + where)
    title = "it failed" if run.state is RunState.FAILED else "it has stopped and needs a person"
    first = (*remedy(run, run.cause, general).parts, " ") if run.cause is not None and general else ()
    return Diagnosis(
        DiagnosisKind.ENDED, title, why + where, Advice(*first, "Then ", go_on(run, facts.now_s))
    )


def _waiting(facts: Facts) -> Diagnosis:
    """Return the diagnosis of a run without a machine: between two attempts, or before the first."""
    run = facts.record.run
    lost, left_s = run.current_attempt, run.not_before_s - facts.now_s
    due = (
        f"the next attempt is due{f' in {span(left_s)}' if left_s > 0 else ''}"
        if facts.served
        else "no further attempt starts"
    )
    if lost is None or lost.cause is None:
        why = "; ".join(alert.text for alert in open_alerts(run)) or "no machine was requested yet"
        return Diagnosis(DiagnosisKind.WAITING, "it waits for its first machine", why)
    policy = POLICY[lost.cause]
    advice = remedy(run, lost.cause, policy.advice_while_live)
    return Diagnosis(
        DiagnosisKind.LOST,
        f"attempt {lost.number}: {policy.title}; {due}",
        lost.detail or policy.title,
        advice,
    )


def _of_verdict(facts: Facts, verdict: Verdict) -> Diagnosis:
    run = facts.record.run
    match verdict:
        case Healthy(cut_off=True):
            advice = "Nothing to do: the machine is kept as long as W&B receives data from it."
            return Diagnosis(
                DiagnosisKind.CUT_OFF,
                "it trains, but its heartbeats do not arrive",
                f"{facts.last_heartbeat()}, but {facts.last_tracker_data()}",
                advice,
            )
        case Healthy(phase=None):
            return _booting(facts)
        case Healthy(heartbeat=Heartbeat(unsaved=why)) if why:
            title = f"it is {run.state.value}, and no checkpoint comes to be as promised"
            look = Advice(
                "Make `checkpoints` say what the trainer writes, or look at the machine: ",
                Call(Operation.SSH, run.run_id),
            )
            return Diagnosis(DiagnosisKind.UNSAVED, title, why, look)
        case Healthy(heartbeat=Heartbeat(upload_problem=why)) if why:
            title = f"it is {run.state.value}, and checkpoints or outputs do not become durable"
            return Diagnosis(DiagnosisKind.UNSAVED, title, why)
        case Healthy():
            if (standing := _standing_still(facts)) is not None:
                return standing
            return Diagnosis(
                DiagnosisKind.WELL,
                f"it is {run.state.value}, and its machine is healthy",
                facts.last_heartbeat(),
            )
        case Gone(why):
            advice = "Nothing to do: it resumes on another machine." if facts.served else ""
            return Diagnosis(
                DiagnosisKind.LOST, "its machine is gone", f"{why}, at step {facts.step:,}", advice
            )
        case Silent(silent_s, past_limit):
            limit = (
                f"; it is replaced after {span(run.spec.health.silence_s)}"
                if not past_limit
                else "; it is being replaced"
            )
            because = (
                "no heartbeat for "
                f"{span(silent_s)}, {facts.last_tracker_data()}{limit if facts.served else ''}"
            )
            return Diagnosis(DiagnosisKind.SILENT, "its machine is silent", because)
        case Stalled(cause, waited_s, limit_s):
            because = f"waited {span(waited_s)}, limit {span(limit_s)}; {facts.last_heartbeat()}"
            return Diagnosis(
                DiagnosisKind.STALLED,
                POLICY[cause].title,
                because,
                remedy(run, cause, POLICY[cause].advice_while_live),
            )
        case Sick(cause, detail):
            return Diagnosis(
                DiagnosisKind.SICK,
                POLICY[cause].title,
                detail or cause.value,
                remedy(run, cause, POLICY[cause].advice_while_live),
            )
        case Finished(step):
            return Diagnosis(DiagnosisKind.FINISHED, "it has finished", f"step {step:,}")
        case Unknown(why):
            return Diagnosis(
                DiagnosisKind.UNKNOWN,
                "its status cannot be determined",
                why,
                "No machine is terminated while this lasts.",
            )


def _booting(facts: Facts) -> Diagnosis:
    run = facts.record.run
    since_s = run.current_attempt.launched_s if run.current_attempt is not None else facts.now_s
    waited, limit = span(facts.now_s - since_s), span(run.spec.health.first_heartbeat_s)
    given_up = f"; it is replaced after {limit}" if facts.served else ""
    because = f"it was requested {waited} ago, and its agent has sent no heartbeat yet{given_up}"
    return Diagnosis(DiagnosisKind.WAITING, f"attempt {run.attempt} waits for its machine", because)


def _standing_still(facts: Facts) -> Diagnosis | None:
    """Return the diagnosis if the trainer's step has not risen for long, or its GPUs do nothing meanwhile;
    None if it makes progress. Heartbeats come from the agent, not from the trainer, and arrive all the same.
    """
    lease, run = facts.record.lease, facts.record.run
    heartbeat, attempt = lease.heartbeat, run.current_attempt
    if heartbeat is None or attempt is None or lease.heartbeat_s is None or lease.attempt != attempt.number:
        return None
    if (
        heartbeat.phase is not Phase.TRAIN
        or heartbeat.step == 0
        or heartbeat.upload_pending
        or heartbeat.saving
    ):
        return None
    waited_s, limit_s = (
        facts.now_s - lease.heartbeat_s + heartbeat.step_age_s,
        current_step_limit_s(run, attempt, heartbeat),
    )
    idle = heartbeat.gpus is not None and _are_idle(heartbeat.gpus)
    if waited_s < LATE_S_MIN or (waited_s < SHARE_OF_LIMIT * limit_s and not idle):
        return None
    gpus = (
        f"; {_use(heartbeat.gpus)}"
        if heartbeat.gpus is not None and heartbeat.gpus.util_high_pct is not None
        else ""
    )
    because = f"step {heartbeat.step:,} was made {span(waited_s)} ago{gpus}; {facts.last_heartbeat()}"
    advice = f"The machine is replaced if no step comes within {span(limit_s)}." if facts.served else ""
    return Diagnosis(
        DiagnosisKind.NO_PROGRESS, "its heartbeats arrive, but it makes no step", because, advice
    )


def _are_idle(gpus: Gpus) -> bool:
    return gpus.count > 0 and gpus.util_high_pct is not None and gpus.util_high_pct <= IDLE_PCT_MAX


def _use(gpus: Gpus) -> str:
    low, high = gpus.util_low_pct, gpus.util_high_pct
    return (
        f"its GPUs are at {high:.0f} %"
        if low is None or low == high
        else f"its GPUs are at {low:.0f} to {high:.0f} %"
    )


LATE_S = 180
"""Seconds after which W&B counts as late; its client sends every 30 s."""


def of_tracker(facts: Facts) -> Iterator[Diagnosis]:
    if facts.tracker_error:
        yield Diagnosis(DiagnosisKind.TRACKER_UNKNOWN, "W&B did not answer", facts.tracker_error)
    elif facts.record.run.spec.wandb is None:
        return
    elif facts.tracker is None:
        yield from _unknown_run(facts)
    else:
        yield from _known_run(facts, facts.tracker)


def _unknown_run(facts: Facts) -> Iterator[Diagnosis]:
    """Yield a diagnosis if W&B does not know the run; before the first step this is normal."""
    if any(attempt.first_step_s is not None for attempt in facts.record.run.attempts):
        yield Diagnosis(
            DiagnosisKind.TRACKER_LOST,
            "W&B has never received data from it",
            "its config uses W&B, and it has trained",
            f"Check {UNHEARD_ADVICE}.",
        )


def _known_run(facts: Facts, seen: TrackerRun) -> Iterator[Diagnosis]:
    verdict, trains = facts.verdict, facts.record.run.state is RunState.TRAINING
    is_dead = verdict is None or isinstance(verdict, Gone)
    if is_dead and seen.state == RUNNING:
        because = f"{facts.last_tracker_data()}; a killed process cannot report its end"
        advice = (
            "Nothing to do: the next attempt continues the same W&B run."
            if not facts.record.run.is_over
            else ""
        )
        yield Diagnosis(DiagnosisKind.TRACKER_STALE, "W&B still shows it as running", because, advice)
    elif isinstance(verdict, Healthy) and not verdict.cut_off and trains:
        yield from _late(facts, seen)


def _late(facts: Facts, seen: TrackerRun) -> Iterator[Diagnosis]:
    late_s, because = (
        facts.now_s - seen.received_s,
        f"{facts.last_heartbeat()}, and {facts.last_tracker_data()}",
    )
    if late_s > TRACKER_LAG_S_MAX:
        advice = "Look for wandb in the trainer's log; data that the trainer logs now may never reach W&B."
        yield Diagnosis(DiagnosisKind.TRACKER_LOST, "it trains, but W&B receives no data", because, advice)
    elif late_s > LATE_S:
        yield Diagnosis(
            DiagnosisKind.TRACKER_LATE,
            "W&B is behind, the run is not",
            because,
            "Nothing to do: delays of up to 30 minutes have been observed.",
        )
