"""Amounts as people write them for `find`, and as it prints them."""

import pytest

from prime_train.errors import UsageError
from prime_train.estimate.cost.duration import Between
from prime_train.estimate.ranges import large, size_range, time_range, usd_range
from prime_train.planning.commands.quantities import kinds, price, tokens


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("100M", 1e8),
        ("1.5b", 1.5e9),
        ("500k", 5e5),
        ("2e9", 2e9),
        ("1,000,000", 1e6),
        ("1_000", 1e3),
        (" 7 ", 7),
        ("1T", 1e12),
    ],
)
def test_a_number_of_tokens(text: str, count: float) -> None:
    assert tokens(text) == count


@pytest.mark.parametrize("text", ["", "0", "-1", "many", "1e99", "1e16", "1x", "nan", "inf", "1" * 400])
def test_no_number_of_tokens(text: str) -> None:
    with pytest.raises(UsageError, match="not a number of tokens"):
        tokens(text)


@pytest.mark.parametrize(
    ("text", "usd"), [("20", 20), ("2.50", 2.5), ("$20", 20), ("$20/h", 20), ("20 usd/hour", 20), ("20$", 20)]
)
def test_a_price(text: str, usd: float) -> None:
    assert price(text) == usd


@pytest.mark.parametrize("text", ["0", "-1", "", "nan", "inf", "20 EUR", "1" * 400])
def test_no_price(text: str) -> None:
    with pytest.raises(UsageError, match="is not a price"):
        price(text)


@pytest.mark.parametrize(
    ("low_s", "high_s", "text"),
    [
        (300, 1200, "5.0-20 min"),
        (600, 7199, "10-120 min"),
        (3600, 7200, "1.0-2.0 h"),
        (36_000, 200_000, "10-56 h"),
        (86_400, 400_000, "1.0-4.6 d"),
        (86_400 * 1000, 86_400 * 2345, "1,000-2,300 d"),
        (7200, 7200, "2.0 h"),
    ],
)
def test_a_range_of_time(low_s: float, high_s: float, text: str) -> None:
    assert time_range(Between(low_s, high_s)) == text


@pytest.mark.parametrize(
    ("low", "high", "text"),
    [
        (4.52, 13.9, "$4.5-14"),
        (9.96, 99.6, "$10-100"),
        (0.012, 0.5, "$0.012-0.5"),
        (123, 4567, "$120-4,600"),
        (0, 0, "$0.0"),
    ],
)
def test_a_range_of_money(low: float, high: float, text: str) -> None:
    assert usd_range(Between(low, high)) == text


def test_other_amounts() -> None:
    assert [large(count) for count in (8_190_735_360, 596_049_920, 1e12, 500_000, 12)] == [
        "8.2B",
        "600M",
        "1.0T",
        "500k",
        "12",
    ]
    assert size_range(20 * 2**30, 45.4 * 2**30) == "20-45"
    assert kinds(" H100, A100_80GB,,") == ("H100", "A100_80GB")
