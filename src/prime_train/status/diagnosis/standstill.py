"""Diagnosis of a trainer that sends heartbeats and makes no progress: heartbeats come from the agent, not from the trainer."""

from prime_train.runs.verdict import current_step_limit_s
from prime_train.runs.wire import Gpus, Phase
from prime_train.status.diagnosis.diagnosis_model import Diagnosis, DiagnosisKind, Facts
from prime_train.text.formatting import span

SHARE_OF_LIMIT = 1 / 3
"""Share of the step deadline after which a step is late enough to be said."""
LATE_S_MIN = 60
IDLE_PCT_MAX = 1.0


def standing_still(facts: Facts) -> Diagnosis | None:
    """Return the diagnosis if the trainer's step has not risen for long, or its GPUs do nothing meanwhile; None if it makes progress."""
    lease, run = facts.record.lease, facts.record.run
    heartbeat, attempt = lease.heartbeat, run.current_attempt
    if heartbeat is None or attempt is None or lease.heartbeat_s is None or lease.attempt != attempt.number:
        return None
    if heartbeat.phase is not Phase.TRAIN or heartbeat.step == 0 or heartbeat.upload_pending or heartbeat.saving:
        return None
    waited_s, limit_s = facts.now_s - lease.heartbeat_s + heartbeat.step_age_s, current_step_limit_s(run, attempt, heartbeat)
    idle = heartbeat.gpus is not None and _are_idle(heartbeat.gpus)
    if waited_s < LATE_S_MIN or (waited_s < SHARE_OF_LIMIT * limit_s and not idle):
        return None
    gpus = f"; {_use(heartbeat.gpus)}" if heartbeat.gpus is not None and heartbeat.gpus.util_high_pct is not None else ""
    because = f"step {heartbeat.step:,} was made {span(waited_s)} ago{gpus}; {facts.last_heartbeat()}"
    advice = f"The machine is replaced if no step comes within {span(limit_s)}." if facts.served else ""
    return Diagnosis(DiagnosisKind.NO_PROGRESS, "its heartbeats arrive, but it makes no step", because, advice)


def _are_idle(gpus: Gpus) -> bool:
    return gpus.count > 0 and gpus.util_high_pct is not None and gpus.util_high_pct <= IDLE_PCT_MAX


def _use(gpus: Gpus) -> str:
    low, high = gpus.util_low_pct, gpus.util_high_pct
    return f"its GPUs are at {high:.0f} %" if low is None or low == high else f"its GPUs are at {low:.0f} to {high:.0f} %"
