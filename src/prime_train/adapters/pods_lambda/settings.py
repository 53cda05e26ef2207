"""Settings for Lambda Cloud, from environment variables."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prime_train.adapters.rental_api.credentials import checked_key, checked_url
from prime_train.ports import PermanentError

TITLE = "Lambda Cloud"
BASE_URL = "https://cloud.lambda.ai"
API = "/api/v1"
KEY = "LAMBDA_API_KEY"
ADDRESS = "LAMBDA_API_BASE_URL"


@dataclass(frozen=True)
class Settings:
    key: str = field(repr=False)
    base_url: str = BASE_URL
    """Address of the API, without `/api/v1`."""


def read_settings(environment: Mapping[str, str]) -> Settings:
    """Return the settings from LAMBDA_API_KEY and LAMBDA_API_BASE_URL. Raises PermanentError that names what is missing or invalid, without
    repeating the key."""
    key = environment.get(KEY, "").strip()
    if not key:
        raise PermanentError(f"there is no API key for {TITLE}; set {KEY}")
    checked_key(key, TITLE, KEY)
    url = (environment.get(ADDRESS, "").strip() or BASE_URL).rstrip("/").removesuffix(API)
    return Settings(key, checked_url(url, f"{TITLE}'s", ADDRESS))
