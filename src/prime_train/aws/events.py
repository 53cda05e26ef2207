"""Events of a stack's resources while it is changed, reported as they occur."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from botocore.exceptions import ClientError

from prime_train.aws.error_conversion import translated_errors
from prime_train.errors import PermanentError

REASONS_MAX = 3
REASON_CHARS_MAX = 600
CANCELLED = "cancelled"
"""Word in CloudFormation's reason for a resource whose change was cancelled because another resource
failed.
"""
WORDS = {
    "CREATE_COMPLETE": "made",
    "UPDATE_COMPLETE": "changed",
    "DELETE_COMPLETE": "gone",
    "DELETE_SKIPPED": "kept",
}


@dataclass(frozen=True)
class Event:
    id: str
    name: str
    status: str
    why: str

    @property
    def is_failure(self) -> bool:
        return self.status.endswith("_FAILED") and CANCELLED not in self.why


class Events:
    """Events of one stack, given by name or id, that occur after this object is created."""

    def __init__(self, client: Any, stack: str, progress: Callable[[str], object]) -> None:
        self._client, self._stack, self._progress = client, stack, progress
        self._begun_s = time.monotonic()
        self._failures: list[Event] = []
        self._seen = {event.id for event in self._newest()}
        self.came = False
        """Whether there was any event."""

    def report(self) -> None:
        """Report the resources whose change has ended since the last call."""
        for event in reversed(self._newest()):
            if event.id in self._seen:
                continue
            self._seen.add(event.id)
            self.came = True
            if event.is_failure:
                self._failures.append(event)
            words = f"failed: {event.why}" if event.is_failure else WORDS.get(event.status)
            if words:
                self._progress(f"{time.monotonic() - self._begun_s:5.0f} s  {event.name} {words}")

    def reasons(self) -> str:
        """Return the failures, the first one first, because later ones often follow from it."""
        reasons = [f"{event.name}: {event.why}" for event in self._failures[:REASONS_MAX]]
        return "; ".join(reasons) or "AWS gives no reason"

    def _newest(self) -> list[Event]:
        """Return the newest events first. One page of at most a hundred is enough, because fewer occur in a
        second.
        """
        try:
            with translated_errors(f"the events of stack {self._stack}"):
                rows = self._client.describe_stack_events(StackName=self._stack)["StackEvents"]
        except PermanentError as error:
            if isinstance(error.__cause__, ClientError) and "does not exist" in str(error.__cause__):
                return []
            raise
        return [
            Event(
                row["EventId"],
                row["LogicalResourceId"],
                row["ResourceStatus"],
                row.get("ResourceStatusReason", "")[:REASON_CHARS_MAX],
            )
            for row in rows
        ]
