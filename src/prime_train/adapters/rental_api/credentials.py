"""Checks of a key and of an API's address, as users set them. No message repeats a key."""

from urllib.parse import urlsplit

from prime_train.adapters.http import is_loopback
from prime_train.ports import PermanentError


def checked_key(key: str, title: str, places: str) -> str:
    """Return the key. Raises PermanentError if it could not be sent in a header. `title` names the provider, `places` where users set its
    key."""
    if not key.isascii() or not key.isprintable() or " " in key:
        raise PermanentError(f"the API key for {title} has invalid characters; check {places}")
    return key


def checked_url(url: str, whose: str, variable: str) -> str:
    """Return the address without slashes at its end. Raises PermanentError if it is no address, or one to which the key would be sent
    unencrypted. `whose`: the owner of the API, with an apostrophe; `variable`: what sets the address."""
    plain = url.rstrip("/")
    try:
        parts = urlsplit(plain)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or "@" in parts.netloc or parts.query or parts.fragment:
        raise PermanentError(f"the address of {whose} API must look like https://host; check {variable}")
    if parts.scheme == "http" and not is_loopback(plain):
        raise PermanentError(f"the address of {whose} API, {plain}, would send the key unencrypted; write https")
    return plain
