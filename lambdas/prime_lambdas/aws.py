"""Clients of AWS's services, with the function's own keys. Its table has time limits and retries of its
own.
"""

from collections.abc import Callable
from typing import Any, TypeVar

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from prime_lambdas.settings import Settings
from prime_train.errors import PermanentError, TemporaryError

ANSWER_S_MAX = 3.0
SERVER_FAILED_MIN = 500
BUSY = 429
CONFIG = Config(
    connect_timeout=ANSWER_S_MAX,
    read_timeout=ANSWER_S_MAX,
    retries={"total_max_attempts": 1},
    parameter_validation=False,
)

T = TypeVar("T")


def session(settings: Settings) -> Any:
    """Return boto3's session. Raises PermanentError if the environment has no keys."""
    names = ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")
    missing = [name for name in names if not settings.environment.get(name)]
    if missing:
        raise PermanentError(f"the function's environment lacks {', '.join(missing)}")
    return boto3.session.Session(
        *(settings.environment[name] for name in names), settings.environment.get("AWS_SESSION_TOKEN")
    )


def ask(service: str, settings: Settings, request: Callable[[Any], T]) -> T:
    """Return what `request` returns, given a client of the service.

    Raises TemporaryError if there is no response, or its status is 5xx or 429, and PermanentError for any
    other error status. The service's own message is left out of both, because it may repeat the request.
    """
    try:
        return request(
            session(settings).client(
                service, region_name=settings.region, endpoint_url=settings.endpoint, config=CONFIG
            )
        )
    except ClientError as error:
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
    except (BotoCoreError, ResponseParserError) as error:
        raise TemporaryError(f"{service} did not answer: {type(error).__name__}") from None
    passes = status >= SERVER_FAILED_MIN or status == BUSY
    raise (TemporaryError if passes else PermanentError)(f"{service} answered with {status}")
