"""What an outage of the control plane does to runs that are well: nothing, or nearly so. The whole table: `make bench`, `outages`."""

import pytest

from prime_train.core.causes import Cause
from prime_train.core.run import RunState
from tests.simulation.outage import Outage, OutageStage, Played, What
from tests.simulation.provider import OFFERS

RUNS = 40
LOOKS_S = 30.0
RESTARTED_SHARE_MAX = 0.05
GONE_FOUND_S_MAX = 60
FROZEN_FOUND_S_MAX = 1300
"""People are told of the most patient runs after 600 s of silence, and those are replaced 600 s later."""


def played(what: What, minutes: float, *, runs: int = RUNS, lost: float = 0.0, canary: bool = True) -> Played:
    return checked(OutageStage(Outage(what, minutes, runs=runs, lost=lost, canary=canary, looks_s=LOOKS_S)))


def checked(stage: OutageStage) -> Played:
    """What came of it; every run has ended as it should, and none had two machines."""
    came = stage.play()
    assert came.ends[RunState.SUCCEEDED] + came.ends[RunState.STOPPED] == came.runs
    assert came.ends[RunState.STOPPED] < 0.2 * came.runs
    assert came.doubled == []
    assert came.missed == 0
    return came


@pytest.mark.parametrize(("what", "runs"), [(What.UNHEARD, 200), (What.REFUSED, RUNS), (What.UNANSWERED, RUNS)])
def test_ten_minutes_without_a_webhook_restart_fewer_than_one_run_in_twenty(what: What, runs: int) -> None:
    assert played(what, 10, runs=runs).restarted_share < RESTARTED_SHARE_MAX


def test_without_a_canary_the_crowd_of_silent_runs_tells_of_an_outage() -> None:
    assert played(What.UNHEARD, 10, canary=False).restarted_share < RESTARTED_SHARE_MAX


@pytest.mark.parametrize("what", [What.HALF, What.CUT])
def test_what_keeps_only_some_from_being_heard_restarts_fewer_than_one_run_in_twenty(what: What) -> None:
    assert played(what, 10).restarted_share < RESTARTED_SHARE_MAX


@pytest.mark.parametrize(("what", "minutes"), [(What.STORE, 10), (What.PROVIDER, 60)])
def test_an_outage_of_what_runs_do_not_need_to_train_restarts_none(what: What, minutes: float) -> None:
    assert played(what, minutes).begun == 0


def test_machines_that_are_really_lost_in_an_outage_are_found_all_the_same() -> None:
    came = played(What.UNHEARD, 10, lost=0.1)
    assert came.gone_found_s
    assert came.frozen_found_s
    assert max(came.gone_found_s) < GONE_FOUND_S_MAX
    assert max(came.frozen_found_s) < FROZEN_FOUND_S_MAX
    assert came.begun == 0


def test_an_hour_without_a_watcher_loses_nothing_and_doubles_nothing() -> None:
    """Runs end by their own hours, saved. What passes a budget in money is bounded by the hour: machines are paid until a watcher is
    back."""
    stage = OutageStage(Outage(What.WATCHERS, 60, lost=0.2, runs=RUNS, looks_s=LOOKS_S))
    came = checked(stage)
    assert came.gone_found_s
    assert max(came.gone_found_s) < GONE_FOUND_S_MAX
    assert came.begun == 0
    assert came.repeated == {}
    leases = [held.lease for run_id in stage.keeper.runs if (held := stage.store.load(run_id)) is not None]
    at_their_hours = [lease for lease in leases if lease.beat and lease.beat.exit and lease.beat.exit.cause is Cause.DEADLINE]
    assert at_their_hours
    assert all(lease.beat is not None and lease.committed_step == lease.beat.step for lease in at_their_hours)
    assert 0 < came.over_usd < 1.1 * OFFERS[0].usd_per_hour
