"""The conclusions from heartbeats of a trainer's components."""

import pytest

from prime_train.trainers.component_heartbeats import ReceivedHeartbeats, component_of, first_silent

COMPONENTS = ("trainer", "orchestrator")


def received(**last_s: float | None) -> dict[str, ReceivedHeartbeats]:
    return {
        component: ReceivedHeartbeats(0 if at_s is None else 1, at_s) for component, at_s in last_s.items()
    }


@pytest.mark.parametrize(
    ("path", "who"),
    [
        ("/hb/trainer", "trainer"),
        ("/hb/orchestrator?x=1", "orchestrator"),
        ("/hb/", None),
        ("/hb/trainer/x", None),
        ("/trainer", None),
        ("trainer", None),
    ],
)
def test_the_path_says_who_it_is(path: str, who: str | None) -> None:
    assert component_of(path, COMPONENTS) == who


def test_the_one_that_fell_silent_first_is_looked_at() -> None:
    assert first_silent(received(trainer=10.0, orchestrator=11.0), 100.0, quiet_s=60) == "trainer"
    assert first_silent(received(trainer=11.0, orchestrator=10.0), 100.0, quiet_s=60) == "orchestrator"


def test_while_one_still_calls_or_one_has_not_begun_nobody_is_to_blame() -> None:
    assert first_silent(received(trainer=10.0, orchestrator=95.0), 100.0, quiet_s=60) is None
    assert first_silent(received(trainer=None, orchestrator=None), 1000.0, quiet_s=60) is None
    assert first_silent(received(trainer=None, orchestrator=1.0), 1000.0, quiet_s=60) is None
    assert first_silent({}, 1000.0, quiet_s=60) is None
