import logging

import pytest

from prime_train.alerts.log import LogNotifier
from prime_train.runs.run import RunState, Severity
from tests import builders as b


def test_an_alert_is_one_line_of_words_at_its_severity(caplog: pytest.LogCaptureFixture) -> None:
    notifier = LogNotifier()
    with caplog.at_level(logging.INFO):
        notifier.send(
            b.alert(severity=Severity.WARNING, text="the provider reports that the machine is gone"),
            b.run(RunState.TRAINING),
        )
        notifier.send(b.alert(severity=Severity.ERROR, text=""), None)
        notifier.send(b.alert(severity=Severity.QUIET), None)

    warned, failed = caplog.records
    assert (warned.levelno, failed.levelno) == (logging.WARNING, logging.ERROR)
    assert (
        warned.getMessage() == "[lost] attempt 1: machine lost: the provider reports that the machine is gone"
    )
    assert failed.getMessage() == "[lost] attempt 1: machine lost"


def test_what_a_trainer_wrote_begins_no_line_and_moves_no_cursor(caplog: pytest.LogCaptureFixture) -> None:
    LogNotifier().send(b.alert(severity=Severity.ERROR, text="two\nlines\x1b[2J 100%s"), None)

    assert caplog.records[0].getMessage() == "[lost] attempt 1: machine lost: two lines [2J 100%s"


def test_an_alert_goes_to_the_logger_that_was_given(caplog: pytest.LogCaptureFixture) -> None:
    LogNotifier(logging.getLogger("mine")).send(b.alert(severity=Severity.ERROR), None)

    assert caplog.records[0].name == "mine"
