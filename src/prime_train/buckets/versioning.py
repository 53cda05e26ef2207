"""Whether a bucket keeps what is deleted from it, so that a machine cannot destroy the checkpoints of its run
for good.
"""

from collections.abc import Mapping
from enum import StrEnum

import botocore.exceptions
from botocore.config import Config

from prime_train.buckets.error_conversion import external_error
from prime_train.buckets.location import place_of
from prime_train.buckets.s3 import session_of


class VersionsKept(StrEnum):
    """Whether old versions of objects are kept. UNSUPPORTED: the server cannot; NOT_TOLD: the keys may not
    ask.
    """

    KEPT = "kept"
    NOT_KEPT = "not kept"
    UNSUPPORTED = "unsupported"
    NOT_TOLD = "not told"


ANSWERS = {
    "NotImplemented": VersionsKept.UNSUPPORTED,
    "MethodNotAllowed": VersionsKept.UNSUPPORTED,
    "AccessDenied": VersionsKept.NOT_TOLD,
}
"""What the server's refusals mean, by code; any other one is an error."""
CONFIG = Config(connect_timeout=5, read_timeout=20, retries={"mode": "standard", "total_max_attempts": 2})
WHAT = "ask for the versioning"


def versions_of(url: str, environment: Mapping[str, str]) -> VersionsKept:
    """Return whether the S3-compatible bucket at `url` keeps old versions. Raises ExternalError if it cannot
    be asked.
    """
    place = place_of(url, environment)
    endpoint = place.endpoint or ""
    try:
        session = session_of(place)
        region = place.region or session.region_name or "us-east-1"
        client = session.client("s3", endpoint_url=place.endpoint, region_name=region, config=CONFIG)
        status = client.get_bucket_versioning(Bucket=place.bucket).get("Status")
        return VersionsKept.KEPT if status == "Enabled" else VersionsKept.NOT_KEPT
    except botocore.exceptions.ClientError as error:
        code = str(error.response.get("Error", {}).get("Code", ""))
        if code in ANSWERS:
            return ANSWERS[code]
        raise external_error(url, WHAT, f"<Code>{code}</Code>", endpoint=endpoint) from None
    except botocore.exceptions.BotoCoreError as error:
        raise external_error(url, WHAT, str(error), endpoint=endpoint) from None
