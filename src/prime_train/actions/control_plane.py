"""The control plane as the job reaches it, and one look at its runs."""

import os
import time
from typing import TYPE_CHECKING

from prime_train.control_plane.wiring.home import HOME, Home
from prime_train.control_plane.wiring.providers import STORE
from prime_train.core.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Container

    from prime_train.control_plane.reconcile import Context, SweepResult
    from prime_train.core.run import Run

PAUSE_S = 2.0
ON_THE_MOVE = frozenset({"launching", "booting", "draining", "uploading"})
"""States in which a machine is on its way here, or is about to be given back."""


def home() -> Home:
    """Raises UsageError where what the job keeps would be gone with its machine."""
    if os.environ.get("RUNNER_ENVIRONMENT") == "github-hosted" and not os.environ.get(STORE):
        lost = "a run that is kept on this runner is forgotten when the job ends, and its machine paid for until it is found"
        fix = "set url and master-key to those of a control plane (prime-train serve, prime-train key --show)"
        raise UsageError(f"{STORE} is not set: {lost}", fix=fix)
    found = Home.of(os.environ)
    if not found.elsewhere and not os.environ.get(HOME):
        raise UsageError(
            f"neither {STORE} nor {HOME} is set", fix=f"set url and master-key; or on a runner of your own {HOME}, a folder that stays"
        )
    return found


def own(found: Home) -> "list[Run]":
    """Runs that were launched from the job's repository: what others train is not for its log. Where the home is the runner's, all."""
    repository, runs = os.environ.get("GITHUB_REPOSITORY", ""), found.store().list_runs()
    if not found.elsewhere:
        return runs
    return [run for run in runs if run.origin is not None and run.origin.repository == repository]


def context(found: Home, *, waits: bool) -> "Context":
    """`waits`: until agents are on their machines, which takes minutes."""
    said = found.last_serving()
    if said is None:
        raise UsageError("no webhook is known: nothing has served this home yet", fix="prime-train serve, or prime-train serve --no-watch")
    ids = frozenset(run.run_id for run in own(found))

    def watched(run_id: str, what: str, text: str) -> None:
        if run_id in ids or not run_id:
            _say(run_id, what, text)

    return found.context(said.public_url, watched=watched, waits=waits)


def look(found: Home) -> "SweepResult":
    """One sweep, which leaves the agents to whoever looks next."""
    from prime_train.control_plane.reconcile import sweep

    return sweep(context(found, waits=False))


def looks(found: Home, *, minutes: float, only: str = "") -> "list[SweepResult]":
    """One sweep, and for so many minutes more while a machine that can be asked for from here comes or goes: it would be paid for and stand
    idle until the next job. `only`: the run whose machine counts; none: every run's."""
    from prime_train.control_plane.reconcile import sweep

    here, until_s = context(found, waits=True), time.monotonic() + minutes * 60
    swept = [sweep(here)]
    while time.monotonic() < until_s and any(
        _is_on_the_move(run, here.providers) for run in here.store.list_runs() if only in ("", run.run_id)
    ):
        time.sleep(PAUSE_S)
        swept.append(sweep(here))
    return swept


def _is_on_the_move(run: "Run", providers: "Container[str] | None") -> bool:
    """Also one that somebody wants to stop: a sweep whose save was lost to a heartbeat has not begun with that yet."""
    moves = run.state.value in ON_THE_MOVE or (run.want.value != "run" and not run.is_over)
    return moves and (providers is None or run.spec.hardware.provider in providers)


def _say(run_id: str, what: str, text: str) -> None:
    from prime_train.reports.markdown import one_line

    # A line of its own would be a command to GitHub.
    print(one_line(f"{run_id} {what} {text}"), flush=True)
