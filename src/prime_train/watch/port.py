"""What a watcher asks of its surroundings: whether heartbeats can arrive at all, and who else watches."""

from typing import Protocol


class Canary(Protocol):
    def is_answering(self, now_s: int) -> bool:
        """Return whether a heartbeat sent to the public webhook arrives."""


class Watched(Protocol):
    """A callback that receives what each step of reconcile did, for logs and live views."""

    def __call__(self, run_id: str, what: str, text: str) -> None: ...
