"""When silence proves nothing: the breaker.

If most runs fall silent at once, it is more likely that nobody can be heard than that all machines died. The breaker opens on the share
of runs that are silent. It is bounded in time: if they really did all die, then after `HOLD_S` it lets one run a sweep through. A canary
beat through the public webhook tells the two apart sooner: while the canary fails and no beat arrives, nothing is concluded from silence,
however long; and that time does not count as silence afterwards. The one that is let through changes from sweep to sweep: the longest
silent one may be one that is rightly left alone, such as a machine cut off from us while its tracker advances.

Beats that do arrive outweigh the canary: then only the watcher's own way to the webhook is closed. Such a watcher judges like any other,
takes nothing from what others remember, and people are told of its way.

Machines die one by one; what cuts a region or a provider off silences its machines at once, and the canary goes another way. So a crowd
whose last beats lie close together is held in the same way, even if it is a small part of all runs; only the crowd is. When the last beat
came before an outage, it tells nothing of that: whoever is not heard after one counts as having fallen silent when it was over.
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
ARRIVING_RUNS = 2
"""So many runs' beats outweigh a failed canary, or one's where no other lives: a single one may have slipped through."""
ARRIVING_S = 120
"""Beats no older than this still arrive: four of the usual pace."""
ON_THE_WAY_S = 10
"""A beat that is counted so soon after the newest one before the canary failed was on its way by then."""
FAILURES_APART_S = HOLD_S
"""Failures of the canary no further apart belong together, whichever watcher's they are, though another's may sing in between."""
OVERRULED_S = 300
"""So long the canary has failed while beats arrive when people are told."""


@dataclass(frozen=True)
class Watch:
    """What the watchers remember between sweeps."""

    version: int = 0
    swept_s: int | None = None
    heard_since_s: int | None = None
    """Since when beats could be heard without a failed canary."""
    deaf_since_s: int | None = None
    """Since when the canary fails and no beat arrives."""
    failed_s: int | None = None
    """When the canary last failed."""
    failing_beat_s: int | None = None
    """The newest beat, by the server's clock, when it began to fail."""
    overruled_since_s: int | None = None
    """Since when beats arrive although it fails."""
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
    overruled_since_s: int | None = None
    """People are to be told, once for that second: beats arrive, but the canary has failed since then."""

    def blind_for(self, run_id: str) -> str | None:
        return None if run_id == self.through or (self.crowd is not None and run_id not in self.crowd) else self.blind


def listen(watch: Watch, *, canary: bool, silent_s: Mapping[str, int], active: Mapping[str, int], now_s: int) -> tuple[Watch, Hearing]:
    """The next memory and what this sweep may conclude.

    `silent_s`: runs whose beats are overdue, with the seconds since their last beat; `active`: all runs that should beat, with the second
    of their last beat by the server's clock. Both as they were before the canary was sent.
    """
    if not canary:
        watch = _failed(watch, active, now_s)
        if not _arrives(watch, [beat_s for run_id, beat_s in active.items() if run_id not in silent_s], now_s):
            deaf_s = watch.deaf_since_s if watch.deaf_since_s is not None else now_s
            deaf = replace(watch, swept_s=now_s, deaf_since_s=deaf_s)
            return deaf, Hearing(f"the webhook has not answered its canary for {now_s - deaf_s} s", now_s)
        watch = replace(watch, overruled_since_s=watch.overruled_since_s if watch.overruled_since_s is not None else now_s)
    brief = watch.deaf_since_s is None or now_s - watch.deaf_since_s <= BRIEF_S
    heard_s = watch.heard_since_s if brief and watch.heard_since_s is not None else now_s
    most = len(active) >= ACTIVE_MIN and len(silent_s) >= SILENT_SHARE_MAX * len(active)
    audibly_s = {run_id: min(age_s, now_s - heard_s) for run_id, age_s in silent_s.items()}
    crowd = _together(audibly_s, max(ACTIVE_MIN, TOGETHER_SHARE_MIN * len(active)))
    open_s = (watch.open_since_s if watch.open_since_s is not None else now_s) if most else None
    after = replace(watch, swept_s=now_s, deaf_since_s=None, heard_since_s=heard_s, open_since_s=open_s)
    held = frozenset(silent_s) if most else crowd
    hearing = Hearing(None, heard_s, overruled_since_s=None if canary else _to_be_told_s(after, now_s))
    if not held:
        return after, hearing
    # A crowd's time counts from its last beats: another that was left alone for long, and rightly, takes nothing from it.
    ripe = [run_id for run_id in held if now_s - (open_s if open_s is not None else now_s - audibly_s[run_id]) >= HOLD_S]
    longest_first = sorted(ripe, key=lambda run_id: (-silent_s[run_id], run_id))
    through = longest_first[watch.let_through % len(longest_first)] if longest_first else None
    if through is not None:
        after = replace(after, let_through=watch.let_through + 1)
    at_once = "" if most else " at once"
    blind = f"{len(held)} of {len(active)} runs fell silent{at_once}"
    return after, replace(hearing, blind=blind, through=through, crowd=None if most else held)


def _failed(watch: Watch, active: Mapping[str, int], now_s: int) -> Watch:
    """The memory with one more failure of the canary: the first for long, or another one of those it knows."""
    if watch.failed_s is not None and watch.failing_beat_s is not None and now_s - watch.failed_s <= FAILURES_APART_S:
        return replace(watch, failed_s=now_s)
    return replace(watch, failed_s=now_s, failing_beat_s=max(active.values(), default=now_s), overruled_since_s=None)


def _arrives(watch: Watch, beats_s: Collection[int], now_s: int) -> bool:
    """Whether beats have come since the canary began to fail, and still come. `beats_s`: the last ones of the runs that live."""
    assert watch.failing_beat_s is not None
    since_s = max(watch.failing_beat_s + ON_THE_WAY_S, now_s - ARRIVING_S - 1)
    return sum(beat_s > since_s for beat_s in beats_s) >= max(1, min(ARRIVING_RUNS, len(beats_s)))


def _to_be_told_s(watch: Watch, now_s: int) -> int | None:
    since_s = watch.overruled_since_s
    return since_s if since_s is not None and now_s - since_s >= OVERRULED_S else None


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
