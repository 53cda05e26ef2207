"""The search for secrets finds them."""

import base64
from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.webhook.leaks import leaks

SECRET = {"a key": "sk/live+12345 of/nobody=="}


@pytest.mark.parametrize("before", ["", "a", "ab", "abc", "key: "])
@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
def test_a_secret_in_base64_is_found_wherever_it_begins(
    before: str, encode: Callable[[bytes], bytes]
) -> None:
    text = encode(f"{before}{SECRET['a key']} and more".encode()).decode()
    assert leaks(f"told: {text}", SECRET)


def test_a_secret_is_found_as_it_is_and_in_an_address() -> None:
    assert leaks(f"x={SECRET['a key']}", SECRET)
    assert leaks(f"https://x/?key={quote(SECRET['a key'], safe='')}&y", SECRET)
    assert not leaks("nothing of the kind", SECRET)
