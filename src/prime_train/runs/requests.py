"""Save a user's request for a run, safely beside concurrent writes of the watchers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prime_train.advice import Advice, Call, Operation
from prime_train.errors import ExternalError, UsageError
from prime_train.exit_codes import Exit
from prime_train.runs.budget import Exhausted
from prime_train.runs.lookup import find
from prime_train.runs.remedies import needed
from prime_train.runs.run import TRANSITIONS, Change, Event, IllegalMove, Run
from prime_train.runs.store import RunRecord, Store

TRIES_MAX = 20
OPERATIONS = {Event.STOP: Operation.STOP, Event.CANCEL: Operation.CANCEL, Event.RESUME: Operation.RESUME}
"""The state transitions that a user can request, and the operations that request them."""


@dataclass(frozen=True)
class RunResult:
    """The result of a request about one run. `run`: as it was saved; None if it was not saved, in which case
    `error` gives the reason.
    """

    name: str
    run: RunRecord | None
    error: UsageError | ExternalError | None = None


def for_each(names: Sequence[str], request: Callable[[str], RunRecord]) -> Iterator[RunResult]:
    """Make the same request for one run after the other, each name once. If it fails for one run, it is still
    made for the others.
    """
    for name in dict.fromkeys(names):
        try:
            yield RunResult(name, request(name))
        except (UsageError, ExternalError) as error:
            yield RunResult(name, None, error)


def ask(store: Store, name: str, change: Callable[[Run, int], Change]) -> RunRecord:
    """Save `change(run, now_s)` and return the run as saved; the change is computed anew after each lost
    conditional write. Raises UsageError if the run's state does not allow it, its budget is spent, or
    `TRIES_MAX` writes were lost.
    """
    run_id = find(store, name).run.run_id
    for _ in range(TRIES_MAX):
        record = find(store, run_id)
        try:
            updated = change(record.run, store.now_s())
        except IllegalMove as error:
            raise impossible(error) from error
        except Exhausted as error:
            options = tuple(needed(record.run, limit, store.now_s()) for limit in error.limits)
            raise UsageError(
                f"{run_id} cannot resume: {error}", fix=Advice(Call(Operation.RESUME, run_id, options))
            ) from error
        if store.save(updated):
            return find(store, run_id)
    raise UsageError(
        f"{run_id} changed {TRIES_MAX} times during the request",
        fix="repeat the request",
        code=Exit.EXTERNAL_FAILED,
    )


def impossible(error: IllegalMove) -> UsageError:
    """Return a UsageError for a transition that is not allowed, which names the possible operations instead
    of transitions.
    """
    message = (
        f"run {error.run_id} is {error.state.value}: {OPERATIONS[error.event].value} is not "
        "possible in this state"
    )
    possible = [
        Call(operation, error.run_id)
        for event, operation in OPERATIONS.items()
        if (error.state, event) in TRANSITIONS
    ]
    if not possible:
        return UsageError(f"{message}, and no other operation is possible either")
    return UsageError(message, fix=Advice(*[part for one in possible for part in (", or ", one)][1:]))
