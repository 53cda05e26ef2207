"""Alerts about what a heartbeat says: the row of the kind is all that they need."""

from typing import Any

import pytest

from prime_train.runs import decide as d
from prime_train.runs.alert_kinds import AlertKind, policy_of
from prime_train.runs.change import change
from prime_train.runs.run import Severity
from prime_train.runs.verdict import Healthy
from prime_train.runs.wire import Phase
from tests import builders as b
from tests.core.given import NOW_S, a_run, as_expected, healthy

SHOWN: dict[AlertKind, dict[str, Any]] = {
    AlertKind.UPLOADS: {"upload_problem": "3 uploads in a row have failed"},
    AlertKind.UNSAVED: {"unsaved": "6 entries in out/, none matches ckpt-{step}"},
    AlertKind.NOT_FINITE: {"not_finite_since": 7},
}


def test_every_alert_about_a_heartbeat_is_tried_here() -> None:
    assert {kind for kind in AlertKind if policy_of(kind).problem is not None} == set(SHOWN)


@pytest.mark.parametrize("kind", SHOWN, ids=str)
def test_what_a_heartbeat_shows_is_told_once_and_again_when_it_is_over(kind: AlertKind) -> None:
    run, policy = a_run(), policy_of(kind)
    told = d.decide(run, healthy(**SHOWN[kind]), as_expected(run), NOW_S)
    assert isinstance(told, d.Notify)
    assert (told.kind, told.severity, told.title) == (kind, Severity.WARNING, policy.title)
    noted = change(run, b.lease(run), told, NOW_S).run
    assert isinstance(d.decide(noted, healthy(**SHOWN[kind]), as_expected(run), NOW_S + 1), d.Wait)
    over_s = NOW_S + policy.stays_s
    assert not policy.stays_s or isinstance(d.decide(noted, healthy(), as_expected(run), over_s - 1), d.Wait)
    assert d.decide(noted, healthy(), as_expected(run), over_s) == d.AllClear((kind,))


@pytest.mark.parametrize("kind", SHOWN, ids=str)
def test_a_machine_that_is_no_longer_heard_clears_no_alert(kind: AlertKind) -> None:
    run = a_run()
    noted = change(
        run, b.lease(run), d.decide(run, healthy(**SHOWN[kind]), as_expected(run), NOW_S), NOW_S
    ).run
    unheard = Healthy(Phase.TRAIN, 10, cut_off=True)
    decision = d.decide(noted, unheard, as_expected(run), NOW_S + 10_000)
    assert not isinstance(decision, d.AllClear)
