"""The token in a link to the dashboard: its time of expiry, its id and its generation, sealed with a key
derived from the master key.

A link that is made is not stored, so every instance of a control plane accepts it; stored is only which links
were revoked, and from which generation on they count. A token permits reading pages and nothing else, because
the keys of attempts and of the operator are derived from the master key under other names.
"""

import hashlib
import hmac
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

HOURS_MAX = 24 * 7
"""The longest validity of a link, in hours."""
LINK_ID = re.compile("[0-9a-f]{8}")
_HEAD = re.compile(rf"([0-9]{{1,12}})(?:-({LINK_ID.pattern})-([0-9]{{1,6}}))?")


@dataclass(frozen=True)
class Link:
    """A link to the dashboard: valid before `until_s` of the store's time. `link_id` is empty for links of
    earlier versions.
    """

    until_s: int
    link_id: str = ""
    generation: int = 0


def dashboard_key(master: bytes) -> bytes:
    """Return the key that seals links to the dashboard."""
    return hmac.new(master, b"pt/dashboard/v1", hashlib.sha256).digest()


def dashboard_token(master: bytes, until_s: int, link_id: str = "", generation: int = 0) -> str:
    """Return a token that is valid before the second `until_s` of the store's time."""
    head = f"{until_s}-{link_id}-{generation}" if link_id else str(until_s)
    return f"{head}.{_seal(master, head)}"


def opened_link(masters: Iterable[bytes], token: str, clock: Callable[[], int]) -> Link | None:
    """Return the link of the token; None if none of these master keys sealed it, or it has expired. Each seal
    is compared in constant time. `clock` is the store's, in seconds; it is read only for a sealed token, so
    that strangers cannot cause requests to the store.
    """
    head, _, given = token.partition(".")
    found = _HEAD.fullmatch(head)
    if found is None or not given.isascii():
        return None
    sealed = [hmac.compare_digest(_seal(master, head), given) for master in masters]
    if not any(sealed):
        return None
    until_s, now_s = int(found[1]), clock()
    return (
        Link(until_s, found[2] or "", int(found[3] or 0))
        if now_s < until_s <= now_s + HOURS_MAX * 3600
        else None
    )


def cookie_name(master: bytes) -> str:
    """Return the name of the token's cookie. Cookies do not distinguish ports, so two control planes on one
    machine need two names.
    """
    return "pt_dashboard_" + hmac.new(dashboard_key(master), b"cookie", hashlib.sha256).hexdigest()[:8]


def _seal(master: bytes, head: str) -> str:
    return hmac.new(dashboard_key(master), f"v1:{head}".encode(), hashlib.sha256).hexdigest()
