"""The webhook as a Lambda behind a Function URL: what `prime-train serve` answers, without a process that stays up.

What agents and operators ask goes straight to the webhook's functions; neither a framework nor AWS's library is loaded for it. Only the
pages for people, with the description of the routes, are served by the same FastAPI app that uvicorn serves, loaded when somebody looks.
"""

import base64
import binascii
import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from prime_lambdas.asking import Question, ask
from prime_lambdas.secret import Secret, masters, of_bucket, of_runs, read
from prime_lambdas.settings import Settings
from prime_train.adapters.store_dynamo.signed import SignedCalls
from prime_train.adapters.store_dynamo.store import DynamoStore
from prime_train.ports import OutsideError
from prime_train.webhook import Desk, Request, Response, handle, refuse
from prime_train.webhook.responses import unavailable

PAGES = frozenset({"/docs", "/docs/oauth2-redirect", "/openapi.json"})
HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding"})

log = logging.getLogger(__name__)


class Webhook:
    """Answers events of payload version 2.0."""

    def __init__(self, settings: Settings, clock: Callable[[], float] = time.time) -> None:
        self._settings, self._clock = settings, clock
        self._secret = Secret(lambda: read(settings), time.monotonic)
        self._desk: tuple[Mapping[str, str], Desk] | None = None
        self._store = DynamoStore(SignedCalls(settings.environment, settings.region, settings.endpoint), settings.table)

    def __call__(self, event: Mapping[str, Any], context: object) -> dict[str, Any]:
        now_s = int(self._clock())
        request = asked(event, now_s)
        if request is None:
            return said(refuse(400, "the body is not encoded as the request says", now_s))
        try:
            if request.path in PAGES and request.method == "GET":
                return self._page(event, context)
            response = handle(self._current(event), request)
        except OutsideError as error:  # of the secret: the store's own are answered by the webhook
            log.error("the secret can not be had: %s", error)
            response = unavailable(error, now_s)
        except Exception:
            log.exception("a request could not be answered")
            response = refuse(500, "a mistake of the control plane's; see its log", now_s)
        if response.wakes and self._settings.watcher:
            self._wake()
        return said(response)

    def _current(self, event: Mapping[str, Any]) -> Desk:
        values = self._secret.values()
        if self._desk is None or self._desk[0] is not values:
            self._desk = values, self._new_desk(values, event)
        return self._desk[1]

    def _new_desk(self, values: Mapping[str, str], event: Mapping[str, Any]) -> Desk:
        host = event["requestContext"]["domainName"]
        return Desk(
            self._store,
            masters(values),
            secrets=of_runs(values),
            bucket_url=self._settings.bucket_url,
            bucket_keys=of_bucket(values),
            provider=self._settings.provider,
            public_url=self._settings.public_url or f"https://{host}",
            watches=True,
        )

    def _wake(self) -> None:
        """Has the watcher look now. It looks every minute anyway, so a failure is only told."""
        headers = {"content-type": "application/json", "x-amz-invocation-type": "Event"}
        path = f"/2015-03-31/functions/{self._settings.watcher}/invocations"
        question = Question("lambda", path, headers, b'{"news":true}')
        try:
            ask(question, self._settings.environment, self._settings.region, self._settings.endpoint)
        except OutsideError as error:
            log.warning("the watcher was not woken: %s", error)

    def _page(self, event: Mapping[str, Any], context: object) -> dict[str, Any]:
        from prime_lambdas.pages import page

        return page(self._current(event), event, context)


def asked(event: Mapping[str, Any], now_s: int) -> Request | None:
    """None: the body is not what the event says it is."""
    http, body = event["requestContext"]["http"], event.get("body") or ""
    headers = {name.lower(): value for name, value in event.get("headers", {}).items()}
    try:
        content = base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
    except (binascii.Error, ValueError):
        return None
    return Request(http["method"], event["rawPath"], headers, content, now_s)


def said(response: Response) -> dict[str, Any]:
    headers = {name: value for name, value in response.headers if name not in HOP_BY_HOP}
    headers["content-type"] = "application/json"
    return {"statusCode": response.status, "headers": headers, "body": response.body.decode(), "isBase64Encoded": False}


@cache
def _webhook() -> Webhook:
    # The runtime's own level is WARNING: what is told here is wanted, and holds no secret.
    logging.getLogger("prime_lambdas").setLevel(logging.INFO)
    return Webhook(Settings.of(os.environ))


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """What Lambda calls."""
    return _webhook()(event, context)
