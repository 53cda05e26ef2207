"""What was deleted of a run to make room is in its history, and in the end in its tracker."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from prime_train.runs import change as c
from prime_train.runs.deletions import TOLD_S, in_words, plus, since
from prime_train.runs.run import HistoryEvent, Run, RunState
from prime_train.runs.verdict import TrackerObserved
from prime_train.runs.wire import Deletions
from prime_train.spec.causes import Cause
from prime_train.spec.spec import CheckpointSpec
from prime_train.tracker.port import NoTracker
from prime_train.watch import clean_up
from tests import builders as b
from tests.reconcile.ports import Outside

FEW = Deletions(checkpoints=2, newest_step=20, chunk_bytes=3 * 2**20)
MORE = Deletions(checkpoints=5, newest_step=50, chunk_bytes=8 * 2**20, local=1, local_bytes=2**30)
WITH_WANDB = {"wandb": {"project": "p"}, "checkpoints": {"keep": 3}}


class Summaries:
    """A tracker that keeps summaries; it takes none while it `is_away`."""

    def __init__(self) -> None:
        self.values: list[Mapping[str, object]] = []
        self.is_away = False

    def look(self, run: Run) -> TrackerObserved | None:
        return None

    def summarize(self, run: Run, values: Mapping[str, object]) -> bool:
        if not self.is_away:
            self.values.append(values)
        return not self.is_away


def told(w: Outside) -> list[HistoryEvent]:
    return [line for line in w.store.history(b.RUN_ID) if line.kind == "deleted"]


def ended(tracker: Summaries | None = None) -> Outside:
    w = Outside(WITH_WANDB)
    if tracker is not None:
        w.world = replace(w.world, tracker=tracker)
    w.trains()
    w.save_checkpoint(2000)
    w.after(20).exit(Cause.FINISHED, step=2000, deleted=MORE)
    w.settle()
    assert w.run().state is RunState.SUCCEEDED
    return w


# ------------------------------------------------------------------------------------------------------------
# history


def test_what_retention_deletes_is_in_the_history_with_its_bytes_and_the_reason() -> None:
    w = Outside({"checkpoints": {"keep": 3}}).trains()
    w.after(5).heartbeat(step=60, deleted=FEW)
    w.settle()
    (line,) = told(w)
    assert line.text == (
        "2 checkpoints, up to step 20, deleted from the bucket, because the newest 3 are kept "
        "(checkpoints.keep); 3.0 MiB of chunks that no checkpoint uses deleted from the bucket"
    )
    assert (line.attempt, line.step) == (1, 20)
    assert w.run().state is RunState.TRAINING


def test_what_is_deleted_every_few_minutes_is_told_together_and_each_thing_once() -> None:
    w = Outside().trains()
    w.after(5).heartbeat(step=60, deleted=FEW)
    w.settle()
    w.after(60).heartbeat(step=70, deleted=MORE)
    w.settle()
    assert len(told(w)) == 1
    w.after(TOLD_S).heartbeat(step=90, deleted=MORE)
    w.settle()
    w.after(TOLD_S).heartbeat(step=99, deleted=MORE)
    w.settle()
    first, second = told(w)
    assert "2 checkpoints, up to step 20" in first.text
    assert "3 checkpoints, up to step 50" in second.text
    assert (
        "1 committed checkpoint, 1.0 GiB, deleted from the machine's disk, because it was nearly full"
        in second.text
    )
    assert w.run().deleted == MORE


@pytest.mark.parametrize("cause", [Cause.FINISHED, Cause.GPU_HARDWARE])
def test_the_end_of_an_attempt_tells_what_is_still_untold(cause: Cause) -> None:
    w = Outside().trains()
    w.after(5).heartbeat(step=60, deleted=FEW)
    w.settle()
    w.save_checkpoint(2000)
    w.after(5).exit(cause, step=2000, deleted=MORE)
    w.settle()
    assert len(told(w)) == 2
    kinds = [line.kind for line in w.store.history(b.RUN_ID)]
    assert kinds.index("succeeded" if cause is Cause.FINISHED else "lost") > kinds.index("deleted")


def test_two_attempts_deletions_add_up_and_an_agent_that_counts_anew_loses_none() -> None:
    assert since(MORE, FEW) == FEW
    assert plus(since(FEW, MORE), FEW) == MORE
    assert since(MORE, MORE) == Deletions()
    w = Outside().trains()
    w.after(5).exit(Cause.GPU_HARDWARE, step=60, deleted=FEW)
    w.settle()
    w.after(700).trains(step=70)
    w.after(5).heartbeat(step=80, deleted=FEW)
    w.after(TOLD_S).heartbeat(step=90, deleted=FEW)
    w.settle()
    assert w.run().deleted.checkpoints == 4


def test_an_agent_that_deletes_nothing_leaves_no_line() -> None:
    w = Outside().trains()
    w.after(5).heartbeat(step=60)
    w.settle()
    assert told(w) == []


def test_the_words_name_every_rule_that_keeps_checkpoints_and_the_limit_of_the_disk() -> None:
    spec = CheckpointSpec(keep=2, keep_every_steps=1000, keep_best=1, best_by="loss", max_disk_gib=50)
    words = in_words(Deletions(checkpoints=1, newest_step=7, output_bytes=10, folders=3, local_bytes=5), spec)
    assert "the newest 2 are kept (checkpoints.keep) and every 1,000 steps one (keep_every_steps)" in words
    assert "the best 1 by loss (keep_best)" in words
    assert "10 B of older versions of outputs" in words
    assert "3 folders that the trainer did not need any more, 5 B" in words
    assert "checkpoints.max_disk_gib (50)" in words
    assert in_words(Deletions(), spec) == ""


# ------------------------------------------------------------------------------------------------------------
# tracker


def test_when_a_run_is_over_its_tracker_shows_what_was_deleted() -> None:
    tracker = Summaries()
    w = ended(tracker)
    assert tracker.values == [], "its own process may still report"
    w.after(c.CLEANUP_AFTER_S).sweep()
    (values,) = tracker.values
    assert values["prime_train/deleted_checkpoints"] == 5
    assert values["prime_train/deleted_bucket_bytes"] == 8 * 2**20
    assert "the newest 3 are kept" in str(values["prime_train/deleted"])
    assert w.run().next_check_s is None
    assert w.run().deleted_tracked == w.run().deleted


def test_a_tracker_that_is_away_is_told_later_and_not_for_ever() -> None:
    tracker = Summaries()
    w = ended(tracker)
    tracker.is_away = True
    w.after(c.CLEANUP_AFTER_S).sweep()
    assert w.run().next_check_s == w.now_s + clean_up.RETRY_S
    tracker.is_away = False
    w.after(clean_up.RETRY_S).sweep()
    assert len(tracker.values) == 1
    away = ended(lost := Summaries())
    lost.is_away = True
    away.after(c.CLEANUP_AFTER_S + clean_up.TRIED_S_MAX).sweep()
    assert away.run().next_check_s is None


def test_a_watcher_without_the_tracker_leaves_it_to_one_that_has_it() -> None:
    w = ended(tracker := Summaries())
    full = w.world
    w.world = replace(full, tracker=NoTracker())
    w.after(c.CLEANUP_AFTER_S).sweep()
    assert w.run().next_check_s == w.now_s + clean_up.RETRY_S
    w.world = full
    w.after(clean_up.RETRY_S).sweep()
    assert len(tracker.values) == 1
    assert w.run().next_check_s is None


def test_a_run_without_a_tracker_is_done_after_its_clean_up() -> None:
    w = ended()
    w.after(c.CLEANUP_AFTER_S).sweep()
    assert w.run().next_check_s is None
