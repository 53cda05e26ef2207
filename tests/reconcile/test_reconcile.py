"""Load, judge, decide, save, then make the calls: in that order, whatever fails in between, and beside other
watchers.
"""

import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import pytest

from prime_train.buckets.keys import latest_key, manifest_key, spec_key
from prime_train.buckets.port import GET_BYTES_MAX
from prime_train.checkpoints.manifest import Manifest
from prime_train.errors import NoCapacity, PermanentError, TemporaryError
from prime_train.runs import decide as d
from prime_train.runs.breaker import HOLD_S
from prime_train.runs.change import adopted, requested, resumed
from prime_train.runs.run import DesiredState, RunState
from prime_train.runs.verdict import Pod, PodStatus, TrackerObserved
from prime_train.runs.wire import Commit, Order, Outcome, attempt_key
from prime_train.spec.causes import Cause
from prime_train.watch.context import Step
from prime_train.watch.execute import carry_out
from prime_train.watch.observe import look
from prime_train.watch.outbox import ALERT_S_MAX, deliver
from prime_train.watch.steps import STEPS_A_RUN_MAX, reconcile, reconcile_fully
from prime_train.watch.sweeps import sweep
from tests import builders as b
from tests.reconcile.ports import MASTER, Crash, Lost, Outside, RecordingNotifier

S = RunState
DOWN = TemporaryError("HTTP 503")
E1, E2 = f"pt-{b.RUN_ID}-e1", f"pt-{b.RUN_ID}-e2"
THREE = {"health": {"settle_s": 30}}
SETTLE_S = b.spec().health.settle_s


def gone(outside: Outside) -> None:
    """Take every machine away."""
    for pod in outside.pods.real.list():
        outside.pods.real.preempt(pod.pod_id)


def pod_of(outside: Outside) -> Pod:
    (pod,) = outside.pods.real.list()
    return pod


def resumes_from(outside: Outside) -> str | None:
    point = outside.run().resume
    return point.key if point is not None else None


# ------------------------------------------------------------------------------------------------------------
# one step


def test_a_run_nobody_knows_is_no_error() -> None:
    assert Outside().reconcile("nobody") == Step(None, False)


def test_a_queued_run_gets_a_machine_and_the_agent_in_one_call_of_reconcile_fully() -> None:
    w = Outside()
    w.settle()
    assert w.run().state is S.BOOTING
    assert w.living() == [E1]
    (ticket,) = w.pods.real.tickets(pod_of(w).pod_id)
    assert (ticket.run, ticket.attempt, ticket.key) == (b.RUN_ID, 1, attempt_key(MASTER, b.RUN_ID, 1))


def test_reconciling_again_at_the_same_second_does_nothing_more() -> None:
    w = Outside()
    w.settle()
    before = list(w.calls)
    for _ in range(5):
        assert isinstance(w.reconcile().decision, d.Wait)
    assert [call for call in w.calls[len(before) :] if call.split()[0] not in ("list", "get")] == []


def test_a_run_goes_from_queued_to_succeeded_and_leaves_no_machine() -> None:
    w = Outside().trains()
    w.after(20).exit(Cause.FINISHED, step=20)
    w.settle()
    assert w.run().state is S.SUCCEEDED
    assert w.is_at_rest()
    assert w.living() == []
    deliver(w.world, w.now_s)
    assert w.reported.kinds() == ["launched", "training", "succeeded"]


def test_an_attempt_that_finished_before_any_watcher_looked_again_has_succeeded() -> None:
    w = Outside()
    w.settle()
    w.after(300).exit(Cause.FINISHED, step=20)
    w.sweep()
    assert w.run().state is S.SUCCEEDED
    assert w.living() == []


# ------------------------------------------------------------------------------------------------- save
# first, then touch


def test_the_intent_is_saved_before_the_create_call() -> None:
    w = Outside()
    w.fail["create"] = Crash()
    with pytest.raises(Crash):
        w.settle()
    assert w.run().state is S.LAUNCHING
    assert w.run().attempt == 1
    assert w.lease().open


def test_the_spec_lies_in_the_bucket_before_any_machine_is_requested() -> None:
    w = Outside()
    w.fail["create"] = Crash()
    with pytest.raises(Crash):
        w.settle()
    stored = json.loads(w.bucket.objects[spec_key(b.RUN_ID)])
    assert stored["spec"] == w.run().spec.model_dump(mode="json")


def test_a_lost_save_does_nothing_outside() -> None:
    w = Outside()
    w.store.overtaken_by.append(b.RUN_ID)
    assert not w.reconcile().saved
    assert w.done("create") == []
    assert w.run().state is S.QUEUED


@pytest.mark.parametrize("call", ["terminate", "put_agent"])
def test_a_lost_save_neither_puts_an_agent_nor_takes_a_machine_back(call: str) -> None:
    w = Outside()
    w.reconcile()
    if call == "terminate":
        w.store.save(requested(w.run(), DesiredState.CANCEL, w.now_s))
    w.store.overtaken_by.append(b.RUN_ID)
    assert not w.reconcile().saved
    assert w.done(call) == []
    w.settle()
    assert w.done(call)


def test_a_heartbeat_that_comes_between_look_and_fence_saves_its_attempt() -> None:
    w = Outside().trains()
    record = w.store.load(b.RUN_ID)
    assert record is not None
    gone_at_s = w.after(400).now_s
    w.heartbeat(step=30)
    assert not carry_out(w.world, record, d.Recover(Cause.SILENT, "no heartbeat"), gone_at_s)
    assert w.living() == [E1]
    assert w.lease().open


