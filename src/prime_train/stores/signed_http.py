"""HTTP client of a control plane whose requests are signed with a key. The key itself is never sent."""

import time
from urllib.parse import urlsplit

from prime_train.errors import PermanentError
from prime_train.http import READ_S, Http, HttpResponse, is_safe
from prime_train.runs.launch_key import LAUNCH_KEY_HEADER
from prime_train.runs.signing import SIGNATURE_HEADER, TIMESTAMP_HEADER, server_time_s, sign

STORE = "PRIME_TRAIN_STORE"
UNAUTHORIZED = 401
REASON_CHARS_MAX = 300


class SignedHttp:
    """Client of the control plane at `url`, its address without a path. Raises PermanentError if that is
    neither an https address nor one of this machine. `key_name`: the name of `key`, if it is a launch key.
    `read_s`: seconds to wait for a response.
    """

    def __init__(self, url: str, key: str, *, key_name: str = "", read_s: float = READ_S) -> None:
        if urlsplit(url).scheme not in ("http", "https") or not urlsplit(url).hostname:
            raise PermanentError(
                f"{STORE} is {url!r}, which is not the address of a control plane, such as "
                "https://train.example.org"
            )
        if not is_safe(url):
            raise PermanentError(
                f"{STORE} is {url!r}: over http, requests could be read and changed on the way; set it to an "
                "https address"
            )
        self._http, self._key, self._read_s = Http(url), key, read_s
        self._named = {LAUNCH_KEY_HEADER: key_name} if key_name else {}
        self._ahead_s = 0
        """Seconds by which the control plane's clock is ahead of this machine's, as learned from refused
        requests.
        """

    def ask(self, method: str, path: str, body: bytes | None = None) -> HttpResponse:
        """Return the response to one signed request. If it was refused because of its timestamp, sign it once
        more by the control plane's clock; a refused request has had no effect. Raises the errors of
        `Http.ask`.
        """
        answer = self._ask_once(method, path, body)
        if answer.status == UNAUTHORIZED and self._learns_time(answer.content()):
            answer = self._ask_once(method, path, body)
        return answer

    def _ask_once(self, method: str, path: str, body: bytes | None) -> HttpResponse:
        at_s = int(time.time()) + self._ahead_s
        headers = self._named | {
            TIMESTAMP_HEADER: str(at_s),
            SIGNATURE_HEADER: sign(self._key, at_s, method, path, body or b""),
        }
        return self._http.ask(method, path, data=body, headers=headers, read_s=self._read_s)

    def _learns_time(self, content: object) -> bool:
        """Take over the control plane's clock from a refusal. Return whether it differs from the clock that
        the request was signed with.
        """
        now_s = server_time_s(content)
        if now_s is None:
            return False
        before_s, self._ahead_s = self._ahead_s, now_s - int(time.time())
        return abs(self._ahead_s - before_s) > 1


def reason_of(answer: HttpResponse) -> str:
    """Return the control plane's reason for a refusal, or an empty string."""
    content = answer.content()
    reason = content.get("error") if isinstance(content, dict) else None
    return str(reason)[:REASON_CHARS_MAX] if reason is not None else ""
