"""Meaning of a server's error: whether a retry may help, and advice for the user."""

import re
from dataclasses import dataclass

from prime_train.errors import PermanentError, TemporaryError

MESSAGE_CHARS_MAX = 200
NEEDS = "the keys need the permissions to get, put, list and delete objects and to abort multipart uploads"
"""Advice on the permissions that the keys need. It includes aborting uploads: a failed upload is aborted, and
if the abort is refused too, the library reports only that refusal.
"""


@dataclass(frozen=True)
class BucketRefusal:
    advice: str
    again: bool = False
    """Whether a retry may succeed."""


REFUSALS = {
    "NoSuchBucket": BucketRefusal("there is no bucket with that name; create it, or correct the URL"),
    "403": BucketRefusal(f"the access key is wrong or lacks permission; {NEEDS}"),
    "AccessDenied": BucketRefusal(f"the access key lacks permission; {NEEDS}"),
    "AllAccessDisabled": BucketRefusal("the bucket is closed"),
    "InvalidAccessKeyId": BucketRefusal(
        "the server does not know the access key; check AWS_ACCESS_KEY_ID, AWS_PROFILE and the endpoint"
    ),
    "SignatureDoesNotMatch": BucketRefusal(
        "the secret key does not match the access key; check AWS_SECRET_ACCESS_KEY"
    ),
    "ExpiredToken": BucketRefusal(
        "the credentials have expired; renew them where prime-train runs, for example with aws sso login",
        again=True,
    ),
    "InvalidToken": BucketRefusal("the session token does not belong to the access key"),
    "PermanentRedirect": BucketRefusal(
        "the bucket is in another region; write ?region=... or set AWS_REGION"
    ),
    "AuthorizationHeaderMalformed": BucketRefusal(
        "the bucket is in another region; write ?region=... or set AWS_REGION"
    ),
    "IllegalLocationConstraintException": BucketRefusal(
        "the bucket is in another region; write ?region=... or set AWS_REGION"
    ),
    "RequestTimeTooSkewed": BucketRefusal("this machine's clock is wrong; set it, for instance by NTP"),
    "BadDigest": BucketRefusal("the received data differs from the data that was sent", again=True),
    "XAmzContentChecksumMismatch": BucketRefusal(
        "the received data differs from the data that was sent", again=True
    ),
    "XAmzContentSHA256Mismatch": BucketRefusal(
        "the received data differs from the data that was sent", again=True
    ),
    "InvalidRequest": BucketRefusal(
        "the server does not accept this kind of request; older servers may need ?checksum=sha256 or "
        "?checksum=signed"
    ),
    "NotImplemented": BucketRefusal(
        "the server does not support this; try ?checksum=signed or ?conditional=off"
    ),
    "QuotaExceeded": BucketRefusal("the bucket is full"),
    "XMinioStorageFull": BucketRefusal("the server's disk is full", again=True),
    "EntityTooLarge": BucketRefusal("the object is larger than the server accepts"),
    "SlowDown": BucketRefusal("the server asks for fewer requests", again=True),
}

_STATUS = re.compile(r"(?:status(?: code)?:? ?|HTTP status [a-z ]+\()(\d{3})")
_CODE = re.compile(r"<Code>\s*(\w+)\s*</Code>")
_MESSAGE = re.compile(r"<Message>([^<]*)</Message>")
_REDIRECTED = re.compile(r"redirect without LOCATION", re.IGNORECASE)
_UNTRUSTED = re.compile(r"InvalidCertificate|invalid peer certificate", re.IGNORECASE)
_UNREACHED = re.compile(
    r"error sending request|tcp connect|dns error|connection refused|operation timed out", re.IGNORECASE
)
_REFUSED_STATUSES = frozenset({400, 401, 403, 404, 405, 411, 413, 501})


def external_error(url: str, what: str, text: str, *, endpoint: str) -> PermanentError | TemporaryError:
    """Return the error to raise for the operation `what` (such as `put runs/x/spec.json`). Its message
    contains only a code and a short text from the server's response.
    """
    found, status = _CODE.search(text), _STATUS.search(text)
    code = found.group(1) if found else ("PermanentRedirect" if _REDIRECTED.search(text) else "")
    # The response to a HEAD has no body, and so no code.
    if not code and status is not None and status.group(1) in REFUSALS:
        code = status.group(1)
    refusal = REFUSALS.get(code)
    where = f"{url}: {what}"
    if refusal is not None:
        kind = TemporaryError if refusal.again else PermanentError
        return kind(f"{where}: {code}: {refusal.advice}")
    reason = _MESSAGE.search(text)
    detail = f"{code or 'no code'}{f', {reason.group(1)[:MESSAGE_CHARS_MAX]}' if reason else ''}"
    if status is not None:
        kind = PermanentError if int(status.group(1)) in _REFUSED_STATUSES else TemporaryError
        return kind(f"{where}: the server answered {status.group(1)} ({detail})")
    if _UNTRUSTED.search(text):
        return PermanentError(
            f"{where}: the certificate of {endpoint} is not trusted; set AWS_CA_BUNDLE to the file of its "
            "certificate authority"
        )
    if _UNREACHED.search(text):
        return TemporaryError(f"{where}: {endpoint} cannot be reached; check the endpoint and the network")
    return TemporaryError(f"{where}: {shortened(text) or 'failed'}")


def shortened(text: str) -> str:
    """Return a library's message without the server's body, which repeats signatures and keys, and without
    the library's internals.
    """
    return text.partition("\n")[0].partition("<")[0].rstrip(" :")[:MESSAGE_CHARS_MAX]