# ---------------------------------------------------------------------------------------------------------
# lost creates


def test_a_create_call_whose_answer_was_lost_is_settled_by_listing_pods_by_name() -> None:
    w = Outside()
    w.fail["create"] = Lost()
    w.settle()
    w.fail.clear()
    w.settle()
    assert w.run().state is S.BOOTING
    assert w.run().attempts[0].pod_id == pod_of(w).pod_id
    assert w.done("create") == [f"create {E1}"]


def test_a_watcher_that_crashes_after_the_create_call_leaves_one_machine_and_no_orphan() -> None:
    w = Outside()
    w.reconcile()
    w.fail["put_agent"] = Crash()
    with pytest.raises(Crash):
        w.settle()
    w.fail.clear()
    w.after(w.run().spec.health.settle_s).settle()
    w.heartbeat()
    w.settle()
    assert (w.run().state, w.living()) == (S.STARTING, [E1])


def test_a_watcher_that_crashed_before_its_create_call_reached_anybody_is_followed_by_another_launch() -> (
    None
):
    w = Outside()
    w.fail["create"] = Crash()
    with pytest.raises(Crash):
        w.settle()
    w.fail.clear()
    w.after(SETTLE_S - 1).settle()
    assert w.run().state is S.LAUNCHING
    w.after(1).settle()
    assert (w.run().state, w.run().cause) == (S.QUEUED, Cause.LAUNCH_LOST)
    w.after(15).settle()
    assert (w.run().attempt, w.living()) == (2, [E2])


def test_a_slow_creator_whose_machine_appears_after_the_settle_time_has_it_taken_back() -> None:
    w = Outside()
    w.fail["create"] = Lost()
    w.pods.hidden.add("memory-1")
    w.settle()
    w.fail.clear()
    w.after(SETTLE_S).settle()
    w.after(15).settle()
    assert w.living() == [E1, E2]
    w.pods.hidden.clear()
    w.after(15).sweep()
    assert w.living() == [E2]
    assert w.run().state is S.BOOTING
    assert w.run().attempts[0].pod_id is not None


def test_a_second_machine_of_the_same_name_goes() -> None:
    w = Outside()
    w.fail["create"] = Lost()
    w.settle()
    w.fail.clear()
    w.pods.real.create(E1, w.run().attempts[0].offer, w.run().spec.hardware)
    assert w.living() == [E1, E1]
    w.settle()
    assert w.living() == [E1]
    assert w.run().attempts[0].pod_id == pod_of(w).pod_id


def test_two_watchers_that_launch_at_once_rent_one_machine() -> None:
    w = Outside()
    record = w.store.load(b.RUN_ID)
    assert record is not None
    assert carry_out(w.world, record, d.Launch(on_demand=False), w.now_s)
    assert not carry_out(w.world, record, d.Launch(on_demand=False), w.now_s)
    assert w.living() == [E1]


def test_a_run_that_was_cancelled_while_its_machine_was_being_created_keeps_none() -> None:
    w = Outside()
    w.fail["create"] = Lost()
    w.settle()
    w.fail.clear()
    w.store.save(requested(w.run(), DesiredState.CANCEL, w.now_s))
    w.settle()
    assert w.run().state is S.CANCELLED
    w.sweeps(60)
    assert w.living() == []
    assert w.is_at_rest()


@pytest.mark.parametrize(
    ("error", "cause", "pause_s"),
    [
        (NoCapacity("none"), Cause.NO_CAPACITY, d.QUICK_RETRY_S),
        (PermanentError("no"), Cause.LAUNCH_REFUSED, d.BACKOFF_FIRST_S),
    ],
)
def test_a_create_call_that_was_refused_for_certain_tries_another_offer_after_a_pause(
    error: Exception, cause: Cause, pause_s: int
) -> None:
    w = Outside()
    w.fail["create"] = error
    w.settle()
    assert (w.run().state, w.run().cause, w.run().excluded) == (S.QUEUED, cause, ("memory-spot",))
    w.fail.clear()
    w.after(pause_s - 1).settle()
    assert w.living() == []
    w.after(1).settle()
    assert w.run().attempts[-1].offer.offer_id == "memory-spot-b"


def test_offers_that_are_sold_out_one_after_the_other_are_not_asked_for_without_end() -> None:
    w = Outside()
    w.fail["create"] = NoCapacity("none")
    w.sweeps(3600, every_s=5)
    pauses = [later.launched_s - earlier.launched_s for earlier, later in pairwise(w.run().attempts)]
    assert (pauses[: d.QUICK_TRIES_MAX], pauses[-1]) == (
        [d.QUICK_RETRY_S] * d.QUICK_TRIES_MAX,
        d.BACKOFF_S_MAX,
    )


def test_without_capacity_a_run_waits_and_is_launched_when_there_is_some() -> None:
    w = Outside(stock={"memory-spot": 0, "memory-spot-b": 0, "memory-on-demand": 0})
    w.sweeps(3600)
    assert (w.run().state, w.run().attempt) == (S.QUEUED, 0)
    assert w.reported.kinds() == ["no_capacity"]
    w.pods.real.set_stock("memory-spot", 1)
    w.sweeps(615)
    assert w.living() == [E1]


