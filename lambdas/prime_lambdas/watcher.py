"""The watcher as a Lambda: invoked once a minute, and by the webhook on news.

A scheduled invocation sweeps every 15 s until the next invocation is near, but only while a run is active:
without one it returns at once and costs next to nothing. An invocation on news sweeps once. Concurrent
invocations do no harm.

Installing agents on machines takes minutes and goes on in the background. A Lambda's process is frozen
between invocations, so an invocation stays until its installs are finished, as far as its time allows. It
keeps sweeping meanwhile, because the number of concurrent invocations is limited. A later invocation, in this
process or another one, restarts an install that was cut off.
"""

import gc
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from prime_lambdas.homes import ROOT, home_of
from prime_lambdas.metrics import line
from prime_lambdas.secret import Secret, of_runs, read
from prime_lambdas.settings import PUBLIC_URL, Settings
from prime_train.errors import ExternalError, UsageError
from prime_train.watch.agent_installs import context_with_installer, report_failed
from prime_train.watch.context import Context
from prime_train.watch.sweeps import sweep

if TYPE_CHECKING:
    from prime_train.providers.install.background import BackgroundPusher

INTERVAL_S = 15.0
LOOK_S_MAX = 50.0
"""Seconds from the first to the last sweep of one invocation; the next invocation comes after a minute."""
MARGIN_S = 20.0
"""Minimum seconds that must be left of the invocation to start a sweep."""
LEAVING_S = 5.0
"""Minimum seconds that must be left of the invocation to wait for running installs."""
STACK = "PRIME_TRAIN_STACK"
FENCES = frozenset({"Recover"})

log = logging.getLogger(__name__)

_T = TypeVar("_T")


class LambdaContext(Protocol):
    def get_remaining_time_in_millis(self) -> int: ...


@dataclass
class Tally:
    """Counts of what one invocation did."""

    sweeps: int = 0
    steps: int = 0
    fences: int = 0
    errors: int = 0
    usd_per_hour: float | None = None

    def watched(self, run_id: str, what: str, text: str) -> None:
        self.fences += what in FENCES
        log.info("%s %s %s", run_id, what, text)

    def values(self) -> dict[str, float]:
        counts: dict[str, float] = {
            "Sweeps": self.sweeps,
            "Steps": self.steps,
            "Fences": self.fences,
            "Errors": self.errors,
        }
        return counts if self.usd_per_hour is None else counts | {"UsdPerHour": self.usd_per_hour}


class WatcherOfStack:
    """The watcher of a stack. It keeps the secret, and clients with their open connections, from one
    invocation to the next.
    """

    def __init__(self, settings: Settings, home: Path = ROOT, *, interval_s: float = INTERVAL_S) -> None:
        self._settings, self._root, self._interval_s = settings, home, interval_s
        self._secret = Secret(lambda: read(settings))
        self._context: tuple[Mapping[str, str], Context, BackgroundPusher] | None = None

    def look(self, seconds: float, left_s: Callable[[], float]) -> Tally:
        """Sweep at once and return the counts of what was done.

        Sweep again every `interval_s` while a run is active and the next sweep would start within `seconds`,
        or while an agent is being installed. `left_s` returns the seconds that the invocation may still last.
        """
        tally, begun_s, pause = Tally(), time.monotonic(), threading.Event()
        try:
            current, pushes = self._current()
            context = replace(current, watched=tally.watched)
        except (ExternalError, UsageError) as error:
            log.error("the runs cannot be watched: %s", error)
            self._secret.doubt()
            tally.errors += 1
            return tally
        while True:
            lives = _look(context, pushes, tally)
            due_s = begun_s + tally.sweeps * self._interval_s
            if lives and due_s - begun_s <= seconds and time.monotonic() - begun_s <= seconds:
                pause.wait(max(0.0, due_s - time.monotonic()))
            elif pushes.wait(min(self._interval_s, left_s() - MARGIN_S)) or left_s() <= MARGIN_S:
                break
        if not pushes.wait(left_s() - LEAVING_S):
            pushes.leave()
        if left_s() > MARGIN_S:
            _guarded(tally, lambda: report_failed(context, pushes))
        return tally

    def _current(self) -> "tuple[Context, BackgroundPusher]":
        values = self._secret.values()
        if self._context is None or self._context[0] is not values:
            context, pushes = context_with_installer(
                home_of(self._settings, values, self._root), self._settings.public_url
            )
            self._context = values, *(replace(context, secrets=of_runs(values, self._settings)), pushes)
        return self._context[1:]


def _look(context: Context, pushes: "BackgroundPusher", tally: Tally) -> bool:
    """Do one sweep. Return whether another sweep should follow soon: because a run is active, or because this
    sweep failed.
    """
    tally.sweeps += 1
    _guarded(tally, lambda: report_failed(context, pushes))
    return _guarded(tally, lambda: _run_sweep(context, tally)) is not False


def _run_sweep(context: Context, tally: Tally) -> bool:
    result = sweep(context)
    tally.steps += result.steps
    tally.errors += result.provider_error is not None
    wallets = [funds for funds in (account.funds() for account in context.accounts) if funds is not None]
    tally.usd_per_hour = sum(funds.burn_usd_per_hour for funds in wallets) if wallets else tally.usd_per_hour
    return bool(result.looked_at) or bool(context.store.lease_statuses())


def _guarded(tally: Tally, does: Callable[[], _T]) -> _T | None:
    """Return the result of `does`, or log its failure and return None."""
    try:
        return does()
    except ExternalError as error:
        log.error("the sweep was interrupted: %s", error)
    except (
        Exception
    ):  # whatever the error, the next sweep may work, and nothing else would look after the runs
        log.exception("the sweep failed")
    tally.errors += 1
    return None


@cache
def _watcher() -> WatcherOfStack:
    for name in ("prime_lambdas", "prime_train"):
        logging.getLogger(name).setLevel(logging.INFO)
    settings = Settings.of(os.environ)
    if not settings.public_url:
        raise ValueError(f"{PUBLIC_URL} is not set, so machines would have no address to call; deploy again")
    return WatcherOfStack(settings)


def handler(event: Mapping[str, Any], context: LambdaContext) -> dict[str, float]:
    """Handle an invocation by Lambda, and return the counts of what was done."""

    def left_s() -> float:
        return context.get_remaining_time_in_millis() / 1000

    tally = _watcher().look(0.0 if event.get("news") else min(LOOK_S_MAX, left_s() - MARGIN_S), left_s)
    print(line(tally.values(), os.environ.get(STACK, ""), time.time()), flush=True)
    return tally.values()


gc.freeze()  # what was imported is no garbage; the package has paused the collector meanwhile
gc.enable()
