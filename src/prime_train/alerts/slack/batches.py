"""Alerts that are sent together, and those already sent."""

from collections.abc import Iterable, Sequence

from prime_train.runs.run import Alert, Severity

FEW_MAX = 3
"""Number of waiting alerts above which they are sent in one message."""
DIGEST_ALERTS_MAX = 40
SENT_MAX = 4096


class SentKeys:
    """Keys of the alerts already sent, the newest `SENT_MAX`."""

    def __init__(self) -> None:
        self._keys: dict[str, None] = {}

    def __contains__(self, key: object) -> bool:
        return key in self._keys

    def add(self, keys: Iterable[str]) -> None:
        self._keys.update(dict.fromkeys(keys))
        for old in list(self._keys)[: max(0, len(self._keys) - SENT_MAX)]:
            del self._keys[old]


class Ahead:
    """The alerts about to be sent, oldest first."""

    def __init__(self) -> None:
        self._alerts: list[Alert] = []

    def set(self, alerts: Sequence[Alert]) -> None:
        self._alerts = [alert for alert in alerts if alert.severity is not Severity.QUIET]

    def burst(self, sent: SentKeys) -> list[Alert]:
        """Return the alerts to send in one message; empty if they are few enough to be sent one by one."""
        waiting = [alert for alert in self._alerts if alert.key not in sent]
        return waiting[:DIGEST_ALERTS_MAX] if len(waiting) > FEW_MAX else []