# ------------------------------------------------------------------------------------------------------------
# takeovers


def test_a_machine_that_was_taken_away_is_replaced_and_the_run_goes_on_from_its_newest_checkpoint() -> None:
    w = Outside().trains()
    w.save_checkpoint(10)
    w.store.commit(b.commit(10), w.now_s)
    gone(w)
    w.after(31).settle()
    assert (w.run().attempt, w.living()) == (2, [E2])
    assert resumes_from(w) == manifest_key(b.RUN_ID, 10, 1)
    assert w.run().attempts[0].cause is Cause.PREEMPTED


def test_on_takeover_first_the_fence_then_the_end_of_the_old_machine_then_the_launch() -> None:
    w = Outside().trains()
    fenced: list[bool] = []
    w.faults.looking_on = lambda call: fenced.append(not w.lease().open) if call == "terminate" else None
    w.sweeps(330)
    assert fenced == [True]
    assert w.living() == [E2]
    order = [call.split()[0] for call in w.calls if call.split()[0] in ("terminate", "create")]
    assert order == ["create", "terminate", "create"]


def test_a_machine_that_cannot_be_taken_back_does_not_hold_up_the_run_and_is_retried_and_again() -> None:
    w = Outside().trains()
    w.fail["terminate"] = DOWN
    w.sweeps(330)
    assert w.living() == [E1, E2]
    requests = len(w.done("terminate"))
    w.sweeps(300)
    assert len(w.done("terminate")) - requests >= 9
    w.fail.clear()
    w.sweeps(45)
    assert w.living() == [E2]
    assert w.run().attempts[0].ended_s is not None


def test_a_terminate_call_whose_answer_was_lost_is_no_harm() -> None:
    w = Outside().trains()
    w.fail["terminate"] = Lost()
    w.store.save(requested(w.run(), DesiredState.CANCEL, w.now_s))
    w.settle()
    assert (w.run().state, w.living()) == (S.CANCELLED, [])
    assert w.is_at_rest()


def test_an_empty_list_from_the_provider_is_not_gone() -> None:
    w = Outside().trains()
    w.pods.hidden.add(pod_of(w).pod_id)
    for _ in range(6):
        w.after(31).settle()
        w.heartbeat(step=10)
    assert (w.run().state, w.run().attempt, w.living()) == (S.TRAINING, 1, [E1])


@pytest.mark.parametrize("call", ["list", "get"])
def test_while_the_provider_cannot_be_queried_nothing_is_destroyed_and_people_are_notified_once(
    call: str,
) -> None:
    w = Outside().trains()
    w.fail[call] = DOWN
    w.sweeps(3600)
    assert (w.run().state, w.run().attempt, w.living()) == (S.TRAINING, 1, [E1])
    assert w.done("terminate") == []
    assert w.reported.kinds().count("unknown") == 1


def test_a_machine_that_is_gone_while_nobody_could_ask_is_found_gone_afterwards() -> None:
    w = Outside().trains()
    w.fail["list"] = DOWN
    gone(w)
    w.sweeps(600)
    assert w.run().attempt == 1
    w.fail.clear()
    w.sweeps(15)
    assert w.living() == [E2]


def test_a_list_that_still_shows_a_machine_that_is_gone_keeps_nobody_busy() -> None:
    w = Outside().trains()
    ghost = replace(pod_of(w), status=PodStatus.ACTIVE)
    w.store.save(requested(w.run(), DesiredState.CANCEL, w.now_s))
    w.settle()
    w.pods.ghosts.append(ghost)
    before = len(w.done("terminate"))
    w.after(60).sweep()
    assert w.settle() < STEPS_A_RUN_MAX
    assert len(w.done("terminate")) - before <= 1


def test_a_run_whose_machine_is_cut_off_is_left_alone_while_its_tracker_advances() -> None:
    w = Outside({"wandb": {"project": "p"}}).trains()
    for minute in range(60):
        w.tracker.seen = TrackerObserved(20 + minute, w.now_s + 50)
        w.after(60).sweep()
    assert (w.run().state, w.run().attempt) == (S.TRAINING, 1)
    assert w.reported.kinds().count("cut_off") == 1


def test_the_tracker_is_only_queried_when_heartbeats_are_missing() -> None:
    w = Outside({"wandb": {"project": "p"}}).trains()
    requests: list[int] = []
    w.world = replace(w.world, tracker=_Counting(requests))
    w.after(30).settle()
    assert requests == []
    w.after(1).settle()
    assert len(requests) == 1


class _Counting:
    def __init__(self, requests: list[int]) -> None:
        self.requested = requests

    def look(self, run: object) -> None:
        self.requested.append(1)


def test_stacks_and_logs_are_requested_before_a_stalled_machine_is_given_up() -> None:
    w = Outside().trains()
    w.after(301).heartbeat(step=10, step_age_s=301)
    w.settle()
    assert w.lease().order is Order.EVIDENCE
    assert w.living() == [E1]
    w.after(20).heartbeat(step=10, step_age_s=321, evidence=True, news=True)
    w.settle()
    assert w.run().attempts[0].cause is Cause.STALLED
    assert w.living() == [E2]


# ------------------------------------------------------------------------------------------------------------
# resume


