"""Slack's API through its own SDK, with errors of `ports`.

The SDK's retries are switched off, because a repeated post would be a second message. Its logs are discarded,
because a webhook's URL and tokens are secrets. Its exceptions hold complete responses, so they are not
chained.
"""

import hashlib
import logging
import re
import ssl
from collections.abc import Callable, Iterator, Sequence
from http.client import HTTPException, InvalidURL
from typing import Any, TypeVar
from urllib.error import HTTPError, URLError

from slack_sdk.errors import SlackApiError, SlackClientError
from slack_sdk.models.blocks import Block
from slack_sdk.models.metadata import Metadata

from prime_train.alerts.slack.error_codes import Unanswered, refusal
from prime_train.alerts.slack.transport import LimitedWebClient, LimitedWebhookClient
from prime_train.answer_limits import TooMuch
from prime_train.errors import PermanentError, TemporaryError
from prime_train.text.retry_after import retry_after_s

URL = "https://slack.com/api/"
TIMEOUT_S = 5
HOOK_TIMEOUT_S = 15
"""Timeout in seconds of a call to an incoming webhook. It is longer than `TIMEOUT_S`, because a webhook
cannot read the channel, so the outcome of an unanswered post is never known.
"""
PAGE_MESSAGES = 200
PAGES_MAX = 10
"""Limit of pages when a channel or a thread is read."""
MESSAGE_CHARS_MAX = 200
PLACE_CHARS = 8

_T = TypeVar("_T")
_SILENT = logging.Logger("slack", logging.CRITICAL + 1)
_WORD = re.compile(r"[a-z_]{2,60}")


class Api:
    """A channel of Slack, accessed with a bot's token. Every method raises TemporaryError or PermanentError.
    `place`: the channel's id.

    After a TemporaryError it is unknown whether a message was posted.
    """

    def __init__(self, token: str, channel: str, *, url: str = URL, timeout_s: int = TIMEOUT_S) -> None:
        self._channel = self.place = channel
        self._client = LimitedWebClient(
            token, base_url=url, timeout=timeout_s, logger=_SILENT, retry_handlers=[]
        )

    def post(
        self, text: str, blocks: Sequence[Block], metadata: Metadata, *, thread: str | None = None
    ) -> str:
        """Post a message, and return the timestamp that identifies it in Slack."""
        response = _called(
            "chat.postMessage",
            lambda: (
                self._client.chat_postMessage(
                    channel=self._channel,
                    text=text,
                    blocks=list(blocks),
                    metadata=metadata,
                    thread_ts=thread,
                    unfurl_links=False,
                    unfurl_media=False,
                ).data
            ),
        )
        return str(response["ts"])

    def edit(self, ts: str, text: str, blocks: Sequence[Block], metadata: Metadata) -> None:
        _called(
            "chat.update",
            lambda: (
                self._client.chat_update(
                    channel=self._channel, ts=ts, text=text, blocks=list(blocks), metadata=metadata
                ).data
            ),
        )

    def me(self) -> str:
        """Return the id under which Slack stores this bot's messages."""
        return str(_called("auth.test", lambda: self._client.auth_test().data).get("bot_id") or "")

    def history(self, since_s: int) -> Iterator[dict[str, Any]]:
        """Yield the messages of the channel itself, newest first."""
        return self._pages(
            "conversations.history",
            lambda cursor: (
                self._client.conversations_history(
                    channel=self._channel,
                    oldest=str(since_s),
                    limit=PAGE_MESSAGES,
                    include_all_metadata=True,
                    cursor=cursor,
                ).data
            ),
        )

    def replies(self, ts: str) -> Iterator[dict[str, Any]]:
        """Yield the messages of a thread, including its first one."""
        return self._pages(
            "conversations.replies",
            lambda cursor: (
                self._client.conversations_replies(
                    channel=self._channel,
                    ts=ts,
                    limit=PAGE_MESSAGES,
                    include_all_metadata=True,
                    cursor=cursor,
                ).data
            ),
        )

    def _pages(self, method: str, ask: Callable[[str | None], Any]) -> Iterator[dict[str, Any]]:
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            from_cursor = cursor
            response = _called(method, lambda: ask(from_cursor))  # noqa: B023 - called before the next turn
            yield from response.get("messages") or []
            cursor = (response.get("response_metadata") or {}).get("next_cursor") or None
            if cursor is None:
                return


class Hook:
    """An incoming webhook: it can post messages, but neither read nor edit them. `place`: a hash of its URL,
    which is a secret.
    """

    def __init__(self, url: str, *, timeout_s: int = HOOK_TIMEOUT_S) -> None:
        if not re.fullmatch(r"https?://[!-~]+", url):
            raise PermanentError("Slack's webhook URL is not an http or https URL")
        self.place = hashlib.sha256(url.encode()).hexdigest()[:PLACE_CHARS]
        self._client = LimitedWebhookClient(url, timeout=timeout_s, logger=_SILENT, retry_handlers=[])

    def post(self, text: str, blocks: Sequence[Block]) -> None:
        """Post a message. Raises Unanswered if it may have been posted already."""
        response = _answered(
            "the webhook",
            lambda: self._client.send(text=text, blocks=list(blocks), unfurl_links=False, unfurl_media=False),
        )
        if response.status_code != 200:
            raise refusal(
                "the webhook", response.status_code, _word(response.body), delay_s=_delay_s(response.headers)
            )


def _called(method: str, ask: Callable[[], Any]) -> dict[str, Any]:
    try:
        answer = _answered(method, ask)
    except SlackApiError as error:
        response = error.response
        code = str(response.data.get("error")) if isinstance(response.data, dict) else ""
        raise refusal(
            method, int(response.status_code), _word(code), delay_s=_delay_s(response.headers)
        ) from None
    if not isinstance(answer, dict):
        raise refusal(method, 200, "")
    return answer


def _answered(method: str, ask: Callable[[], _T]) -> _T:
    try:
        return ask()
    except SlackApiError:
        raise
    except SlackClientError as error:
        # raised before anything was sent
        raise PermanentError(f"Slack's SDK refused {method}: {str(error)[:MESSAGE_CHARS_MAX]}") from None
    except (OSError, HTTPException, ValueError, LookupError, RecursionError) as error:
        kind = Unanswered if _was_sent(error) else TemporaryError
        raise kind(f"Slack did not answer {method}: {type(error).__name__}") from None


def _was_sent(error: Exception) -> bool:
    """Return whether the error occurred after the request was sent: earlier failures are wrapped by urllib.
    An error while the text of a refusal is read does not count as a missing response.
    """
    after = isinstance(
        error,
        TimeoutError
        | TooMuch
        | ConnectionError
        | ssl.SSLError
        | HTTPException
        | UnicodeDecodeError
        | RecursionError,
    )
    return (
        after
        and not isinstance(error, URLError | InvalidURL)
        and not isinstance(error.__context__, HTTPError)
    )


def _word(text: str) -> str:
    """Return Slack's error code, or an empty string for any other text."""
    return text.strip() if _WORD.fullmatch(text.strip()) else ""


def _delay_s(headers: Any) -> float:
    return retry_after_s({str(name).lower(): str(value) for name, value in dict(headers).items()})
