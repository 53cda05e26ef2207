"""The effect of an outage of the control plane on healthy runs: none, or nearly none. The complete table:
`make bench`, `outages`.
"""

import pytest

from prime_train.runs.breaker import HOLD_S
from prime_train.runs.links import LAG_S_MAX
from prime_train.runs.run import RunState
from prime_train.runs.verdict import TrackerObserved
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.exhaustive import some_of
from tests.reconcile.ports import Outside
from tests.simulation.outage import LISTENED, Outage, OutageStage, Played, What
from tests.simulation.provider import OFFERS

RUNS = 40
LOOKS_S = 30.0
RESTARTED_SHARE_MAX = 0.005
GONE_FOUND_S_MAX = max(heartbeat_s for heartbeat_s, _, _ in LISTENED) + LOOKS_S
"""The provider is asked about a machine once its heartbeat is late, by the next look at the latest."""
FROZEN_FOUND_S_MAX = HOLD_S + 1300
"""People are notified of the runs with the longest limit after 600 s of silence, and those are replaced 600 s
later; several together only after the hold.
"""


def played(
    what: What, minutes: float, *, also: What | None = None, lost: float = 0.0, canary: bool = True
) -> Played:
    return checked(
        OutageStage(Outage(what, minutes, runs=RUNS, lost=lost, also=also, canary=canary, looks_s=LOOKS_S))
    )


def checked(stage: OutageStage) -> Played:
    """Return the result, after checking that every run has ended as it should, and that none had two
    machines.
    """
    came = stage.play()
    assert came.ends[RunState.SUCCEEDED] + came.ends[RunState.STOPPED] + came.unpaid == came.runs
    assert came.unpaid <= 1
    assert came.ends[RunState.STOPPED] < 0.2 * came.runs
    assert came.doubled == []
    assert came.missed == 0
    return came


@pytest.mark.parametrize(
    ("what", "minutes"),
    some_of(
        [(What.REFUSED, 10), (What.UNANSWERED, 20), (What.UNHEARD, 30), (What.FLAPS, 30), (What.HALF, 30)],
        one_in=3,
    ),
)
def test_an_outage_of_the_webhook_restarts_fewer_than_one_run_in_two_hundred(
    what: What, minutes: float
) -> None:
    assert played(what, minutes).restarted_share <= RESTARTED_SHARE_MAX


def test_without_a_canary_the_group_of_silent_runs_tells_of_an_outage() -> None:
    assert played(What.UNHEARD, 30, canary=False).restarted_share <= RESTARTED_SHARE_MAX


@pytest.mark.parametrize("what", [What.CUT, What.TWO])
def test_machines_that_are_cut_off_for_half_an_hour_are_not_replaced(what: What) -> None:
    assert played(what, 30).restarted_share <= RESTARTED_SHARE_MAX


def test_of_a_region_that_is_cut_off_in_steps_only_the_first_machine_may_be_replaced() -> None:
    """Until others follow, it cannot be distinguished from one that failed alone."""
    assert played(What.STEPS, 30).restarted <= 1


@pytest.mark.exhaustive
@pytest.mark.parametrize(("what", "also"), [(What.CUT, What.UNANSWERED), (What.STEPS, What.STORE)])
def test_two_outages_at_once_restart_no_more_than_one(what: What, also: What) -> None:
    assert played(what, 20, also=also).restarted_share <= RESTARTED_SHARE_MAX


@pytest.mark.exhaustive
@pytest.mark.parametrize(("what", "minutes"), [(What.STORE, 10), (What.PROVIDER, 60)])
def test_an_outage_of_what_runs_do_not_need_to_train_restarts_none(what: What, minutes: float) -> None:
    assert played(what, minutes).begun == 0


def training(runs: int) -> tuple[Outside, list[str]]:
    """Return this many runs that train, all of which sent a heartbeat a moment ago."""
    w, run_ids = Outside(), [b.RUN_ID, *(f"tiny-{n}" for n in range(2, runs + 1))]
    for run_id in run_ids[1:]:
        w.add(run_id)
    for run_id in run_ids:
        w.trains(run_id)
        w.now_s = b.T0_S + 30
    for run_id in run_ids:
        w.heartbeat(run_id, step=10)
    return w, run_ids


