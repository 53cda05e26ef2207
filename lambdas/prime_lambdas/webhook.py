"""The webhook as a Lambda behind a Function URL: the application that `serve` runs, under Mangum, without a
permanent process.
"""

import base64
import binascii
import gc
import logging
import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from mangum import Mangum

from prime_lambdas.aws import ask, session
from prime_lambdas.secret import Secret, has_pod_keys, masters, of_bucket, of_runs, read
from prime_lambdas.settings import Settings
from prime_train.buckets.attempt_policy import ATTEMPT_MAX
from prime_train.errors import ExternalError
from prime_train.pages.dashboard.requests import PageRequest, PageResponse, Pages
from prime_train.providers.kinds import notice_secrets
from prime_train.runs.wire import PodKeys
from prime_train.stores.dynamo.boto_calls import BotoCalls, client
from prime_train.stores.dynamo.store import DynamoStore
from prime_train.webhook.agent_calls import Call
from prime_train.webhook.app import Host, create_app
from prime_train.webhook.handling import carry_out
from prime_train.webhook.page_server import PageServer
from prime_train.webhook.requests import Response
from prime_train.webhook.responses import Refused
from prime_train.webhook.state import WebhookContext

if TYPE_CHECKING:
    from prime_train.buckets.port import Bucket
    from prime_train.buckets.temporary_credentials import CredentialIssuer
    from prime_train.pages.dashboard.dashboard import Dashboard
    from prime_train.runs.offer import Offer
    from prime_train.spec.policy import InForce
    from prime_train.spec.spec import HardwareSpec

CHECK = "check"
CHECKED_RUN = "doctor" * 8
"""A run name of maximum length, so that the check fails if AWS would refuse the policy of a run with such a
name.
"""
STARTING = "AWS_LAMBDA_INITIALIZATION_TYPE"
"""Environment variable that Lambda sets while it starts an instance of a function."""

log = logging.getLogger(__name__)


class Webhook(Host, Pages):
    """Handler for events of payload version 2.0. `clock` replaces both the function's own clock and the
    table's.
    """

    def __init__(self, settings: Settings, clock: Callable[[], float] | None = None) -> None:
        self._settings, self._clock, self._has_own_clock = settings, clock or time.time, clock is not None
        self._secret = Secret(lambda: read(settings))
        self._dynamodb = client(session(settings), settings.region, settings.endpoint)
        self._store = DynamoStore(BotoCalls(self._dynamodb), settings.table)
        self._context: tuple[Mapping[str, str], WebhookContext] | None = None
        self._dashboard: tuple[Mapping[str, str], Dashboard] | None = None
        self._issuer: CredentialIssuer | None = None
        self._domain = ""
        self._app = Mangum(create_app(self, PageServer(self, has_events=False)), lifespan="off")

    def __call__(self, event: Mapping[str, Any], context: Any) -> dict[str, Any]:
        request = http_event(event)
        if request is None:
            refusal = Refused(
                400, "this is not an HTTP request, or its body does not match its declared encoding"
            ).response(self.now_s())
            headers = {"content-type": "application/json"}
            return {
                "statusCode": refusal.status,
                "headers": headers,
                "body": refusal.body.decode(),
                "isBase64Encoded": False,
            }
        self._domain = request["requestContext"]["domainName"]
        answer: dict[str, Any] = self._app(request, context)
        answer["headers"].pop("connection", None)  # which is AWS's
        return answer

    def close(self) -> None:
        """Close the connections to the table. In Lambda they end with the process."""
        self._dynamodb.close()

    def check(self) -> dict[str, str]:
        """Return which keys machines get ("role" or "static") and the problem with them ("" if there is
        none), but never the keys.
        """
        try:
            lends = bool(self._settings.pod_role) and not has_pod_keys(self._secret.values())
            if lends:
                self.issue_credentials(CHECKED_RUN, ATTEMPT_MAX, CHECKED_RUN)
        except ExternalError as error:
            return {"keys": "role", "wrong": str(error)}
        return {"keys": "role" if lends else "static", "wrong": ""}

    # --------------------------------------------------------------------------------------------------------
    # what is asked

    def now_s(self) -> int:
        """Return this machine's time: a stranger's request must not cause a read of the table's."""
        return int(self._clock())

    def webhook(self) -> WebhookContext:
        values = self._values()
        if self._context is None or self._context[0] is not values:
            try:
                self._context = values, self._new_context(values)
            except ExternalError:
                self._secret.doubt()  # so that a corrected secret takes effect at once
                raise
        return self._context[1]

    async def carry_out(self, webhook: WebhookContext, call: Call) -> Response:
        return carry_out(webhook, call, self.now_s() if self._has_own_clock else webhook.store.now_s())

    def wake(self) -> None:
        """Invoke the watcher now. It also runs every minute, so a failure is only logged."""
        watcher = self._settings.watcher
        if not watcher:
            return
        try:
            ask(
                "lambda",
                self._settings,
                lambda to: to.invoke(FunctionName=watcher, InvocationType="Event", Payload=b'{"news":true}'),
            )
        except ExternalError as error:
            log.warning("the watcher was not invoked: %s", error)

    def _values(self) -> Mapping[str, str]:
        try:
            return self._secret.values()
        except ExternalError as error:
            log.error("the secret cannot be read: %s", error)
            raise

    def _new_context(self, values: Mapping[str, str]) -> WebhookContext:
        from prime_train.buckets.open import signed_upload
        from prime_train.github.auth import github_claims

        settings = self._settings
        return WebhookContext(
            self._store,
            masters(values),
            secrets=of_runs(values, settings),
            run_secrets=settings.run_secrets,
            bucket_url=settings.bucket_url,
            bucket=self._bucket,
            code_url=signed_upload(settings.bucket_url, {**settings.environment, **settings.place}),
            github_claims=github_claims(settings.environment),
            bucket_keys=settings.place | of_bucket(values),
            issue_credentials=self.issue_credentials if settings.pod_role else None,
            providers=settings.providers,
            public_url=settings.public_url or f"https://{self._domain}",
            watches=True,
            notice_secrets=notice_secrets(values),
            policy=lambda: self._policy(values),
            ask_offers=lambda hardware: self._offers(values, hardware),
        )

    def _bucket(self) -> "Bucket":
        from prime_train.buckets.open import open_bucket

        return open_bucket(self._settings.bucket_url, {**self._settings.environment, **self._settings.place})

    def _policy(self, values: Mapping[str, str]) -> "InForce":
        """Return the operator's policy, which the stack's parameter Policy holds."""
        from prime_lambdas.homes import home_of

        policy = home_of(self._settings, values).policy()
        assert policy is not None, "a stack's own table is not elsewhere"
        return policy

    def _offers(self, values: Mapping[str, str], hardware: "HardwareSpec") -> "Sequence[Offer] | None":
        """Return the offers of the providers whose credentials are in the stack's secret, as
        `offers_if_set_up` does.
        """
        from prime_lambdas.homes import home_of
        from prime_train.providers.configured import offers_if_set_up

        return offers_if_set_up(home_of(self._settings, values).environment, hardware)

    def issue_credentials(self, run_id: str, attempt: int, blobs_of: str = "", /) -> PodKeys:
        """Return temporary keys to the bucket, of the stack's role. Raises ExternalError."""
        if self._issuer is None:
            from prime_train.buckets.temporary_credentials import CredentialIssuer

            self._issuer = CredentialIssuer(
                self._settings.bucket_url, {**self._settings.environment, **self._settings.place}
            )
        return self._issuer(run_id, attempt, blobs_of)

    # --------------------------------------------------------------------------------------------------------
    # the dashboard

    def screen(self, request: PageRequest) -> PageResponse | None:
        return self._pages().screen(request)

    def respond(self, request: PageRequest) -> PageResponse:
        return self._pages().respond(request)

    def version(self, run_id: str) -> str:
        return self._pages().version(run_id)

    def _pages(self) -> "Dashboard":
        """Return the dashboard of the runs in the stack's table. It accepts tokens sealed by any master key
        in the secret. Its modules are imported on first use.
        """
        from prime_lambdas.homes import home_of
        from prime_train.pages.dashboard.serving import served_on_call

        values = self._values()
        if self._dashboard is None or self._dashboard[0] is not values:
            self._dashboard = values, served_on_call(home_of(self._settings, values), masters(values))
        return self._dashboard[1]


