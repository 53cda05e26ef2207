"""When silence proves nothing: the breaker.

If most runs fall silent at once, it is more likely that nobody can be heard than that all machines died. The breaker opens on the share
of runs that are silent. It is bounded in time: if they really did all die, then after `HOLD_S` it lets one run a sweep through. A canary
beat through the public webhook tells the two apart sooner: while the canary fails, no beat could have arrived, so nothing is concluded
from silence, however long; and the time it failed does not count as silence afterwards. The one that is let through changes from sweep to
sweep: the longest silent one may be one that is rightly left alone, such as a machine cut off from us while its tracker advances.

Machines die one by one; what cuts a region or a provider off silences its machines at once, and the canary goes another way. So a crowd
whose last beats lie close together is held in the same way, even if it is a small part of all runs; only the crowd is. Beats from before
the canary failed tell nothing of that: whoever is not heard after it fell silent somewhere in between.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

SILENT_SHARE_MAX = 0.5
ACTIVE_MIN = 3
TOGETHER_S = 60
"""Last beats that lie so close together were the last for the same reason: two beats of the usual pace."""
TOGETHER_SHARE_MIN = 0.05
"""Share of the active runs, `ACTIVE_MIN` of them at least, that make a crowd."""
HOLD_S = 900
BRIEF_S = 30
"""A canary may fail this long, such as once, without what was heard before being forgotten."""


@dataclass(frozen=True)
class Watch:
    """What the watchers remember between sweeps."""

    version: int = 0
    swept_s: int | None = None
    heard_since_s: int | None = None
    """Since when beats could be heard without a failed canary."""
    deaf_since_s: int | None = None
    """Since when the canary fails."""
    open_since_s: int | None = None
    """Since when most runs are silent."""
    let_through: int = 0
    """How many sweeps have let one run through: whose turn it is."""
    account: str = ""
    """Whose the machines are, by the provider's word for it; empty where that is remembered elsewhere."""


@dataclass(frozen=True)
class Hearing:
    """What a sweep may conclude from silence: `blind` says why nothing, but for the run in `through`; it holds for the runs in `crowd`, or
    for all where that is None."""

    blind: str | None = None
    heard_since_s: int = 0
    through: str | None = None
    crowd: frozenset[str] | None = None

    def blind_for(self, run_id: str) -> str | None:
        return None if run_id == self.through or (self.crowd is not None and run_id not in self.crowd) else self.blind


def listen(watch: Watch, *, canary: bool, silent_s: Mapping[str, int], active: Collection[str], now_s: int) -> tuple[Watch, Hearing]:
    """The next memory and what this sweep may conclude.

    `silent_s`: runs whose beats are overdue, with the seconds since their last beat; `active`: all runs that should beat.
    """
    if not canary:
        deaf_s = watch.deaf_since_s if watch.deaf_since_s is not None else now_s
        deaf = replace(watch, swept_s=now_s, deaf_since_s=deaf_s)
        return deaf, Hearing(f"the webhook has not answered its canary for {now_s - deaf_s} s", now_s)
    brief = watch.deaf_since_s is None or now_s - watch.deaf_since_s <= BRIEF_S
    heard_s = watch.heard_since_s if brief and watch.heard_since_s is not None else now_s
    most = len(active) >= ACTIVE_MIN and len(silent_s) >= SILENT_SHARE_MAX * len(active)
    lately_s = {run_id: age_s for run_id, age_s in silent_s.items() if now_s - age_s >= heard_s}
    crowd = _together(lately_s, max(ACTIVE_MIN, TOGETHER_SHARE_MIN * len(active)))
    open_s = (watch.open_since_s if watch.open_since_s is not None else now_s) if most else None
    after = replace(watch, swept_s=now_s, deaf_since_s=None, heard_since_s=heard_s, open_since_s=open_s)
    held = frozenset(silent_s) if most else crowd
    if not held:
        return after, Hearing(None, heard_s)
    # A crowd's time counts from its last beats: another that was left alone for long, and rightly, takes nothing from it.
    ripe = [run_id for run_id in held if now_s - (open_s if open_s is not None else now_s - silent_s[run_id]) >= HOLD_S]
    longest_first = sorted(ripe, key=lambda run_id: (-silent_s[run_id], run_id))
    through = longest_first[watch.let_through % len(longest_first)] if longest_first else None
    if through is not None:
        after = replace(after, let_through=watch.let_through + 1)
    at_once = "" if most else " at once"
    return after, Hearing(f"{len(held)} of {len(active)} runs fell silent{at_once}", heard_s, through, None if most else held)


def _together(silent_s: Mapping[str, int], least: float) -> frozenset[str]:
    """Every run that fell silent within `TOGETHER_S` of others, so many of them that it was no chance."""
    longest_first = sorted(silent_s, key=lambda run_id: -silent_s[run_id])
    crowd: set[str] = set()
    first = taken = 0
    for last, run_id in enumerate(longest_first):
        while silent_s[longest_first[first]] - silent_s[run_id] > TOGETHER_S:
            first += 1
        if last - first + 1 >= least:
            crowd.update(longest_first[max(first, taken) : last + 1])
            taken = last + 1
    return frozenset(crowd)
