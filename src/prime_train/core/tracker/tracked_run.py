"""A run as a tracker (W&B) reports it."""

from dataclasses import dataclass

RUNNING, FAILED = "running", "failed"


@dataclass(frozen=True)
class TrackerRun:
    """A run as the tracker reports it. `received_s`: time of the last data that the tracker received, by W&B's clock; 0: never. `step`: the
    step of its history, as W&B counts it; None: not requested."""

    entity: str
    project: str
    run_id: str
    name: str
    state: str
    received_s: int
    step: int | None
    notes: str
    url: str

    @property
    def path(self) -> str:
        return f"{self.entity}/{self.project}/{self.run_id}"

    def is_stale(self, now_s: int, quiet_s: int) -> bool:
        """Return whether the run is marked as running and has reported, but not within the last `quiet_s` seconds."""
        return self.state == RUNNING and 0 < self.received_s < now_s - quiet_s

    def is_silent_since(self, at_s: int) -> bool:
        """Return whether the run is marked as running and has not reported after second `at_s`."""
        return self.state == RUNNING and self.received_s <= at_s
