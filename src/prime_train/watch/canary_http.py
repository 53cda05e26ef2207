"""The watcher's canary heartbeat, sent to the webhook's public address by the same route as the agents'
heartbeats.
"""

import json
import logging
import secrets

import requests
from urllib3.exceptions import HTTPError

from prime_train.answer_limits import LimitedAdapter
from prime_train.http import is_loopback
from prime_train.runs.wire import SIGNATURE_HEADER, TIMESTAMP_HEADER, attempt_key, server_time_s, sign

PATH = "/v1/canary"
TIMEOUT_S = 5.0
ANSWER_S_MAX = 15.0
ANSWER_BYTES_MAX = 4096
RECEIVED_BYTES_MAX = 2**16

log = logging.getLogger(__name__)


class CanaryHttp:
    """A `Canary` that sends a signed nonce to the webhook at `url`."""

    def __init__(self, url: str, master: bytes) -> None:
        self._url = url.rstrip("/") + PATH
        self._key = attempt_key(master, "canary", 1)
        self._direct = is_loopback(url)

    def is_answering(self, now_s: int) -> bool:
        """Return True only if the webhook and its store echoed a signed nonce.

        The request is signed with the time `now_s`. If the webhook refuses it and reports a time of its own,
        the request is signed with that time and sent once more.
        """
        nonce = secrets.token_hex(16)
        body = json.dumps({"nonce": nonce}).encode()
        try:
            status, answer = self._ask(body, now_s)
            server_s = server_time_s(answer) if status == requests.codes.unauthorized else None
            if server_s is not None:
                status, answer = self._ask(body, server_s)
            if status != requests.codes.ok:
                log.info("the canary heartbeat was answered with status %d", status)
            return answer == {"nonce": nonce}
        except (requests.RequestException, HTTPError, OSError, ValueError, RecursionError) as error:
            log.info("the canary heartbeat got no answer: %s", type(error).__name__)
            return False

    def _ask(self, body: bytes, at_s: int) -> tuple[int, object]:
        headers = {TIMESTAMP_HEADER: str(at_s), SIGNATURE_HEADER: sign(self._key, at_s, "POST", PATH, body)}
        headers["content-type"] = "application/json"
        with requests.Session() as session:
            session.trust_env = not self._direct  # a proxy cannot lead back to this machine
            for scheme in ("http://", "https://"):
                session.mount(scheme, LimitedAdapter(ANSWER_S_MAX, RECEIVED_BYTES_MAX))
            with session.post(
                self._url, data=body, headers=headers, timeout=TIMEOUT_S, allow_redirects=False, stream=True
            ) as response:
                text = response.raw.read(ANSWER_BYTES_MAX)
                status = response.status_code
                return status, json.loads(text) if status in (
                    requests.codes.ok,
                    requests.codes.unauthorized,
                ) else None
