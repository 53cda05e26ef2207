"""Credentials for Prime Intellect, from the variables and the file that Prime's own tool reads, so that one
login serves both.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from prime_train.errors import PermanentError
from prime_train.providers.rental.user_settings import checked_key, checked_url

BASE_URL = "https://api.primeintellect.ai"
API = "/api/v1"
CONFIG_BYTES_MAX = 2**20
PRODUCTION = "production"
"""Name of the context that always exists: Prime's own address, and the person's own account."""

_CONTEXT = re.compile(r"[A-Za-z0-9_-]+")


@dataclass(frozen=True)
class PrimeSettings:
    key: str = field(repr=False)
    team_id: str = ""
    """Id of the team that pays; empty if pods are rented on the person's own account."""
    base_url: str = BASE_URL
    """Address of the API, without `/api/v1`."""


def read_settings(environment: Mapping[str, str], home: Path) -> PrimeSettings:
    """Return the settings from PRIME_API_KEY, PRIME_TEAM_ID and PRIME_API_BASE_URL (or PRIME_BASE_URL), and
    for those not set, from `home/.prime`: from the context that PRIME_CONTEXT names, or the one chosen last.

    Raises PermanentError that names what is missing or invalid, without repeating the key.
    """
    file = _in_context(environment.get("PRIME_CONTEXT", ""), home / ".prime")
    key = environment.get("PRIME_API_KEY") or file.get("api_key", "")
    if not key:
        raise PermanentError(
            "there is no API key for Prime Intellect; set PRIME_API_KEY, or log in with `prime login`"
        )
    checked_key(key, "Prime Intellect", "PRIME_API_KEY or ~/.prime/config.json")
    named = (
        environment.get("PRIME_API_BASE_URL") or environment.get("PRIME_BASE_URL") or file.get("base_url", "")
    )
    team_id = environment.get("PRIME_TEAM_ID", "").strip() or file.get("team_id", "")
    return PrimeSettings(
        key,
        team_id,
        checked_url((named or BASE_URL).rstrip("/").removesuffix(API), "Prime's", "PRIME_API_BASE_URL"),
    )


def _in_context(name: str, folder: Path) -> dict[str, str]:
    """Return the key, team and address of a context, read as by Prime's own tool: without a team, the
    person's own account is used; without an address, Prime's own; only a missing key is taken from the main
    file.

    One difference: that tool ignores an unknown context, so that a run would be paid by another account than
    intended; here it is an error.
    """
    file = _config(folder / "config.json")
    if not name:
        return _texts(file)
    if name.lower() == PRODUCTION:
        return _texts({"api_key": file.get("api_key")})
    known = folder / "environments"
    if not _CONTEXT.fullmatch(name) or not (known / f"{name}.json").exists():
        names = ", ".join(
            [PRODUCTION, *sorted(path.stem for path in known.glob("*.json") if _CONTEXT.fullmatch(path.stem))]
        )
        raise PermanentError(
            f"there is no context {name[:64]!r} for Prime Intellect; set PRIME_CONTEXT to {names}, or unset "
            "it"
        )
    return _texts({"api_key": file.get("api_key"), **_config(known / f"{name}.json")})


def _config(path: Path) -> dict[str, object]:
    """Return the file's JSON object, or an empty one if the file does not exist."""
    try:
        with path.open("rb") as file:
            content = json.loads(file.read(CONFIG_BYTES_MAX))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise PermanentError(f"{path}: {error.strerror or error}") from error
    except ValueError:
        # Not chained: the error may quote the key.
        raise PermanentError(
            f"{path} is not JSON; log in again with `prime login`, or set PRIME_API_KEY"
        ) from None
    if not isinstance(content, dict):
        raise PermanentError(
            f"{path} is not a JSON object; log in again with `prime login`, or set PRIME_API_KEY"
        )
    return content


def _texts(content: Mapping[str, object]) -> dict[str, str]:
    return {name: value for name, value in content.items() if isinstance(value, str)}