def test_what_is_resumed_is_chosen_once_and_what_a_zombie_writes_later_is_never_looked_at() -> None:
    w = Outside().trains()
    w.save_checkpoint(10)
    gone(w)
    w.after(31).settle()
    w.save_checkpoint(99, attempt=1)
    gone(w)
    w.after(1201).sweep()
    assert resumes_from(w) == manifest_key(b.RUN_ID, 10, 1)


def test_a_checkpoint_that_was_cut_off_is_not_resumed_from() -> None:
    w = Outside().trains()
    w.save_checkpoint(10)
    w.save_checkpoint(20, complete=False)
    broken = w.save_checkpoint(30)
    w.bucket.objects[broken.key] = w.bucket.objects[broken.key][:-7]
    w.bucket.objects[manifest_key(b.RUN_ID, 40, 1)] = w.bucket.objects[manifest_key(b.RUN_ID, 10, 1)]
    w.bucket.objects[manifest_key(b.RUN_ID, 50, 1)] = b"\xff\x00 no manifest"
    w.bucket.objects[manifest_key(b.RUN_ID, 60, 1)] = w.bucket.objects.pop(w.save_checkpoint(99).key)
    gone(w)
    w.after(31).settle()
    assert resumes_from(w) == manifest_key(b.RUN_ID, 10, 1)


def test_a_takeover_runs_the_commit_and_the_spec_that_the_run_was_launched_with() -> None:
    w = Outside()
    w.add("tiny-2", commit="0a1b2c3")
    w.trains("tiny-2")
    before = w.run("tiny-2")
    stored = w.bucket.objects[spec_key("tiny-2")]
    gone(w)
    w.after(31).settle("tiny-2")
    assert w.run("tiny-2").attempt == 2
    assert (w.run("tiny-2").commit, w.run("tiny-2").spec) == ("0a1b2c3", before.spec)
    assert w.bucket.objects[spec_key("tiny-2")] == stored
    assert json.loads(stored)["commit"] == "0a1b2c3"


def test_latest_is_for_people_and_never_looked_at() -> None:
    w = Outside().trains()
    w.bucket.objects[latest_key(b.RUN_ID)] = w.save_checkpoint(10).model_dump_json().encode()
    del w.bucket.objects[manifest_key(b.RUN_ID, 10, 1)]
    gone(w)
    w.after(31).settle()
    assert resumes_from(w) is None


def test_nothing_is_launched_before_the_bucket_reported_what_to_resume() -> None:
    w = Outside().trains()
    w.save_checkpoint(10)
    w.fail["bucket"] = DOWN
    gone(w)
    w.sweeps(300)
    assert (w.run().state, w.run().attempt, w.living()) == (S.QUEUED, 1, [])
    w.fail.clear()
    w.sweeps(15)
    assert w.living() == [E2]
    assert resumes_from(w) == manifest_key(b.RUN_ID, 10, 1)


def test_people_are_notified_when_the_bucket_keeps_a_run_from_going_on() -> None:
    w = Outside().trains()
    w.fail["bucket"] = DOWN
    gone(w)
    w.sweeps(900)
    assert [kind for kind in w.reported.kinds() if kind not in ("launched", "training", "lost")]


def committed(w: Outside, step: int) -> Manifest:
    """Store a checkpoint of the first attempt whose commit was confirmed to it."""
    manifest = w.save_checkpoint(step)
    assert w.store.commit(b.commit(step, key=manifest.key), w.now_s).outcome is Outcome.OK
    return manifest


def in_another_bucket(w: Outside, manifest: Manifest) -> None:
    w.bucket.objects.clear()


def of_a_newer_version(w: Outside, manifest: Manifest) -> None:
    w.bucket.objects[manifest.key] = json.dumps(
        manifest.model_dump(mode="json") | {"of_tomorrow": 1}
    ).encode()


def without_a_blob(w: Outside, manifest: Manifest) -> None:
    del w.bucket.objects[next(iter(manifest.blobs()))]


def test_a_run_of_which_the_bucket_holds_nothing_rents_nothing_until_it_does() -> None:
    w = Outside({"budget": {"usd": 500.0}}).trains(step=5000)
    manifest = committed(w, 5000)
    there = dict(w.bucket.objects)
    in_another_bucket(w, manifest)
    gone(w)
    w.sweeps(3600)
    assert (w.run().state, w.run().attempt, w.living()) == (S.QUEUED, 1, [])
    (alert,) = [alert for alert in w.reported.alerts if alert.kind == "checkpoint"]
    assert "step 5000 was committed" in alert.text
    w.bucket.objects |= there
    w.sweeps(60)
    assert w.living() == [E2]
    assert resumes_from(w) == manifest.key


def without_its_manifest(w: Outside, manifest: Manifest) -> None:
    del w.bucket.objects[manifest.key]


def with_a_torn_manifest(w: Outside, manifest: Manifest) -> None:
    w.bucket.objects[manifest.key] = w.bucket.objects[manifest.key][:-7]


def with_an_endless_manifest(w: Outside, manifest: Manifest) -> None:
    w.bucket.objects[manifest.key] = b" " * (GET_BYTES_MAX + 1)


def with_a_step_that_no_key_has(w: Outside, manifest: Manifest) -> None:
    """Commit as a machine could that somebody had taken over, when the control plane still took any step."""
    far = Commit.model_construct(
        run=b.RUN_ID, attempt=1, step=2**53, key=f"runs/{b.RUN_ID}/manifests/{2**53}-e1.json", identity=""
    )
    far = far.model_copy(update={"identity": w.identity(1)})
    assert w.store.commit(far, w.now_s).outcome is Outcome.OK
    without_its_manifest(w, manifest)


