"""Client of the control plane: five signed requests.

Every request carries the attempt's number and identity, a timestamp and a signature. If the machine's clock
is wrong, the refusal contains the server's time, which is used from then on. Each `ControlPlane` belongs to
one thread.
"""

import hmac
from collections.abc import Callable
from typing import TypeVar
from urllib.parse import urlsplit

import requests
from pydantic import BaseModel, ValidationError

from prime_train.answer_limits import LimitedAdapter
from prime_train.errors import PermanentError, TemporaryError
from prime_train.runs.wire import (
    PROOF_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    Bootstrap,
    Commit,
    Heartbeat,
    Outcome,
    PodKeys,
    Refusal,
    Reply,
    Ticket,
    attempt_path,
    prove,
    sign,
)
from prime_train.text.retry_after import retry_after_s

CONNECT_S, READ_S = 5, 10
ANSWER_S_MAX = 30
"""Limit in seconds of a complete answer: the sender of heartbeats must not hang on what a proxy sends byte by
byte.
"""
ANSWER_BYTES_MAX = 4 * 2**20
RECEIVED_BYTES_MAX = ANSWER_BYTES_MAX + 2**20
CHUNK_BYTES = 64 * 1024
TEXT_SHOWN_MAX = 300
LOOPBACK = ("127.0.0.1", "localhost", "::1")

M = TypeVar("M", bound=BaseModel)


class Fenced(Exception):
    """This attempt has been replaced by another one, so its requests have no effect any more."""


class ControlPlane:
    """Connection to the control plane. Requests raise TemporaryError if their outcome is unknown or a retry
    may work, and PermanentError if they are refused.
    """

    def __init__(self, ticket: Ticket, wall_s: Callable[[], float]) -> None:
        self._ticket = ticket
        self._wall_s = wall_s
        self._offset_s = 0
        self._session = requests.Session()
        for scheme in ("http://", "https://"):
            self._session.mount(scheme, LimitedAdapter(ANSWER_S_MAX, RECEIVED_BYTES_MAX))
        # A proxy from the machine's environment is right for external hosts, but wrong for a control plane on
        # this machine.
        self._session.trust_env = urlsplit(ticket.url).hostname not in LOOPBACK

    def bootstrap(self) -> Bootstrap:
        """Return the job. Raises Fenced if this attempt has none any more."""
        return self._answer("GET", "bootstrap", b"", Bootstrap)

    def keys(self) -> PodKeys:
        """Return new keys to the bucket. Raises Fenced if this attempt has been replaced."""
        return self._answer("POST", "keys", b"", PodKeys)

    def heartbeat(self, heartbeat: Heartbeat) -> Reply:
        """Send a heartbeat and return the reply; its outcome is FENCED if the attempt has been replaced."""
        return self._post("heartbeat", heartbeat)

    def commit(self, commit: Commit) -> Reply:
        """Request a commit and return the reply; its outcome is FENCED if the attempt has been replaced."""
        return self._post("commit", commit)

    def exit(self, heartbeat: Heartbeat) -> Reply:
        """Report the end of the attempt and return the reply; its outcome is FENCED if the attempt has been
        replaced.
        """
        return self._post("exit", heartbeat)

    def _post(self, verb: str, message: BaseModel) -> Reply:
        try:
            return self._answer("POST", verb, message.model_dump_json().encode(), Reply)
        except Fenced as error:
            return Reply(outcome=Outcome.FENCED, reason=str(error))

    def _answer(self, method: str, verb: str, body: bytes, model: type[M]) -> M:
        status, data, fences, delay_s = self._ask(method, verb, body)
        if status == 401 and self._learn_time(data):
            status, data, fences, delay_s = self._ask(method, verb, body)
        if fences:
            raise Fenced(_shown(data))
        if status != 200:
            message = f"{verb}: the control plane answers {status}: {_shown(data)}"
            if status >= 500 or status in (401, 408, 409, 429):
                raise TemporaryError(message, delay_s=delay_s)
            raise PermanentError(message)
        return _parsed(verb, data, model)

    def _ask(self, method: str, verb: str, body: bytes) -> tuple[int, bytes, bool, float]:
        """Send one request, and return the response's status and body, whether it is a fence, and the seconds
        that it asks to wait.

        The signature covers the API's own path, without any prefix of the URL.

        A fence is a response that proves to come from the control plane itself: a proxy may answer 409, or
        anything else, in its place.
        """
        path = attempt_path(self._ticket.run, self._ticket.attempt, self._ticket.identity, verb)
        timestamp_s = int(self._wall_s()) + self._offset_s
        signature = sign(self._ticket.key, timestamp_s, method, path, body)
        headers = {
            TIMESTAMP_HEADER: str(timestamp_s),
            SIGNATURE_HEADER: signature,
            "content-type": "application/json",
        }
        url = self._ticket.url.rstrip("/") + path
        try:
            # Redirects are not followed, because a signed request must only reach the server it is meant for.
            with self._session.request(
                method,
                url,
                data=body,
                headers=headers,
                timeout=(CONNECT_S, READ_S),
                allow_redirects=False,
                stream=True,
            ) as response:
                status, data = response.status_code, _read(response)
                proof = response.headers.get(PROOF_HEADER, "").encode()
                fences = hmac.compare_digest(prove(self._ticket.key, signature, status, data).encode(), proof)
                return status, data, fences, retry_after_s(response.headers)
        except requests.RequestException as error:
            raise TemporaryError(
                f"{verb}: no answer from the control plane: {type(error).__name__}: {error}"[:TEXT_SHOWN_MAX]
            ) from error

    def _learn_time(self, data: bytes) -> bool:
        """Adopt the server's clock from a refusal. Return False if that changes nothing, so that a retry
        would fail again.
        """
        try:
            now_s = Refusal.model_validate_json(data).now_s
        except ValidationError:
            return False
        offset_s = now_s - int(self._wall_s())
        if now_s <= 0 or abs(offset_s - self._offset_s) <= 1:
            return False
        self._offset_s = offset_s
        return True


def _read(response: requests.Response) -> bytes:
    data = bytearray()
    for chunk in response.iter_content(CHUNK_BYTES):
        data += chunk
        if len(data) > ANSWER_BYTES_MAX:
            raise TemporaryError(f"the control plane's answer is larger than {ANSWER_BYTES_MAX} bytes")
    return bytes(data)


def _parsed(verb: str, data: bytes, model: type[M]) -> M:
    """Return the parsed response. The error names the invalid fields but not their values, because a
    bootstrap holds secrets.
    """
    try:
        parsed = model.model_validate_json(data)
    except ValidationError as error:
        places = ", ".join(
            ".".join(map(str, found["loc"])) or "the whole" for found in error.errors(include_input=False)[:5]
        )
        wrong = f"{verb}: the answer cannot be parsed: {places}"
    else:
        return parsed
    raise TemporaryError(wrong)


def _shown(data: bytes) -> str:
    try:
        return Refusal.model_validate_json(data).error[:TEXT_SHOWN_MAX]
    except ValidationError:
        return data[:TEXT_SHOWN_MAX].decode(errors="replace")
