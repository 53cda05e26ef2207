"""DynamoDB without a library: for a webhook that hears beats, where loading boto3 would take most of the time of its first answer.

A request is JSON over HTTPS, signed as Signature Version 4 has it. The keys are those of the environment, as a Lambda has them; for any
other place to find keys there is boto3.
"""

import hashlib
import hmac
import http.client
import json
import ssl
import time
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from prime_train.adapters.store_dynamo.calls import ANSWER_S_MAX, CONNECT_S_MAX, SERVER_FAILED_MIN, Refused, Unreached

BODY_BYTES_MAX = 16 * 2**20
"""Of an answer; DynamoDB's own limit."""
IDLE_MAX = 16
_HEADERS = ("content-type", "host", "x-amz-date", "x-amz-security-token", "x-amz-target")


class SignedCalls:
    """`endpoint` None: Amazon's in that region. KeyError where the environment has no keys. Any thread may call."""

    def __init__(self, environment: Mapping[str, str], region: str, endpoint: str | None = None) -> None:
        self._key, self._secret = environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]
        self._token = environment.get("AWS_SESSION_TOKEN", "")
        self._region = region
        at = urlsplit(endpoint or f"https://dynamodb.{region}.amazonaws.com")
        self._host = at.netloc
        self._tls = ssl.create_default_context() if at.scheme == "https" else None
        self._signing = ("", b"")
        self._idle: list[http.client.HTTPConnection] = []

    def close(self) -> None:
        """Closes the connections that no call is using; a later call opens its own."""
        while self._idle:
            self._idle.pop().close()

    def ask(self, operation: str, request: Mapping[str, Any]) -> dict[str, Any]:
        body = json.dumps(request, separators=(",", ":")).encode()
        target = "DynamoDB_20120810." + operation.title().replace("_", "")
        connection = self._connection()
        try:
            if connection.sock is None:
                connection.connect()
                connection.sock.settimeout(ANSWER_S_MAX)  # type: ignore[attr-defined]  # connected just now
            connection.request("POST", "/", body, self.headers(target, body, time.time()))
            response = connection.getresponse()
            said = response.read(BODY_BYTES_MAX)
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            self.close()  # whatever ended this one is likely to have ended them too
            raise Unreached(f"{type(error).__name__}: {error}") from error
        if response.will_close or len(self._idle) >= IDLE_MAX:
            connection.close()
        else:
            self._idle.append(connection)
        return _answer(said, response.status)

    def headers(self, target: str, body: bytes, at_s: float) -> dict[str, str]:
        """Those that a request needs at that second, its signature with them."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at_s))
        headers = {"content-type": "application/x-amz-json-1.0", "host": self._host, "x-amz-date": stamp, "x-amz-target": target}
        if self._token:
            headers["x-amz-security-token"] = self._token
        signed = [name for name in _HEADERS if name in headers]
        lines = "".join(f"{name}:{headers[name]}\n" for name in signed)
        canonical = f"POST\n/\n\n{lines}\n{';'.join(signed)}\n{hashlib.sha256(body).hexdigest()}"
        scope = f"{stamp[:8]}/{self._region}/dynamodb/aws4_request"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.new(self._signing_key(scope), text.encode(), hashlib.sha256).hexdigest()
        told = f"Credential={self._key}/{scope}, SignedHeaders={';'.join(signed)}, Signature={signature}"
        return headers | {"authorization": f"AWS4-HMAC-SHA256 {told}"}

    def _signing_key(self, scope: str) -> bytes:
        """Another one each day."""
        known, key = self._signing
        if known != scope:
            key = f"AWS4{self._secret}".encode()
            for part in scope.split("/"):
                key = hmac.new(key, part.encode(), hashlib.sha256).digest()
            self._signing = scope, key
        return key

    def _connection(self) -> http.client.HTTPConnection:
        try:
            return self._idle.pop()
        except IndexError:
            if self._tls is None:
                return http.client.HTTPConnection(self._host, timeout=CONNECT_S_MAX)
            return http.client.HTTPSConnection(self._host, timeout=CONNECT_S_MAX, context=self._tls)


def _answer(said: bytes, status: int) -> dict[str, Any]:
    try:
        answer = json.loads(said)
    except ValueError:
        answer = None
    if not isinstance(answer, dict):
        raise Refused("", "the answer is no JSON", status=max(status, SERVER_FAILED_MIN))
    if status == http.HTTPStatus.OK:
        return answer
    message = answer.get("message") or answer.get("Message") or ""
    code = str(answer.get("__type", "")).rpartition("#")[2]
    raise Refused(code, message, status=status, item=answer.get("Item"), reasons=answer.get("CancellationReasons", ()))
