"""One channel: its messages and threads, which messages it accepts, and its rate limit."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

from slack_sdk.errors import SlackObjectFormationError
from slack_sdk.models.blocks import Block

POSTS_PER_S = 1.0
POSTS_BURST = 4
PAGE_MAX = 999
READS_A_MINUTE = 50
BLOCKS_MAX = 50
TEXT_CHARS_MAX = 40_000
BLOCK_CHARS_MAX = 13_000
FIELD_CHARS_MAX = 2000
METADATA_BYTES_MAX = 16_000

_MENTION = re.compile(r"<[!@#][^>]*>")


@dataclass
class Channel:
    """A channel. `members`: the invited bots. `clock_s`: Slack's own clock."""

    members: set[str]
    clock_s: float
    messages: list[dict[str, Any]] = field(default_factory=list)
    """All messages including replies, oldest first."""
    archived: bool = False
    _tokens: float = POSTS_BURST
    _at_s: float = 0.0
    _last_ts: float = 0.0
    _reads_s: list[float] = field(default_factory=list)

    def wait_s(self) -> int:
        """Return the seconds to wait until the channel accepts a message; 0 if it does now."""
        self._tokens = min(
            POSTS_BURST, self._tokens + (self.clock_s - (self._at_s or self.clock_s)) * POSTS_PER_S
        )
        self._at_s = self.clock_s
        if self._tokens < 1:
            return 1
        self._tokens -= 1
        return 0

    def may_read(self) -> bool:
        self._reads_s = [at_s for at_s in self._reads_s if at_s > self.clock_s - 60] + [self.clock_s]
        return len(self._reads_s) <= READS_A_MINUTE

    def post(self, bot_id: str, body: dict[str, Any]) -> dict[str, Any]:
        self._last_ts = max(self.clock_s, self._last_ts + 0.000001)
        message = {"type": "message", "bot_id": bot_id, "ts": f"{self._last_ts:.6f}"}
        message |= {name: body[name] for name in ("text", "blocks", "metadata", "thread_ts") if name in body}
        self.messages.append(message)
        return message

    def find(self, ts: str | None) -> dict[str, Any] | None:
        return next((message for message in self.messages if message["ts"] == ts), None)

    def delete(self, ts: str) -> None:
        self.messages = [message for message in self.messages if message["ts"] != ts]

    @property
    def top(self) -> list[dict[str, Any]]:
        """Return the messages of the channel itself, oldest first."""
        return [message for message in self.messages if "thread_ts" not in message]

    def thread(self, ts: str) -> list[dict[str, Any]]:
        """Return the thread's first message and the replies."""
        return [message for message in self.messages if ts in (message["ts"], message.get("thread_ts"))]


def page(messages: list[dict[str, Any]], parameters: dict[str, Any]) -> dict[str, Any]:
    """Return a page of the messages in Slack's format; the cursor is the number of the next one."""
    start, limit = int(parameters.get("cursor") or 0), min(int(parameters.get("limit") or 100), PAGE_MAX)
    rows = [_row(message, parameters) for message in messages[start : start + limit]]
    more = start + limit < len(messages)
    return {
        "ok": True,
        "messages": rows,
        "has_more": more,
        "response_metadata": {"next_cursor": str(start + limit) if more else ""},
    }


def _row(message: dict[str, Any], parameters: dict[str, Any]) -> dict[str, Any]:
    with_metadata = str(parameters.get("include_all_metadata")).lower() in ("1", "true")
    return (
        message if with_metadata else {name: value for name, value in message.items() if name != "metadata"}
    )


def objection(body: dict[str, Any]) -> str:
    """Return Slack's error code for an invalid message; empty if it is valid."""
    blocks = body.get("blocks") or []
    if not body.get("text") and not blocks:
        return "no_text"
    if len(body.get("text") or "") > TEXT_CHARS_MAX:
        return "msg_too_long"
    if not isinstance(blocks, list) or len(blocks) > BLOCKS_MAX or not all(map(_is_block, blocks)):
        return "invalid_blocks"
    if len(json.dumps(blocks, ensure_ascii=False)) > BLOCK_CHARS_MAX:
        return "msg_blocks_too_long"
    return _metadata_objection(body.get("metadata"))


def mentions(message: dict[str, Any]) -> list[str]:
    """Return whom the message mentions."""
    return _MENTION.findall(json.dumps([message.get("text"), message.get("blocks")], ensure_ascii=False))


def _is_block(block: Any) -> bool:
    """Return whether the block is valid by the SDK's own models, which parse an unknown kind as None."""
    try:
        (read,) = Block.parse_all([block])
        if read is None:
            return False
        read.validate_json()
    except (SlackObjectFormationError, TypeError, ValueError, AttributeError):
        return False
    texts = [block.get("text") or {}, *(block.get("fields") or []), *(block.get("elements") or [])]
    return all(text.get("text") != "" for text in texts) and all(
        len(f["text"]) <= FIELD_CHARS_MAX for f in block.get("fields") or []
    )


def _metadata_objection(metadata: Any) -> str:
    if metadata is None:
        return ""
    if not isinstance(metadata, dict) or set(metadata) != {"event_type", "event_payload"}:
        return "invalid_metadata_format"
    if not re.fullmatch(r"[a-z0-9_]{1,255}", str(metadata["event_type"])):
        return "invalid_metadata_format"
    return "metadata_too_large" if len(json.dumps(metadata)) > METADATA_BYTES_MAX else ""