HIDINGS = [
    without_its_manifest,
    with_a_torn_manifest,
    with_an_endless_manifest,
    with_a_step_that_no_key_has,
    of_a_newer_version,
    without_a_blob,
]


@pytest.mark.parametrize("hide", HIDINGS, ids=lambda hide: hide.__name__)
def test_a_run_that_has_lost_its_newest_checkpoint_goes_on_at_once_from_the_one_before(
    hide: Callable[[Outside, Manifest], None],
) -> None:
    w = Outside().trains(step=20)
    before, newest = committed(w, 10), committed(w, 20)
    hide(w, newest)
    gone(w)
    w.sweeps(60)
    assert (w.run().attempt, resumes_from(w), w.run().durable_step) == (2, before.key, 10)
    (alert,) = [alert for alert in w.reported.alerts if alert.kind == "older"]
    assert "resumes from step 10" in alert.text
    assert (
        "resumes from step 10"
        in [event.text for event in w.store.history(b.RUN_ID) if event.kind == "resume_chosen"][-1]
    )


@pytest.mark.parametrize("hide", HIDINGS, ids=lambda hide: hide.__name__)
def test_a_run_that_has_lost_its_only_checkpoint_starts_over_and_says_so(
    hide: Callable[[Outside, Manifest], None],
) -> None:
    w = Outside().trains(step=20)
    hide(w, committed(w, 20))
    gone(w)
    w.sweeps(60)
    assert (w.run().attempt, resumes_from(w), w.run().durable_step) == (2, None, 0)
    (alert,) = [alert for alert in w.reported.alerts if alert.kind == "older"]
    assert "starts from step 0" in alert.text


@pytest.mark.parametrize("hide", HIDINGS, ids=lambda hide: hide.__name__)
def test_a_run_that_lost_its_checkpoint_and_was_stopped_is_resumed_from_the_one_before(
    hide: Callable[[Outside, Manifest], None],
) -> None:
    w = Outside().trains(step=20)
    before, newest = committed(w, 10), committed(w, 20)
    hide(w, newest)
    assert w.store.save(requested(w.run(), DesiredState.CANCEL, w.now_s))
    w.settle()
    assert w.run().is_over
    assert w.store.save(resumed(w.run(), w.now_s))
    w.settle()
    assert (w.run().attempt, resumes_from(w)) == (2, before.key)


def test_a_run_whose_resumed_checkpoint_was_lost_goes_on_from_an_older_attempts_but_from_none_that_came_too_late() -> (
    None
):
    w = Outside().trains(step=20)
    before, newest = committed(w, 10), committed(w, 20)
    gone(w)
    w.after(31).settle()
    assert resumes_from(w) == newest.key
    w.save_checkpoint(15)
    w.save_checkpoint(30)  # by a machine that ran on after its fence
    del w.bucket.objects[newest.key]
    gone(w)
    w.sweeps(120)
    late = manifest_key(b.RUN_ID, 15, 1)
    assert (w.run().attempt, resumes_from(w)) == (3, late)
    assert late != before.key


def test_an_older_checkpoint_that_is_complete_has_to_do_for_one_that_is_not_and_people_are_notified() -> None:
    w = Outside().trains(step=20)
    older, newer = committed(w, 10), committed(w, 20)
    without_a_blob(w, newer)
    gone(w)
    w.sweeps(60)
    assert resumes_from(w) == older.key
    (alert,) = [alert for alert in w.reported.alerts if alert.kind == "older"]
    assert "resumes from step 10" in alert.text
    assert "step 20, which was committed" in alert.text


def test_an_attempt_that_committed_nothing_of_its_own_goes_on_from_where_it_had_begun() -> None:
    w = Outside().trains(step=10)
    first = committed(w, 10)
    gone(w)
    w.after(31).settle()
    gone(w)
    w.sweeps(120)
    assert (w.run().attempt, resumes_from(w)) == (3, first.key)


def test_a_checkpoint_that_was_uploaded_while_the_webhook_was_away_counts_as_progress() -> None:
    w = Outside({"budget": {"restarts_without_progress": 1}}).trains()
    w.save_checkpoint(10)
    w.exit(Cause.CUDA_ERROR, step=12)
    w.settle()
    assert (w.run().state, w.run().durable_step) == (S.BOOTING, 10)


def test_three_attempts_that_died_without_a_checkpoint_stop_the_run_and_leave_no_machine() -> None:
    w = Outside({"budget": {"usd": 100.0}})
    for _ in range(3):
        w.settle()
        w.after(5).heartbeat()
        w.settle()
        w.after(5).exit(Cause.TRAINER_ERROR)
        w.settle()
    assert (w.run().state, w.run().attempt, w.living()) == (S.STOPPED, 3, [])
    deliver(w.world, w.now_s)
    assert w.reported.kinds().count("stopped") == 1
    assert "trainer failed" in w.reported.alerts[-1].text


@pytest.mark.parametrize("cause", [Cause.GPU_OOM, Cause.IMPORT_ERROR, Cause.BAD_CONFIG])
def test_what_would_fail_on_any_machine_gets_no_second_one(cause: Cause) -> None:
    w = Outside().trains()
    w.exit(cause, step=12)
    w.settle()
    assert (w.run().state, w.run().attempt, w.living()) == (S.FAILED, 1, [])


