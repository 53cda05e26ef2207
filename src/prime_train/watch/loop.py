"""Operations that watch runs, safe beside any other watcher: one sweep, several sweeps until no machine is
being set up or terminated, or sweeps until the process is asked to end.
"""

import time
from collections.abc import Callable, Container
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING

from prime_train.app.serving import Announced, Serving
from prime_train.providers.kinds import allowed_providers
from prime_train.runs.run import DesiredState, Run, RunState
from prime_train.watch.agent_installs import report_failed
from prime_train.watch.context import Context, SweepResult
from prime_train.watch.sweeps import sweep
from prime_train.watch.watcher import Watcher

if TYPE_CHECKING:
    from prime_train.providers.install.background import BackgroundPusher

PAUSE_S = 2.0
PUSH_S_MAX = 900.0
"""Longest time in seconds for which a single sweep waits for agents to be installed on machines. The next
watcher installs those that are not done by then.
"""
ON_THE_MOVE = frozenset({RunState.LAUNCHING, RunState.BOOTING, RunState.DRAINING, RunState.UPLOADING})
"""States in which a machine is being set up or is about to be terminated."""


@dataclass(frozen=True)
class WatchReport:
    """The result of several sweeps. `began_s`: when the first began, by the store's time; `age_s`: seconds
    between the previous sweep of any watcher and the first of these; None if there was none.
    """

    sweeps: tuple[SweepResult, ...]
    began_s: int
    age_s: int | None

    @property
    def looked_at(self) -> list[str]:
        """The ids of all runs that were due, each once."""
        return list(dict.fromkeys(run_id for one in self.sweeps for run_id in one.looked_at))

    @property
    def steps(self) -> int:
        return sum(one.steps for one in self.sweeps)

    def is_late(self, limit_s: float) -> bool:
        """Return whether the previous sweep of any watcher was more than `limit_s` seconds before the first
        of these.
        """
        return self.age_s is not None and self.age_s > limit_s

    @property
    def last(self) -> SweepResult:
        return self.sweeps[-1]


def sweep_and_install(context: Context, pushes: "BackgroundPusher") -> SweepResult:
    """Make one sweep, and then wait for agents to be installed, at most `PUSH_S_MAX` seconds."""
    try:
        return sweep(context)
    finally:
        if not pushes.wait(PUSH_S_MAX):
            pushes.leave()
        report_failed(context, pushes)


def sweep_while_moving(context: Context, *, minutes: float, only: str = "") -> WatchReport:
    """Make one sweep. Then, for up to `minutes`, sweep again as long as a machine of a provider that can be
    called from here is being set up or terminated: otherwise that machine would be paid for without use until
    the next watcher runs. `only`: the id of the only run whose machine counts; empty: every run's.
    """
    store, until_s = context.store, time.monotonic() + minutes * 60
    before_s, began_s = store.watch().last_sweep_s, store.now_s()
    sweeps = [sweep(context)]
    while time.monotonic() < until_s and any(
        _is_on_the_move(run, context.providers) for run in store.list_runs() if only in ("", run.run_id)
    ):
        time.sleep(PAUSE_S)
        sweeps.append(sweep(context))
    return WatchReport(tuple(sweeps), began_s, began_s - before_s if before_s is not None else None)


def watch(
    open_context: Callable[[], Context], serving: Callable[[], Serving], ended: Event, *, interval_s: float
) -> None:
    """Watch until `ended` is set. The webhook's URL is read again regularly, because it may return on another
    port. `open_context`: returns the context with the URL as it is now; `serving`: who serves now.
    """
    context = open_context()
    while not ended.is_set():
        watcher = Watcher(context, Event(), interval_s=interval_s)
        watcher.start()
        try:
            while not ended.wait(1.0) and not _moved(serving().last, context):
                pass
        finally:
            watcher.stop()
        context = open_context()


def _moved(announced: Announced | None, context: Context) -> bool:
    return announced is not None and announced.public_url != context.webhook_url


def _is_on_the_move(run: Run, providers: Container[str] | None) -> bool:
    """Return whether the run's machine is being set up or terminated, or a stop was requested. A requested
    stop counts because the sweep may have lost its write to a heartbeat, and then has not begun to stop the
    run yet.
    """
    moves = run.state in ON_THE_MOVE or (run.desired is not DesiredState.RUN and not run.is_over)
    return moves and (
        providers is None or all(name in providers for name in allowed_providers(run.spec.hardware))
    )
