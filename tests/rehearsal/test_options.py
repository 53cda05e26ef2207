"""The options by which a script says how often it saves, and how long it trains."""

import pytest

from prime_train.rehearsal.options import length_of, numbers_of, save_options, with_number


@pytest.mark.parametrize(
    ("text", "option", "value"),
    [
        ('p.add_argument("--save-every", type=int, default=1000)', "--save-every", 1000),
        ('p.add_argument("--ckpt_interval", default=2_000, type=int)', "--ckpt_interval", 2000),
        ("import configurator\neval_interval = 500 # keep frequent\n", "--eval_interval", 500),
        ("class A:\n    save_steps: int = 250\nHfArgumentParser(A)", "--save_steps", 250),
    ],
)
def test_how_often_it_saves_is_an_option(text: str, option: str, value: int) -> None:
    found = save_options(numbers_of("python train.py", [text]))

    assert [(one.option, one.value) for one in found] == [(option, value)]


def test_an_argument_of_a_function_is_no_length_of_the_training() -> None:
    text = "def diffusion(\n    *,\n    steps=1000,\n):\n    ...\nadd_dict_to_argparser(parser, defaults)\n"
    assert length_of(numbers_of("python train.py", [text]), "step") is None


def test_a_variable_is_no_option_where_nothing_makes_it_one() -> None:
    assert numbers_of("python train.py", ["save_interval = 500"]) == []


def test_the_command_goes_before_what_the_script_says() -> None:
    numbers = numbers_of("python train.py --steps 300", ['p.add_argument("--steps", default=10, type=int)'])

    length = length_of(numbers, "step")
    assert length is not None
    assert (length.value, length.is_given) == (300, True)


def test_a_number_takes_the_place_of_the_one_in_the_command() -> None:
    assert with_number("python t.py --every 9 -x", "--every", 2) == "python t.py --every 2 -x"
    assert with_number("python t.py --every=9", "--every", 2) == "python t.py --every=2"
    assert with_number("python t.py", "--every", 2) == "python t.py --every 2"
    assert with_number("python t.py", "--every", 2, is_setting=True) == "python t.py --every=2"
