"""One channel: its messages and threads, and how fast it lets itself be written to."""

from dataclasses import dataclass, field
from typing import Any

POSTS_PER_S = 1.0
POSTS_BURST = 4
PAGE_MAX = 999
READS_A_MINUTE = 50


@dataclass
class Channel:
    """`members`: the bots that were invited. `clock_s`: Slack's own."""

    members: set[str]
    clock_s: float
    messages: list[dict[str, Any]] = field(default_factory=list)
    """All of them, replies too, oldest first."""
    archived: bool = False
    _tokens: float = POSTS_BURST
    _at_s: float = 0.0
    _last_ts: float = 0.0
    _reads_s: list[float] = field(default_factory=list)

    def wait_s(self) -> int:
        """0: it takes a message now; else the seconds to wait."""
        self._tokens = min(POSTS_BURST, self._tokens + (self.clock_s - (self._at_s or self.clock_s)) * POSTS_PER_S)
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
        """What the channel itself shows, oldest first."""
        return [message for message in self.messages if "thread_ts" not in message]

    def thread(self, ts: str) -> list[dict[str, Any]]:
        """The head, and what was replied."""
        return [message for message in self.messages if ts in (message["ts"], message.get("thread_ts"))]


def page(messages: list[dict[str, Any]], asked: dict[str, Any]) -> dict[str, Any]:
    """Part of them, in Slack's words; the cursor is the number of the next."""
    start, limit = int(asked.get("cursor") or 0), min(int(asked.get("limit") or 100), PAGE_MAX)
    shown = [_shown(message, asked) for message in messages[start : start + limit]]
    more = start + limit < len(messages)
    return {"ok": True, "messages": shown, "has_more": more, "response_metadata": {"next_cursor": str(start + limit) if more else ""}}


def _shown(message: dict[str, Any], asked: dict[str, Any]) -> dict[str, Any]:
    with_metadata = str(asked.get("include_all_metadata")).lower() in ("1", "true")
    return message if with_metadata else {name: value for name, value in message.items() if name != "metadata"}