def test_the_budget_ends_a_run_no_later_than_one_look_past_it() -> None:
    w = Outside({"budget": {"usd": 0.02}}).trains()
    for _ in range(40):
        w.after(15).heartbeat(step=w.run().best_step + 10)
        w.sweep()
    assert (w.run().state, w.run().cause, w.living()) == (S.STOPPED, Cause.BUDGET_SPENT, [])
    paid_s = (w.run().attempts[0].ended_s or 0) - b.T0_S
    assert paid_s * 0.6 / 3600 <= 0.02 + 15 * 0.6 / 3600


def test_a_run_asked_to_stop_flushes_and_ends_stopped_and_can_go_on() -> None:
    w = Outside().trains()
    w.store.save(requested(w.run(), DesiredState.STOP, w.now_s))
    w.settle()
    assert w.lease().order is Order.DRAIN
    assert w.heartbeat(step=11).order is Order.DRAIN
    w.save_checkpoint(11)
    w.after(5).exit(Cause.STOPPED_GRACEFULLY, step=11)
    w.settle()
    assert (w.run().state, w.living()) == (S.STOPPED, [])
    assert "flushed" in w.run().why


def test_machines_that_are_gone_before_their_first_heartbeat_are_not_requested_without_a_pause() -> None:
    w = Outside({"hardware": {"spot": "only"}, "budget": {"usd": 1000.0}})
    for _ in range(240):
        w.after(15).sweep()
        gone(w)
    assert len(w.done("create")) <= 60


# ------------------------------------------------------------------------------------------------------------
# fences


def test_a_fenced_agent_gets_that_answer_and_can_neither_send_heartbeats_nor_commit() -> None:
    w = Outside().trains()
    gone(w)
    w.after(31).settle()
    assert w.store.heartbeat(b.heartbeat(999, attempt=1), w.now_s).outcome is Outcome.FENCED
    assert w.store.commit(b.commit(50, attempt=1), w.now_s).outcome is Outcome.FENCED


# ------------------------------------------------------------------------------------------------------------
# sweeps


def test_no_machine_is_rented_for_a_run_whose_secrets_the_control_plane_lacks() -> None:
    w = Outside({"secrets": ["HF_TOKEN"]})
    w.world = replace(w.world, secrets=frozenset())
    for _ in range(10):
        w.after(60).sweep()
    assert (w.done("create"), w.reported.kinds()) == ([], ["secrets"])
    assert "HF_TOKEN" in w.reported.alerts[0].text
    w.world = replace(w.world, secrets=frozenset({"HF_TOKEN"}))
    w.after(600).sweep()
    assert len(w.done("create")) == 1


def test_a_sweep_takes_care_of_every_run_that_is_due_and_of_no_other() -> None:
    w = Outside()
    w.add("tiny-2")
    assert sorted(w.sweep().looked_at) == [b.RUN_ID, "tiny-2"]
    assert w.living() == [E1, "pt-tiny-2-e1"]
    assert w.sweep().looked_at == ()


def test_a_machine_of_ours_that_no_run_knows_is_taken_back() -> None:
    w = Outside()
    w.pods.real.create("pt-nobody-e1", b.offer("memory-spot"), w.run().spec.hardware)
    w.pods.real.create("somebody-elses", b.offer("memory-spot"), w.run().spec.hardware)
    w.sweep()
    assert w.living() == [E1, "somebody-elses"]
    assert "Orphan" in w.received
    w.sweeps(60)
    assert w.reported.kinds().count("orphan") == 1


def test_a_superfluous_machine_is_given_back_before_any_machine_is_rented_in_the_same_sweep() -> None:
    w = Outside()
    w.sweep()
    w.pods.real.create(E2, b.offer("memory-spot"), w.run().spec.hardware)
    w.after(5).add("tiny-2")
    calls = len(w.calls)
    w.sweep()
    made = [entry.split()[0] for entry in w.calls[calls:]]
    assert made.index("terminate") < made.index("create")


def test_a_machine_that_may_be_of_another_store_is_reported_and_left_alone() -> None:
    w = Outside()
    pod = w.pods.real.create("pt-nobody-e1", b.offer("memory-spot"), w.run().spec.hardware)
    w.world = replace(w.world, shared=frozenset({pod.pod_id.partition("/")[0]}))
    w.sweeps(60)
    assert sorted(w.living()) == sorted([E1, "pt-nobody-e1"])
    (alert,) = [alert for alert in w.reported.alerts if alert.kind == "orphan"]
    assert f"prime-train stop --machine {pod.pod_id}" in alert.text
    assert "is not terminated" in alert.text


def test_an_ended_runs_machine_is_found_by_the_sweep_though_nobody_was_to_look_at_the_run_again() -> None:
    w = Outside().trains()
    w.exit(Cause.FINISHED, step=20)
    w.settle()
    assert w.is_at_rest()
    w.pods.real.create(E1, b.offer("memory-spot"), w.run().spec.hardware)
    w.after(60).sweep()
    assert w.living() == []


