import json
import logging

import pytest

from prime_train.adapters.notify_log import LogNotifier
from prime_train.core.run import RunState, Severity
from tests import builders as b


def test_an_alert_is_one_line_of_json_at_its_severity(caplog: pytest.LogCaptureFixture) -> None:
    notifier = LogNotifier()
    with caplog.at_level(logging.INFO):
        notifier.send(b.alert(severity=Severity.WARNING, text="two\nlines"), b.run(RunState.TRAINING))
        notifier.send(b.alert(severity=Severity.ERROR), None)

    warned, failed = caplog.records
    assert (warned.levelno, failed.levelno) == (logging.WARNING, logging.ERROR)
    said = json.loads(warned.getMessage())
    assert (said["run_id"], said["kind"], said["text"], said["state"]) == (b.RUN_ID, "lost", "two\nlines", "training")
    assert "\n" not in warned.getMessage()


def test_an_alert_goes_to_the_logger_that_was_given(caplog: pytest.LogCaptureFixture) -> None:
    LogNotifier(logging.getLogger("mine")).send(b.alert(severity=Severity.ERROR), None)

    assert caplog.records[0].name == "mine"
