"""AWS's services asked without a library, which would take most of a cold start: HTTPS, signed as Signature Version 4 has it."""

import hashlib
import hmac
import http.client
import time
from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from prime_train.ports import PermanentError, TemporaryError

ANSWER_S_MAX = 3.0
ANSWER_BYTES_MAX = 256 * 1024
SERVER_FAILED_MIN = 500
BUSY = 429


@dataclass(frozen=True)
class Question:
    """One request to a service. `path` holds nothing that would have to be escaped."""

    service: str
    path: str
    headers: Mapping[str, str]
    body: bytes


def ask(question: Question, environment: Mapping[str, str], region: str, endpoint: str | None = None) -> bytes:
    """The answer's body, asked once. TemporaryError: no answer, or not now. PermanentError: refused; the words of the service are left out,
    for they may repeat the request."""
    at = urlsplit(endpoint or f"https://{question.service}.{region}.amazonaws.com")
    kind = http.client.HTTPSConnection if at.scheme == "https" else http.client.HTTPConnection
    connection = kind(at.netloc, timeout=ANSWER_S_MAX)
    try:
        connection.request("POST", question.path, question.body, signed(question, environment, region, at.netloc, time.time()))
        answer = connection.getresponse()
        body = answer.read(ANSWER_BYTES_MAX)
    except (OSError, http.client.HTTPException) as error:
        raise TemporaryError(f"{question.service} did not answer: {type(error).__name__}") from error
    finally:
        connection.close()
    if answer.status < http.client.MULTIPLE_CHOICES:
        return body
    passes = answer.status >= SERVER_FAILED_MIN or answer.status == BUSY
    raise (TemporaryError if passes else PermanentError)(f"{question.service} answered with {answer.status}")


def signed(question: Question, environment: Mapping[str, str], region: str, host: str, at_s: float) -> dict[str, str]:
    """The question's headers with a signature of that second, by the keys that every Lambda has in its environment."""
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at_s))
    token = environment.get("AWS_SESSION_TOKEN", "")
    headers = {"host": host, "x-amz-date": stamp, **question.headers} | ({"x-amz-security-token": token} if token else {})
    names = ";".join(sorted(headers))
    lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
    canonical = f"POST\n{question.path}\n\n{lines}\n{names}\n{hashlib.sha256(question.body).hexdigest()}"
    scope = f"{stamp[:8]}/{region}/{question.service}/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = f"AWS4{environment['AWS_SECRET_ACCESS_KEY']}".encode()
    for part in scope.split("/"):
        key = hmac.digest(key, part.encode(), "sha256")
    signature = hmac.new(key, text.encode(), hashlib.sha256).hexdigest()
    told = f"Credential={environment['AWS_ACCESS_KEY_ID']}/{scope}, SignedHeaders={names}, Signature={signature}"
    return headers | {"authorization": f"AWS4-HMAC-SHA256 {told}"}
