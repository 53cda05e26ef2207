"""Diagnoses from what W&B reports about a run."""

from collections.abc import Iterator

from prime_train.runs.decide.tracker_alerts import TRACKER_LAG_S_MAX, UNHEARD_ADVICE
from prime_train.runs.run import RunState
from prime_train.runs.verdict import Gone, Healthy
from prime_train.status.diagnosis.diagnosis_model import Diagnosis, DiagnosisKind, Facts
from prime_train.tracker.tracked_run import RUNNING, TrackerRun

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
        advice = "Nothing to do: the next attempt continues the same W&B run." if not facts.record.run.is_over else ""
        yield Diagnosis(DiagnosisKind.TRACKER_STALE, "W&B still shows it as running", because, advice)
    elif isinstance(verdict, Healthy) and not verdict.cut_off and trains:
        yield from _late(facts, seen)


def _late(facts: Facts, seen: TrackerRun) -> Iterator[Diagnosis]:
    late_s, because = facts.now_s - seen.received_s, f"{facts.last_heartbeat()}, and {facts.last_tracker_data()}"
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
