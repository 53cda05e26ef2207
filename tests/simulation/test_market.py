"""Several providers that lie, each in its own way: no machine is left behind, nothing trains twice, nothing
durable is lost.
"""

import pytest

from tests.exhaustive import some_of
from tests.simulation.simulate import play

SEEDS_A_TEST = 30
WANTED = {"succeeded", "preempted", "boot_lost", "boot_timeout", "launch_lost", "no_capacity", "terminate"}


@pytest.mark.parametrize("first", some_of(range(0, 8 * SEEDS_A_TEST, SEEDS_A_TEST), one_in=8))
def test_every_promise_holds_whatever_providers_say(first: int) -> None:
    outcomes = [play(seed, world="market") for seed in range(first, first + SEEDS_A_TEST)]
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    assert not failures, f"{len(failures)} of {SEEDS_A_TEST} seeds\n" + "\n\n".join(failures[:3])
    seen: set[str] = set().union(*(outcome.seen for outcome in outcomes))
    assert first or seen >= WANTED, "did the providers tell the truth, every promise would hold for nothing"


def test_a_seed_of_the_market_plays_the_same_each_time() -> None:
    assert play(7, world="market") == play(7, world="market")
