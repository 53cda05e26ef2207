"""Temporary bucket credentials for pods, issued by a control plane that may assume an AWS role: for one
attempt's part of the bucket, for an hour.
"""

import logging
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError
from botocore.parsers import ResponseParserError

from prime_train.buckets.attempt_policy import VALID_S, PolicyScope, assumed, check
from prime_train.buckets.location import BucketLocation, place_of, split
from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.wire import PodKeys

ROLE = "PRIME_TRAIN_POD_ROLE"
REFUSED = frozenset(
    {
        "AccessDenied",
        "InvalidClientTokenId",
        "MalformedPolicyDocument",
        "PackedPolicyTooLarge",
        "SignatureDoesNotMatch",
        "ValidationError",
    }
)
CONFIG = Config(connect_timeout=3, read_timeout=5, retries={"mode": "standard", "total_max_attempts": 2})

_log = logging.getLogger(__name__)


class CredentialIssuer:
    """Issues credentials by assuming the role that `environment` names in `ROLE`; the caller's own
    credentials are found as AWS's tools find them. Raises PermanentError if such credentials cannot be issued
    for `url`. Thread-safe.
    """

    def __init__(self, url: str, environment: Mapping[str, str]) -> None:
        self._role = environment[ROLE]
        if split(url).scheme != "s3" or not self._role.startswith("arn:"):
            raise PermanentError(
                f"{ROLE} is for buckets such as s3://name, and looks like arn:aws:iam::123456789012:role/pods"
            )
        place = place_of(url, environment)
        self._part = PolicyScope(place.bucket, place.prefix, self._role.split(":")[1])
        try:
            check(self._part)
        except ValueError as error:
            raise PermanentError(f"{ROLE} cannot be used for {url}: {error}") from error
        self._client = _client(place, environment)

    def __call__(self, run_id: str, attempt: int, blobs_of: str = "") -> PodKeys:
        """Return credentials for the attempt, which may also read the blobs of the run `blobs_of`. Raises
        ExternalError, which is also logged here, because the response to the pod does not contain the reason.
        The error is not chained: its cause may hold the response with the keys.
        """
        try:
            return _keys(
                self._client.assume_role(**assumed(self._role, self._part, run_id, attempt, blobs_of))[
                    "Credentials"
                ]
            )
        except (BotoCoreError, ClientError, ResponseParserError, ValueError) as error:
            found = _translated(error)
        _log.error(
            "no keys to the bucket for run %s, attempt %d, by the role %s: %s",
            run_id,
            attempt,
            self._role,
            found,
        )
        raise found


def _keys(credentials: Mapping[str, Any]) -> PodKeys:
    return PodKeys(
        access_key_id=credentials["AccessKeyId"],
        secret_access_key=credentials["SecretAccessKey"],
        session_token=credentials["SessionToken"],
        valid_s=max(0, min(VALID_S, int((credentials["Expiration"] - datetime.now(UTC)).total_seconds()))),
    )


def _client(place: BucketLocation, environment: Mapping[str, str]) -> Any:
    keys = [
        environment.get(name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN")
    ]
    endpoint = environment.get("AWS_ENDPOINT_URL_STS") or environment.get("AWS_ENDPOINT_URL")
    try:
        profile = environment.get("AWS_PROFILE")
        session = (
            boto3.session.Session(*keys)
            if keys[0] and keys[1]
            else boto3.session.Session(profile_name=profile)
        )
        region = place.region or session.region_name or "us-east-1"
        return session.client("sts", region_name=region, endpoint_url=endpoint, config=CONFIG)
    except (BotoCoreError, ValueError) as error:
        raise PermanentError(f"AWS STS cannot be reached: {error}") from error


def _translated(error: Exception) -> PermanentError | TemporaryError:
    """Return the error to raise. It contains only the service's error code, because the service's message may
    repeat the request.
    """
    if isinstance(error, ValueError):
        return PermanentError(str(error))
    code = error.response.get("Error", {}).get("Code", "") if isinstance(error, ClientError) else ""
    kind = PermanentError if code in REFUSED else TemporaryError
    return kind(f"sts: {code or type(error).__name__}")
