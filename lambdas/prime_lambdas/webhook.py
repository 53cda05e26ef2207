"""The webhook as a Lambda behind a Function URL. It serves what the server of a control plane serves, without a permanent process.

Nearly all requests are valid heartbeats of the plain form. Those need only a few modules of prime-train and the standard library, and one
write. All other requests go to the same functions that uvicorn serves (through `prime_lambdas.webhook_context`), which are imported on
first use, as are the pages for people with their web framework.
"""

import base64
import binascii
import logging
import os
import time
from collections.abc import Callable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from prime_lambdas.aws_request import AwsRequest, ask
from prime_lambdas.deferred_imports import garbage_collection_paused, parsers_deferred
from prime_lambdas.secret import Secret, masters, read
from prime_lambdas.settings import Settings
from prime_train.adapters.store_dynamo import heartbeats
from prime_train.adapters.store_dynamo.signed_calls import SignedCalls
from prime_train.adapters.store_dynamo.table import Table
from prime_train.control_plane.admission.authenticate import admit, proven
from prime_train.control_plane.admission.calls import Request, RequestTarget, Response
from prime_train.control_plane.admission.heartbeats import PlainHeartbeat, plain_heartbeat
from prime_train.control_plane.admission.keyring import Keyring
from prime_train.control_plane.admission.responses import answer_to, refuse, too_large, unavailable
from prime_train.core.access.signing import body_bytes_max
from prime_train.core.errors import ExternalError
from prime_train.core.registry.providers import notice_secrets

if TYPE_CHECKING:
    from prime_train.control_plane.webhook import WebhookContext
    from prime_train.dashboard import Dashboard

AGENTS = "/v1/"
"""Prefix of the paths of all API calls by agents and operators."""
PAGES = frozenset({"/docs", "/openapi.json"})
CHECK = "check"
HOP_BY_HOP = frozenset({"connection", "keep-alive", "transfer-encoding"})
STARTING = "AWS_LAMBDA_INITIALIZATION_TYPE"
"""Environment variable that Lambda sets while it starts an instance of a function."""

log = logging.getLogger(__name__)


