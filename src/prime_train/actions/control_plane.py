"""Access to the control plane from a GitHub job, and sweeps over its runs."""

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
"""States in which a machine is being set up or is about to be terminated."""


def home() -> Home:
    """Return the home that the environment names. Raises UsageError if its state would be lost together with the runner."""
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
    """Return the runs that were launched from the job's repository, so that runs of other repositories stay out of its log. If the home is
    on the runner itself, return all runs."""
    repository, runs = os.environ.get("GITHUB_REPOSITORY", ""), found.store().list_runs()
    if not found.elsewhere:
        return runs
    return [run for run in runs if run.origin is not None and run.origin.repository == repository]


def context(found: Home, *, waits: bool) -> "Context":
    """Return the context for a sweep. With `waits`, the sweep waits until agents are installed on their machines, which takes minutes.
    Raises UsageError if no control plane has served this home yet."""
    said = found.last_serving()
    if said is None:
        raise UsageError("no webhook is known: nothing has served this home yet", fix="prime-train serve, or prime-train serve --no-watch")
    ids = frozenset(run.run_id for run in own(found))

    def watched(run_id: str, what: str, text: str) -> None:
        if run_id in ids or not run_id:
            _say(run_id, what, text)

    return found.context(said.public_url, watched=watched, waits=waits)


def look(found: Home) -> "SweepResult":
    """Run one sweep without waiting for agents to be installed: the next watcher does that."""
    from prime_train.control_plane.reconcile import sweep

    return sweep(context(found, waits=False))


def looks(found: Home, *, minutes: float, only: str = "") -> "list[SweepResult]":
    """Run one sweep; then, for up to `minutes`, sweep again as long as a machine of a provider that can be called from here is being set up
    or terminated. Otherwise that machine would be paid for and stand idle until the next job. `only`: the id of the only run whose machine
    counts; empty: every run's."""
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
    """Return whether the run's machine is being set up or terminated, or a stop was requested. The latter counts because a sweep that lost
    its write to a heartbeat has not begun to stop the run yet."""
    moves = run.state.value in ON_THE_MOVE or (run.want.value != "run" and not run.is_over)
    return moves and (providers is None or run.spec.hardware.provider in providers)


def _say(run_id: str, what: str, text: str) -> None:
    from prime_train.reports.markdown import one_line

    # GitHub would interpret a line that starts with "::" as a workflow command.
    print(one_line(f"{run_id} {what} {text}"), flush=True)
