"""Putting ended runs away, so that lists leave them out. Nothing of them is removed, and checkpoints stay as they are."""

from prime_train.core.change import archived
from prime_train.core.errors import UsageError
from prime_train.core.run import Change, Run
from prime_train.operations.run_lookup import find
from prime_train.operations.run_requests import ask
from prime_train.ports import RunRecord, Store


def archive(store: Store, name: str, *, undo: bool = False) -> RunRecord:
    """Archive an ended run, or with `undo` take it out of the archive; doing so twice changes nothing.

    Returns the run as it was saved. Raises UsageError if there is no such run, or it is not over, or a machine of it is still paid for.
    """
    held = find(store, name)
    return held if held.run.archived is not undo else ask(store, held.run.run_id, lambda run, now_s: _change(run, now_s, undo=undo))


def _change(run: Run, now_s: int, *, undo: bool) -> Change:
    if not undo and not run.is_over:
        raise UsageError(f"run {run.run_id} is {run.state.value}: only an ended run can be archived", fix=f"prime-train stop {run.run_id}")
    if not undo and not run.is_settled:
        fix = "wait until the control plane has given it back; prime-train status shows it"
        raise UsageError(f"a machine of {run.run_id} is still paid for: it must stay in sight", fix=fix)
    return archived(run, now_s, undo=undo)
