"""Who we are at Prime Intellect: the variables and the file that Prime's own tool reads, so that one log-in serves both."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from prime_train.adapters.http import is_loopback
from prime_train.ports import PermanentError

BASE_URL = "https://api.primeintellect.ai"
API = "/api/v1"
CONFIG_BYTES_MAX = 2**20
_NO_CONTEXTS = frozenset({"", "production"})


@dataclass(frozen=True)
class Settings:
    key: str = field(repr=False)
    team_id: str = ""
    """"": pods are rented on the person's own account."""
    base_url: str = BASE_URL
    """Without `/api/v1`."""


def read_settings(environment: Mapping[str, str], home: Path) -> Settings:
    """PRIME_API_KEY, PRIME_TEAM_ID and PRIME_API_BASE_URL (or PRIME_BASE_URL), where they are not set `home/.prime/config.json`.

    PermanentError says what is missing or not understood; the key is not repeated.
    """
    file = _config(home / ".prime" / "config.json")
    key = environment.get("PRIME_API_KEY") or file.get("api_key", "")
    _refuse_context(environment)
    if not key:
        raise PermanentError("there is no key for Prime Intellect; set PRIME_API_KEY, or log in with `prime login`")
    if not key.isascii() or not key.isprintable() or " " in key:
        raise PermanentError("the key for Prime Intellect has characters no key has; look at PRIME_API_KEY or ~/.prime/config.json")
    named = environment.get("PRIME_API_BASE_URL") or environment.get("PRIME_BASE_URL") or file.get("base_url", "")
    team_id = environment.get("PRIME_TEAM_ID", "").strip() or file.get("team_id", "")
    return Settings(key, team_id, _base_url(named or BASE_URL))


def _config(path: Path) -> dict[str, str]:
    """What is text in the file; empty where there is none."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(CONFIG_BYTES_MAX))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise PermanentError(f"{path}: {error.strerror or error}") from error
    except ValueError:
        # Not chained: what is quoted there may be the key.
        raise PermanentError(f"{path} is not JSON; log in again with `prime login`, or set PRIME_API_KEY") from None
    pairs = content.items() if isinstance(content, dict) else ()
    return {name: value for name, value in pairs if isinstance(value, str)}


def _refuse_context(environment: Mapping[str, str]) -> None:
    # Taken for the wrong account, a run would be paid by somebody else.
    context = environment.get("PRIME_CONTEXT", "")
    if context.lower() not in _NO_CONTEXTS and not environment.get("PRIME_API_KEY"):
        raise PermanentError(f"PRIME_CONTEXT {context!r} is not read here; set PRIME_API_KEY and PRIME_TEAM_ID instead")


def _base_url(url: str) -> str:
    plain = url.rstrip("/").removesuffix(API).rstrip("/")
    try:
        parts = urlsplit(plain)
        host = parts.hostname
    except ValueError:
        host = None
    if not host or parts.scheme not in ("http", "https") or "@" in parts.netloc or parts.query or parts.fragment:
        raise PermanentError("the address of Prime's API is not as https://host; look at PRIME_API_BASE_URL")
    if parts.scheme == "http" and not is_loopback(plain):
        raise PermanentError(f"the address of Prime's API, {plain}, would send the key unencrypted; write https")
    return plain
