"""Shows in the tracker what was deleted of a run, once the run is over.

A run that trains writes its summary itself, as a whole, so that what anybody else writes there would be lost with its next report.
"""

from dataclasses import replace

from prime_train.alerts.port import Summarizing
from prime_train.runs.deletions import NOTHING, in_words, summary
from prime_train.runs.run import Run
from prime_train.tracker.port import NoTracker
from prime_train.watch.context import Context
from prime_train.watch.means import marks_elsewhere


def tracked(context: Context, run: Run, now_s: int, *, again_s: int | None) -> Run:
    """Return the run that has been cleaned up, with what its tracker has been told; if it could not be told now, with the second
    `again_s` of the next try."""
    if run.spec.wandb is None or run.deleted in (NOTHING, run.deleted_tracked):
        return run
    if isinstance(context.tracker, Summarizing):
        words = in_words(run.deleted, run.spec.checkpoints)
        if context.tracker.summarize(run, summary(run.deleted, words)):
            return replace(run, deleted_tracked=run.deleted)
    elif not (isinstance(context.tracker, NoTracker) and marks_elsewhere(context, now_s)):
        return run
    return replace(run, cleanup_s=again_s, next_check_s=again_s)
