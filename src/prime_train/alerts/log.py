"""Alerts as lines of the control plane's log."""

import logging

from prime_train.runs.run import Alert, Run, Severity

_LEVELS = {Severity.INFO: logging.INFO, Severity.WARNING: logging.WARNING, Severity.ERROR: logging.ERROR}


class LogNotifier:
    """A `Notifier` that never fails. The logger `prime_train.alerts` decides where the lines go.

    Each alert is one line at the level of its severity: its kind as listed in the runbook, its title and its
    text.
    """

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger if logger is not None else logging.getLogger("prime_train.alerts")

    def send(self, alert: Alert, run: Run | None) -> None:
        if alert.severity is Severity.QUIET:
            return
        message = f"{alert.title}: {alert.text}" if alert.text else alert.title
        self._logger.log(_LEVELS[alert.severity], "[%s] %s", alert.kind, _one_line(message))


def _one_line(text: str) -> str:
    """Return `text` on one line without control characters: it may hold a trainer's output, which must not
    move the cursor or start a line.
    """
    return " ".join("".join(char if char.isprintable() else " " for char in text).split())