class Webhook:
    """Handler for events of payload version 2.0. `clock` replaces both the function's own clock and the table's."""

    def __init__(self, settings: Settings, clock: Callable[[], float] | None = None) -> None:
        self._settings, self._clock = settings, clock or time.time
        self._secret = Secret(lambda: read(settings))
        self._calls = SignedCalls(settings.environment, settings.region, settings.endpoint)
        self._table = Table(self._calls, settings.table)
        self._store_clock = clock or self._table.clock
        self._keyring: tuple[Mapping[str, str], Keyring] | None = None
        self._context: tuple[Mapping[str, str], WebhookContext] | None = None
        self._dashboards: tuple[Mapping[str, str], Dashboard] | None = None
        self._pages: dict[str, dict[str, Any]] = {}

    def __call__(self, event: Mapping[str, Any], context: object) -> dict[str, Any]:
        now_s = int(self._clock())
        request = request_of(event, now_s)
        if request is None:
            return lambda_response(refuse(400, "this is not an HTTP request, or its body does not match its declared encoding", now_s))
        try:
            if request.path in PAGES and request.method == "GET":
                return self._page(request, event, context)
            shown = self._dashboard(event) if not request.path.startswith(AGENTS) else None
            if shown is not None:
                return shown
            response = self._answer(event, request)
        except ExternalError as error:  # from reading the secret: errors of the store are handled where they occur
            log.error("the secret cannot be read: %s", error)
            response = unavailable(error, now_s)
        except Exception:
            log.exception("a request could not be answered")
            response = refuse(500, "a bug in the control plane; see its log", now_s)
        if response.wakes and self._settings.watcher:
            self._wake()
        return lambda_response(response)

    def close(self) -> None:
        """Close the connections to the table; a later call opens new ones. In Lambda they end with the process."""
        self._calls.close()

    def check(self) -> dict[str, str]:
        """Return which keys machines get ("role" or "static") and the problem with them ("" if there is none), but never the keys."""
        from prime_lambdas.webhook_context import checked

        return checked(self._settings, self._secret.values, self._clock)

    def _answer(self, event: Mapping[str, Any], request: Request) -> Response:
        admitted = admit(self._current(), request)
        if isinstance(admitted, Response):
            return admitted
        # From here on use the table's time. Only admitted requests get this far, so a stranger's request cannot cause a read of that time.
        try:
            request = request._replace(now_s=int(self._store_clock()))
        except ExternalError as error:
            log.warning("the time cannot be read: %s", error)
            return unavailable(error, request.now_s)
        heartbeat = plain_heartbeat(admitted, request.body) if isinstance(admitted, RequestTarget) else None
        if heartbeat is not None:
            return proven(self._current(), request, self._hear(heartbeat, event, request.now_s))
        webhook = self._full_context(event)
        from prime_train.control_plane.webhook import fulfil

        return fulfil(webhook, admitted, request)

    def _hear(self, heartbeat: PlainHeartbeat, event: Mapping[str, Any], now_s: int) -> Response:
        try:
            result = heartbeats.heartbeat(
                self._table,
                heartbeat.run,
                attempt=heartbeat.attempt,
                seq=heartbeat.seq,
                text=heartbeat.text,
                news=heartbeat.news,
                now_s=now_s,
                identity=heartbeat.identity,
            )
            return answer_to(
                result.outcome,
                result.order,
                result.reason,
                committed_step=result.committed_step,
                pace_s=lambda: result.pace_s or self._full_context(event).pace_s(heartbeat.run),
                is_news=heartbeat.news,
                now_s=now_s,
            )
        except ExternalError as error:
            log.warning("a heartbeat of run %s could not be stored: %s", heartbeat.run, error)
            return unavailable(error, now_s)

    def _current(self) -> Keyring:
        values = self._secret.values()
        if self._keyring is None or self._keyring[0] is not values:
            try:
                self._keyring = values, Keyring(masters(values), notice_secrets(values))
            except ExternalError:
                self._secret.doubt()  # so that a corrected secret takes effect at once
                raise
        return self._keyring[1]

    def _full_context(self, event: Mapping[str, Any]) -> "WebhookContext":
        values = self._secret.values()
        if self._context is None or self._context[0] is not values:
            with garbage_collection_paused(), parsers_deferred():
                from prime_lambdas.webhook_context import new_context
            host = event["requestContext"]["domainName"]
            self._context = values, new_context(self._settings, values, self._calls, host, self._clock)
        return self._context[1]

    def _wake(self) -> None:
        """Invoke the watcher now. It also runs every minute, so a failure is only logged."""
        headers = {"content-type": "application/json", "x-amz-invocation-type": "Event"}
        path = f"/2015-03-31/functions/{self._settings.watcher}/invocations"
        question = AwsRequest("lambda", path, headers, b'{"news":true}')
        try:
            ask(question, self._settings.environment, self._settings.region, self._settings.endpoint)
        except ExternalError as error:
            log.warning("the watcher was not invoked: %s", error)

    def _dashboard(self, event: Mapping[str, Any]) -> dict[str, Any] | None:
        """Return the dashboard's response, or None if the path does not belong to it. Its modules are imported on first use."""
        from prime_train.control_plane.dashboard_interface import is_page

        if not is_page(str(event["rawPath"])):
            return None
        from prime_lambdas.dashboard import dashboard_of, shown

        values = self._secret.values()
        if self._dashboards is None or self._dashboards[0] is not values:
            self._dashboards = values, dashboard_of(self._settings, values)
        return shown(self._dashboards[1], event)

    def _page(self, request: Request, event: Mapping[str, Any], context: object) -> dict[str, Any]:
        """Return a page for people, made once and then cached: making it takes a hundred times as long as a heartbeat, and requests for it
        are not authenticated."""
        from prime_lambdas.documentation_pages import page

        if len(request.body) > body_bytes_max(request.path):
            return lambda_response(too_large(request.now_s, request.path))
        if request.path not in self._pages:
            self._pages[request.path] = page(event, context)
        return self._pages[request.path]


def request_of(event: Mapping[str, Any], now_s: int) -> Request | None:
    """Return the HTTP request in an event; None if the event is of another kind, or its body is not encoded as it declares."""
    try:
        http, body = event["requestContext"]["http"], event.get("body") or ""
        method, path, headers = str(http["method"]), str(event["rawPath"]), event.get("headers") or {}
        content = base64.b64decode(body, validate=True) if event.get("isBase64Encoded") else body.encode()
        return Request(method, path, {name.lower(): str(value) for name, value in headers.items()}, content, now_s)
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError):
        return None


def lambda_response(response: Response) -> dict[str, Any]:
    headers = {name: value for name, value in response.headers if name not in HOP_BY_HOP}
    headers["content-type"] = "application/json"
    return {"statusCode": response.status, "headers": headers, "body": response.body.decode(), "isBase64Encoded": False}


@cache
def _webhook() -> Webhook:
    # The runtime's default level is WARNING; the INFO messages here are needed and hold no secret.
    logging.getLogger("prime_lambdas").setLevel(logging.INFO)
    return Webhook(Settings.of(os.environ))


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Handle an invocation by Lambda. An event with the key `check` runs the self-check. Such an event can only be sent by callers with
    permission to invoke the function by its name, not through its URL."""
    if CHECK in event:
        return _webhook().check()
    return _webhook()(event, context)


if STARTING in os.environ:
    # Lambda gives a starting instance a whole core, and later a third of one. Trusted CA certificates are loaded and missing settings
    # reported now.
    _webhook()
