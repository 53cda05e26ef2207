"""The command after a rollback, and how training that began anew is recognised."""

import pytest
from pydantic import ValidationError

from prime_train.runs.resuming.divergence import after_rollback, began_anew
from prime_train.runs.run import Figures
from tests.builders import spec
from tests.trainers.prime_rl.prime_rl_spec import prime_rl_spec

ROLLBACK = {"on_divergence": "rollback", "rollback_arguments": "--lr 1e-5 --seed 7"}


def test_the_users_arguments_follow_the_command_after_a_rollback() -> None:
    made = spec(trainer={"command": "python train.py --lr 1e-4\n"}, health=ROLLBACK)
    assert after_rollback(made).trainer.command == "python train.py --lr 1e-4 --lr 1e-5 --seed 7"
    assert after_rollback(spec(health={"on_divergence": "rollback"})) == spec(
        health={"on_divergence": "rollback"}
    )


def test_prime_rl_gets_them_as_overrides() -> None:
    made = prime_rl_spec(
        health={"on_divergence": "rollback", "rollback_arguments": "--trainer.optim.lr 1e-6"}
    )
    changed = after_rollback(made)
    assert changed.trainer.prime_rl is not None
    assert changed.trainer.prime_rl.overrides[-2:] == ("--trainer.optim.lr", "1e-6")


@pytest.mark.parametrize(
    "health",
    [
        {"rollback_arguments": "--lr 1e-5"},
        {"on_divergence": "alert", "rollback_arguments": "-x"},
        {**ROLLBACK, "rollback_arguments": "{step}"},
    ],
)
def test_arguments_that_would_never_be_used_or_not_be_filled_in_are_refused(
    health: dict[str, object],
) -> None:
    with pytest.raises(ValidationError, match="rollback_arguments"):
        spec(health=health)


@pytest.mark.parametrize(
    ("first", "saved", "now", "expected"),
    [
        (
            Figures(9.0),
            Figures(2.0),
            Figures(8.8),
            "the loss is 8.8: it was 2 in the checkpoint, and 9 when the run began",
        ),
        (Figures(None, 1e-6), Figures(None, 1e-3), Figures(None, 2e-6), "the learning rate is 2e-06"),
        (Figures(None, 1e-3), Figures(None, 1e-4), Figures(None, 1e-3), "the learning rate is 0.001"),
        (Figures(9.0), Figures(2.0), Figures(2.3), ""),
        (Figures(2.2), Figures(2.0), Figures(2.2), ""),
        (Figures(None, 1e-3), Figures(None, 1e-3), Figures(None, 1e-3), ""),
        (Figures(9.0), Figures(None), Figures(9.0), ""),
        (Figures(0.0, 0.0), Figures(0.0, 0.0), Figures(0.0, 0.0), ""),
    ],
)
def test_a_figure_that_is_nearer_to_the_beginning_than_to_the_checkpoint_began_anew(
    first: Figures, saved: Figures, now: Figures, expected: str
) -> None:
    text = began_anew(first, saved, now, step=31)
    assert expected in text
    assert bool(text) is bool(expected)
