"""Plants bugs in the core and checks that the simulation detects them.

The complete table, unit tests included: `python -m tests.simulation.mutants`.
"""

import pytest

from tests.exhaustive import some_of
from tests.simulation.mutants import BITTEN, MUTANTS, Mutant, planted, simulate

SEEDS = 200
"""Maximum number of seeds; the first that detects the bug ends the search, for most bugs one of the first
five.
"""


def test_every_error_can_still_be_planted() -> None:
    assert {mutant.name: mutant.stale() for mutant in MUTANTS if mutant.stale()} == {}


def test_those_that_are_tried_each_time_are_in_the_table() -> None:
    assert {mutant.name for mutant in MUTANTS} >= BITTEN.keys()


@pytest.mark.parametrize(
    "mutant", some_of((m for m in MUTANTS if m.name in BITTEN), one_in=4), ids=lambda mutant: mutant.name
)
def test_a_planted_error_breaks_a_promise(mutant: Mutant) -> None:
    first = BITTEN[mutant.name]
    with planted(mutant) as environment:
        message = simulate(environment, (first, first + SEEDS), world=mutant.world)
    assert ": promise " in message, f"all promises held, although {mutant.name}"
