"""A run that starts from another run's checkpoint: what the control plane rents for it, and when it cleans
up.
"""

import json

import pytest

from prime_train.buckets.keys import blob_key, descendant_key, manifest_key, spec_key
from prime_train.checkpoints.catalog import Reader
from prime_train.checkpoints.descendants import ABANDONED_S
from prime_train.checkpoints.lookup import Found
from prime_train.checkpoints.manifest import Manifest
from prime_train.checkpoints.retention import RetentionPolicy, why_kept
from prime_train.runs import change as c
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.run import Ancestor, Lineage, Run, RunState
from prime_train.runs.stored_json import dump, load
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.reconcile.ports import Outside

DESCENDANT = "descendant-1"
CONTENT = blob_key(b.RUN_ID, b.digest(10))
RECORD = descendant_key(b.RUN_ID, DESCENDANT, 10)


@pytest.fixture
def w() -> Outside:
    """Return a run that trains and has a checkpoint of step 10, and a queued descendant of it."""
    w = Outside().trains()
    started = w.save_checkpoint(10).for_descendant(DESCENDANT)
    data = started.model_dump_json().encode()
    w.bucket.objects |= {RECORD: data, started.key: data}
    lineage = Lineage((Ancestor(b.RUN_ID, 10),), b.RUN_ID)
    made = Run(
        DESCENDANT,
        b.spec(),
        created_s=w.now_s,
        resume=started.point,
        best_step=10,
        durable_step=10,
        lineage=lineage,
    )
    assert w.store.create(made)
    return w


def ends(w: Outside, run_id: str) -> None:
    w.after(20).exit(Cause.FINISHED, run_id, step=2000)
    w.settle(run_id)
    assert w.run(run_id).state is RunState.SUCCEEDED


def saved(w: Outside, run_id: str, step: int) -> None:
    """Put a checkpoint of its own into the folder of the run."""
    manifest = Manifest(
        run=run_id,
        attempt=1,
        step=step,
        created_s=w.now_s,
        folder=f"step_{step}",
        files=(b.stored_file("w", step, size=4),),
    )
    w.bucket.objects |= {
        blob_key(run_id, b.digest(step)): b"good",
        manifest.key: manifest.model_dump_json().encode(),
    }


def test_the_first_attempt_starts_from_the_other_run_and_so_does_the_next_one_until_there_is_a_checkpoint(
    w: Outside,
) -> None:
    w.trains(DESCENDANT, step=12)
    first = w.run(DESCENDANT).attempts[0]
    assert (first.resumed_step, first.durable_step, w.lease(DESCENDANT).committed_step) == (10, 10, 10)
    w.after(20).exit(Cause.CUDA_ERROR, DESCENDANT)
    w.settle(DESCENDANT)
    lines = [event.text for event in w.store.history(DESCENDANT)]
    assert "starts from step 10 of tiny-1 because it has no checkpoint of its own" in lines
    assert ["to start from step 10 of tiny-1" in line for line in lines if line.startswith("requesting")] == [
        True,
        True,
    ]
    assert w.run(DESCENDANT).attempts[-1].resumed_step == 10


def test_no_machine_is_rented_while_content_is_missing_and_people_are_told_once(w: Outside) -> None:
    content = w.bucket.objects.pop(CONTENT)
    w.settle(DESCENDANT)
    w.sweeps(600)
    assert (w.run(DESCENDANT).state, w.run(DESCENDANT).attempt) == (RunState.QUEUED, 0)
    assert w.reported.kinds().count(AlertKind.CHECKPOINT.value) == 1
    notes = [event.text for event in w.store.history(DESCENDANT)]
    assert any(
        "the run starts from step 10 of tiny-1, but 1 of its chunks are no longer in the bucket" in note
        for note in notes
    ), notes
    w.bucket.objects[CONTENT] = content
    w.after(c.CLEANUP_AFTER_S).settle(DESCENDANT)
    assert w.run(DESCENDANT).attempt == 1


def test_no_machine_is_rented_where_the_manifest_is_gone(w: Outside) -> None:
    del w.bucket.objects[manifest_key(DESCENDANT, 10, 0)]
    w.settle(DESCENDANT)
    assert (w.run(DESCENDANT).state, w.run(DESCENDANT).attempt) == (RunState.QUEUED, 0)


