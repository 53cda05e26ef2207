"""Which of all runs are meant: by state, name, tag and age."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from prime_train.core.errors import UsageError
from prime_train.core.run import TERMINAL, Run, RunState

STATE_GROUPS = {"active": frozenset(RunState) - TERMINAL, "ended": TERMINAL}
"""Words for several states at once."""
_GLOB_CHARS = frozenset("*?[")


@dataclass(frozen=True)
class RunFilter:
    """Every part that says something has to hold; one that says nothing holds for all runs.

    `states`: names of states, or of `STATE_GROUPS`, of which one is enough. `name`: a part of the run's id or of its config's name, or a
    pattern of the whole of it where it has `*`, `?` or `[`. `tags`: the run has all of them. `since_s`: launched at most so many seconds
    ago.
    """

    states: tuple[str, ...] = ()
    name: str = ""
    tags: tuple[str, ...] = ()
    since_s: int | None = None

    @property
    def is_empty(self) -> bool:
        return self == RunFilter()


def matching(runs: Iterable[Run], wanted: RunFilter, now_s: int) -> list[Run]:
    """Those of `runs` that are meant, in their order. Raises UsageError where a state is none."""
    states = _states(wanted.states)
    return [
        run
        for run in runs
        if (not states or run.state in states)
        and (not wanted.name or _is_named(run, wanted.name))
        and set(wanted.tags) <= set(run.spec.tags)
        and (wanted.since_s is None or run.created_s >= now_s - wanted.since_s)
    ]


def _states(names: Sequence[str]) -> frozenset[RunState]:
    known = {state.value: frozenset((state,)) for state in RunState} | STATE_GROUPS
    for name in names:
        if name not in known:
            raise UsageError(f"{name!r} is no state of a run", fix=f"use one of {', '.join(known)}")
    return frozenset(state for name in names for state in known[name])


def _is_named(run: Run, name: str) -> bool:
    called = (run.run_id, run.spec.name)
    if _GLOB_CHARS & set(name):
        return any(fnmatchcase(one, name) for one in called)
    return any(name in one for one in called)
