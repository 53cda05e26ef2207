"""The line of a multi-line text that contains a word."""

from prime_train.runs.signing import market_key
from prime_train.spec.tree import SourcePosition, line_with
from prime_train.text.redaction import redacted

SOURCE = """\
command: >-
  torchrun
  --nproc-per-node 4 train.py
other: --nproc-per-node 8
"""


def test_a_word_is_found_in_its_own_line() -> None:
    assert line_with(SOURCE, SourcePosition(1, 10), "--nproc") == SourcePosition(3, 3)


def test_a_text_ends_where_the_next_key_begins() -> None:
    assert line_with(SOURCE, SourcePosition(1, 10), "8") == SourcePosition(1, 10)


def test_a_text_of_one_line_keeps_its_place() -> None:
    assert line_with(SOURCE, SourcePosition(4, 8), "--nproc") == SourcePosition(4, 8)


def test_a_place_outside_of_the_source_stays_as_it_is() -> None:
    assert line_with(SOURCE, SourcePosition(99, 1), "torchrun") == SourcePosition(99, 1)


def test_a_password_in_an_address_is_hidden_and_the_name_of_a_variable_is_not() -> None:
    assert redacted("https://me:geheim@host/x") == "https://(hidden)@host/x"
    assert redacted("https://me:$geheim-1@host/x") == "https://(hidden)@host/x"
    assert redacted("https://me:${TOKEN}@host/x") == "https://me:${TOKEN}@host/x"


def test_the_key_for_reading_the_market_is_hidden() -> None:
    assert (
        redacted(f"PRIME_TRAIN_MARKET_KEY={market_key(b'master')}, and more")
        == "PRIME_TRAIN_MARKET_KEY=(hidden), and more"
    )