def http_event(event: Any) -> dict[str, Any] | None:
    """Return what Mangum reads of an HTTP request's event; None if the event is of another kind, or its body
    is not encoded as it declares.
    """
    try:
        context, body, encoded = (
            event["requestContext"],
            event.get("body") or "",
            bool(event.get("isBase64Encoded")),
        )
        base64.b64decode(body, validate=True) if encoded else body.encode()
        headers = {name.lower(): str(value) for name, value in (event.get("headers") or {}).items()}
        for name in ("host", "x-forwarded-port"):  # which nobody reads, and Mangum expects in a form
            headers.pop(name, None)
        "".join((*headers, *headers.values())).encode()
        http = {"method": str(context["http"]["method"]), "path": str(event["rawPath"]), "sourceIp": ""}
        return {
            "version": "2.0",
            "rawQueryString": str(event.get("rawQueryString") or ""),
            "headers": headers,
            "cookies": [str(cookie) for cookie in event.get("cookies") or ()],
            "requestContext": {"http": http, "domainName": str(context.get("domainName", ""))},
            "body": body,
            "isBase64Encoded": encoded,
        }
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError):
        return None


@cache
def _webhook() -> Webhook:
    # The runtime's default level is WARNING; the INFO messages here are needed and hold no secret. Mangum
    # would log every request.
    logging.getLogger("prime_lambdas").setLevel(logging.INFO)
    logging.getLogger("mangum").setLevel(logging.WARNING)
    return Webhook(Settings.of(os.environ))


def handler(event: Mapping[str, Any], context: object) -> dict[str, Any]:
    """Handle an invocation by Lambda. An event with the key `check` runs the self-check. Such an event can
    only be sent by callers with permission to invoke the function by its name, not through its URL.
    """
    if CHECK in event:
        return _webhook().check()
    return _webhook()(event, context)


if STARTING in os.environ:
    # Lambda gives a starting instance a whole core, and later a third of one. Clients are made and missing
    # settings reported now; and the collector, which the package has paused, is told that nothing of all this
    # is garbage.
    _webhook()
    gc.freeze()
    gc.enable()
