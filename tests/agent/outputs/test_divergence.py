"""An attempt whose loss is not finite: what its heartbeats say, and when it ends."""

from collections.abc import Callable
from typing import Any

import pytest

from prime_agent import effects as e
from prime_agent import events as v
from prime_train.runs.wire import Phase
from prime_train.spec.causes import Cause
from prime_train.trainers.of_spec import Progress
from tests.agent.histories import OK, History, steps
from tests.builders import spec

ASK = e.SignalTrainer(e.Force.ASK)


def lost(*numbers: int) -> v.StepsReported:
    return v.StepsReported(tuple(Progress(number, not_finite=frozenset({"loss"})) for number in numbers))


def trains(**health: Any) -> History:
    return History(spec(health=health)).begin().train(*range(1, 16))


def test_ten_steps_in_a_row_without_a_finite_loss_save_first_and_then_stop() -> None:
    history = trains()
    history.hear(lost(*range(16, 25)), after_s=1)
    assert not history.of(e.SignalTrainer)
    assert ASK in history.hear(lost(25), after_s=1)
    history.end(v.TrainerExited(143, Cause.KILLED))
    exit_ = history.heartbeats[-1].exit
    assert exit_ is not None
    assert exit_.cause is Cause.NOT_FINITE
    assert "from step 16 to step 25" in exit_.detail


def test_steps_between_two_logged_ones_count_but_one_logged_step_alone_does_not() -> None:
    history = trains()
    history.hear(lost(40), after_s=1)
    assert not history.of(e.SignalTrainer)
    assert ASK in history.hear(lost(50), after_s=1)


def test_one_step_that_is_printed_twice_is_one_step_and_steps_without_a_loss_do_not_count() -> None:
    history = trains()
    history.hear(lost(16, 16), after_s=1)
    for number in range(17, 60):
        history.hear(steps(number, loss=None), after_s=1)
    assert not history.of(e.SignalTrainer)
    history = trains()
    history.hear(lost(16, 17), after_s=1)
    for number in range(18, 60):
        history.hear(steps(number, loss=None), after_s=1)
    assert not history.of(e.SignalTrainer)


def test_a_finite_loss_in_between_begins_the_count_anew() -> None:
    history = trains(not_finite_steps=3)
    history.hear(lost(16, 17), after_s=1)
    history.train(18)
    history.hear(lost(19, 20), after_s=1)
    assert not history.of(e.SignalTrainer)


@pytest.mark.parametrize(("action", "is_stopped"), [("alert", False), ("stop", True), ("rollback", True)])
def test_the_config_says_whether_such_a_run_is_stopped(action: str, is_stopped: bool) -> None:
    history = trains(on_divergence=action, not_finite_steps=2)
    history.hear(lost(*range(16, 40)), after_s=1)
    assert bool(history.of(e.SignalTrainer)) is is_stopped


@pytest.mark.parametrize("code", [0, -15, 143])
@pytest.mark.parametrize(
    ("health", "last", "cause"),
    [
        ({"on_divergence": "stop"}, lost, Cause.NOT_FINITE),
        ({"on_divergence": "rollback"}, lost, Cause.NOT_FINITE),
        ({"zero_reward_steps": 10}, lambda *numbers: steps(*numbers, reward=0.0), Cause.ZERO_REWARD),
        (
            {"log_rules": [{"pattern": "collapsed"}]},
            lambda number: v.RuleFired(Cause.LOG_RULE, f"collapsed at {number}"),
            Cause.LOG_RULE,
        ),
    ],
)
def test_what_is_stopped_for_its_figures_at_the_last_step_has_not_finished_and_no_step_after_training_is_run(
    health: dict[str, Any], last: Callable[..., v.Event], cause: Cause, code: int
) -> None:
    wanted = spec(
        trainer={"steps": 60},
        health=health,
        checkpoints={"sentinel": "COMPLETE"},
        after=[{"name": "publish", "run": "python publish.py"}],
    )
    history = History(wanted).begin().train(*range(1, 51))
    for number in range(51, 60):
        history.hear(steps(number) if cause is Cause.LOG_RULE else last(number), after_s=1)
    if cause is Cause.LOG_RULE:
        history.train(60)
    history.hear(last(60), after_s=1)
    assert ASK in history.effects
    history.look(60)
    history.hear(v.Uploaded(60, "key-60"))
    history.hear(v.CommitAnswered(60, OK))
    history.end(v.TrainerExited(code, Cause.FINISHED if code == 0 else Cause.KILLED))
    history.wait(5)
    exit_ = history.heartbeats[-1].exit
    assert exit_ is not None
    assert (exit_.cause, history.state.phase, history.state.after.trained) == (cause, Phase.EXITED, False)


def test_a_heartbeat_never_shows_an_older_finite_loss_as_the_last_one() -> None:
    history = trains()
    history.wait(60)
    assert (history.heartbeats[-1].loss, history.heartbeats[-1].not_finite_since) == (1.0, None)
    history.hear(lost(16, 17), after_s=1)
    history.wait(60)
    beat = history.heartbeats[-1]
    assert (beat.loss, beat.not_finite_since, beat.finite_step) == (None, 16, 15)
    history.train(18)
    history.wait(60)
    assert (history.heartbeats[-1].loss, history.heartbeats[-1].not_finite_since) == (1.0, None)
