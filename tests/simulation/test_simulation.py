"""Every promise after every event, over many seeds; a failing seed reports how to play it again."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.exhaustive import some_of
from tests.simulation.simulate import play

SEEDS_A_TEST = 60
WANTED = {
    "succeeded",
    "stopped",
    "cancelled",
    "silent",
    "stalled",
    "preempted",
    "boot_timeout",
    "launch_lost",
    "no_capacity",
}
WANTED |= {"budget_spent", "draining", "blind", "unknown"}
ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("first", some_of(range(0, 8 * SEEDS_A_TEST, SEEDS_A_TEST), one_in=8))
def test_every_promise_holds_on_every_round(first: int) -> None:
    outcomes = [play(seed) for seed in range(first, first + SEEDS_A_TEST)]
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    assert not failures, f"{len(failures)} of {SEEDS_A_TEST} seeds\n" + "\n\n".join(failures[:3])
    seen: set[str] = set().union(*(outcome.seen for outcome in outcomes))
    assert first or seen >= WANTED, "were the faults too mild, every promise would hold for nothing"


def test_a_seed_plays_the_same_each_time() -> None:
    assert play(17) == play(17)


def test_a_seed_plays_the_same_in_another_process() -> None:
    command = [sys.executable, "-m", "tests.simulation", "--seed", "17", "--verbose"]
    reported = [
        subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True).stdout
        for _ in range(2)
    ]
    assert reported[0] == reported[1]
    assert "all promises held" in reported[0]
