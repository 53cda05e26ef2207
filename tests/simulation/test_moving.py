"""Runs that move to cheaper machines while they train, with all other faults: every promise holds."""

import pytest

from tests.exhaustive import some_of
from tests.simulation.simulate import play

SEEDS_A_TEST = 60


@pytest.mark.parametrize("first", some_of(range(0, 4 * SEEDS_A_TEST, SEEDS_A_TEST), one_in=4))
def test_every_promise_holds_while_runs_move(first: int) -> None:
    outcomes = [play(seed, world="moves") for seed in range(first, first + SEEDS_A_TEST)]
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    assert not failures, f"{len(failures)} of {SEEDS_A_TEST} seeds\n" + "\n\n".join(failures[:3])
    assert sum("moved" in outcome.seen for outcome in outcomes) >= 3, (
        "did nothing move, every promise would hold for nothing"
    )
    assert sum("cheaper" in outcome.seen for outcome in outcomes) >= 2
