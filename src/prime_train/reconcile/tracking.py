"""Whether the tracker still hears of runs that are well; of others it is asked with the rest of the evidence."""

from collections.abc import Iterable

from prime_train.core.change import change
from prime_train.core.decide.tracking import can_be_untracked, decide_tracking
from prime_train.reconcile.world import World

FOLLOW_S = 600
"""How often one is asked: for many runs it is many questions."""


def follow(world: World, run_ids: Iterable[str], now_s: int) -> None:
    """Tells people once where one has lost its run. A tracker that can not be asked says nothing; a save that is lost is made at the next
    look."""
    for run_id in run_ids:
        if world.followed.get(run_id, 0) + FOLLOW_S > now_s:
            continue
        world.followed[run_id] = now_s
        held = world.store.load(run_id)
        if held is None or not can_be_untracked(held.run, held.lease, now_s):
            continue
        seen = world.tracker.look(held.run)
        decision = decide_tracking(held.run, held.lease, seen, now_s) if seen is not None else None
        if decision is not None:
            world.store.save(change(held.run, held.lease, decision, now_s))
