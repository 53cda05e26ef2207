"""What code refuses in a sentence is no slip of the code."""

import pytest

from prime_train.outputs.logs.log_ending import ending_in
from prime_train.spec.causes import Action, Cause
from prime_train.trainers.known_errors.all_known import BUILT_IN
from prime_train.trainers.known_errors.refusals import is_refusal
from prime_train.trainers.of_spec import named

REFUSALS = [
    "AssertionError: tokenizer vocab size is too large",
    "AssertionError: Could not infer task type from the settings",
    "ValueError: With n_samples=1, the resulting train set will be empty. Adjust any of the parameters.",
    "KeyError: 'Mask2Former is not in the model registry'",
    "NotImplementedError: rotary scaling of this kind has no implementation",
    "FileNotFoundError: Couldn't find a module script at /content/wer.py",
]
SLIPS = [
    "AssertionError",
    "AssertionError: False",
    "KeyError: 'ground_truth'",
    "KeyError: 20211",
    "NameError: name 'wandb' is not defined",
    "TypeError: 'int' object is not subscriptable",
    "AttributeError: 'CausalLMOutput' object has no attribute 'los'",
    "IndexError: list index out of range",
    "ValueError: not enough values to unpack (expected 3, got 2)",
    "ValueError: Expected input batch_size (32) to match target batch_size (31).",
    "ValueError: could not broadcast input array from shape (3,) into shape (4,)",
    "AssertionError: delta start mismatch at step 212: start=36805, expected=35299",
    "RuntimeError: this was raised for a reason that nobody knows",
]


@pytest.mark.parametrize("line", REFUSALS)
def test_a_refusal_that_no_rule_knows_is_put_down_to_the_config_model_or_data(line: str) -> None:
    assert is_refusal(line)
    found = ending_in([line], code=1, kind="command")
    assert (found.found.cause, found.found.line, found.next.action) == (Cause.BAD_CONFIG, line, Action.STOP)


@pytest.mark.parametrize("line", SLIPS)
def test_a_slip_of_the_code_stays_an_error_of_the_trainer(line: str) -> None:
    assert not is_refusal(line)
    assert ending_in([line], code=1, kind="command").found.cause is Cause.TRAINER_ERROR


@pytest.mark.parametrize("line", REFUSALS[:2])
def test_a_refusal_where_a_checkpoint_was_to_be_resumed_may_be_about_the_checkpoint(line: str) -> None:
    assert named([line], BUILT_IN, code=1, resumed=True).cause is Cause.TRAINER_ERROR


def test_a_refusal_after_new_steps_is_resumed_once_because_it_may_be_about_one_sample() -> None:
    assert (
        ending_in(["step 40 loss 2.1", REFUSALS[0]], code=1, kind="command").next.action
        is Action.SAME_MACHINE
    )
