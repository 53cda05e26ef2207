"""Settings for Lambda Cloud, from environment variables."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from prime_train.providers.rental.user_settings import key_from, url_from

TITLE = "Lambda Cloud"
BASE_URL = "https://cloud.lambda.ai"
API = "/api/v1"
KEY = "LAMBDA_API_KEY"
ADDRESS = "LAMBDA_API_BASE_URL"


@dataclass(frozen=True)
class LambdaSettings:
    key: str = field(repr=False)
    base_url: str = BASE_URL
    """Address of the API, without `/api/v1`."""


def read_settings(environment: Mapping[str, str]) -> LambdaSettings:
    """Return the settings from LAMBDA_API_KEY and LAMBDA_API_BASE_URL. Raises PermanentError that names what
    is missing or invalid, without repeating the key.
    """
    return LambdaSettings(
        key_from(environment, KEY, TITLE), url_from(environment, ADDRESS, BASE_URL, TITLE, without=API)
    )