def test_the_clean_up_of_the_source_keeps_the_content_until_the_descendant_has_ended_without_it(
    w: Outside,
) -> None:
    del w.bucket.objects[manifest_key(b.RUN_ID, 10, 1)]
    ends(w, b.RUN_ID)
    w.after(c.CLEANUP_AFTER_S).settle()
    assert (CONTENT in w.bucket.objects, w.run().next_check_s) == (True, None)
    w.trains(DESCENDANT, step=12)
    saved(w, DESCENDANT, 2000)
    del w.bucket.objects[manifest_key(DESCENDANT, 10, 0)]  # its agent's retention no longer keeps it
    ends(w, DESCENDANT)
    w.after(c.CLEANUP_AFTER_S - 1).sweep()
    assert RECORD in w.bucket.objects
    w.after(1).sweep()
    w.sweep()
    assert not {RECORD, CONTENT} & w.bucket.objects.keys()
    assert w.run().next_check_s is None


def test_a_descendant_that_still_has_the_checkpoint_at_its_end_keeps_its_content(w: Outside) -> None:
    del w.bucket.objects[manifest_key(b.RUN_ID, 10, 1)]
    ends(w, b.RUN_ID)
    w.trains(DESCENDANT, step=12)
    ends(w, DESCENDANT)
    w.after(2 * ABANDONED_S).settle(DESCENDANT)
    w.settle()
    assert {RECORD, CONTENT} <= w.bucket.objects.keys()


def test_a_source_that_still_trains_is_left_to_its_agent(w: Outside) -> None:
    w.trains(DESCENDANT, step=12)
    del w.bucket.objects[manifest_key(DESCENDANT, 10, 0)]
    ends(w, DESCENDANT)
    w.after(c.CLEANUP_AFTER_S).settle(DESCENDANT)
    assert RECORD not in w.bucket.objects
    assert CONTENT in w.bucket.objects
    assert w.run().cleanup_s is None


def test_the_bucket_alone_knows_the_lineage(w: Outside) -> None:
    w.trains(DESCENDANT, step=12)
    spec, lineage = Found(DESCENDANT, "", w.bucket, None, w.now_s).launched
    assert (spec, lineage) == (w.run(DESCENDANT).spec, w.run(DESCENDANT).lineage)


def test_the_lineage_is_found_in_what_a_version_with_other_names_has_stored(w: Outside) -> None:
    w.trains(DESCENDANT, step=12)
    run = w.run(DESCENDANT)
    stored = dump(run)
    written = dict(json.loads(w.bucket.objects[spec_key(DESCENDANT)]))
    former = {"lineage": [{"run": b.RUN_ID, "step": 10}], "blobs_of": b.RUN_ID}
    older = dict(json.loads(stored))
    del older["lineage"], older["form"], written["lineage"], written["form"]
    assert load(Run, json.dumps(older | {"branch": former})) == run
    w.bucket.objects[spec_key(DESCENDANT)] = json.dumps(written | {"branch": former}).encode()
    assert Found(DESCENDANT, "", w.bucket, None, w.now_s).launched == (run.spec, run.lineage)


def test_the_checkpoint_that_a_descendant_started_from_stays_until_one_of_its_own_is_proven(
    w: Outside,
) -> None:
    w.trains(DESCENDANT, step=12)
    for step in (20, 30):
        saved(w, DESCENDANT, step)
        key = manifest_key(DESCENDANT, step, 1)
        w.store.commit(b.commit(step, run=DESCENDANT, key=key, identity=w.identity(1, DESCENDANT)), w.now_s)
    assert kept(w, committed_step=30) == {(30, 1): "newest 1", (10, 0): "newest proven"}
    w.after(20).exit(Cause.CUDA_ERROR, DESCENDANT, step=31)
    w.settle(DESCENDANT)
    w.trains(DESCENDANT, step=33)
    assert w.run(DESCENDANT).attempts[-1].resumed_step == 30
    saved(w, DESCENDANT, 40)
    assert kept(w, committed_step=40) == {(40, 1): "newest 1", (30, 1): "newest proven"}


def kept(w: Outside, *, committed_step: int) -> dict[tuple[int, int], str]:
    """Return the descendant's checkpoints that its agent keeps after a commit, with the reasons."""
    catalog = Reader(w.bucket, DESCENDANT).catalog()
    reasons = why_kept(
        catalog.kept(RetentionPolicy(keep=1)), RetentionPolicy(keep=1), committed_step=committed_step
    )
    return {(m.step, m.attempt): reasons[m.key] for m in catalog.manifests if m.key in reasons}
