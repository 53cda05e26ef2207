"""The port `Tracker`: W&B's last heartbeat of a run, read without holding up the caller.

Each query runs in a thread of its own. The caller waits for it for a few seconds; if that is not enough, this
call returns nothing and the next one returns the result. While W&B does not answer, no query is sent for some
time, so that a sweep over many runs waits once and not once per run.
"""

import json
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.links import entity_of
from prime_train.runs.run import Attempt, Run
from prime_train.runs.verdict import UNHEARD, TrackerObserved
from prime_train.tracker.wandb_client import WandbClient, wandb_from

WAIT_S = 5.0
FRESH_S = 20.0
CLOSED_S = 30.0
CLOSED_S_MAX = 300.0
"""The pause after a failure of W&B doubles with each failure in a row, up to this: how long W&B asks to be
left alone is unknown, because the package keeps that to itself.
"""
REFUSED_S = 300.0
"""Seconds for which a refusal is kept, because a retry does not help until a person has changed something."""
AHEAD_S_MAX = 300
"""Seconds by which W&B's clock may be ahead of this machine's. A heartbeat further in the future is not
believed, because it would prove for ever that the run is alive.
"""
KEPT_MAX = 1000

log = logging.getLogger(__name__)


def tracker_from(environment: Mapping[str, str]) -> "WandbTracker | None":
    """Return the tracker, or None without an API key. Nothing is started or requested before the first
    query.
    """
    wandb = wandb_from(environment)
    return WandbTracker(wandb) if wandb is not None else None


@dataclass
class _Look:
    begun_s: float
    serves_s: float
    done: threading.Event = field(default_factory=threading.Event)
    seen: TrackerObserved | None = None


@dataclass
class _Mark:
    """A request that changes a run in W&B. `settled`: no further request is needed."""

    settled: bool = False
    done: threading.Event = field(default_factory=threading.Event)


