"""The connections of Slack's SDK, with limits that it does not have: its own follow redirects with the token,
and read an answer however long it is or takes.
"""

import ssl
import urllib.request
from http.client import HTTPMessage, HTTPResponse
from typing import IO, Any

from slack_sdk import WebClient, WebhookClient
from slack_sdk.webhook import WebhookResponse

from prime_train.answer_limits import connections, limited

ANSWER_BYTES_MAX = 8 * 2**20
HEAD_S = 5.0
"""Seconds that a complete answer may take longer than its first byte."""


class LimitedWebClient(WebClient):
    """Slack's client of its API."""

    def _perform_urllib_http_request_internal(self, url: str, req: urllib.request.Request) -> dict[str, Any]:
        answer, body = _exchanged(req, self.timeout)
        return {"status": answer.status, "headers": answer.headers, "body": body}


class LimitedWebhookClient(WebhookClient):
    """Slack's client of incoming webhooks."""

    def _perform_http_request_internal(self, url: str, req: urllib.request.Request) -> WebhookResponse:
        answer, body = _exchanged(req, self.timeout)
        return WebhookResponse(
            url=url, status_code=answer.status, body=body, headers=dict(answer.headers.items())
        )


def _exchanged(request: urllib.request.Request, timeout_s: float) -> tuple[HTTPResponse, str]:
    """Return the answer and its body. Raises HTTPError for an answer that is no success, also for a redirect,
    and OSError.
    """
    opener = urllib.request.build_opener(_Unredirected, _Plain(timeout_s), _Encrypted(timeout_s))
    with opener.open(request, timeout=timeout_s) as answer:
        return answer, answer.read().decode()


class _Unredirected(urllib.request.HTTPRedirectHandler):
    """Follows no redirect: the token would go along."""

    def redirect_request(
        self,
        req: urllib.request.Request,
        fp: IO[bytes],
        code: int,
        msg: str,
        headers: HTTPMessage,
        newurl: str,
    ) -> urllib.request.Request | None:
        return None


class _Plain(urllib.request.HTTPHandler):
    def __init__(self, timeout_s: float) -> None:
        super().__init__()
        self._connection, _ = connections(limited(timeout_s + HEAD_S, ANSWER_BYTES_MAX))

    def http_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self._connection, req)


class _Encrypted(urllib.request.HTTPSHandler):
    def __init__(self, timeout_s: float) -> None:
        super().__init__()
        _, self._connection = connections(limited(timeout_s + HEAD_S, ANSWER_BYTES_MAX))

    def https_open(self, req: urllib.request.Request) -> HTTPResponse:
        return self.do_open(self._connection, req, context=ssl.create_default_context())
