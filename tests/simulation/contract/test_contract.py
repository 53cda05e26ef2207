"""Trainers that break the contract, with all other faults: no run is green without its weights, and none is
tried for ever.
"""

import pytest

from tests.exhaustive import some_of
from tests.simulation.contract.simulation import ContractSimulation
from tests.simulation.contract.trainers import Habit
from tests.simulation.simulate import play

SEEDS_A_TEST = 30
WANTED = {
    "succeeded",
    "failed",
    "stopped",
    "bad_checkpoint",
    "not_finite",
    "upload_failed",
    "network_error",
    "unsaved",
}


@pytest.mark.parametrize("first", some_of(range(0, 4 * SEEDS_A_TEST, SEEDS_A_TEST), one_in=4))
def test_every_promise_holds_whatever_a_trainer_does(first: int) -> None:
    outcomes = [play(seed, world="contract") for seed in range(first, first + SEEDS_A_TEST)]
    failures = [outcome.failure for outcome in outcomes if outcome.failure]
    assert not failures, f"{len(failures)} of {SEEDS_A_TEST} seeds\n" + "\n\n".join(failures[:3])
    seen: set[str] = set().union(*(outcome.seen for outcome in outcomes))
    assert first or seen >= WANTED, "were the trainers too tame, every promise would hold for nothing"


def test_every_habit_is_drawn() -> None:
    simulations = [ContractSimulation(seed) for seed in range(40)]
    assert {
        simulation.trainer_of(run_id).habit for simulation in simulations for run_id in simulation.keeper.runs
    } == set(Habit)
