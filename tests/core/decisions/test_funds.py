"""The effect of a nearly empty wallet on the runs that are paid from it."""

from dataclasses import replace

import pytest

from prime_train.runs import decide as d
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.change import change, refused
from prime_train.runs.funds import LAUNCH_S, RESERVE_S, WARN_S, Funds
from prime_train.runs.run import DrainReason, NotificationRecord, Run, RunState
from prime_train.runs.verdict import Healthy, Sick, Verdict
from prime_train.runs.wire import Phase
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.core.given import NOT_YET, NOW_S, TRAINS, a_run, as_expected, newest

S = RunState


def lasting(seconds: float) -> Funds:
    """Return a wallet that lasts this long at a cost of one dollar per hour."""
    return Funds("prime", seconds / 3600, 1.0)


def after(run: Run, funds: Funds | None, verdict: Verdict | None = TRAINS) -> d.Decision:
    return d.decide(run, verdict, as_expected(run), NOW_S, funds=funds)


@pytest.mark.parametrize(
    ("funds", "left_s"),
    [(Funds("prime", 2.0, 4.0), 1800), (Funds("prime", -1.0, 4.0), 0), (Funds("prime", 0.0, 0.0), 0)],
)
def test_how_long_it_lasts(funds: Funds, left_s: float) -> None:
    assert funds.left_s() == left_s


def test_a_wallet_that_nobody_draws_from_lasts_for_ever_until_somebody_does() -> None:
    assert Funds("prime", 5.0, 0.0).left_s() == float("inf")
    assert Funds("prime", 5.0, 0.0).left_s(10.0) == 1800


def test_while_it_is_not_known_nothing_is_concluded() -> None:
    assert isinstance(after(a_run(), None), d.Wait)


def test_people_are_notified_early_and_once() -> None:
    reported = after(a_run(), lasting(WARN_S - 60))
    assert isinstance(reported, d.Notify)
    assert "119 min" in reported.text
    assert isinstance(
        after(a_run(notices=(NotificationRecord(AlertKind.FUNDS, NOW_S - 50),)), lasting(WARN_S - 60)), d.Wait
    )
    assert isinstance(after(a_run(), lasting(WARN_S + 60)), d.Wait)


def test_a_wallet_that_was_filled_up_is_reported_anew_when_it_runs_dry_again() -> None:
    run = a_run(notices=(NotificationRecord(AlertKind.FUNDS, NOW_S - 50),))
    assert after(run, lasting(10 * WARN_S)) == d.AllClear((AlertKind.FUNDS,))


@pytest.mark.parametrize("state", [S.STARTING, S.TRAINING])
def test_before_it_is_empty_training_is_saved_and_leaves(state: RunState) -> None:
    run = a_run(state)
    left = after(run, lasting(RESERVE_S + run.spec.health.drain_s - 1), Healthy(Phase.TRAIN, step=0))
    assert isinstance(left, d.Drain)
    assert left.reason is DrainReason.FUNDS


def test_a_machine_that_is_not_there_yet_is_given_back() -> None:
    left = after(a_run(S.BOOTING), lasting(60), NOT_YET)
    assert isinstance(left, d.Recover)
    assert left.cause is Cause.NO_FUNDS


@pytest.mark.parametrize("cause", [Cause.STOPPED_GRACEFULLY, Cause.STOPPED_EARLY, Cause.KILLED])
def test_what_was_flushed_for_an_empty_wallet_waits_and_counts_as_no_failure(cause: Cause) -> None:
    run = a_run(S.DRAINING, drain=DrainReason.FUNDS)
    lost = after(run, lasting(60), Sick(cause, "left", exited=True))
    assert isinstance(lost, d.Recover)
    assert lost.cause is Cause.NO_FUNDS
    waiting = change(run, b.lease(run), lost, NOW_S).run
    assert waiting.state is S.QUEUED
    assert waiting.strikes == run.strikes
    assert waiting.excluded == run.excluded


def test_nothing_is_rented_before_the_wallet_pays_for_an_hour_of_it() -> None:
    run = a_run(S.QUEUED, hardware={"usd_per_hour_max": 4.0})
    held = after(run, Funds("prime", 3.9, 0.0), None)
    assert isinstance(held, d.Hold)
    assert "$3.90 at prime" in held.why
    assert isinstance(after(run, Funds("prime", 4.1, 0.0), None), d.Launch)


def test_what_others_draw_from_the_wallet_counts() -> None:
    run = a_run(S.QUEUED, hardware={"usd_per_hour_max": 4.0})
    assert isinstance(after(run, Funds("prime", 9.0, 6.0), None), d.Hold)


def test_a_flush_that_takes_long_needs_more_in_the_wallet_before_a_machine_is_rented() -> None:
    run = a_run(S.QUEUED, hardware={"usd_per_hour_max": 4.0}, health={"drain_s": 3600})
    lasts_s = 2 * (RESERVE_S + 3600)
    assert isinstance(after(run, Funds("prime", 4.0 * (lasts_s - 60) / 3600, 0.0), None), d.Hold)
    assert isinstance(after(run, Funds("prime", 4.0 * (lasts_s + 60) / 3600, 0.0), None), d.Launch)


def test_a_launch_leaves_more_in_the_wallet_than_what_ends_it_again() -> None:
    assert 2 * (RESERVE_S + a_run().spec.health.drain_s) <= LAUNCH_S


def test_an_order_that_the_wallet_did_not_pay_is_reported_as_such_and_excludes_no_machine() -> None:
    run = a_run(S.LAUNCHING, notices=(NotificationRecord(AlertKind.NO_CAPACITY, NOW_S - 50),))
    done = refused(run, b.lease(run), Cause.NO_FUNDS, "402", NOW_S)
    assert [alert.kind for alert in done.alerts] == ["funds"]
    assert done.run.excluded == run.excluded
    again = refused(replace(run, notices=done.run.notices), b.lease(run), Cause.NO_FUNDS, "402", NOW_S)
    assert again.alerts == ()
    assert newest(done.run).ended_s == newest(run).launched_s
