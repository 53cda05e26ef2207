"""A healthy run whose reports do not reach its tracker: people are notified once, and nothing else is done. A
lost run: it is marked in its tracker.
"""

from dataclasses import replace

import pytest

from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.decide.tracker_alerts import TRACKER_LAG_S_MAX, UNHEARD_S_MAX
from prime_train.runs.run import Attempt, Run, RunState
from prime_train.runs.verdict import UNHEARD, TrackerObserved
from prime_train.spec.causes import Cause
from prime_train.watch.tracker_sync import FOLLOW_S, MARK_S_MAX
from tests.reconcile.ports import Outside

HEARTBEAT_S = 30


class Requested:
    """A tracker that is `late_s` behind; None: it cannot be queried. `unheard`: it does not know the run.
    `marks`: the attempts that were marked, with the second; it accepts no mark while it `is_away`.
    """

    def __init__(self, w: Outside) -> None:
        self.w = w
        self.late_s: int | None = 0
        self.unheard = self.is_away = False
        self.at_s: list[int] = []
        self.marks: list[tuple[int, int]] = []

    def look(self, run: Run) -> TrackerObserved | None:
        self.at_s.append(self.w.now_s)
        if self.unheard:
            return UNHEARD
        return TrackerObserved(40, self.w.now_s - self.late_s) if self.late_s is not None else None

    def mark_lost(self, run: Run, attempt: Attempt) -> bool:
        self.marks.append((attempt.number, self.w.now_s))
        return not self.is_away


@pytest.fixture(name="w")
def _w() -> Outside:
    return Outside({"wandb": {"project": "p"}}).trains()


@pytest.fixture(name="tracker")
def _tracker(w: Outside) -> Requested:
    return watched(w)


def watched(w: Outside) -> Requested:
    """Set the environment's tracker from now on."""
    requested = Requested(w)
    w.world = replace(w.world, tracker=requested)
    return requested


def train(w: Outside, seconds: int) -> None:
    """Let the run send heartbeats and make steps for this long, with sweeps."""
    for _ in range(seconds // HEARTBEAT_S):
        w.after(HEARTBEAT_S).heartbeat(step=w.now_s)
        w.sweep()


def untracked(w: Outside) -> int:
    return w.reported.kinds().count("untracked")


def test_a_run_whose_tracker_has_lost_it_is_reported_once_and_goes_on(w: Outside, tracker: Requested) -> None:
    tracker.late_s = TRACKER_LAG_S_MAX + 1
    train(w, TRACKER_LAG_S_MAX - HEARTBEAT_S)
    assert untracked(w) == 0
    train(w, 3 * FOLLOW_S)
    assert untracked(w) == 1
    assert (w.run().state, w.run().attempt) == (RunState.TRAINING, 1)


def test_it_is_reported_again_when_it_is_lost_again(w: Outside, tracker: Requested) -> None:
    tracker.late_s = TRACKER_LAG_S_MAX + 1
    train(w, TRACKER_LAG_S_MAX + FOLLOW_S)
    tracker.late_s = 5
    train(w, 2 * FOLLOW_S)
    assert w.run().noted_s(AlertKind.UNTRACKED) is None
    tracker.late_s = TRACKER_LAG_S_MAX + 1
    train(w, 2 * FOLLOW_S)
    assert untracked(w) == 2


@pytest.mark.parametrize("late_s", [0, 1800, TRACKER_LAG_S_MAX, None])
def test_a_tracker_that_is_late_or_cannot_be_queried_is_no_news(
    w: Outside, tracker: Requested, late_s: int | None
) -> None:
    tracker.late_s = late_s
    train(w, TRACKER_LAG_S_MAX + 2 * FOLLOW_S)
    assert tracker.at_s
    assert untracked(w) == 0


def test_the_tracker_of_a_run_that_is_well_is_queried_seldom(w: Outside, tracker: Requested) -> None:
    train(w, UNHEARD_S_MAX + 3 * FOLLOW_S)
    assert 2 <= len(tracker.at_s) <= 4


def test_a_run_that_its_tracker_never_heard_of_is_reported_soon_and_once(
    w: Outside, tracker: Requested
) -> None:
    tracker.unheard = True
    train(w, UNHEARD_S_MAX - HEARTBEAT_S)
    assert untracked(w) == 0
    train(w, FOLLOW_S + HEARTBEAT_S)
    assert "never received data from the run" in w.reported.alerts[-1].title
    w.exit(Cause.PREEMPTED)
    w.settle()
    assert w.trains().run().attempt == 2
    train(w, UNHEARD_S_MAX + 2 * FOLLOW_S)
    assert untracked(w) == 1


def test_an_attempt_that_has_just_begun_is_not_blamed_for_the_silence_before_it(
    w: Outside, tracker: Requested
) -> None:
    tracker.late_s = 0
    received_s = w.now_s
    w.after(TRACKER_LAG_S_MAX).heartbeat(step=11)
    w.exit(Cause.PREEMPTED)
    w.settle()
    w.trains(step=12)
    for _ in range((TRACKER_LAG_S_MAX - 2 * HEARTBEAT_S) // HEARTBEAT_S):
        tracker.late_s = w.now_s - received_s
        train(w, HEARTBEAT_S)
    assert tracker.at_s
    assert untracked(w) == 0


def lose(w: Outside) -> None:
    """Let the machine be lost, before there is another one."""
    w.exit(Cause.PREEMPTED)
    w.sweep()
    assert (w.run().state, w.run().attempt) == (RunState.BOOTING, 2)


def test_the_tracker_is_reported_once_of_an_attempt_that_was_fenced(w: Outside, tracker: Requested) -> None:
    lose(w)
    w.sweeps(60)
    assert [attempt for attempt, _ in tracker.marks] == [1]


def test_a_tracker_that_is_away_is_reported_later_but_never_of_a_run_that_goes_on(
    w: Outside, tracker: Requested
) -> None:
    tracker.is_away = True
    lose(w)
    w.after(15).sweep()
    assert len(tracker.marks) == 2
    tracker.is_away = False
    w.after(5).heartbeat(step=0)
    w.sweep()
    assert w.run().state is RunState.BOOTING, "nobody has looked at it since its first heartbeat"
    w.sweeps(60)
    assert w.run().state is RunState.STARTING
    assert len(tracker.marks) == 2


def test_a_tracker_that_stays_away_is_given_up(w: Outside, tracker: Requested) -> None:
    tracker.is_away = True
    w.exit(Cause.IMPORT_ERROR)
    w.sweeps(2 * MARK_S_MAX)
    assert w.run().state is RunState.FAILED
    lost_s = w.run().attempts[-1].fenced_s
    assert lost_s is not None
    assert MARK_S_MAX - 15 <= tracker.marks[-1][1] - lost_s <= MARK_S_MAX


def test_a_run_that_succeeded_is_none_that_was_lost(w: Outside, tracker: Requested) -> None:
    w.exit(Cause.FINISHED, step=40)
    w.sweeps(60)
    assert w.run().state is RunState.SUCCEEDED
    assert tracker.marks == []


def test_a_run_that_is_not_tracked_is_not_queried() -> None:
    w = Outside().trains()
    requested = watched(w)
    train(w, TRACKER_LAG_S_MAX + 2 * FOLLOW_S)
    assert requested.at_s == []