def test_a_sweep_that_cannot_ask_the_provider_says_so_and_takes_nothing_back() -> None:
    w = Outside().trains()
    w.pods.real.create("pt-nobody-e1", b.offer("memory-spot"), w.run().spec.hardware)
    w.fail["list"] = DOWN
    result = w.after(60).sweep()
    assert result.provider_error is not None
    assert "HTTP 503" in result.provider_error
    assert w.living() == ["pt-nobody-e1", E1]


def test_one_runs_failure_does_not_keep_the_watcher_from_the_others() -> None:
    w = Outside()
    w.add("tiny-2")
    w.fail["create"] = Crash()
    with pytest.raises(ExceptionGroup) as failed:
        w.sweep()
    assert len(failed.value.exceptions) == 2
    w.fail.clear()
    w.after(SETTLE_S).sweep()
    w.after(15).sweep()
    assert w.living() == [f"pt-{name}-e2" for name in (b.RUN_ID, "tiny-2")]


def test_a_sweep_sends_the_alerts_also_when_a_run_could_not_be_looked_at() -> None:
    w = Outside()
    w.add("tiny-2")
    w.sweep()
    w.reported.alerts.clear()
    for run_id in (b.RUN_ID, "tiny-2"):
        record = w.store.load(run_id)
        assert record is not None
        assert w.store.save(requested(record.run, DesiredState.CANCEL, w.now_s))
    w.fail["terminate"] = Crash()
    with pytest.raises(ExceptionGroup):
        w.sweep()
    assert sorted(w.reported.kinds()) == ["cancelled", "cancelled"]


# ---------------------------------------------------------------------------------------------------- when
# all fall silent


def four() -> Outside:
    w = Outside(THREE)
    for run_id in (b.RUN_ID, "tiny-2", "tiny-3", "tiny-4"):
        if run_id != b.RUN_ID:
            w.add(run_id, THREE)
    for run_id in (b.RUN_ID, "tiny-2", "tiny-3", "tiny-4"):
        w.trains(run_id)
    for run_id in (b.RUN_ID, "tiny-2", "tiny-3", "tiny-4"):
        w.heartbeat(run_id, step=10)
    w.sweep()
    return w


def test_when_most_runs_fall_silent_at_once_nothing_is_destroyed_and_it_is_reported_once() -> None:
    w = four()
    w.sweeps(900, every_s=30)
    assert w.done("terminate") == []
    assert {w.run(r).attempt for r in (b.RUN_ID, "tiny-2", "tiny-3", "tiny-4")} == {1}
    assert w.reported.kinds().count("blind") == 1


def test_when_most_runs_really_died_they_are_replaced_after_the_hold_one_by_one() -> None:
    w = four()
    w.sweeps(HOLD_S + 80, every_s=30)
    replaced = []
    for _ in range(40):
        w.after(30).sweep()
        replaced.append(sum(w.run(r).attempt > 1 for r in (b.RUN_ID, "tiny-2", "tiny-3", "tiny-4")))
    steps = [after - before for before, after in pairwise([0, *replaced])]
    assert [step for step in steps if step][:2] == [1, 1]
    assert replaced[-1] == 4


