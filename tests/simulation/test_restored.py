"""Every promise that can hold if the store is restored from an older copy holds, over many seeds."""

from typing import Any

import pytest

from prime_train.watch import execute as carrying
from tests.exhaustive import some_of
from tests.simulation import restored
from tests.simulation.promises import Broken
from tests.simulation.restored import RestoredSimulation
from tests.simulation.simulate import report

SEEDS_A_TEST = 25


def play(seed: int) -> tuple[RestoredSimulation, str]:
    simulation = RestoredSimulation(seed)
    try:
        simulation.play()
    except Broken as broken:
        return simulation, report(simulation, broken)
    return simulation, ""


@pytest.mark.parametrize("first", some_of(range(0, 4 * SEEDS_A_TEST, SEEDS_A_TEST), one_in=4))
def test_nothing_durable_is_lost_and_nothing_is_done_twice_when_the_store_is_restored_from_an_older_copy(
    first: int,
) -> None:
    played = [play(seed) for seed in range(first, first + SEEDS_A_TEST)]
    failures = [failure for _, failure in played if failure]
    assert not failures, f"{len(failures)} of {SEEDS_A_TEST} seeds\n" + "\n\n".join(failures[:3])
    assert sum(simulation.restores for simulation, _ in played) >= SEEDS_A_TEST / 2
    assert sum(simulation.caught_up for simulation, _ in played) >= SEEDS_A_TEST / 2


def test_a_control_plane_that_does_not_ask_the_bucket_breaks_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the restores were too harmless, the promises would hold without the bucket as well."""

    def no_longer(*_given: Any) -> None:
        return None

    monkeypatch.setattr(carrying, "catch_up", no_longer)
    monkeypatch.setattr(restored, "catch_up_all", no_longer)
    assert any(play(seed)[1] for seed in range(SEEDS_A_TEST))
