"""Opens the store named by a URL such as `dynamodb://table?region=eu-central-1`, with the settings that AWS's
other tools read.

`endpoint=http://127.0.0.1:8000` names a server other than Amazon's.
"""

import re
from collections.abc import Mapping
from urllib.parse import parse_qsl, urlsplit

import boto3
from botocore.exceptions import BotoCoreError

from prime_train.errors import PermanentError
from prime_train.stores.dynamo.boto_calls import BotoCalls, client
from prime_train.stores.dynamo.store import DynamoStore

EXAMPLE = "dynamodb://prime-train?region=eu-central-1"
_TABLE = re.compile(r"[A-Za-z0-9_.-]{3,255}")
_OPTIONS = ("region", "endpoint")


def open_dynamo(url: str, environment: Mapping[str, str]) -> DynamoStore:
    """Return the store at that URL, without sending a request. Raises PermanentError if the URL or the
    settings are invalid.
    """
    table, options = _place(url)
    try:
        session = _session(environment)
        region = (
            options.get("region")
            or environment.get("AWS_REGION")
            or environment.get("AWS_DEFAULT_REGION")
            or session.region_name
        )
        if not region:
            raise PermanentError(
                f"dynamodb://{table} has no region; add it, as in {EXAMPLE}, or set AWS_REGION"
            )
        endpoint = (
            options.get("endpoint")
            or environment.get("AWS_ENDPOINT_URL_DYNAMODB")
            or environment.get("AWS_ENDPOINT_URL")
        )
        return DynamoStore(BotoCalls(client(session, region, endpoint)), table)
    except (BotoCoreError, ValueError) as error:
        raise PermanentError(f"dynamodb://{table}: {str(error)[:300]}") from error


def _place(url: str) -> tuple[str, dict[str, str]]:
    try:
        parts = urlsplit(url)
        options = dict(parse_qsl(parts.query, keep_blank_values=True, strict_parsing=bool(parts.query)))
    except ValueError as error:
        raise PermanentError(f"the store is not a URL such as {EXAMPLE}: {error}") from None
    if (
        parts.scheme != "dynamodb"
        or not _TABLE.fullmatch(parts.netloc)
        or parts.path.strip("/")
        or parts.fragment
    ):
        raise PermanentError(
            f"the store needs the plain name of a table, as in {EXAMPLE}; put keys into the environment"
        )
    unknown = sorted(set(options) - set(_OPTIONS))
    if unknown:
        raise PermanentError(
            f"dynamodb://{parts.netloc} has no option {', '.join(unknown)}; known: {', '.join(_OPTIONS)}"
        )
    if options.get("endpoint", "http://").partition("://")[0] not in ("http", "https"):
        raise PermanentError(f"dynamodb://{parts.netloc}: the endpoint must begin with http:// or https://")
    return parts.netloc, options


def _session(environment: Mapping[str, str]) -> boto3.session.Session:
    """Return a session with the keys in that environment, or else those that AWS's tools would find."""
    keys = [
        environment.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    ]
    if keys[0] and keys[1]:
        return boto3.session.Session(*keys)
    return boto3.session.Session(profile_name=environment.get("AWS_PROFILE"))
