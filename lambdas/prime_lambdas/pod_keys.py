"""Bucket keys for one attempt: the webhook assumes the pods' role for an hour, restricted to less than the role allows."""

import logging
from datetime import datetime
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

from prime_lambdas.aws_request import AwsRequest, ask
from prime_lambdas.settings import Settings
from prime_train.core.access.pod_policy import VALID_S, Part, assumed
from prime_train.core.wire import PodKeys
from prime_train.ports import ExternalError, PermanentError

ANSWER_BYTES_MAX = 64 * 1024
SPACE = "{https://sts.amazonaws.com/doc/2011-06-15/}"
HEADERS = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}

log = logging.getLogger(__name__)


def issue_credentials(settings: Settings, run_id: str, attempt: int, now_s: float, blobs_of: str = "") -> PodKeys:
    """Return new keys to the bucket for one attempt, which may also read the blobs of the run `blobs_of`.

    Raises ExternalError after logging it: the requester only learns that no keys are available at the moment.
    """
    try:
        body = urlencode(request(settings, run_id, attempt, blobs_of)).encode()
        return parsed(ask(AwsRequest("sts", "/", HEADERS, body), settings.environment, settings.region, settings.endpoint), now_s)
    except ExternalError as error:
        log.error("no keys to the bucket for run %s, attempt %d, by the role %s: %s", run_id, attempt, settings.pod_role, error)
        raise


def request(settings: Settings, run_id: str, attempt: int, blobs_of: str = "") -> dict[str, str | int]:
    """Return the parameters of the AssumeRole request to STS. Raises PermanentError if the policy would be too long."""
    at = urlsplit(settings.bucket_url)
    part = Part(at.netloc, at.path.strip("/"), settings.pod_role.split(":")[1])
    try:
        return {"Action": "AssumeRole", "Version": "2011-06-15", **assumed(settings.pod_role, part, run_id, attempt, blobs_of)}
    except ValueError as error:
        raise PermanentError(str(error)) from error


def parsed(answer: bytes, now_s: float) -> PodKeys:
    """Return the keys in an AssumeRole response of STS.

    Raises PermanentError if the response cannot be parsed. The error neither repeats nor chains the response, which may hold keys.
    """
    try:
        if len(answer) > ANSWER_BYTES_MAX or b"<!" in answer:  # rejects declarations, whose entities could expand while parsing
            raise ValueError
        found = ElementTree.fromstring(answer).find(f"{SPACE}AssumeRoleResult/{SPACE}Credentials")
        fields = {} if found is None else {child.tag.removeprefix(SPACE): child.text or "" for child in found}
        ends_s = datetime.fromisoformat(fields["Expiration"]).timestamp()
        return PodKeys(
            access_key_id=fields["AccessKeyId"],
            secret_access_key=fields["SecretAccessKey"],
            session_token=fields["SessionToken"],
            valid_s=min(VALID_S, int(ends_s - now_s)),
        )
    except (ElementTree.ParseError, ValueError, KeyError, OverflowError):
        pass
    raise PermanentError("the answer of STS cannot be parsed")
