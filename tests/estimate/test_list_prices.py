"""The catalogue of list prices: every row has its day and its page."""

from datetime import date
from pathlib import Path

import pytest

from prime_train.estimate import gpus, list_prices
from prime_train.estimate.list_prices import age, of_providers, parse
from prime_train.providers.kinds import PROVIDERS

TEXT = Path(list_prices.__file__).with_name(list_prices.FILE).read_text("utf-8")
HEAD, FIRST = TEXT.splitlines()[:2]


def test_every_row_has_a_day_a_page_and_names_that_offers_have() -> None:
    rows = parse(TEXT)
    assert len(rows) > 20
    for row in rows:
        assert PROVIDERS[row.provider].is_rented
        assert row.gpu in gpus.RENTED
        assert date(2026, 1, 1) <= row.read_on <= date.today()
        assert row.source.startswith("https://")
    assert len({offer.offer_id for row in rows for offer in row.offers(100)}) == sum(
        len(row.gpu_counts) for row in rows
    )


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("2026-11-09", "", "line 2: Invalid isoformat string"),
        ("2026-11-09", "lately", "line 2: Invalid isoformat string"),
        ("https://www.runpod.io/pricing", "", "line 2: a row needs a provider"),
        ("https://www.runpod.io/pricing", "a friend", "line 2: a row needs a provider"),
        ("3.99", "free", "line 2: could not convert"),
        ("3.99", "-1", "line 2: -1.0 is not the price of a GPU"),
        ("1 2 4 8", "", "line 2: a row needs"),
    ],
)
def test_a_row_without_a_day_a_page_or_a_price_is_refused(old: str, new: str, says: str) -> None:
    assert old in FIRST
    with pytest.raises(ValueError, match=says):
        parse(f"{HEAD}\n{FIRST.replace(old, new)}\n")


def test_other_columns_are_refused() -> None:
    with pytest.raises(ValueError, match="the columns are"):
        parse(TEXT.replace("read_on", "when"))


def test_the_age_is_that_of_the_oldest_price() -> None:
    rows = of_providers(parse(TEXT), ("lambda",))
    assert age(rows, date(2026, 11, 27)) == "prices of 2026-09-20, 68 days old; without an account"
    assert (
        age(parse(TEXT), date(2026, 11, 27))
        == "prices of 2026-09-20 to 2026-11-09, up to 68 days old; without an account"
    )
    assert age([], date(2026, 11, 27)) == "no list prices of these providers are known; without an account"


def test_a_machine_costs_as_much_as_its_gpus_and_has_the_disk_that_is_asked_for_unless_the_page_tells_it() -> (
    None
):
    secure, listed = parse(TEXT)[0], of_providers(parse(TEXT), ("lambda",))[0]
    assert [(offer.gpu_count, offer.usd_per_hour, offer.disk_gib) for offer in secure.offers(70)] == [
        (1, 3.99, 70),
        (2, 7.98, 70),
        (4, 15.96, 70),
        (8, 31.92, 70),
    ]  # fmt: skip
    assert [(offer.gpu_count, offer.usd_per_hour, offer.disk_gib) for offer in listed.offers(70)] == [
        (8, 53.52, 22528)
    ]
