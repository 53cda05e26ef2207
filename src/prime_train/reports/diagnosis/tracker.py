"""Diagnoses from what W&B reports about a run."""

from collections.abc import Iterator

from prime_train.core.decide.tracker_alerts import TRACKER_LAG_S_MAX, UNHEARD_ADVICE
from prime_train.core.run import RunState
from prime_train.core.tracker.seen_run import RUNNING, RunSeen
from prime_train.core.verdict import Gone, Healthy
from prime_train.reports.diagnosis.diagnosis_model import Diagnosis, Facts, Kind

LATE_S = 180
"""W&B counts as late after this many seconds; its client sends every 30 s."""


def tracking(facts: Facts) -> Iterator[Diagnosis]:
    if facts.untold:
        yield Diagnosis(Kind.TRACKER_UNKNOWN, "W&B told nothing", facts.untold)
    elif facts.held.run.spec.wandb is None:
        return
    elif facts.tracker is None:
        yield from _unheard(facts)
    else:
        yield from _heard(facts, facts.tracker)


def _unheard(facts: Facts) -> Iterator[Diagnosis]:
    """Yield a diagnosis if W&B does not know the run; before the first step this is normal."""
    if any(attempt.first_step_s is not None for attempt in facts.held.run.attempts):
        yield Diagnosis(
            Kind.TRACKER_LOST, "W&B has never heard of it", "its config names W&B, and it has trained", f"See {UNHEARD_ADVICE}."
        )


def _heard(facts: Facts, seen: RunSeen) -> Iterator[Diagnosis]:
    verdict, trains = facts.verdict, facts.held.run.state is RunState.TRAINING
    is_dead = verdict is None or isinstance(verdict, Gone)
    if is_dead and seen.state == RUNNING:
        because = f"{facts.last_heard()}; a process that was killed cannot tell it"
        advice = "Nothing to do: the next attempt goes on with the same run there." if not facts.held.run.is_over else ""
        yield Diagnosis(Kind.TRACKER_STALE, "W&B still calls it running", because, advice)
    elif isinstance(verdict, Healthy) and not verdict.cut_off and trains:
        yield from _late(facts, seen)


def _late(facts: Facts, seen: RunSeen) -> Iterator[Diagnosis]:
    late_s, because = facts.now_s - seen.heard_s, f"{facts.last_heartbeat()}, and {facts.last_heard()}"
    if late_s > TRACKER_LAG_S_MAX:
        advice = "Look for wandb in the trainer's log; what it logs now may never arrive there."
        yield Diagnosis(Kind.TRACKER_LOST, "it has lost its tracker", because, advice)
    elif late_s > LATE_S:
        yield Diagnosis(Kind.TRACKER_LATE, "only W&B is late, the run is not", because, "Nothing to do: up to 30 minutes have been seen.")
