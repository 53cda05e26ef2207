"""The token in a link to the dashboard: until when it opens the pages, sealed with a key that is made of the master key.

Nothing is stored, so that every copy of a control plane takes it. It opens pages for reading and nothing else: the keys of attempts and of
the operator are made of the master key by other names.
"""

import hashlib
import hmac
from collections.abc import Iterable

UNTIL_DIGITS_MAX = 12
HOURS_MAX = 24 * 7
"""The longest that a link may open the pages."""


def dashboard_key(master: bytes) -> bytes:
    """The key that seals links to the dashboard."""
    return hmac.new(master, b"pt/dashboard/v1", hashlib.sha256).digest()


def dashboard_token(master: bytes, until_s: int) -> str:
    """A token that opens the pages before the second `until_s` of the store's time."""
    return f"{until_s}.{_seal(master, until_s)}"


def opens_until_s(masters: Iterable[bytes], token: str, now_s: int) -> int | None:
    """Until when the token opens the pages; None for one that was not sealed by any of these master keys, or whose time is over. Each seal
    is compared in constant time."""
    until, _, given = token.partition(".")
    if not (0 < len(until) <= UNTIL_DIGITS_MAX and until.isascii() and until.isdecimal() and given.isascii()):
        return None
    until_s = int(until)
    sealed = [hmac.compare_digest(_seal(master, until_s), given) for master in masters]
    return until_s if any(sealed) and now_s < until_s <= now_s + HOURS_MAX * 3600 else None


def cookie_name(master: bytes) -> str:
    """The cookie that keeps a token. Cookies do not tell ports apart, so that two control planes on one machine need two names."""
    return "pt_dashboard_" + hmac.new(dashboard_key(master), b"cookie", hashlib.sha256).hexdigest()[:8]


def _seal(master: bytes, until_s: int) -> str:
    return hmac.new(dashboard_key(master), f"v1:{until_s}".encode(), hashlib.sha256).hexdigest()
