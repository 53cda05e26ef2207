"""Sizes and durations as people write them."""

import pytest

from prime_train.text.sizes import parse_gib, parse_hours, parse_integer_gib, parse_seconds


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("5m", 300),
        ("90s", 90),
        ("2h", 7200),
        ("1d", 86400),
        ("1h 30m", 5400),
        ("1h30m", 5400),
        (" 1.5 H ", 5400),
        ("300", 300),
        ("0.2s", 1),
    ],
)
def test_a_duration_is_read_with_its_unit(text: str, seconds: int) -> None:
    assert parse_seconds(text) == seconds
    assert type(parse_seconds(text)) is int


@pytest.mark.parametrize(
    "text",
    ["", "m", "5 parsecs", "5m?", "-5m", "5m 3", "1e9s", "9" * 400 + "s", "5m " * 99, "h" * 10_000, "0x5m"],
)
def test_what_is_no_duration_is_reported_with_what_one_looks_like(text: str) -> None:
    for parse in (parse_seconds, parse_hours):
        with pytest.raises(
            ValueError, match="is not a duration; write a number with a unit, such as 90s, 5m, 2h or 1d"
        ):
            parse(text)


def test_hours_are_hours_and_gib_are_gib_where_no_unit_says_otherwise() -> None:
    assert parse_hours("48") == 48
    assert parse_hours("90m") == 1.5
    assert parse_gib("100") == 100
    assert parse_gib("1.5GiB") == 1.5
    assert parse_integer_gib("100GB") == 94
    assert parse_integer_gib("1 TiB") == 1024


@pytest.mark.parametrize("value", [5, 5.5, None, True, ["5m"]])
def test_what_is_no_text_is_left_as_it_is(value: object) -> None:
    for parse in (parse_seconds, parse_hours, parse_gib, parse_integer_gib):
        assert parse(value) is value
