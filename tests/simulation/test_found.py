"""Bugs that the simulation found in the core, each reproduced in a few lines."""

from dataclasses import replace

from prime_train.errors import TemporaryError
from prime_train.runs import decide as d
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.change import no_offer
from prime_train.runs.run import NotificationRecord, RunState
from prime_train.runs.verdict import Healthy, PodsObserved, PodStatus, TrackerObserved, judge
from prime_train.runs.wire import Phase
from prime_train.spec.causes import Cause
from prime_train.watch.steps import reconcile_fully
from tests import builders as b
from tests.core.given import NOW_S, TRAINS, a_run, as_expected, evidence, newest
from tests.reconcile.ports import Outside

DOWN = TemporaryError("HTTP 503")


def test_a_single_step_does_not_take_silence_for_death_while_the_webhook_is_away() -> None:
    w = Outside().trains()
    w.canary.sings_now = False
    for _ in range(40):
        w.after(30).settle()
    assert w.run().attempt == 1
    assert "silent" not in w.reported.kinds()


def test_a_run_that_backs_off_still_learns_that_its_lost_machine_is_gone_and_paid_for_no_longer() -> None:
    run = a_run(
        RunState.QUEUED,
        attempts=(replace(b.new_attempt(1, RunState.QUEUED), ended_s=None),),
        attempt=1,
        not_before_s=NOW_S + 600,
    )
    wait = d.decide(run, None, as_expected(run), NOW_S)
    assert isinstance(wait, d.Wait)
    assert wait.until_s == NOW_S + d.check_s(run)


def test_a_run_for_which_nothing_can_be_rented_still_looks_after_its_lost_machine() -> None:
    run = a_run(
        RunState.QUEUED,
        attempts=(replace(b.new_attempt(1, RunState.QUEUED), ended_s=None),),
        attempt=1,
        backoffs=6,
    )
    held = no_offer(run, "the bucket does not answer", NOW_S).run
    assert (held.not_before_s, held.next_check_s) == (NOW_S + 600, NOW_S + d.check_s(run))


def test_an_old_machine_that_cannot_be_queried_does_not_keep_the_run_from_going_on() -> None:
    w = Outside().trains()
    w.fail["terminate"] = w.fail["get"] = DOWN
    w.exit(Cause.PREEMPTED)
    w.sweeps(120)
    assert w.run().attempt == 2


def test_steps_of_one_look_that_takes_minutes_bear_the_second_at_which_each_began() -> None:
    w = Outside()
    moments = iter(range(w.now_s, w.now_s + 3000, 50))
    reconcile_fully(w.world, b.RUN_ID, w.now_s, clock=lambda: next(moments))
    booting = newest(w.run())
    assert booting.agent_put_s is not None
    assert booting.agent_put_s >= booting.launched_s + 50


def test_what_is_overdue_for_one_watcher_only_is_not_taken_back_and_reported_anew() -> None:
    run = a_run(notices=(NotificationRecord(AlertKind.BLIND, NOW_S - 5),))
    assert not isinstance(d.decide(run, TRAINS, as_expected(run), NOW_S), d.AllClear)
    assert isinstance(d.decide(run, TRAINS, as_expected(run), NOW_S + 25), d.AllClear)


def test_a_tracker_that_cannot_be_queried_for_a_while_takes_nothing_back() -> None:
    w = Outside({"wandb": {"project": "p"}}).trains()
    for _ in range(60):
        w.tracker.seen = TrackerObserved(99, w.now_s)
        w.after(30).sweep()
    w.tracker.seen = None
    w.sweeps(180)
    assert w.run().attempt == 1
    w.sweeps(600)
    assert w.run().attempt == 2


def test_what_the_tracker_reported_is_kept_also_by_a_look_that_decides_something_else() -> None:
    w = Outside({"wandb": {"project": "p"}}).trains()
    w.fail["list"] = TemporaryError("HTTP 503")
    for _ in range(20):
        w.tracker.seen = TrackerObserved(99, w.now_s)
        w.after(30).sweep()
    w.fail.clear()
    w.tracker.seen = None
    w.sweeps(180)
    assert w.run().attempt == 1, "the tracker had heard of it three minutes ago"


def test_a_step_that_only_the_tracker_heard_of_is_no_first_step() -> None:
    run = a_run(RunState.STARTING, notices=(NotificationRecord(AlertKind.CUT_OFF, NOW_S - 60),))
    assert isinstance(d.decide(run, Healthy(Phase.SETUP, 40, cut_off=True), as_expected(run), NOW_S), d.Wait)


def test_a_machine_that_boots_is_given_its_agent_also_while_nobody_can_be_heard() -> None:
    run = a_run(RunState.BOOTING)
    verdict = judge(run, evidence(run, blind="the webhook is away"), NOW_S)
    assert verdict == Healthy(None, 0)
    assert isinstance(d.decide(run, verdict, as_expected(run), NOW_S), d.PutAgent)


def test_a_machine_that_was_made_and_taken_away_before_it_was_written_down_is_in_the_ledger() -> None:
    run = a_run(RunState.LAUNCHING)
    lost = replace(b.pod(run), status=PodStatus.GONE)
    decision = d.decide(
        run, Healthy(None, 0), replace(as_expected(run), pods=(lost,), gone=frozenset({lost.pod_id})), NOW_S
    )
    assert decision == d.Adopt(lost.pod_id, lost.usd_per_hour)


def test_a_lost_create_call_is_not_settled_by_a_list_that_lacks_its_provider() -> None:
    lost = replace(
        b.new_attempt(1, RunState.QUEUED),
        pod_id=None,
        ended_s=None,
        fenced_s=NOW_S - 9000,
        launched_s=NOW_S - 9000,
    )
    run = a_run(RunState.QUEUED, attempts=(lost,), attempt=1, not_before_s=NOW_S + 600)
    assert isinstance(d.decide(run, None, PodsObserved(), NOW_S), d.Settle)
    unlisted = PodsObserved(unlisted=frozenset({lost.offer.provider}))
    assert isinstance(d.decide(run, None, unlisted, NOW_S), d.Wait), "its machine may well be there"


def test_a_machine_whose_provider_does_not_know_its_id_for_a_moment_is_not_given_up() -> None:
    w = Outside()
    w.settle()
    (pod_id,) = (pod.pod_id for pod in w.pods.real.list())
    w.pods.hidden.add(pod_id)
    w.pods.denied.add(pod_id)
    w.sweeps(60)
    assert w.run().attempt == 1
    w.sweeps(60)
    assert w.run().attempts[0].cause is Cause.BOOT_LOST, "it is believed in the end"
