"""What schemathesis needs to send valid requests to the webhook: the key that signs a path, and values that
fit the existing run.
"""

import re
import time
from typing import Any
from urllib.parse import unquote, urlsplit

import requests
from requests.auth import AuthBase
from schemathesis import Case, GenerationMode

from prime_train.buckets.keys import manifest_key
from prime_train.runs.wire import (
    SIGNATURE_HEADER,
    STORE_PATH,
    TIMESTAMP_HEADER,
    attempt_key,
    operator_key,
    sign,
)
from prime_train.spec.causes import Cause
from tests import builders as b
from tests.webhook.calls import ATTEMPT

RUN_PATH = re.compile(r"/v1/runs/([^/]+)/([0-9]{1,9})/\w+")
UNFITTING = 4
"""One case in this many is sent to whatever run and attempt it names."""


class Signed(AuthBase):
    """Signs as the attempt of the path, or as the sender of a path without a run."""

    def __init__(self, master: bytes, *, before: str = "") -> None:
        self._master, self._before = master, before
        """Prefix of the path that is not signed."""

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        path = unquote(urlsplit(request.url or "").path, errors="replace").removeprefix(self._before)
        body = request.body or b""
        raw = body.encode() if isinstance(body, str) else body
        at_s = int(time.time())
        request.headers[TIMESTAMP_HEADER] = str(at_s)
        request.headers[SIGNATURE_HEADER] = sign(self._key(path), at_s, request.method or "", path, raw)
        return request

    def _key(self, path: str) -> str:
        found = RUN_PATH.fullmatch(path)
        if found is not None:
            return attempt_key(self._master, found[1], int(found[2]))
        return (
            operator_key(self._master)
            if path.startswith(STORE_PATH)
            else attempt_key(self._master, "canary", 1)
        )


def fit(case: Case, number: int) -> Case:
    """Return the case with the path of the existing run, except for one in `UNFITTING`; in a valid one, the
    body is changed to match.
    """
    if number % UNFITTING and case.path_parameters:
        case.path_parameters = {"run": b.RUN_ID, "attempt": ATTEMPT}
        if (
            isinstance(case.body, dict)
            and case.meta is not None
            and case.meta.generation.mode == GenerationMode.POSITIVE
        ):
            case.body = {**case.body, "run": b.RUN_ID, "attempt": ATTEMPT, **_of(case.path, case.body)}
    return case


def _of(path: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the body with what the description cannot express: a commit names its step's manifest, an exit
    an end.
    """
    if path.endswith("/commit"):
        return {"key": manifest_key(b.RUN_ID, int(body["step"]), ATTEMPT)}
    return {"exit": body.get("exit") or {"cause": Cause.FINISHED}} if path.endswith("/exit") else {}
