"""Alerts as lines of the control plane's log: one JSON object each."""

import json
import logging
from dataclasses import asdict

from prime_train.core.run import Alert, Run, Severity

_LEVELS = {Severity.INFO: logging.INFO, Severity.WARNING: logging.WARNING, Severity.ERROR: logging.ERROR}


class LogNotifier:
    """A `Notifier` that never fails; the logger `prime_train.alerts` decides where the lines go."""

    def __init__(self, logger: logging.Logger | None = None) -> None:
        self._logger = logger if logger is not None else logging.getLogger("prime_train.alerts")

    def send(self, alert: Alert, run: Run | None) -> None:
        if alert.severity is Severity.QUIET:
            return
        line = asdict(alert) | ({"state": run.state.value} if run is not None else {})
        self._logger.log(_LEVELS[alert.severity], "%s", json.dumps(line, ensure_ascii=False))
