"""A rehearsal: the script runs for a while and is watched, then it is stopped, killed and started again from
what it had saved, until it is known how it saves, reports and resumes.
"""

import time
from collections.abc import Mapping

from prime_train.app.interruption import sigterm_leaves
from prime_train.rehearsal.observe import observe
from prime_train.rehearsal.process import Rehearsed
from prime_train.rehearsal.prove import prove
from prime_train.rehearsal.rehearsal import Rehearsal, Request, Started
from prime_train.rehearsal.saves import Save
from prime_train.rehearsal.seen_saves import saves_like
from prime_train.rehearsal.stage import Say, staged
from prime_train.rehearsal.trial import (
    counts_epochs,
    reports_of,
)


def rehearse(request: Request, own: Mapping[str, str], say: Say) -> Rehearsal:
    """Rehearse the command. `own`: this process's environment; `say` is told what is being done.

    Raises UsageError if the working tree cannot be copied, or a command of the set-up fails.
    """
    began = time.monotonic()
    with sigterm_leaves(), staged(request, say) as stage:
        stage.own = own
        found = Rehearsal(request)
        stage.set_up()
        observe(stage, found)
        if found.saves.saves:
            prove(stage, found)
        found.seconds = time.monotonic() - began
        found.starts = [_started(process, label, found, began) for process, label in stage.labelled]
        return found


def _started(process: Rehearsed, label: str, found: Rehearsal, began: float) -> Started:
    """Return what a picture shows of a start."""
    recording = process.recording
    if found.progress is None:
        return Started(label, process.began - began, recording.seen_s)
    reports = [(at_s, row.step) for at_s, row in reports_of(found.progress, found.saves, recording)]
    counts_steps = not counts_epochs(found.saves, found.progress)

    def step_of(save: Save) -> int:
        if save.number is not None and counts_steps:
            return save.number
        # A script may save again, before its first step, what it has resumed from.
        before = max(0, reports[0][1] - 1) if reports else 0
        return max((step for at_s, step in reports if at_s <= save.closed_s), default=before)

    saves = tuple((save.closed_s, step_of(save)) for save in saves_like(found.saves, recording))
    ended = "killed" if recording.killed_s is not None else "SIGTERM" if recording.asked_s is not None else ""
    return Started(label, process.began - began, recording.seen_s, tuple(reports), saves, ended)
