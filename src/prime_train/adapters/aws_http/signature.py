"""Request signing by AWS Signature Version 4."""

import hashlib
import hmac
import time
from collections.abc import Mapping


class Signer:
    """Signer for one service in one region, with the environment's keys. Raises KeyError if there are none. Thread-safe."""

    def __init__(self, environment: Mapping[str, str], region: str, service: str) -> None:
        self._key, self._secret = environment["AWS_ACCESS_KEY_ID"], environment["AWS_SECRET_ACCESS_KEY"]
        self._token = environment.get("AWS_SESSION_TOKEN", "")
        self._place = f"{region}/{service}/aws4_request"
        self._today = ("", b"")

    def headers(self, host: str, path: str, headers: Mapping[str, str], body: bytes, *, at_s: float) -> dict[str, str]:
        """Return all headers of a POST sent at `at_s` seconds, including its signature. Header names must be in lower case, and `path` must
        need no escaping."""
        stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(at_s))
        signed = {**headers, "host": host, "x-amz-date": stamp}
        if self._token:
            signed["x-amz-security-token"] = self._token
        order = sorted(signed)
        names, lines = ";".join(order), "".join(f"{name}:{signed[name]}\n" for name in order)
        canonical = f"POST\n{path}\n\n{lines}\n{names}\n{hashlib.sha256(body).hexdigest()}"
        scope = f"{stamp[:8]}/{self._place}"
        text = f"AWS4-HMAC-SHA256\n{stamp}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(self._signing_key(scope), text.encode(), "sha256").hex()
        parameters = f"Credential={self._key}/{scope}, SignedHeaders={names}, Signature={signature}"
        return signed | {"authorization": f"AWS4-HMAC-SHA256 {parameters}"}

    def _signing_key(self, scope: str) -> bytes:
        """Return the signing key of `scope`, cached because it changes only once a day."""
        known, key = self._today
        if known != scope:
            key = f"AWS4{self._secret}".encode()
            for part in scope.split("/"):
                key = hmac.digest(key, part.encode(), "sha256")
            self._today = scope, key
        return key
