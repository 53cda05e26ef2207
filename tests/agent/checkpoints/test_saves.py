"""The agent's statistics of checkpoints: how often they are saved, how soon they are durable, how long
training pauses for them.
"""

import pytest

from prime_agent.checkpoints import disk_forecast as room
from prime_agent.checkpoints import stats as saves
from prime_agent.checkpoints.stats import Moved, SaveHistory, report

STEPS_S = (1.0, 1.0, 1.0, 1.0, 5.0)
"""Step durations in which the step with the save took four seconds longer than the other four."""


def saved(*moments: tuple[int, float], skipped: tuple[int, ...] = ()) -> SaveHistory:
    after = SaveHistory()
    for step, at_s in moments:
        after = saves.seen(after, step, at_s, durations_s=STEPS_S, skipped=step in skipped)
    return after


def test_nothing_is_reported_before_the_first_save() -> None:
    assert report(SaveHistory(), 10.0) is None


def test_the_interval_is_that_from_save_to_save_and_the_stall_what_the_slow_step_took_more() -> None:
    summary = report(saved((5, 100.0), (10, 160.0), (15, 220.0), (20, 300.0)), 300.0)
    assert summary is not None
    assert (summary.interval_s, summary.stall_s) == (60.0, 4.0)
    assert (summary.durable_age_s, summary.durable_after_s, summary.skipped) == (None, None, 0)


def test_the_age_of_the_durable_one_counts_from_when_it_was_complete() -> None:
    after = saves.committed(saved((5, 100.0), (10, 160.0)), 5, 130.0)
    summary = report(after, 170.0)
    assert summary is not None
    assert (summary.durable_age_s, summary.durable_after_s) == (70, 30.0)
    assert saves.committed(after, 5, 500.0) == after, "a commit that is confirmed twice changes nothing"
    assert saves.committed(after, 99, 500.0) == after, "nothing is known of when it was complete"


def test_the_same_checkpoint_seen_again_is_no_other_save() -> None:
    assert saved((5, 100.0), (5, 101.0), (5, 102.0)) == saved((5, 100.0))


def test_checkpoints_that_come_too_fast_are_reported_with_how_many_were_skipped() -> None:
    after = saved((5, 100.0), (10, 110.0), (15, 120.0), skipped=(10, 15))
    assert saves.too_fast(after) == "", "before an upload nothing is known of how long one takes"
    reason = saves.too_fast(SaveHistory(after.saves, after.skipped, Moved(10, 10, 25.0)))
    assert "25 s each" in reason
    assert "2 skipped" in reason


@pytest.mark.parametrize(
    ("free", "full_s"),
    [
        ([100.0, 90.0, 80.0], 480),
        ([100.0, 100.0, 100.0], None),
        ([90.0, 95.0, 100.0], None),
        ([100.0], None),
        ([100.0, 50.0, 0.0], 0),
    ],
)
def test_the_disk_is_full_when_it_goes_on_as_it_did(free: list[float], full_s: int | None) -> None:
    seen = room.FreeSpaceSamples()
    for turn, gib in enumerate(free):
        seen = room.sensed(seen, gib, 60.0 * turn)
    assert room.full_s(seen) == full_s


def test_a_disk_that_was_looked_at_for_a_moment_only_is_not_judged() -> None:
    seen = room.sensed(room.sensed(room.FreeSpaceSamples(), 100.0, 0.0), 50.0, 31.0)
    assert room.full_s(seen) is None


def test_only_the_last_quarter_of_an_hour_counts_for_the_disk() -> None:
    seen = room.FreeSpaceSamples()
    for turn in range(100):
        seen = room.sensed(seen, 1000.0 - turn if turn < 50 else 950.0, 60.0 * turn)
    assert room.full_s(seen) is None