@pytest.mark.parametrize("every_s", [1, 5, 10])
def test_however_often_the_watcher_sweeps_dead_runs_are_let_through_beside_one_that_is_rightly_left_alone(
    every_s: int,
) -> None:
    w = Outside(THREE | {"wandb": {"project": "p"}})
    dead = [f"tiny-{n}" for n in range(2, 7)]
    for run_id in dead:
        w.add(run_id, THREE)
    for run_id in (b.RUN_ID, *dead):
        w.trains(run_id)
    for run_id in (b.RUN_ID, *dead):
        w.heartbeat(run_id, step=10)
    for _ in range(2400 // every_s):
        w.after(every_s)
        w.tracker.seen = TrackerObserved(50, w.now_s)
        w.sweep()
    assert w.run().attempt == 1
    assert [w.run(run_id).attempt > 1 for run_id in dead] == [True] * len(dead)


def test_while_the_canary_fails_nothing_is_concluded_from_silence_however_long() -> None:
    w = Outside().trains()
    w.canary.sings_now = False
    w.sweeps(7200, every_s=60)
    assert (w.run().attempt, w.living()) == (1, [E1])
    assert w.reported.kinds().count("blind") == 1


def test_a_run_that_is_heard_again_after_the_canary_failed_was_not_silent() -> None:
    w = Outside().trains()
    w.canary.sings_now = False
    w.sweeps(1200, every_s=60)
    w.canary.sings_now = True
    w.after(60).sweep()
    w.heartbeat(step=50)
    w.sweeps(60)
    assert w.run().attempt == 1
    assert w.reported.kinds().count("silent") == 0


def test_machines_that_are_gone_are_replaced_also_while_the_watcher_is_blind() -> None:
    w = four()
    gone(w)
    w.canary.sings_now = False
    w.after(60).sweep()
    assert all(name.endswith("-e2") for name in w.living())
    assert len(w.living()) == 4


# ------------------------------------------------------------------------------------------------------------
# alerts


def test_alerts_are_sent_first_and_marked_after_so_that_a_crash_repeats_one_rather_than_loses_it() -> None:
    w = Outside()
    w.settle()
    w.reported.error = Crash()
    with pytest.raises(Crash):
        deliver(w.world, w.now_s)
    w.reported.error = None
    assert deliver(w.world, w.now_s) == 1
    assert deliver(w.world, w.now_s) == 0
    assert w.reported.kinds() == ["launched"]


def test_a_notifier_that_fails_for_now_is_tried_again_with_the_next_sweep() -> None:
    w = Outside()
    w.reported.error = DOWN
    w.sweep()
    assert w.reported.alerts == []
    w.reported.error = None
    w.after(60).sweep()
    assert w.reported.kinds() == ["launched"]


def test_an_alert_that_was_refused_is_not_sent_again_and_does_not_block_the_next() -> None:
    w = Outside()
    w.reported.error = PermanentError("HTTP 400")
    w.sweep()
    assert w.store.outbox(10) == []
    assert "AlertRefused" in w.received
    w.reported.error = None
    w.after(5).heartbeat()
    w.settle()
    w.after(5).heartbeat(step=1)
    w.settle()
    deliver(w.world, w.now_s)
    assert w.reported.kinds() == ["training"]


def test_a_notifier_that_refuses_does_not_keep_the_alert_from_the_others() -> None:
    w, other = Outside(), RecordingNotifier()
    w.world = replace(w.world, notifiers=(RecordingNotifier(error=PermanentError("HTTP 400")), other))
    w.sweep()
    assert other.kinds() == ["launched"]


def test_a_notifier_that_is_away_does_not_keep_the_alert_from_the_others() -> None:
    w, other = Outside(), RecordingNotifier()
    w.world = replace(w.world, notifiers=(RecordingNotifier(error=DOWN), other))
    w.sweep()
    assert "launched" in other.kinds()


def test_a_notifier_that_was_reported_is_not_reported_again_each_sweep_because_another_is_away() -> None:
    w, other = Outside(), RecordingNotifier()
    w.world = replace(w.world, notifiers=(other, RecordingNotifier(error=DOWN)))
    w.sweeps(600)
    assert other.kinds().count("launched") == 1


def test_an_alert_that_a_notifier_cannot_take_is_given_up_in_the_end_and_not_before() -> None:
    w = Outside()
    w.reported.error = DOWN
    w.sweep()
    w.after(ALERT_S_MAX - 1).sweep()
    assert "launched" in [alert.kind for alert in w.store.outbox(10)]
    w.after(1).sweep()
    assert "launched" not in [alert.kind for alert in w.store.outbox(10)]
    assert "AlertGivenUp" in w.received


def test_offers_that_are_listed_but_never_had_are_not_reported_at_each_try() -> None:
    w = Outside()
    w.fail["create"] = NoCapacity("just gone")
    w.sweeps(7200)
    assert len(w.done("create")) >= 10
    assert len(w.reported.alerts) <= 3


def test_an_alert_is_sent_once_by_watchers_that_come_one_after_another() -> None:
    w = Outside().trains()
    for _ in range(5):
        w.sweep()
    assert len(w.reported.kinds()) == len(set(w.reported.kinds()))


# ------------------------------------------------------------------------------------------------------------
# secrets


def test_the_master_key_is_not_shown_when_the_world_is_printed() -> None:
    assert "master" not in repr(Outside().world).replace("master_", "")


def test_a_look_that_fails_says_why_and_raises_nothing() -> None:
    w = Outside()
    w.fail["list"] = DOWN
    assert look(w.world).listed == "the provider's list failed: HTTP 503"


# ----------------------------------------------------------------------------------------------- every
# effect, crashed at


CALLS = ["list", "get", "offers", "bucket", "create", "put_agent", "terminate"]


@pytest.mark.parametrize("error", [Crash(), DOWN, Lost()], ids=lambda e: type(e).__name__)
@pytest.mark.parametrize("call", CALLS)
def test_whichever_call_fails_for_a_while_the_run_ends_succeeded_with_no_machine_left(
    call: str, error: Exception
) -> None:
    w = Outside({"budget": {"usd": 1000.0}})
    for second in range(0, 6000, 15):
        w.after(15)
        w.fail.clear()
        if 60 <= second < 600 or 1500 <= second < 1800:
            w.fail[call] = error
        if second == 1200:
            gone(w)
        with suppress(Crash, ExceptionGroup):
            w.sweep()
        assert len(w.living()) == len(set(w.living())), "one machine for each attempt"
        _agent(w, second)
    assert w.run().state is S.TRAINING
    w.exit(Cause.FINISHED, step=10_000)
    w.sweeps(300)
    assert w.run().state is S.SUCCEEDED
    assert w.living() == []


def _agent(w: Outside, second: int) -> None:
    """Send heartbeats of the newest attempt's agent if its machine exists and the agent is on it."""
    attempt = w.run().current_attempt
    if attempt is None or attempt.pod_id is None or not w.pods.real.tickets(attempt.pod_id):
        return
    if w.lease().open:
        w.heartbeat(step=second)


def test_adopting_and_reconciling_agree_on_the_pod() -> None:
    w = Outside()
    w.fail["create"] = Lost()
    w.reconcile()
    w.fail.clear()
    assert w.store.save(adopted(w.run(), pod_of(w).pod_id, w.now_s))
    assert isinstance(w.reconcile().decision, d.PutAgent)


def test_settle_stops_after_a_bounded_number_of_steps() -> None:
    w = Outside()
    assert reconcile_fully(w.world, b.RUN_ID, w.now_s) <= STEPS_A_RUN_MAX
    assert isinstance(reconcile(w.world, b.RUN_ID, w.now_s).decision, d.Wait)
    assert sweep(w.world, w.now_s).steps == 0
