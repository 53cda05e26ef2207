"""Select runs by state, name, tag and age."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from prime_train.errors import UsageError
from prime_train.runs.run import TERMINAL, Run, RunState

STATE_GROUPS = {"active": frozenset(RunState) - TERMINAL, "ended": TERMINAL}
"""Names for groups of states."""
_GLOB_CHARS = frozenset("*?[")


@dataclass(frozen=True)
class RunFilter:
    """A filter for runs: a run must match every field that is set.

    `states`: names of states or of `STATE_GROUPS`; the run must be in one of them. `name`: a part of the
    run's id or of its config's name, or, if it contains `*`, `?` or `[`, a glob pattern that must match the
    full id or the full name. `tags`: the run must have all of them. `since_s`: launched at most this many
    seconds ago. `archived`: include archived runs.
    """

    states: tuple[str, ...] = ()
    name: str = ""
    tags: tuple[str, ...] = ()
    since_s: int | None = None
    archived: bool = False

    @property
    def is_empty(self) -> bool:
        return self == RunFilter()


def matching(runs: Iterable[Run], wanted: RunFilter, now_s: int) -> list[Run]:
    """Return those of `runs` that match `wanted`, in their order. Raises UsageError if a state is unknown."""
    states = _states(wanted.states)
    return [
        run
        for run in runs
        if (wanted.archived or not run.archived)
        and (not states or run.state in states)
        and (not wanted.name or _is_named(run, wanted.name))
        and set(wanted.tags) <= set(run.spec.tags)
        and (wanted.since_s is None or run.created_s >= now_s - wanted.since_s)
    ]


def _states(names: Sequence[str]) -> frozenset[RunState]:
    known = {state.value: frozenset((state,)) for state in RunState} | STATE_GROUPS
    for name in names:
        if name not in known:
            raise UsageError(f"{name!r} is not a run state", fix=f"use one of {', '.join(known)}")
    return frozenset(state for name in names for state in known[name])


def _is_named(run: Run, name: str) -> bool:
    called = (run.run_id, run.spec.name)
    if _GLOB_CHARS & set(name):
        return any(fnmatchcase(one, name) for one in called)
    return any(name in one for one in called)
