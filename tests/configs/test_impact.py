"""What a change of a setting does to a training, and not only which values it may have."""

import pytest

from prime_train.checks.changes import of_trainer
from prime_train.configs.impact import EFFECTS, impact


@pytest.mark.parametrize(
    ("name", "before", "after", "words"),
    [
        ("trainer.optim.lr", 1e-6, 1e-5, "changes the weights 10 times as much"),
        ("actor.optimizer.lr", "1e-5", 5e-6, "changes the weights 2 times less"),
        ("seq_len", 2048, 4096, "may be 2 times as long"),
        ("cutoff-len", 4096, 2048, "cut 2 times shorter"),
        ("orchestrator.group_size", 16, 8, "2 times fewer answers"),
        ("trainer.model.lora.rank", 8, 12, "of 1.5 times the size"),
        ("actor.kl_ctl", 0.1, 0, "switches it off"),
        ("actor.kl_ctl", 0, 0.1, "switches it on"),
    ],
)
def test_a_change_is_explained_by_what_it_does(name: str, before: object, after: object, words: str) -> None:
    assert words in impact(name, before, after)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("seq_len", 2048, 2048),
        ("seq_len", "auto", 2048),
        ("nobody.knows", 1, 2),
        ("lr", True, 2),
        ("lr", 1, None),
    ],
)
def test_what_is_not_known_is_not_explained(name: str, before: object, after: object) -> None:
    assert impact(name, before, after) == ""


def test_both_directions_of_every_row_are_told_without_a_hole() -> None:
    for effect in EFFECTS:
        for name in effect.names:
            for before, after in ((1, 4), (4, 1), (0, 1), (1, 0)):
                text = impact(name, before, after)
                assert text.endswith(".")
                assert "{" not in text
                assert "  " not in text


def test_a_comparison_says_what_the_change_does_before_what_is_allowed() -> None:
    (change,) = of_trainer("[trainer.optim]\nlr = 1e-6\n", "[trainer.optim]\nlr = 1e-5\n", "prime_rl") or ()
    assert change.meaning.startswith("Each step changes the weights 10 times as much")
    assert "prime-rl allows a number from 0" in change.meaning


def test_a_setting_that_was_left_at_its_default_is_compared_with_the_default() -> None:
    (change,) = (
        of_trainer("max_steps = 5\n", "max_steps = 5\n[trainer.model]\nseq_len = 8192\n", "prime_rl") or ()
    )
    assert "4 times as long" in change.meaning
