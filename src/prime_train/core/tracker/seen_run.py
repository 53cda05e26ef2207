"""A run as a tracker (W&B) reports it."""

from dataclasses import dataclass

RUNNING, FAILED = "running", "failed"


@dataclass(frozen=True)
class RunSeen:
    """`heard_s`: when it last spoke, by W&B's clock; 0: never. `step`: of its history, as it counts there; None: not asked for."""

    entity: str
    project: str
    run_id: str
    name: str
    state: str
    heard_s: int
    step: int | None
    notes: str
    url: str

    @property
    def path(self) -> str:
        return f"{self.entity}/{self.project}/{self.run_id}"

    def is_stale(self, now_s: int, quiet_s: int) -> bool:
        """It is called running, and has spoken, but not for longer than `quiet_s`."""
        return self.state == RUNNING and 0 < self.heard_s < now_s - quiet_s

    def is_silent_since(self, at_s: int) -> bool:
        """It is called running, and has not spoken after that second."""
        return self.state == RUNNING and self.heard_s <= at_s
