"""The store is restored from an older copy while runs continue: the bucket's newer records are adopted, and
nothing is lost or done twice.
"""

from dataclasses import replace

import pytest

from prime_train.buckets.keys import RECORDS, record_key
from prime_train.errors import TemporaryError
from prime_train.runs import change as c
from prime_train.runs import ledger
from prime_train.runs.run import DesiredState, RunState
from prime_train.runs.sealed_record import sealed
from prime_train.runs.wire import Outcome
from prime_train.spec.causes import Cause
from prime_train.watch.attempt_records import catch_up_all
from tests import builders as b
from tests.reconcile.ports import MASTER, Outside

AWAY = TemporaryError("HTTP 503")


def training(spec: dict[str, object] | None = None) -> Outside:
    return Outside(spec).with_identities().trains()


def saves(w: Outside, step: int) -> Outcome:
    """Put the current attempt's checkpoint into the bucket, and commit it."""
    attempt = w.run().attempt
    manifest = w.save_checkpoint(step, attempt)
    return w.store.commit(
        b.commit(step, attempt=attempt, key=manifest.key, identity=w.identity(attempt)), w.now_s
    ).outcome


def loses_its_machine(w: Outside) -> None:
    for pod in w.pods.real.list():
        w.pods.real.preempt(pod.pod_id)
    w.after(40)
    w.settle()


def launches_again(w: Outside) -> None:
    """Start the next attempt, until it trains."""
    w.after(700)
    w.trains(step=w.run().best_step + 10)


def test_two_attempts_that_the_copy_lacks_are_taken_up_and_the_run_goes_on_from_the_newest_checkpoint() -> (
    None
):
    w = training()
    saves(w, 30)
    restore = w.copied()
    for step in (60, 90):
        loses_its_machine(w)
        launches_again(w)
        assert saves(w, step) is Outcome.OK
    del w.bucket.objects["runs/tiny-1/manifests/000000000030-e1.json"]  # it has been pruned meanwhile
    loses_its_machine(w)
    restore()
    w.after(60)
    w.settle()
    launches_again(w)
    run = w.run()
    assert (run.attempt, run.resume and run.resume.step) == (4, 90)
    assert [attempt.number for attempt in run.attempts] == [1, 2, 3, 4]
    assert len({attempt.identity for attempt in run.attempts}) == 4
    assert "restored" in w.reported.kinds() or any(alert.kind == "restored" for alert in w.store.outbox(50))


def test_a_machine_that_trains_on_meanwhile_is_known_again_and_keeps_its_run() -> None:
    w = training()
    saves(w, 30)
    restore = w.copied()
    loses_its_machine(w)
    launches_again(w)
    identity, requested = w.identity(2), w.done("terminate")
    saves(w, 60)
    restore()
    assert w.run().attempt == 1
    assert catch_up_all(w.store, w.bucket, MASTER, w.now_s) == [b.RUN_ID]
    assert w.lease().committed_step == 60
    assert w.after(5).heartbeat(attempt=2, identity=identity, step=70).outcome is Outcome.OK
    w.sweep()
    w.after(30).sweep()
    assert w.run().state is RunState.TRAINING
    assert w.done("terminate") == requested
    assert len(w.living()) == 1
    assert saves(w, 80) is Outcome.OK


def test_a_machine_that_the_copy_does_not_know_is_adopted_and_not_taken_back_without_a_look_at_the_bucket() -> (
    None
):
    w = training()
    restore = w.copied()
    loses_its_machine(w)
    launches_again(w)
    requested = w.done("terminate")
    restore()
    w.fail["bucket"] = AWAY
    w.after(40).sweep()
    assert w.done("terminate") == requested
    del w.fail["bucket"]
    w.after(40).sweep()
    assert w.done("terminate") == requested
    assert (w.run().attempt, len(w.living())) == (2, 1)


def test_a_dead_attempts_recorded_commit_is_not_accepted_for_its_twin() -> None:
    w = training()
    restore = w.copied()
    loses_its_machine(w)
    launches_again(w)
    recorded = b.commit(60, attempt=2, key=w.save_checkpoint(60, 2).key, identity=w.identity(2))
    for key in [key for key in w.bucket.objects if key.startswith(RECORDS)]:
        del w.bucket.objects[key]  # the worst case: nothing tells that the number was used
    restore()
    loses_its_machine(w)
    launches_again(w)
    assert w.run().attempt == 2
    assert w.identity(2) != recorded.identity
    assert w.store.commit(recorded, w.now_s).outcome is Outcome.FENCED
    assert w.lease().committed_step == 0
    loses_its_machine(w)
    assert w.run().resume is None, "the dead twin's checkpoint is nobody's"


def test_what_a_fenced_machine_writes_late_is_not_looked_at_whether_or_not_the_store_was_restored() -> None:
    w = training()
    saves(w, 30)
    restore = w.copied()
    loses_its_machine(w)
    launches_again(w)
    w.save_checkpoint(50, 1)  # the first machine ran on
    saves(w, 40)
    loses_its_machine(w)
    assert w.run().resume is not None
    assert w.run().resume.step == 40  # type: ignore[union-attr]
    restore()
    w.after(60)
    w.settle()
    w.after(700)
    w.settle()
    assert w.run().resume.step == 40  # type: ignore[union-attr]


