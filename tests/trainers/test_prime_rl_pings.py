"""What heartbeats tell."""

import pytest

from prime_train.trainers.prime_rl.pings import Component, Heard, Pings, component_of, first_silent, pinged

TRAINER, ORCHESTRATOR = Component.TRAINER, Component.ORCHESTRATOR


@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("/hb/trainer", TRAINER),
        ("/hb/orchestrator?x=1", ORCHESTRATOR),
        ("/hb/", None),
        ("/hb/trainer/x", None),
        ("/trainer", None),
        ("trainer", None),
    ],
)
def test_the_path_says_who_it_is(path: str, who: Component | None) -> None:
    assert component_of(path) is who


def test_both_are_counted_apart() -> None:
    pings = pinged(pinged(pinged(Pings(), TRAINER, 1.0), ORCHESTRATOR, 2.0), TRAINER, 3.0)
    assert (pings.trainer, pings.orchestrator) == (Heard(2, 3.0), Heard(1, 2.0))


def test_the_one_that_fell_silent_first_is_looked_at() -> None:
    trainer_first = pinged(pinged(Pings(), TRAINER, 10.0), ORCHESTRATOR, 11.0)
    assert first_silent(trainer_first, 100.0, quiet_s=60) is TRAINER
    orchestrator_first = pinged(pinged(Pings(), ORCHESTRATOR, 10.0), TRAINER, 11.0)
    assert first_silent(orchestrator_first, 100.0, quiet_s=60) is ORCHESTRATOR


def test_while_one_still_pings_or_neither_has_begun_nobody_is_to_blame() -> None:
    pings = pinged(pinged(Pings(), TRAINER, 10.0), ORCHESTRATOR, 95.0)
    assert first_silent(pings, 100.0, quiet_s=60) is None
    assert first_silent(Pings(), 1000.0, quiet_s=60) is None
    assert first_silent(pinged(Pings(), ORCHESTRATOR, 1.0), 1000.0, quiet_s=60) is None
