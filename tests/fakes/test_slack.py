"""The fake of Slack refuses what Slack refuses."""

from collections.abc import Iterator
from typing import Any

import pytest
from slack_sdk import WebClient
from slack_sdk.errors import SlackApiError

from tests.fakes.slack import CHANNEL, TOKEN, FakeSlack
from tests.fakes.slack.channel import POSTS_BURST


@pytest.fixture
def slack() -> Iterator[FakeSlack]:
    with FakeSlack() as fake:
        yield fake


def client(slack: FakeSlack, token: str = TOKEN) -> WebClient:
    return WebClient(token, base_url=slack.url, retry_handlers=[])


def section(text: str) -> dict[str, Any]:
    return {"type": "section", "text": {"type": "mrkdwn", "text": text}}


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ({"blocks": [{"type": "bogus"}]}, "invalid_blocks"),
        ({"blocks": [section("x" * 3001)]}, "invalid_blocks"),
        ({"blocks": [section("")]}, "invalid_blocks"),
        (
            {"blocks": [{"type": "header", "text": {"type": "plain_text", "text": "x" * 151}}]},
            "invalid_blocks",
        ),
        ({"blocks": [section("x")] * 51}, "invalid_blocks"),
        ({"blocks": [section("x" * 3000)] * 5}, "msg_blocks_too_long"),
        ({"text": "x" * 40_001}, "msg_too_long"),
        ({"metadata": {"event_type": "a", "event_payload": {"x": "x" * 20_000}}}, "metadata_too_large"),
        ({"thread_ts": "1.000000"}, "thread_not_found"),
        ({"channel": "#runs"}, "channel_not_found"),
    ],
)
def test_a_message_is_refused(slack: FakeSlack, message: dict[str, Any], word: str) -> None:
    with pytest.raises(SlackApiError) as caught:
        client(slack).chat_postMessage(**({"channel": CHANNEL, "text": "hello"} | message))
    assert caught.value.response["error"] == word


def test_a_token_is_looked_at(slack: FakeSlack) -> None:
    with pytest.raises(SlackApiError, match="invalid_auth"):
        client(slack, "xoxb-other").auth_test()
    slack.scopes.clear()
    with pytest.raises(SlackApiError, match="missing_scope"):
        client(slack).conversations_history(channel=CHANNEL)


def test_a_channel_takes_a_few_messages_at_once_and_then_one_a_second(slack: FakeSlack) -> None:
    for _ in range(POSTS_BURST):
        client(slack).chat_postMessage(channel=CHANNEL, text="hello")
    with pytest.raises(SlackApiError) as caught:
        client(slack).chat_postMessage(channel=CHANNEL, text="hello")
    slack.advance(1)
    client(slack).chat_postMessage(channel=CHANNEL, text="hello")

    assert (caught.value.response.status_code, caught.value.response.headers["Retry-After"]) == (429, "1")


def test_metadata_is_shown_to_who_asks_for_it_and_a_thread_is_no_part_of_the_channel(
    slack: FakeSlack,
) -> None:
    marked = {"event_type": "mark", "event_payload": {"a": "b"}}
    ts = client(slack).chat_postMessage(channel=CHANNEL, text="head", metadata=marked)["ts"]
    client(slack).chat_postMessage(channel=CHANNEL, text="reply", thread_ts=ts)

    plain = client(slack).conversations_history(channel=CHANNEL)["messages"]
    complete = client(slack).conversations_replies(channel=CHANNEL, ts=ts, include_all_metadata=True)[
        "messages"
    ]
    assert [(message["text"], "metadata" in message) for message in plain] == [("head", False)]
    assert [(message["text"], message.get("metadata")) for message in complete] == [
        ("head", marked),
        ("reply", None),
    ]
