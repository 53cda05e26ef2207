"""An alert that was sent is shown wherever the run is shown, whatever its kind, until its reason has passed
or the run is over.
"""

import io
from collections.abc import Callable
from dataclasses import replace

import pytest

from prime_train.github.pull_request import run_comment
from prime_train.pages.run_page import RunPage, run_page_html
from prime_train.runs import decide as d
from prime_train.runs.alert_kinds import AlertKind, policy_of
from prime_train.runs.change import change
from prime_train.runs.run import NotificationRecord, Run, RunState, Severity
from prime_train.runs.store import RunRecord
from prime_train.status.run_status import RunFacts, status_of
from prime_train.terminal import tables
from prime_train.terminal.console import console
from tests import builders as b

NOW_S = b.T0_S + 700
SECRET = "hf_" + "a1B2" * 6


def terminal(run: Run) -> str:
    printed = io.StringIO()
    console(file=printed, width=200).print(
        tables.one_run(status_of(RunFacts(RunRecord(run, b.lease(run)), NOW_S)), ())
    )
    return printed.getvalue()


def page(run: Run) -> str:
    return run_page_html(RunPage(RunRecord(run, b.lease(run)), NOW_S, ()))


def comment(run: Run) -> str:
    return run_comment(run, b.lease(run), NOW_S)


def row(run: Run) -> str:
    return str(status_of(RunFacts(RunRecord(run, b.lease(run)), NOW_S)).row()["alerts"])


DISPLAYS = (terminal, page, comment, row)


def with_notice(kind: AlertKind, *, text: str = "") -> Run:
    return b.run(RunState.TRAINING, notices=(NotificationRecord(kind, NOW_S - 180, text),))


def test_an_alert_of_any_kind_is_shown_with_its_words_as_long_as_it_is_open() -> None:
    for kind in (kind for kind in AlertKind if not policy_of(kind).is_display_only):
        run = b.run(RunState.TRAINING)
        sent = change(
            run,
            b.lease(run),
            d.Notify(kind, Severity.WARNING, f"title of {kind.name}", "and text"),
            NOW_S - 180,
        ).run
        for shows in DISPLAYS:
            assert f"title of {kind.name}: and text" in shows(sent).replace("\\", ""), (kind, shows.__name__)
            assert f"title of {kind.name}" not in shows(
                replace(sent, state=RunState.STOPPED, ended_s=NOW_S)
            ), (kind, shows.__name__)
        assert f"3 min ago: title of {kind.name}" in terminal(sent)


@pytest.mark.parametrize("shows", DISPLAYS)
def test_an_alert_from_a_store_that_kept_no_words_is_shown_by_its_kind(shows: Callable[[Run], str]) -> None:
    assert "boot late" in shows(with_notice(AlertKind.BOOT_LATE))


@pytest.mark.parametrize("shows", DISPLAYS)
def test_what_looks_like_a_secret_in_an_alert_is_not_repeated(shows: Callable[[Run], str]) -> None:
    assert SECRET not in shows(with_notice(AlertKind.UPLOADS, text=f"refused: {SECRET}"))