def test_a_run_that_was_cancelled_after_the_copy_was_made_stays_so_and_rents_nothing() -> None:
    w = training()
    restore = w.copied()
    assert w.store.save(c.requested(w.run(), DesiredState.CANCEL, w.now_s))
    w.settle()
    w.exit(Cause.STOPPED_GRACEFULLY)
    w.after(400)
    w.settle()
    assert w.run().state is RunState.CANCELLED
    restore()
    loses_its_machine(w)
    for _ in range(5):
        w.after(400)
        w.settle()
    assert w.run().state is RunState.CANCELLED
    assert len(w.done("create")) == 1


def test_what_was_spent_after_the_copy_was_made_still_counts() -> None:
    w = training()
    restore = w.copied()
    w.after(3600)
    w.heartbeat(step=900)
    loses_its_machine(w)
    launches_again(w)
    before_usd = ledger.spent(w.run(), w.now_s).usd
    restore()
    catch_up_all(w.store, w.bucket, MASTER, w.now_s)
    assert ledger.spent(w.run(), w.now_s).usd == pytest.approx(before_usd)


def test_nothing_is_rented_while_the_bucket_that_may_know_more_does_not_answer() -> None:
    w = training()
    restore = w.copied()
    saves(w, 60)
    for pod in w.pods.real.list():
        w.pods.real.preempt(pod.pod_id)
    restore()
    w.fail["bucket"] = AWAY
    for _ in range(5):
        w.after(400)
        w.settle()
    assert (w.run().state, len(w.done("create"))) == (RunState.QUEUED, 1)
    del w.fail["bucket"]
    w.after(700)
    w.settle()
    assert w.run().resume.step == 60  # type: ignore[union-attr]


def test_no_machine_is_rented_whose_attempt_could_not_be_recorded() -> None:
    w = Outside().with_identities()
    calls = []

    def refuses_records(call: str) -> None:
        calls.append(call)
        w.fail.pop("bucket", None)
        if w.run().state is RunState.LAUNCHING:
            w.fail["bucket"] = AWAY

    w.faults.looking_on = refuses_records
    w.settle()
    assert w.done("create") == []
    assert (w.run().state, w.run().cause) == (RunState.QUEUED, Cause.LAUNCH_LOST)


def test_a_record_that_somebody_else_has_put_there_is_nobodys() -> None:
    w = training()
    forged = replace(w.run(), attempt=7, turn=70, desired=DesiredState.CANCEL)
    for master in (b"another master", b""):
        w.bucket.objects[record_key(b.RUN_ID, 7, 70)] = sealed(forged, w.lease(), master)
        assert catch_up_all(w.store, w.bucket, MASTER, w.now_s) == []
    w.bucket.objects[record_key(b.RUN_ID, 7, 70)] = b"no record"
    loses_its_machine(w)
    launches_again(w)
    assert w.run().attempt == 2


def test_a_sealed_record_under_another_name_is_not_taken_up() -> None:
    w = training()
    theirs = sealed(replace(w.run(), run_id="other", attempt=7, turn=70), w.lease(), MASTER)
    w.bucket.objects[record_key(b.RUN_ID, 7, 70)] = theirs
    assert catch_up_all(w.store, w.bucket, MASTER, w.now_s) == []


def test_a_store_that_was_never_restored_is_not_taken_for_one_that_was() -> None:
    w = training()
    for _ in range(4):
        loses_its_machine(w)
        launches_again(w)
        assert catch_up_all(w.store, w.bucket, MASTER, w.now_s) == []
    assert not [line for line in w.store.history(b.RUN_ID) if line.kind == "restored"]
    assert [key for key in w.bucket.objects if key.startswith(RECORDS)] == [
        record_key(b.RUN_ID, w.run().attempt, turn) for turn in (w.run().turn - 1, w.run().turn)
    ], "those of older attempts go"


def ends_by_a_stop(w: Outside) -> None:
    assert w.store.save(c.requested(w.run(), DesiredState.STOP, w.now_s))
    w.settle()
    w.exit(Cause.STOPPED_GRACEFULLY)
    w.after(60)
    w.settle()
    assert w.run().state is RunState.STOPPED


def test_a_run_that_was_stopped_rents_nothing_though_the_bucket_could_not_be_read_when_its_machine_was_found_gone() -> (
    None
):
    w = training()
    saves(w, 30)
    restore = w.copied()
    ends_by_a_stop(w)
    restore()
    w.fail["bucket"] = AWAY
    loses_its_machine(w)
    del w.fail["bucket"]
    for _ in range(5):
        w.after(700)
        w.settle()
    assert (w.run().state, len(w.done("create"))) == (RunState.STOPPED, 1)


def test_a_run_that_has_succeeded_is_not_called_stopped_for_money_that_it_never_cost() -> None:
    w = training()
    saves(w, 30)
    restore = w.copied()
    w.exit(Cause.FINISHED, step=30)
    w.after(60)
    w.settle()
    assert w.run().state is RunState.SUCCEEDED
    before_usd = ledger.spent(w.run(), w.now_s).usd
    restore()
    w.after(86_400)
    w.settle()
    assert w.run().state is RunState.SUCCEEDED
    assert ledger.spent(w.run(), w.now_s).usd == pytest.approx(before_usd)
