"""A run as a tracker (W&B) reports it."""

from dataclasses import dataclass

RUNNING, FAILED = "running", "failed"
CUT_OFF = ("crashed", "preempting", "preempted", "killed")
"""States of a run that did not end by itself. W&B's server calls a run crashed some minutes after its last
heartbeat; preempting is what the run's own process has said last; one that was killed or preempted stays so
unless somebody continues it.
"""
CUT_OFF_QUIET_S = 5 * 60
"""Seconds without data after which such a run is not about to go on or to end."""
CUT_OFF_S_MAX = 3 * 86_400
"""Seconds for which such a run is news. Projects keep those of years."""


@dataclass(frozen=True)
class TrackerRun:
    """A run as the tracker reports it. `received_s`: time of the last data that the tracker received, by
    W&B's clock; 0: never. `step`: the step of its history, as W&B counts it; None: not requested.
    """

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
        """Return whether the run is marked as running and has reported, but not within the last `quiet_s`
        seconds.
        """
        return self.state == RUNNING and 0 < self.received_s < now_s - quiet_s

    def is_cut_off(self, now_s: int) -> bool:
        """Return whether the run has stopped within the last days, and not by itself."""
        return self.state in CUT_OFF and now_s - CUT_OFF_S_MAX < self.received_s < now_s - CUT_OFF_QUIET_S

    def is_silent_since(self, at_s: int) -> bool:
        """Return whether the run is marked as running and has not reported after second `at_s`."""
        return self.state == RUNNING and self.received_s <= at_s
