"""Keys to the bucket for one attempt: the pods' role, taken by the webhook for an hour, with less than the role may."""

import logging
from datetime import datetime
from urllib.parse import urlencode, urlsplit
from xml.etree import ElementTree

from prime_lambdas.asking import Question, ask
from prime_lambdas.settings import Settings
from prime_train.core.pod_policy import VALID_S, Part, assumed
from prime_train.core.wire import PodKeys
from prime_train.ports import OutsideError, PermanentError

ANSWER_BYTES_MAX = 64 * 1024
SPACE = "{https://sts.amazonaws.com/doc/2011-06-15/}"
HEADERS = {"content-type": "application/x-www-form-urlencoded; charset=utf-8"}

log = logging.getLogger(__name__)


def lend(settings: Settings, run_id: str, attempt: int, now_s: float) -> PodKeys:
    """New ones. Raises OutsideError, which is also logged: whoever asked is told only that there are none now."""
    try:
        body = urlencode(request(settings, run_id, attempt)).encode()
        return parsed(ask(Question("sts", "/", HEADERS, body), settings.environment, settings.region, settings.endpoint), now_s)
    except OutsideError as error:
        log.error("no keys to the bucket for run %s, attempt %d, by the role %s: %s", run_id, attempt, settings.pod_role, error)
        raise


def request(settings: Settings, run_id: str, attempt: int) -> dict[str, str | int]:
    """What is asked of STS. PermanentError where the policy would be too long."""
    at = urlsplit(settings.bucket_url)
    part = Part(at.netloc, at.path.strip("/"), settings.pod_role.split(":")[1])
    try:
        return {"Action": "AssumeRole", "Version": "2011-06-15", **assumed(settings.pod_role, part, run_id, attempt)}
    except ValueError as error:
        raise PermanentError(str(error)) from error


def parsed(answer: bytes, now_s: float) -> PodKeys:
    """Nothing of what cannot be read is repeated, and the error is not chained: it would hold the text."""
    try:
        if len(answer) > ANSWER_BYTES_MAX or b"<!" in answer:  # nothing that would grow while it is read
            raise ValueError
        found = ElementTree.fromstring(answer).find(f"{SPACE}AssumeRoleResult/{SPACE}Credentials")
        said = {} if found is None else {child.tag.removeprefix(SPACE): child.text or "" for child in found}
        ends_s = datetime.fromisoformat(said["Expiration"]).timestamp()
        return PodKeys(
            access_key_id=said["AccessKeyId"],
            secret_access_key=said["SecretAccessKey"],
            session_token=said["SessionToken"],
            valid_s=min(VALID_S, int(ends_s - now_s)),
        )
    except (ElementTree.ParseError, ValueError, KeyError, OverflowError):
        pass
    raise PermanentError("what sts answered is not understood")