class WandbTracker:
    """A `Tracker`, `Marking` and `Summarizing` on W&B. All times are in seconds: `wait_s` is how long a call
    waits for the result of its query, `fresh_s` how long a result is reused, `closed_s` the pause after a
    first failure of W&B. `clock` is monotonic; `now` is the time of day.
    """

    def __init__(
        self,
        wandb: WandbClient,
        *,
        wait_s: float = WAIT_S,
        fresh_s: float = FRESH_S,
        closed_s: float = CLOSED_S,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], float] = time.time,
    ) -> None:
        self._wandb, self._clock, self._now = wandb, clock, now
        self._wait_s, self._fresh_s, self._closed_s = wait_s, fresh_s, closed_s
        self._closed_until_s = clock()
        self._failures = 0
        self._lock = threading.Lock()
        self._looks: dict[str, _Look] = {}
        self._marks: dict[tuple[str, int | str], _Mark] = {}
        self._problems: dict[str, str] = {}

    def look(self, run: Run) -> TrackerObserved | None:
        """Return W&B's last heartbeat and step of the run, or None if they are not available; `problem` then
        gives the reason. Never raises.
        """
        if run.spec.wandb is None:
            return None
        look, begun = self._current(run)
        return look.seen if look is not None and self._is_done(look.done, run, begun=begun) else None

    def problem(self, run_id: str) -> str:
        """Return why the last query about this run had no result, or an empty string if it succeeded."""
        return self._problems.get(run_id, "")

    def mark_lost(self, run: Run, attempt: Attempt) -> bool:
        """Mark the fenced attempt's run as failed. Return whether no further call is needed; if one is,
        `problem` says why. Never raises, and waits at most `wait_s`.
        """
        mark, begun = self._marking(run, attempt.number, lambda: self._mark(run, attempt))
        return mark is not None and self._is_done(mark.done, run, begun=begun) and mark.settled

    def summarize(self, run: Run, values: Mapping[str, object]) -> bool:
        """Add these values to the summary of a run that is over and has fallen silent. Return whether no
        further call is needed; if one is, `problem` says why. Never raises, and waits at most `wait_s`.
        """
        mark, begun = self._marking(
            run, json.dumps(values, sort_keys=True), lambda: self._summarize(run, values)
        )
        return mark is not None and self._is_done(mark.done, run, begun=begun) and mark.settled

    def _is_done(self, done: threading.Event, run: Run, *, begun: bool) -> bool:
        """Return whether the query is done. Only the caller that began it waits; if it times out, W&B is not
        queried for a while.
        """
        if done.wait(self._wait_s if begun else 0.0):
            return True
        self._fail(run.run_id, f"W&B did not answer within {self._wait_s:g} s")
        return False

    def _marking(self, run: Run, what: int | str, request: Callable[[], bool]) -> tuple[_Mark | None, bool]:
        """Return the request for this run that is in progress or settled, or else a new one, and whether it
        is new. Return (None, False) during a pause after a failure of W&B. `what` tells the requests for one
        run apart; `request` returns whether it is settled.
        """
        key = run.run_id, what
        with self._lock:
            mark = self._marks.get(key)
            if mark is not None and (mark.settled or not mark.done.is_set()):
                return mark, False
            if self._clock() < self._closed_until_s:
                return None, False
            mark = self._marks[key] = _Mark()
            while len(self._marks) > KEPT_MAX:
                self._marks.pop(next(iter(self._marks)))
        threading.Thread(
            target=self._change, args=(run, mark, request), name=f"wandb-mark-{run.run_id}", daemon=True
        ).start()
        return mark, True

    def _change(self, run: Run, mark: _Mark, request: Callable[[], bool]) -> None:
        try:
            mark.settled = request()
            self._failures = 0
        except PermanentError as error:
            self._warn(run.run_id, str(error))
            mark.settled = True
        except TemporaryError as error:
            self._fail(run.run_id, str(error))
        finally:
            mark.done.set()

    def _mark(self, run: Run, attempt: Attempt) -> bool:
        """Mark the run as failed, unless it has reported something since the attempt was fenced: then a newer
        attempt writes to it, or the old one is still alive, and it is left as it is.
        """
        assert run.spec.wandb is not None
        assert attempt.fenced_s is not None
        marked = self._wandb.mark_failed(
            run.spec.wandb.project, run.run_id, entity=entity_of(run), received_by_s=attempt.fenced_s
        )
        log.info(
            "run %s: its tracker %s",
            run.run_id,
            "now shows it as failed" if marked else "already showed that it had ended",
        )
        return True

    def _summarize(self, run: Run, values: Mapping[str, object]) -> bool:
        assert run.spec.wandb is not None
        silent_s = int(self._now()) - AHEAD_S_MAX
        return self._wandb.summarize(
            run.spec.wandb.project, run.run_id, values, entity=entity_of(run), received_by_s=silent_s
        )

    def _current(self, run: Run) -> tuple[_Look | None, bool]:
        """Return the query for this run that is in progress or recent enough, or else a new one, and whether
        it is new. Return (None, False) during a pause after a failure of W&B.
        """
        with self._lock:
            look = self._looks.get(run.run_id)
            if look is not None and (not look.done.is_set() or self._clock() - look.begun_s < look.serves_s):
                return look, False
            if self._clock() < self._closed_until_s:
                self._problems.setdefault(
                    run.run_id, "W&B is not queried for a while because it did not answer"
                )
                return None, False
            look = self._looks[run.run_id] = _Look(self._clock(), self._fresh_s)
            while len(self._looks) > KEPT_MAX:
                oldest = next(iter(self._looks))
                self._looks.pop(oldest)
                self._problems.pop(oldest, None)
        threading.Thread(target=self._ask, args=(run, look), name=f"wandb-{run.run_id}", daemon=True).start()
        return look, True

    def _ask(self, run: Run, look: _Look) -> None:
        try:
            look.seen = self._answer(run)
            self._failures = 0
        except (
            PermanentError
        ) as error:  # this run only: the key may have access to the projects of other runs
            look.serves_s = max(look.serves_s, REFUSED_S)
            self._warn(run.run_id, str(error))
        except TemporaryError as error:
            self._fail(run.run_id, str(error))
        finally:
            look.done.set()

    def _answer(self, run: Run) -> TrackerObserved | None:
        assert run.spec.wandb is not None
        found = self._wandb.run(run.spec.wandb.project, run.run_id, entity=entity_of(run))
        if found is None or not found.received_s:
            # normal until the run's trainer starts
            self._warn(run.run_id, "W&B has received no data from it", logging.INFO)
            return UNHEARD
        if found.received_s > self._now() + AHEAD_S_MAX:
            self._warn(
                run.run_id,
                f"its last update is {found.received_s - self._now():.0f} s in the future: a clock is wrong",
            )
            return None
        self._problems.pop(run.run_id, None)
        return TrackerObserved(found.step or 0, found.received_s)

    def _fail(self, run_id: str, why: str) -> None:
        """Query nothing for a while, longer with each failure in a row."""
        with self._lock:
            # of those that fail at the same time the first one counts
            if self._clock() >= self._closed_until_s:
                self._closed_until_s = self._clock() + min(self._closed_s * 2**self._failures, CLOSED_S_MAX)
                self._failures = min(self._failures + 1, 10)
        self._warn(run_id, why)

    def _warn(self, run_id: str, why: str, level: int = logging.WARNING) -> None:
        """Store the reason, and log it only when it has changed."""
        if self._problems.get(run_id) != why:
            self._problems[run_id] = why
            log.log(level, "run %s: its tracker cannot be queried: %s", run_id, why)
