"""What users set: a key, the address of an API, and settings of several lines, of which a variable has the
text itself, as in a secret, or the path of a file with it. No message repeats a key.
"""

from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from prime_train.advice import Advice, Call, Operation
from prime_train.errors import PermanentError
from prime_train.http import is_loopback
from prime_train.providers.kinds import PROVIDERS

NOWHERE = Path("/nonexistent")


def key_from(environment: Mapping[str, str], variable: str, title: str) -> str:
    """Return the key that the variable gives. Raises PermanentError if it is missing or invalid. `title`
    names the provider.
    """
    key = environment.get(variable, "").strip()
    if not key:
        name = next((name for name, row in PROVIDERS.items() if variable in row.credentials), "NAME")
        add = Advice(Call(Operation.ADD_PROVIDER, name), " asks for the key and stores it")
        raise PermanentError(f"there is no API key for {title}; set {variable}", fix=add)
    return checked_key(key, title, variable)


def url_from(environment: Mapping[str, str], variable: str, default: str, title: str, *, without: str) -> str:
    """Return the API's address that the variable gives, or `default`. `without`: a path at its end that is
    left out. Raises PermanentError if it is not valid.
    """
    url = (environment.get(variable, "").strip() or default).rstrip("/").removesuffix(without)
    return checked_url(url, f"{title}'s", variable)


def checked_key(key: str, title: str, places: str) -> str:
    """Return the key. Raises PermanentError if it could not be sent in a header. `title` names the provider,
    `places` where users set its key.
    """
    if not key.isascii() or not key.isprintable() or " " in key:
        raise PermanentError(f"the API key for {title} has invalid characters; check {places}")
    return key


def checked_url(url: str, whose: str, variable: str) -> str:
    """Return the address without slashes at its end. Raises PermanentError if it is no address, or one to
    which the key would be sent unencrypted. `whose`: the owner of the API, with an apostrophe; `variable`:
    what sets the address.
    """
    plain = url.rstrip("/")
    try:
        parts = urlsplit(plain)
        host = parts.hostname
    except ValueError:
        host = None
    if (
        not host
        or parts.scheme not in ("http", "https")
        or "@" in parts.netloc
        or parts.query
        or parts.fragment
    ):
        raise PermanentError(f"the address of {whose} API must look like https://host; check {variable}")
    if parts.scheme == "http" and not is_loopback(plain):
        raise PermanentError(
            f"the address of {whose} API, {plain}, would send the key unencrypted; write https"
        )
    return plain


def is_text(given: str) -> bool:
    """Return whether settings of several lines are given as the text itself, and not the path of a file."""
    return "\n" in given or ": " in given or given.startswith("{")


def home_folder(environment: Mapping[str, str]) -> Path:
    """Return the user's home folder, in which tools keep their settings. A function on AWS has a user without
    one.
    """
    with suppress(RuntimeError):
        return Path(environment.get("HOME") or Path.home())
    return NOWHERE
