"""The token in a link to the dashboard: its time of expiry, sealed with a key derived from the master key.

Nothing is stored, so every instance of a control plane accepts it. It permits reading pages and nothing else, because the keys of attempts
and of the operator are derived from the master key under other names.
"""

import hashlib
import hmac
from collections.abc import Callable, Iterable

UNTIL_DIGITS_MAX = 12
HOURS_MAX = 24 * 7
"""The longest validity of a link, in hours."""


def dashboard_key(master: bytes) -> bytes:
    """Return the key that seals links to the dashboard."""
    return hmac.new(master, b"pt/dashboard/v1", hashlib.sha256).digest()


def dashboard_token(master: bytes, until_s: int) -> str:
    """Return a token that is valid before the second `until_s` of the store's time."""
    return f"{until_s}.{_seal(master, until_s)}"


def opens_until_s(masters: Iterable[bytes], token: str, clock: Callable[[], int]) -> int | None:
    """Return the second at which the token expires; None if none of these master keys sealed it, or it has expired. Each seal is compared
    in constant time. `clock` is the store's, in seconds; it is read only for a sealed token, so that strangers cannot cause requests to the
    store."""
    until, _, given = token.partition(".")
    if not (0 < len(until) <= UNTIL_DIGITS_MAX and until.isascii() and until.isdecimal() and given.isascii()):
        return None
    until_s = int(until)
    sealed = [hmac.compare_digest(_seal(master, until_s), given) for master in masters]
    if not any(sealed):
        return None
    now_s = clock()
    return until_s if now_s < until_s <= now_s + HOURS_MAX * 3600 else None


def cookie_name(master: bytes) -> str:
    """Return the name of the token's cookie. Cookies do not distinguish ports, so two control planes on one machine need two names."""
    return "pt_dashboard_" + hmac.new(dashboard_key(master), b"cookie", hashlib.sha256).hexdigest()[:8]


def _seal(master: bytes, until_s: int) -> str:
    return hmac.new(dashboard_key(master), f"v1:{until_s}".encode(), hashlib.sha256).hexdigest()
