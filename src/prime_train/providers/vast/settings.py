"""Settings for Vast.ai, from the variables of its own client."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prime_train.errors import PermanentError
from prime_train.providers.rental.user_settings import key_from, url_from

TITLE = "Vast.ai"
BASE_URL = "https://console.vast.ai"
KEY = "VAST_API_KEY"
ADDRESS = "VAST_URL"
BID = "PRIME_TRAIN_VAST_BID"
BID_FACTOR = 1.1
"""What is bid, as a multiple of the lowest bid that runs now.

A bid at the minimum loses its machine to anyone who bids more, be it the least amount. Whoever wants a
machine that is taken must bid a fifth more than its present bid, so that a tenth above the minimum is already
well above those who bid the minimum and a cent; each further percent is paid for every hour, but is worth
only as much as it makes a preemption rarer.
"""
BID_FACTOR_MAX = 3.0


@dataclass(frozen=True)
class VastSettings:
    key: str = field(repr=False)
    base_url: str = BASE_URL
    """Address of the API, without `/api`."""
    bid_factor: float = BID_FACTOR


def read_settings(environment: Mapping[str, str]) -> VastSettings:
    """Return the settings from VAST_API_KEY, VAST_URL and PRIME_TRAIN_VAST_BID. Raises PermanentError that
    names what is missing or invalid, without repeating the key.
    """
    key, url = (
        key_from(environment, KEY, TITLE),
        url_from(environment, ADDRESS, BASE_URL, TITLE, without="/api"),
    )
    return VastSettings(key, url, _bid_factor(environment.get(BID, "").strip()))


def _bid_factor(text: str) -> float:
    try:
        factor = float(text or BID_FACTOR)
    except ValueError:
        factor = 0.0
    if not 1.0 <= factor <= BID_FACTOR_MAX:
        raise PermanentError(
            f"{BID} is {text[:32]!r}; set it to a multiple of the lowest bid, from 1 to {BID_FACTOR_MAX:g}, "
            "or unset it"
        )
    return factor
