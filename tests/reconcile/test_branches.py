"""A run that starts from another run's checkpoint: what the control plane rents for it, and when it cleans up."""

import pytest

from prime_train.control_plane.reconcile.branches import ABANDONED_S
from prime_train.core import change as c
from prime_train.core.alert_kinds import AlertKind
from prime_train.core.causes import Cause
from prime_train.core.keys import blob_key, branch_key, manifest_key
from prime_train.core.manifest import Manifest
from prime_train.core.run import Ancestor, Branch, Run, RunState
from prime_train.operations.checkpoints.lookup import Found
from tests import builders as b
from tests.reconcile.ports import Outside

BRANCH = "branch-1"
CONTENT = blob_key(b.RUN_ID, b.digest(10))
RECORD = branch_key(b.RUN_ID, BRANCH, 10)


@pytest.fixture
def w() -> Outside:
    """Return a run that trains and has a checkpoint of step 10, and a queued branch of it."""
    w = Outside().trains()
    started = w.save_checkpoint(10).branched(BRANCH)
    data = started.model_dump_json().encode()
    w.bucket.objects |= {RECORD: data, started.key: data}
    branch = Branch((Ancestor(b.RUN_ID, 10),), b.RUN_ID)
    made = Run(BRANCH, b.spec(), created_s=w.now_s, resume=started.point, best_step=10, durable_step=10, branch=branch)
    assert w.store.create(made)
    return w


def ends(w: Outside, run_id: str) -> None:
    w.after(20).exit(Cause.FINISHED, run_id, step=2000)
    w.settle(run_id)
    assert w.run(run_id).state is RunState.SUCCEEDED


def saved(w: Outside, run_id: str, step: int) -> None:
    """Put a checkpoint of its own into the folder of the run."""
    manifest = Manifest(
        run=run_id, attempt=1, step=step, created_s=w.now_s, folder=f"step_{step}", files=(b.stored_file("w", step, size=4),)
    )
    w.bucket.objects |= {blob_key(run_id, b.digest(step)): b"good", manifest.key: manifest.model_dump_json().encode()}


def test_the_first_attempt_starts_from_the_other_run_and_so_does_the_next_one_until_there_is_a_checkpoint(w: Outside) -> None:
    w.trains(BRANCH, step=12)
    first = w.run(BRANCH).attempts[0]
    assert (first.resumed_step, first.durable_step, w.lease(BRANCH).committed_step) == (10, 10, 10)
    w.after(20).exit(Cause.CUDA_ERROR, BRANCH)
    w.settle(BRANCH)
    lines = [event.text for event in w.store.history(BRANCH)]
    assert "starts from step 10 of tiny-1 because it has no checkpoint of its own" in lines
    assert [line.endswith("to start from step 10 of tiny-1") for line in lines if line.startswith("requesting")] == [True, True]
    assert w.run(BRANCH).attempts[-1].resumed_step == 10


def test_no_machine_is_rented_while_content_is_missing_and_people_are_told_once(w: Outside) -> None:
    content = w.bucket.objects.pop(CONTENT)
    w.settle(BRANCH)
    w.sweeps(600)
    assert (w.run(BRANCH).state, w.run(BRANCH).attempt) == (RunState.QUEUED, 0)
    assert w.reported.kinds().count(AlertKind.CHECKPOINT.value) == 1
    notes = [event.text for event in w.store.history(BRANCH)]
    assert any("the run starts from step 10 of tiny-1, but 1 of its chunks are no longer in the bucket" in note for note in notes), notes
    w.bucket.objects[CONTENT] = content
    w.after(c.CLEANUP_AFTER_S).settle(BRANCH)
    assert w.run(BRANCH).attempt == 1


def test_no_machine_is_rented_where_the_manifest_is_gone(w: Outside) -> None:
    del w.bucket.objects[manifest_key(BRANCH, 10, 0)]
    w.settle(BRANCH)
    assert (w.run(BRANCH).state, w.run(BRANCH).attempt) == (RunState.QUEUED, 0)


def test_the_clean_up_of_the_source_keeps_the_content_until_the_branch_has_ended_without_it(w: Outside) -> None:
    del w.bucket.objects[manifest_key(b.RUN_ID, 10, 1)]
    ends(w, b.RUN_ID)
    w.after(c.CLEANUP_AFTER_S).settle()
    assert (CONTENT in w.bucket.objects, w.run().next_check_s) == (True, None)
    w.trains(BRANCH, step=12)
    saved(w, BRANCH, 2000)
    del w.bucket.objects[manifest_key(BRANCH, 10, 0)]  # its agent's retention no longer keeps it
    ends(w, BRANCH)
    w.after(c.CLEANUP_AFTER_S - 1).sweep()
    assert RECORD in w.bucket.objects
    w.after(1).sweep()
    w.sweep()
    assert not {RECORD, CONTENT} & w.bucket.objects.keys()
    assert w.run().next_check_s is None


def test_a_branch_that_still_has_the_checkpoint_at_its_end_keeps_its_content(w: Outside) -> None:
    del w.bucket.objects[manifest_key(b.RUN_ID, 10, 1)]
    ends(w, b.RUN_ID)
    w.trains(BRANCH, step=12)
    ends(w, BRANCH)
    w.after(2 * ABANDONED_S).settle(BRANCH)
    w.settle()
    assert {RECORD, CONTENT} <= w.bucket.objects.keys()


def test_a_source_that_still_trains_is_left_to_its_agent(w: Outside) -> None:
    w.trains(BRANCH, step=12)
    del w.bucket.objects[manifest_key(BRANCH, 10, 0)]
    ends(w, BRANCH)
    w.after(c.CLEANUP_AFTER_S).settle(BRANCH)
    assert RECORD not in w.bucket.objects
    assert CONTENT in w.bucket.objects
    assert w.run().cleanup_s is None


def test_the_bucket_alone_knows_the_lineage(w: Outside) -> None:
    w.trains(BRANCH, step=12)
    spec, branch = Found(BRANCH, "", w.bucket, None, w.now_s).launched
    assert (spec, branch) == (w.run(BRANCH).spec, w.run(BRANCH).branch)
