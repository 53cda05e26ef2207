"""The watcher as a Lambda: once a minute, and whenever the webhook hears news.

A call by the clock looks again every 15 s until the next call is near, but only where a run lives: with none, it leaves at once and costs
next to nothing. A call by news looks once. Any number of them at once does no harm.
"""

import hashlib
import logging
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any, Protocol

from prime_lambdas.metrics import line
from prime_lambdas.secret import Secret, masters, of_runs, read
from prime_lambdas.settings import PUBLIC_URL, Settings
from prime_train.cli.exits import Refused
from prime_train.cli.home import MASTER, Home
from prime_train.ports import OutsideError
from prime_train.reconcile import World, sweep

INTERVAL_S = 15.0
LOOK_S_MAX = 50.0
"""From the first look of a call to the start of its last: the next call comes after a minute."""
MARGIN_S = 20.0
"""A sweep is not begun with less left."""
HOME = Path("/tmp/prime-train")
FOLDER_CHARS = 8
STACK = "PRIME_TRAIN_STACK"
FENCES = frozenset({"Recover"})

log = logging.getLogger(__name__)


class Context(Protocol):
    def get_remaining_time_in_millis(self) -> int: ...


@dataclass
class Tally:
    """What was done in a call."""

    sweeps: int = 0
    steps: int = 0
    fences: int = 0
    errors: int = 0
    usd_per_hour: float | None = None

    def watched(self, run_id: str, what: str, text: str) -> None:
        self.fences += what in FENCES
        log.info("%s %s %s", run_id, what, text)

    def values(self) -> dict[str, float]:
        counts: dict[str, float] = {"Sweeps": self.sweeps, "Steps": self.steps, "Fences": self.fences, "Errors": self.errors}
        return counts if self.usd_per_hour is None else counts | {"UsdPerHour": self.usd_per_hour}


class WatcherOfStack:
    """Keeps what one call has read for the next: the secret, and clients that know their connections."""

    def __init__(self, settings: Settings, home: Path = HOME) -> None:
        self._settings, self._root = settings, home
        self._secret = Secret(lambda: read(settings), time.monotonic)
        self._world: tuple[Mapping[str, str], World] | None = None

    def look(self, seconds: float) -> Tally:
        """Sweeps at once, and again every `INTERVAL_S` while a run lives and the next sweep would begin within `seconds`."""
        tally, begun_s, pause = Tally(), time.monotonic(), threading.Event()
        try:
            world = replace(self._current(), watched=tally.watched)
        except (OutsideError, Refused) as error:
            log.error("nothing can be watched: %s", error)
            tally.errors += 1
            return tally
        while True:
            lives = _look(world, tally)
            due_s = begun_s + tally.sweeps * INTERVAL_S
            if not lives or due_s - begun_s > seconds or time.monotonic() - begun_s > seconds:
                return tally
            pause.wait(max(0.0, due_s - time.monotonic()))

    def _current(self) -> World:
        values = self._secret.values()
        if self._world is None or self._world[0] is not values:
            self._world = values, self._new_world(values)
        return self._world[1]

    def _new_world(self, values: Mapping[str, str]) -> World:
        newest = masters(values)[0]
        # A folder for each key: what is in it is made of the key, and an instance outlives a change of the secret.
        root = self._root / hashlib.sha256(newest).hexdigest()[:FOLDER_CHARS]
        home = Home(root, {**self._settings.environment, **values, MASTER: newest.hex()})
        root.mkdir(parents=True, exist_ok=True, mode=0o700)
        # A frozen process ends no thread of its own: what is begun in a call must be done in it.
        return replace(home.world(self._settings.public_url, waits=True), secrets=of_runs(values))


def _look(world: World, tally: Tally) -> bool:
    """One sweep; whether a run lives that is worth another look soon."""
    tally.sweeps += 1
    try:
        swept = sweep(world, int(time.time()), clock=lambda: int(time.time()))
        tally.steps += swept.steps
        tally.errors += swept.provider_error is not None
        funds = world.account.funds() if world.account is not None else None
        tally.usd_per_hour = funds.burn_usd_per_hour if funds is not None else tally.usd_per_hour
        return bool(swept.looked_at) or bool(world.store.vitals())
    except OutsideError as error:
        log.error("the sweep was cut short: %s", error)
    except Exception:  # whatever it was, the next sweep may work, and nobody else would look after the runs
        log.exception("the sweep failed")
    tally.errors += 1
    return True


@cache
def _watcher() -> WatcherOfStack:
    for name in ("prime_lambdas", "prime_train"):
        logging.getLogger(name).setLevel(logging.INFO)
    settings = Settings.of(os.environ)
    if not settings.public_url:
        raise ValueError(f"{PUBLIC_URL} is not set: machines would not know whom to call; deploy it again")
    return WatcherOfStack(settings)


def handler(event: Mapping[str, Any], context: Context) -> dict[str, float]:
    """What Lambda calls; gives back what was done."""
    left_s = context.get_remaining_time_in_millis() / 1000 - MARGIN_S
    tally = _watcher().look(0.0 if event.get("news") else min(LOOK_S_MAX, left_s))
    print(line(tally.values(), os.environ.get(STACK, ""), time.time()), flush=True)
    return tally.values()
