"""Save a user's request for a run, safely beside concurrent writes of the watchers."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from prime_train.core.budget import Exhausted
from prime_train.core.errors import OutsideError, UsageError
from prime_train.core.exit_codes import Exit
from prime_train.core.run import TRANSITIONS, Change, Event, IllegalMove, Run
from prime_train.operations.run_lookup import find
from prime_train.ports import RunRecord, Store
from prime_train.reports.remedies import needed

TRIES_MAX = 20
COMMANDS = {Event.STOP: "stop", Event.CANCEL: "stop --now", Event.RESUME: "resume"}
"""The state transitions that a user can request, and the commands for them."""


@dataclass(frozen=True)
class RunResult:
    """The result of a request about one run. `run`: as it was saved; None if `error` tells why it was not."""

    name: str
    run: RunRecord | None
    error: UsageError | OutsideError | None = None


def for_each(names: Sequence[str], request: Callable[[str], RunRecord]) -> Iterator[RunResult]:
    """Make the same request for one run after the other, each name once. A failure does not keep the others from being asked."""
    for name in dict.fromkeys(names):
        try:
            yield RunResult(name, request(name))
        except (UsageError, OutsideError) as error:
            yield RunResult(name, None, error)


def ask(store: Store, name: str, change: Callable[[Run, int], Change]) -> RunRecord:
    """Save `change(run, now_s)` and return the run as saved; the change is computed anew after each lost conditional write. Raises
    UsageError if the run's state does not allow it, its budget is spent, or `TRIES_MAX` writes were lost."""
    run_id = find(store, name).run.run_id
    for _ in range(TRIES_MAX):
        held = find(store, run_id)
        try:
            wish = change(held.run, store.now_s())
        except IllegalMove as error:
            raise impossible(error) from error
        except Exhausted as error:
            options = " ".join(needed(held.run, limit, store.now_s()) for limit in error.limits)
            raise UsageError(f"{run_id} cannot go on: {error}", fix=f"prime-train resume {run_id} {options}") from error
        if store.save(wish):
            return find(store, run_id)
    raise UsageError(f"{run_id} changed {TRIES_MAX} times while it was asked", fix="ask again", code=Exit.OUTSIDE_FAILED)


def impossible(error: IllegalMove) -> UsageError:
    """Return a UsageError for a transition that is not allowed, which names commands instead of transitions."""
    possible = [f"prime-train {verb} {error.run_id}" for event, verb in COMMANDS.items() if (error.state, event) in TRANSITIONS]
    said = f"run {error.run_id} is {error.state.value}: {COMMANDS[error.event]} is not possible"
    return UsageError(f"{said}; possible: {', '.join(possible) or 'nothing'}")
