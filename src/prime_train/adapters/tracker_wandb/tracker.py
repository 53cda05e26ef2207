"""The port `Tracker`: W&B's last heartbeat of a run, read without holding up the caller.

Each query runs in a thread of its own. The caller waits a moment for it; if that is not enough, this look returns nothing and the next one
gets the answer. While W&B does not answer, no query is sent for some time, so that a sweep over many runs waits once and not once per run.
"""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from prime_train.adapters.tracker_wandb.asking import Wandb
from prime_train.core.run import Attempt, Run
from prime_train.core.tracker.pages import entity_of
from prime_train.core.verdict import UNHEARD, TrackerSeen
from prime_train.ports import PermanentError, TemporaryError

WAIT_S = 5.0
FRESH_S = 20.0
CLOSED_S = 30.0
REFUSED_S = 300.0
"""Seconds for which a refusal is kept: a retry does not help before somebody has changed something."""
AHEAD_S_MAX = 300
"""Seconds by which W&B's clock may be ahead of ours: a heartbeat further in the future would be a sign of life for ever."""
KEPT_MAX = 1000

log = logging.getLogger(__name__)


@dataclass
class _Look:
    begun_s: float
    serves_s: float
    done: threading.Event = field(default_factory=threading.Event)
    seen: TrackerSeen | None = None


@dataclass
class _Mark:
    """One request to mark an attempt's run as failed. `settled`: no further request is needed."""

    settled: bool = False
    done: threading.Event = field(default_factory=threading.Event)


class WandbTracker:
    """A `Tracker` and `Marking` on W&B. All times are in seconds: `wait_s` is how long a look waits for an answer, `fresh_s` how long an
    answer is reused, `closed_s` the pause after a failure of W&B. `clock` is monotonic; `now` is the time of day."""

    def __init__(
        self,
        wandb: Wandb,
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
        self._lock = threading.Lock()
        self._looks: dict[str, _Look] = {}
        self._marks: dict[tuple[str, int], _Mark] = {}
        self._troubles: dict[str, str] = {}

    def look(self, run: Run) -> TrackerSeen | None:
        """Return W&B's last heartbeat and step of the run, or None if there is nothing to use; `trouble` then says why. Never raises."""
        if run.spec.wandb is None:
            return None
        look, begun = self._current(run)
        return look.seen if look is not None and self._is_done(look.done, run, begun=begun) else None

    def trouble(self, run_id: str) -> str:
        """Return why the last look at this run returned nothing, or an empty string if it succeeded."""
        return self._troubles.get(run_id, "")

    def mark_lost(self, run: Run, attempt: Attempt) -> bool:
        """Mark the fenced attempt's run as failed. Return whether that is settled; if not, `trouble` says why. Never raises, and waits no
        longer than a look."""
        mark, begun = self._marking(run, attempt)
        return mark is not None and self._is_done(mark.done, run, begun=begun) and mark.settled

    def _is_done(self, done: threading.Event, run: Run, *, begun: bool) -> bool:
        """Return whether the query is done. Only the caller that began it waits; if it times out, W&B is not queried for a while."""
        if done.wait(self._wait_s if begun else 0.0):
            return True
        self._fail(run.run_id, f"W&B did not answer within {self._wait_s:g} s")
        return False

    def _marking(self, run: Run, attempt: Attempt) -> tuple[_Mark | None, bool]:
        """Return the mark under way or settled, or a new one, and whether it is new; (None, False) while W&B is not queried."""
        key = run.run_id, attempt.number
        with self._lock:
            mark = self._marks.get(key)
            if mark is not None and (mark.settled or not mark.done.is_set()):
                return mark, False
            if self._clock() < self._closed_until_s:
                return None, False
            mark = self._marks[key] = _Mark()
            while len(self._marks) > KEPT_MAX:
                self._marks.pop(next(iter(self._marks)))
        threading.Thread(target=self._mark, args=(run, attempt, mark), name=f"wandb-mark-{run.run_id}", daemon=True).start()
        return mark, True

    def _mark(self, run: Run, attempt: Attempt, mark: _Mark) -> None:
        """Mark the run as failed unless it sent something after the fence: then it is a newer attempt, or still alive, and is left as it
        is."""
        assert run.spec.wandb is not None
        assert attempt.fenced_s is not None
        tracked = run.spec.wandb
        try:
            marked = self._wandb.mark_failed(tracked.project, run.run_id, entity=entity_of(run), heard_by_s=attempt.fenced_s)
            log.info("run %s: its tracker %s", run.run_id, "calls it failed now" if marked else "needed no word of its loss")
            mark.settled = True
        except PermanentError as error:
            self._tell(run.run_id, str(error))
            mark.settled = True
        except TemporaryError as error:
            self._fail(run.run_id, str(error))
        finally:
            mark.done.set()

    def _current(self, run: Run) -> tuple[_Look | None, bool]:
        """Return the look under way or still fresh, or a new one, and whether it is new; (None, False) while W&B is not queried."""
        with self._lock:
            look = self._looks.get(run.run_id)
            if look is not None and (not look.done.is_set() or self._clock() - look.begun_s < look.serves_s):
                return look, False
            if self._clock() < self._closed_until_s:
                self._troubles.setdefault(run.run_id, "W&B is left alone for a while: it did not answer")
                return None, False
            look = self._looks[run.run_id] = _Look(self._clock(), self._fresh_s)
            while len(self._looks) > KEPT_MAX:
                oldest = next(iter(self._looks))
                self._looks.pop(oldest)
                self._troubles.pop(oldest, None)
        threading.Thread(target=self._ask, args=(run, look), name=f"wandb-{run.run_id}", daemon=True).start()
        return look, True

    def _ask(self, run: Run, look: _Look) -> None:
        try:
            look.seen = self._answer(run)
        except PermanentError as error:  # this run only: the key may have access to the projects of other runs
            look.serves_s = max(look.serves_s, REFUSED_S)
            self._tell(run.run_id, str(error))
        except TemporaryError as error:
            self._fail(run.run_id, str(error))
        finally:
            look.done.set()

    def _answer(self, run: Run) -> TrackerSeen | None:
        assert run.spec.wandb is not None
        found = self._wandb.run(run.spec.wandb.project, run.run_id, entity=entity_of(run))
        if found is None or not found.heard_s:
            self._tell(run.run_id, "W&B has heard nothing of it", logging.INFO)  # normal until the run's trainer starts
            return UNHEARD
        if found.heard_s > self._now() + AHEAD_S_MAX:
            self._tell(run.run_id, f"its last word is {found.heard_s - self._now():.0f} s in the future: a clock is wrong")
            return None
        self._troubles.pop(run.run_id, None)
        return TrackerSeen(found.step or 0, found.heard_s)

    def _fail(self, run_id: str, why: str) -> None:
        self._closed_until_s = self._clock() + self._closed_s
        self._tell(run_id, why)

    def _tell(self, run_id: str, why: str, level: int = logging.WARNING) -> None:
        """Store the reason, and log it only when it has changed."""
        if self._troubles.get(run_id) != why:
            self._troubles[run_id] = why
            log.log(level, "run %s: its tracker says nothing: %s", run_id, why)
