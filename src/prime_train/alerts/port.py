"""What a receiver of alerts must do."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from prime_train.runs.run import Alert, Run


@runtime_checkable
class Summarizing(Protocol):
    """A tracker whose summary of a run can be added to."""

    def summarize(self, run: Run, values: Mapping[str, object]) -> bool:
        """Add these values to the summary of a run that is over, unless something still reports to it. Return
        False to be called again later. Never raises; idempotent.
        """


class Notifier(Protocol):
    def send(self, alert: Alert, run: Run | None) -> None:
        """Send the alert to people. The same key may be sent twice; it is the same alert. Raises NotHere if
        only a process with another environment can send it.
        """


@runtime_checkable
class PlacedNotifier(Protocol):
    """A notifier of which there may be several that send to different places."""

    @property
    def place(self) -> str:
        """Return what tells its place from others, the same in every process and without secrets."""


@runtime_checkable
class BatchNotifier(Protocol):
    """A notifier that can send several alerts in one message."""

    def announce(self, alerts: Sequence[Alert]) -> None:
        """Receive all waiting alerts, oldest first, before each of them is sent. If `send` puts some of them
        into the message of another one, it does nothing when it is called for them.
        """


@runtime_checkable
class StatusDisplay(Protocol):
    """A notifier that displays the current state of runs."""

    def shows(self, run_id: str) -> bool:
        """Return whether the display of that run needs a refresh from time to time even if nothing
        happens.
        """
