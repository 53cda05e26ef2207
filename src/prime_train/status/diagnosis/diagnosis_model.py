"""The diagnosis of a run and the facts it is based on."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from prime_train.advice import Advice
from prime_train.runs.figures import RunFigures, figures
from prime_train.runs.store import RunRecord
from prime_train.runs.verdict import Verdict
from prime_train.text.formatting import span
from prime_train.tracker.tracked_run import TrackerRun


class DiagnosisKind(StrEnum):
    WELL = "well"
    WAITING = "waiting"
    FINISHED = "finished"
    ENDED = "ended"
    LOST = "lost"
    SILENT = "silent"
    CUT_OFF = "cut_off"
    STALLED = "stalled"
    NO_PROGRESS = "no_progress"
    UNSAVED = "unsaved"
    SICK = "sick"
    UNKNOWN = "unknown"
    UNSERVED = "unserved"
    INTERRUPTED = "interrupted"
    REPLACED = "replaced"
    REPEATED = "repeated"
    ZERO_REWARD = "zero_reward"
    STEP_FAILED = "step_failed"
    TRACKER_LATE = "tracker_late"
    TRACKER_LOST = "tracker_lost"
    TRACKER_STALE = "tracker_stale"
    TRACKER_UNKNOWN = "tracker_unknown"


@dataclass(frozen=True)
class Diagnosis:
    kind: DiagnosisKind
    title: str
    because: str
    advice: str | Advice = ""


@dataclass(frozen=True)
class Facts:
    """The facts about a run. `verdict` is that of the attempt that holds the lease, or None if none does;
    `tracker` is what W&B reports, or None if the run is not tracked or unknown to W&B; `tracker_error` is why
    W&B could not be queried; `rewards` are by step, as far as the trainer's own figures could be read;
    `served` says whether a control plane runs, without which no machine is replaced.
    """

    record: RunRecord
    now_s: int
    verdict: Verdict | None = None
    tracker: TrackerRun | None = None
    tracker_error: str = ""
    rewards: Mapping[int, float] = field(default_factory=dict)
    served: bool = True

    @property
    def step(self) -> int:
        """Return the newest known step of the newest attempt."""
        return self.figures.step

    @property
    def figures(self) -> RunFigures:
        return figures(self.record.run, self.record.lease, self.now_s)

    def last_heartbeat(self) -> str:
        lease = self.record.lease
        if lease.heartbeat is None or lease.heartbeat_s is None:
            return "it never sent a heartbeat"
        return (
            f"its last heartbeat came {span(self.now_s - lease.heartbeat_s)} ago at "
            "step "
            f"{lease.heartbeat.step:,}"
        )

    def last_tracker_data(self) -> str:
        if self.tracker is None:
            return "W&B has no data from it"
        step = f" at step {self.tracker.step:,}" if self.tracker.step else ""
        return f"W&B last received data {span(self.now_s - self.tracker.received_s)} ago{step}"
