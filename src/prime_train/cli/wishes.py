"""What the user asks of a run, saved against whatever the watchers save at the same time."""

from collections.abc import Callable

from prime_train.cli.exits import Exit, Refused
from prime_train.cli.home import wall_s
from prime_train.cli.names import find
from prime_train.core.run import Change, Run
from prime_train.ports import Held, Store

TRIES_MAX = 20


def ask(store: Store, name: str, change: Callable[[Run, int], Change]) -> Held:
    """Saves `change(run, now_s)`, decided anew each time somebody else was first. Raises IllegalMove as `change` does."""
    run_id = find(store, name).run.run_id
    for _ in range(TRIES_MAX):
        held = find(store, run_id)
        if store.save(change(held.run, wall_s())):
            return find(store, run_id)
    raise Refused(f"{run_id} changed {TRIES_MAX} times while it was asked", fix="ask again", code=Exit.OUTSIDE_FAILED)
