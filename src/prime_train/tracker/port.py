"""What a tracker of experiments must do: tell when a run was last active, and mark what became of it."""

from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from prime_train.runs.run import Attempt, Run
from prime_train.runs.verdict import TrackerObserved


class Tracker(Protocol):
    def look(self, run: Run) -> "TrackerObserved | None":
        """Return the last report that the experiment tracker received about this run; None if it has no such
        run or does not answer.
        """


@runtime_checkable
class Marking(Protocol):
    """A tracker on which the outcome of a run can be marked."""

    def mark_lost(self, run: Run, attempt: Attempt) -> bool:
        """Mark the run as failed in the tracker after its newest attempt was fenced, so that it does not look
        like a run that still trains; the next attempt can continue it nevertheless. Return False to be called
        again later. Never raises; idempotent.
        """


@dataclass(frozen=True)
class NoTracker:
    def look(self, run: Run) -> "TrackerObserved | None":
        return None
