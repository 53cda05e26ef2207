"""A run that is well and that its tracker hears nothing of: people are told once, and nothing else is done."""

from dataclasses import replace

import pytest

from prime_train.core.decide.tracking import TRACKER_LAG_S_MAX
from prime_train.core.run import Run, RunState
from prime_train.core.verdict import TrackerSeen
from prime_train.reconcile.tracking import FOLLOW_S
from tests.reconcile.ports import Outside

BEAT_S = 30


class Asked:
    """A tracker that is `late_s` behind; None: it can not be asked."""

    def __init__(self, w: Outside) -> None:
        self.w = w
        self.late_s: int | None = 0
        self.at_s: list[int] = []

    def look(self, run: Run) -> TrackerSeen | None:
        self.at_s.append(self.w.now_s)
        return TrackerSeen(40, self.w.now_s - self.late_s) if self.late_s is not None else None


@pytest.fixture(name="w")
def _w() -> Outside:
    return Outside({"wandb": {"project": "p"}}).trains()


@pytest.fixture(name="tracker")
def _tracker(w: Outside) -> Asked:
    return watched(w)


def watched(w: Outside) -> Asked:
    """The world's tracker from now on."""
    asked = Asked(w)
    w.world = replace(w.world, tracker=asked)
    return asked


def train(w: Outside, seconds: int) -> None:
    """So much time in which it beats, makes steps, and is looked at."""
    for _ in range(seconds // BEAT_S):
        w.after(BEAT_S).beat(step=w.now_s)
        w.sweep()


def untracked(w: Outside) -> int:
    return w.told.kinds().count("untracked")


def test_a_run_whose_tracker_has_lost_it_is_told_of_once_and_goes_on(w: Outside, tracker: Asked) -> None:
    tracker.late_s = TRACKER_LAG_S_MAX + 1
    train(w, TRACKER_LAG_S_MAX - BEAT_S)
    assert untracked(w) == 0
    train(w, 3 * FOLLOW_S)
    assert untracked(w) == 1
    assert (w.run().state, w.run().epoch) == (RunState.TRAINING, 1)


def test_it_is_told_again_when_it_is_lost_again(w: Outside, tracker: Asked) -> None:
    tracker.late_s = TRACKER_LAG_S_MAX + 1
    train(w, TRACKER_LAG_S_MAX + FOLLOW_S)
    tracker.late_s = 5
    train(w, 2 * FOLLOW_S)
    assert w.run().noted_s("untracked") is None
    tracker.late_s = TRACKER_LAG_S_MAX + 1
    train(w, 2 * FOLLOW_S)
    assert untracked(w) == 2


@pytest.mark.parametrize("late_s", [0, 1800, TRACKER_LAG_S_MAX, None])
def test_a_tracker_that_is_late_or_can_not_be_asked_is_no_news(w: Outside, tracker: Asked, late_s: int | None) -> None:
    tracker.late_s = late_s
    train(w, TRACKER_LAG_S_MAX + 2 * FOLLOW_S)
    assert tracker.at_s
    assert untracked(w) == 0


def test_the_tracker_of_a_run_that_is_well_is_asked_seldom(w: Outside, tracker: Asked) -> None:
    train(w, TRACKER_LAG_S_MAX + 3 * FOLLOW_S)
    assert 2 <= len(tracker.at_s) <= 4


def test_a_run_that_is_not_tracked_is_not_asked_about() -> None:
    w = Outside().trains()
    asked = watched(w)
    train(w, TRACKER_LAG_S_MAX + 2 * FOLLOW_S)
    assert asked.at_s == []
