"""Chunks that were too young to be deleted while a run was active: the control plane deletes them later."""

from prime_train.buckets.keys import blob_prefix
from prime_train.errors import TemporaryError
from prime_train.runs import change as c
from prime_train.runs import decide as d
from prime_train.runs.run import RunState
from prime_train.spec.causes import Cause
from prime_train.watch import clean_up
from tests import builders as b
from tests.reconcile.ports import Outside


def ended(*, chunks: int = 1) -> Outside:
    """Return a run that has succeeded, whose checkpoint of step 10 was pruned: no manifest lists its chunks
    any more.
    """
    w = Outside().trains()
    for number in range(chunks):
        gone = w.save_checkpoint(10 + number)
        del w.bucket.objects[gone.key]
    w.save_checkpoint(2000)
    w.after(20).exit(Cause.FINISHED, step=2000)
    w.settle()
    assert w.run().state is RunState.SUCCEEDED
    return w


def blobs(w: Outside) -> list[str]:
    return [key for key in w.bucket.objects if key.startswith(blob_prefix(b.RUN_ID))]


def test_chunks_that_were_too_young_at_the_end_of_a_run_go_later() -> None:
    w = ended()
    assert w.run().is_at_rest
    assert w.run().cleanup_s == w.now_s + c.CLEANUP_AFTER_S
    w.after(c.CLEANUP_AFTER_S - 1).sweep()
    assert len(blobs(w)) == 2
    w.after(1).sweep()
    assert blobs(w) == [f"{blob_prefix(b.RUN_ID)}{b.digest(2000)}"]
    assert (w.run().next_check_s, w.run().cleanup_s) == (None, None)
    assert (
        w.store.history(b.RUN_ID)[-1].text
        == "1 chunks that no checkpoint uses were removed from the bucket, 4 B"
    )


def test_many_chunks_go_a_part_at_a_time() -> None:
    w = ended(chunks=clean_up.REMOVED_MAX + 5)
    w.after(c.CLEANUP_AFTER_S).settle()
    assert len(blobs(w)) == 6
    w.after(clean_up.AGAIN_S).settle()
    assert len(blobs(w)) == 1
    assert w.run().next_check_s is None


def test_a_bucket_that_is_away_is_retried_and_one_that_stays_away_is_left_alone() -> None:
    w = ended()
    w.fail["bucket"] = TemporaryError("503")
    w.after(c.CLEANUP_AFTER_S).settle()
    assert w.run().next_check_s == w.now_s + clean_up.RETRY_S
    w.after(clean_up.TRIED_S_MAX).settle()
    assert (w.run().next_check_s, len(blobs(w))) == (None, 2)


def test_nothing_goes_where_a_manifest_cannot_be_read() -> None:
    w = ended()
    w.bucket.objects[f"runs/{b.RUN_ID}/manifests/000000000010-e1.json"] = b"not a manifest"
    w.after(c.CLEANUP_AFTER_S).settle()
    assert (w.run().next_check_s, len(blobs(w))) == (None, 2)


def test_a_run_that_goes_on_is_cleaned_by_its_own_agent() -> None:
    w = Outside().trains()
    w.after(20).exit(Cause.IMPORT_ERROR)
    w.settle()
    assert w.run().cleanup_s is not None
    assert w.store.save(c.resumed(w.run(), w.now_s))
    assert w.run().cleanup_s is None


def test_a_run_that_never_had_a_machine_leaves_nothing_to_clean_up() -> None:
    w = Outside()
    done = d.Finish(RunState.CANCELLED, None, "cancelled by the user")
    record = w.store.load(b.RUN_ID)
    assert record is not None
    assert w.store.save(c.change(record.run, record.lease, done, w.now_s))
    w.settle()
    assert w.run().next_check_s is None
