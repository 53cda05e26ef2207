"""Archiving of ended runs, so that lists leave them out. Nothing of a run is deleted, and its checkpoints and
outputs stay as they are.
"""

from prime_train.advice import Advice, Call, Operation
from prime_train.errors import UsageError
from prime_train.runs.change import archived
from prime_train.runs.lookup import find
from prime_train.runs.requests import ask
from prime_train.runs.run import Change, Run
from prime_train.runs.store import RunRecord, Store


def archive(store: Store, name: str, *, undo: bool = False) -> RunRecord:
    """Archive an ended run, or with `undo` take it out of the archive; doing so twice changes nothing.

    Returns the run as it was saved. Raises UsageError if there is no such run, or it is not over, or a
    machine of it is still paid for.
    """
    record = find(store, name)
    return (
        record
        if record.run.archived is not undo
        else ask(store, record.run.run_id, lambda run, now_s: _change(run, now_s, undo=undo))
    )


def _change(run: Run, now_s: int, *, undo: bool) -> Change:
    if not undo and not run.is_over:
        fix = Advice(Call(Operation.STOP, run.run_id))
        raise UsageError(f"run {run.run_id} is {run.state.value}: only an ended run can be archived", fix=fix)
    if not undo and not run.is_settled:
        fix = Advice("wait until the control plane has given it back; ", Call(Operation.STATUS), " shows it")
        raise UsageError(
            f"a machine of {run.run_id} is still being paid for, so the run must stay listed", fix=fix
        )
    return archived(run, now_s, undo=undo)