@pytest.mark.exhaustive
@pytest.mark.parametrize("minutes", [0, 2, 10])
def test_machines_that_are_lost_together_are_replaced_one_a_sweep_also_where_an_outage_hid_it(
    minutes: int,
) -> None:
    w, run_ids = training(40)
    replaced = [0]
    for at_s in range(15, HOLD_S + 1500, 15):
        w.after(15)
        w.canary.sings_now = at_s > minutes * 60
        for run_id in run_ids[18:] if w.canary.sings_now and at_s % 30 == 0 else ():
            w.heartbeat(run_id, step=10 + at_s)
        w.sweep()
        replaced.append(sum(w.run(run_id).attempt > 1 for run_id in run_ids))
        assert replaced[-1] - replaced[-2] <= 1  # the last few, too
        assert replaced[-1] == 0 or at_s >= HOLD_S + minutes * 60
    assert replaced[-1] == 18


@pytest.mark.parametrize("another", [False, True])
def test_a_watcher_that_cannot_reach_the_webhook_itself_judges_by_the_heartbeats_and_people_are_notified_once(
    another: bool,
) -> None:
    """`another`: a second watcher that can reach it, and shares the state."""
    w, run_ids = training(10)
    for at_s in range(15, 3600, 15):
        w.after(15)
        w.canary.sings_now = another and at_s % 60 == 0
        for run_id in run_ids[1:] if at_s % 30 == 0 else ():
            w.heartbeat(run_id, step=10 + at_s)
        w.sweep()
        if at_s == 600:
            assert [w.run(run_id).attempt for run_id in run_ids] == [2] + [1] * 9
    (reported,) = [
        alert for alert in w.reported.alerts if alert.title == "the canary fails although heartbeats arrive"
    ]
    assert reported.kind == "blind"
    assert "public address" in reported.text


def test_a_watcher_that_cannot_reach_the_webhook_does_not_take_an_outage_for_the_loss_of_all() -> None:
    w, run_ids = training(10)
    w.canary.sings_now = False
    for at_s in range(15, 7200, 15):
        w.after(15)
        for run_id in run_ids if at_s % 30 == 0 and not 1800 < at_s < 5400 else ():
            w.heartbeat(run_id, step=10 + at_s)
        w.sweep()
    assert {w.run(run_id).attempt for run_id in run_ids} == {1}


@pytest.mark.parametrize("rises", [False, True])
def test_a_run_of_which_only_its_tracker_hears_is_left_alone_as_long_as_its_step_rises_there(
    rises: bool,
) -> None:
    """Its agent is dead, and the tracker's own client reports for ever that it runs."""
    w, hour_s = Outside({"wandb": {"project": "p"}, "budget": {"usd": 100.0}}).trains(step=50), 3600
    for at_s in range(15, 6 * hour_s, 15):
        w.after(15)
        w.tracker.seen = TrackerObserved(50 + (at_s // 1200 if rises else 0), w.now_s - 10)
        w.sweep()
        if w.run().attempt > 1:
            break
    assert w.run().attempt == (1 if rises else 2)
    assert rises or w.run().attempts[0].cause is Cause.SILENT
    assert rises or LAG_S_MAX < at_s < 3 * hour_s
    assert [kind for kind in w.reported.kinds() if kind in ("cut_off", "silent")] == (
        ["cut_off"] if rises else ["cut_off", "silent"]
    )


def test_machines_that_are_really_lost_in_an_outage_are_found_all_the_same() -> None:
    came = played(What.UNHEARD, 10, lost=0.1)
    assert came.gone_found_s
    assert came.frozen_found_s
    assert max(came.gone_found_s) < GONE_FOUND_S_MAX
    assert max(came.frozen_found_s) < FROZEN_FOUND_S_MAX
    assert came.begun == 0


def test_an_hour_without_a_watcher_loses_nothing_and_doubles_nothing() -> None:
    """Runs end by their own hours, with everything saved. The excess over a budget in money is limited by the
    hour: machines are paid until a watcher is back.
    """
    stage = OutageStage(Outage(What.WATCHERS, 60, lost=0.2, runs=RUNS, looks_s=LOOKS_S))
    came = checked(stage)
    assert came.gone_found_s
    assert max(came.gone_found_s) < GONE_FOUND_S_MAX
    assert came.begun == 0
    assert came.repeated == {}
    leases = [
        record.lease for run_id in stage.keeper.runs if (record := stage.store.load(run_id)) is not None
    ]
    at_their_hours = [
        lease
        for lease in leases
        if lease.heartbeat and lease.heartbeat.exit and lease.heartbeat.exit.cause is Cause.HOURS_SPENT
    ]
    assert at_their_hours
    assert all(
        lease.heartbeat is not None and lease.committed_step == lease.heartbeat.step
        for lease in at_their_hours
    )
    assert 0 < came.over_usd < 1.1 * OFFERS[0].usd_per_hour
