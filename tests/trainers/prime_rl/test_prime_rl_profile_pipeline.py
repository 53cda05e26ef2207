"""Is the diagnosis right? Simulations with a known bottleneck: a change that really helps must be
recommended, with a gain no smaller than the real one, and nothing may be recommended that does not help.
"""

from collections.abc import Callable
from dataclasses import replace

import pytest

from prime_train.trainers.prime_rl.profile.bottlenecks import Bottleneck, Certainty
from prime_train.trainers.prime_rl.profile.profile import profile
from tests.exhaustive import some_of
from tests.trainers.prime_rl.rl_pipeline import Play, World

HELPS = 1.15
EXACT = 1.03
"""Tolerance, because rollouts are random and steps are few."""

WORLDS = {
    Bottleneck.INFERENCE: World(at_once=192, engines=32, train_s=20),
    Bottleneck.TOOLS: World(model_s=10, tools_s=80, engines=128, train_s=20),
    Bottleneck.CONCURRENCY: World(model_s=60, tools_s=4, at_once=24, engines=128),
    Bottleneck.TRAINER: World(model_s=20, at_once=128, engines=128, train_s=60),
    Bottleneck.CHECKPOINTS: World(model_s=20, at_once=128, engines=128, train_s=20, save_s=120),
    Bottleneck.BROADCAST: World(model_s=20, at_once=128, engines=128, train_s=20, send_s=20),
    Bottleneck.BALANCED: World(train_s=44),
}

CHANGES: dict[str, Callable[[World], World]] = {
    "twice the inference GPUs": lambda world: replace(world, engines=2 * world.engines),
    "run more rollouts at once": lambda world: replace(world, at_once=2 * world.at_once),
    "make tools and environments twice as fast": lambda world: replace(world, tools_s=world.tools_s / 2),
    "twice the training GPUs": lambda world: replace(world, train_s=world.train_s / 2),
    # As if it were done a tenth as often, which in so few steps cannot be played.
    "save every": lambda world: replace(world, save_s=world.save_s / 10),
    "send weights faster": lambda world: replace(world, send_s=0.0),
}
"""Changes of the simulation, by the beginning of their recommendation."""


def checked(world: World, bottleneck: Bottleneck) -> None:
    play = Play(world)
    found = profile(play.lines)
    assert (found.diagnosis.bottleneck, found.diagnosis.certainty) == (bottleneck, Certainty.SURE), (
        found.diagnosis
    )
    for words, change in CHANGES.items():
        gain = play.step_s / Play(change(world)).step_s
        advised = [advice.gain for advice in found.advice if advice.what.startswith(words)]
        if gain >= HELPS:
            assert len(advised) == 1, f"{words} would bring {gain:.2f}"
            assert advised[0] is not None
            assert advised[0] * EXACT >= gain, f"{words} would bring {gain:.2f}, not {advised[0]:.2f}"
        else:
            assert not advised, f"{words} would bring {gain:.2f}, not {advised}"


@pytest.mark.parametrize("bottleneck", some_of(WORLDS, one_in=3), ids=lambda bottleneck: bottleneck.value)
def test_what_really_helps_is_advised_and_nothing_else(bottleneck: Bottleneck) -> None:
    checked(WORLDS[bottleneck], bottleneck)


@pytest.mark.exhaustive
def test_saves_behind_slow_rollouts_cost_nothing_and_are_not_advised_against() -> None:
    checked(World(at_once=192, engines=32, train_s=20, save_s=60), Bottleneck.INFERENCE)


def test_rollouts_that_have_to_wait_although_they_are_as_slow_as_the_trainer_are_no_reason_to_buy_one() -> (
    None
):
    """Batches alternate with the steps, so each is held back; considering only that would suggest a slow
    trainer.
    """
    checked(World(model_s=30, train_s=35, ahead=0), Bottleneck.BALANCED)
