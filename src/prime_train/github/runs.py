"""Runs that were launched from a code repository. A request that is delivered twice launches, stops or
resumes a run once.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from prime_train.app.home import Home
from prime_train.errors import UsageError
from prime_train.exit_codes import Exit
from prime_train.launch.launch import launch_as
from prime_train.launch.launch_config import Checked
from prime_train.runs.change import requested, resumed
from prime_train.runs.launch_ids import launch_id
from prime_train.runs.lookup import find
from prime_train.runs.requests import ask
from prime_train.runs.run import DesiredState, HistoryEvent, Origin, Run, RunState
from prime_train.runs.store import RunRecord, Store
from prime_train.runs.unreadable import UnreadableRecord
from prime_train.watch.loop import WatchReport

LAUNCHES_MAX = 4
"""Maximum number of runs that one change may launch. A file shared by many configs often changes although not
all of them are to be run.
"""
STATUS = "status"
DOES = ("stop", "resume", STATUS)
ENDED_S = 86_400
SHOWN_MAX = 20
ACTIVE_MAX = 50
LOADED_MAX = 500


def launch_once(
    home: Home, what: Checked, origin: Origin, *, again: bool, deployment: Callable[[str], int | None]
) -> tuple[str, Run | None]:
    """Queue a checked run, unless an earlier request with the same key did, or an active run has the same
    config at the same commit and was started from the same checkpoint, if any. Return the id of the new or
    existing run, and the run itself if it is new.

    `again`: an active run with the same config does not count. `deployment` is called with the id of a new
    run, and returns the id of its deployment at `origin`. Raises Unfit if the working tree cannot be packed,
    and ExternalError if the store or the bucket fails.
    """
    store = home.store()
    before = None if again else _same(store, origin, what)
    if before is not None:
        return before.run_id, None
    # deterministic: a request may be delivered twice
    run_id = launch_id(what.spec.name, origin.key, origin.repository)
    if store.load(run_id) is not None:
        return run_id, None
    origin = replace(origin, deployment=deployment(run_id))
    made = launch_as(
        home,
        run_id,
        what.spec,
        what.plan,
        origin=origin,
        start=what.start,
        forecast=what.forecast,
        probe=what.probe,
    )
    return run_id, made


def runs_of(home: Home, repository: str) -> list[Run]:
    """Return the runs that were launched from the repository; of a home on this machine all runs."""
    runs = home.store().list_runs()
    return (
        [run for run in runs if run.origin is not None and run.origin.repository == repository]
        if home.elsewhere
        else runs
    )


def has_active(home: Home, repository: str) -> bool:
    """Return whether any run of the repository has not ended."""
    return any(not run.is_over for run in runs_of(home, repository))


def shown_runs(home: Home, repository: str) -> list[RunRecord]:
    """Return the newest runs of the repository that are active, or ended within `ENDED_S`."""
    store = home.store()
    now_s = store.now_s()
    recent = [
        run for run in runs_of(home, repository) if run.ended_s is None or run.ended_s > now_s - ENDED_S
    ]
    return _loaded(store, [run.run_id for run in recent[:SHOWN_MAX]])


@dataclass(frozen=True)
class SweptRun:
    """A run that was swept, and what happened to it since the first of the sweeps."""

    record: RunRecord
    events: tuple[HistoryEvent, ...]


def swept_runs(home: Home, repository: str, report: WatchReport) -> list[SweptRun]:
    """Return the runs of the repository among those that were swept, at most `SHOWN_MAX`."""
    store, own = home.store(), {run.run_id for run in runs_of(home, repository)}
    records = _loaded(store, [run_id for run_id in report.looked_at if run_id in own][:SHOWN_MAX])
    return [
        SweptRun(
            record, tuple(event for event in store.history(record.run.run_id) if event.at_s >= report.began_s)
        )
        for record in records
    ]


def named_or_active(home: Home, repository: str, name: str) -> list[RunRecord]:
    """Return the run of the repository that `name` stands for, an id or the start of one; without a name the
    active runs, at most `ACTIVE_MAX`. Raises UsageError unless exactly one run matches a name.
    """
    store, runs = home.store(), runs_of(home, repository)
    if not name:
        return [
            record
            for record in _loaded(store, [run.run_id for run in runs[:LOADED_MAX]])
            if not record.run.is_over
        ][:ACTIVE_MAX]
    named = [run for run in runs if run.run_id == name] or [
        run for run in runs if run.run_id.startswith(name)
    ]
    if len(named) != 1:
        raise UsageError(
            f"{len(named)} runs of this repository are called {name[:50]}", fix="write the run's id"
        )
    return _loaded(store, [run.run_id for run in named])


def run_of_pull(store: Store, repository: str, pull: int, name: str, operation: str) -> RunRecord:
    """Return the run that a comment on a pull request refers to. That is the run that it names; without a
    name it is the pull request's only run that can be resumed, if `operation` is resuming, or else its only
    active run. Raises UsageError if there is not exactly one such run, or it does not belong to this
    repository.
    """
    runs = [
        run for run in store.list_runs() if run.origin is not None and run.origin.repository == repository
    ]
    if name:
        record = find(store, name)
        if record.run.run_id not in [run.run_id for run in runs]:
            raise UsageError(
                f"{record.run.run_id} was not launched from {repository}", code=Exit.EXTERNAL_REFUSED
            )
        return record
    of_pull = [run for run in runs if run.origin is not None and run.origin.pull == pull]
    possible = [
        run for run in of_pull if (_can_resume(run) if operation == "resume" else not run.is_over)
    ] or of_pull[:1]
    if not possible:
        raise UsageError("this pull request has no run")
    if len(possible) > 1:
        ids = ", ".join(run.run_id for run in possible[:6])
        raise UsageError(
            f"{len(possible)} runs of this pull request are possible: {ids}",
            fix="name one of them after the command",
        )
    return find(store, possible[0].run_id)


def _can_resume(run: Run) -> bool:
    return run.is_over and run.state is not RunState.SUCCEEDED


def check_launches(configs: Sequence[str]) -> None:
    """Raise UsageError if one change would launch more runs than `LAUNCHES_MAX`."""
    if len(configs) > LAUNCHES_MAX:
        fix = "launch them one by one (workflow_dispatch of launch)"
        raise UsageError(
            f"this pull request affects {len(configs)} configs, but at most {LAUNCHES_MAX} can be launched "
            "at once",
            fix=fix,
        )


def do_once(store: Store, record: RunRecord, does: str, *, now: bool) -> RunRecord:
    """Stop or resume the run, or for any other `does` change nothing, unless that was requested before.
    Returns the run.
    """
    match does:
        case "stop":
            return stop_once(store, record, now=now)
        case "resume":
            return resume_once(store, record)
        case _:
            return record


def stop_once(store: Store, record: RunRecord, *, now: bool) -> RunRecord:
    """Request that the run stops, or with `now` that it ends at once, unless it is over or that was requested
    before. Returns the run.
    """
    desired = DesiredState.CANCEL if now else DesiredState.STOP
    if record.run.is_over or record.run.desired is desired:
        return record
    return ask(store, record.run.run_id, lambda run, now_s: requested(run, desired, now_s))


def resume_once(store: Store, record: RunRecord) -> RunRecord:
    """Queue the run again if it is over. Returns the run. Raises UsageError if it is still being stopped, or
    its budget is spent.
    """
    if record.run.is_over:
        return ask(store, record.run.run_id, resumed)
    if record.run.desired is not DesiredState.RUN:
        raise UsageError(
            f"{record.run.run_id} is still being stopped",
            fix="repeat the command when it has stopped",
            code=Exit.EXTERNAL_FAILED,
        )
    return record


def _loaded(store: Store, run_ids: Sequence[str]) -> list[RunRecord]:
    """Return the records of the runs that there are and that can be read; watchers report the others."""
    found = []
    for run_id in run_ids:
        with suppress(UnreadableRecord):
            record = store.load(run_id)
            found += [record] if record is not None else []
    return found


def _same(store: Store, wanted: Origin, what: Checked) -> Run | None:
    """Return the active run of the same config at the same commit, started from the same checkpoint, or None.
    This keeps a repeated button press from paying for a second run.
    """
    lineage = what.start.lineage if what.start is not None else None
    for run in store.list_runs():
        origin = run.origin
        if origin is None or run.is_over or run.spec.name != what.spec.name or run.lineage != lineage:
            continue
        if (origin.repository, origin.commit, origin.config) == (
            wanted.repository,
            wanted.commit,
            wanted.config,
        ):
            return run
    return None
