"""The server, and what it answers."""

import json
import threading
from typing import Any, Self
from urllib.parse import parse_qsl

from tests.fakes.prime.answering import Target
from tests.fakes.prime.faults import Answer, Fault, Hang, Rule, Rules, met
from tests.fakes.prime.http_front import HttpFront
from tests.fakes.slack.channel import Channel, page
from tests.fakes.slack.checks import mentions, objection

TOKEN = "xoxb-" + "1" * 24
BOT = "B0TRAIN01"
CHANNEL = "C0TRAINING"
HOOK = "/services/T0SECRET/B0SECRET/s3cr3tPath"
SCOPES = frozenset({"chat:write", "channels:history"})
HANG_S_MAX = 60.0

_NEEDS = {
    "chat.postMessage": "chat:write",
    "chat.update": "chat:write",
    "conversations.history": "channels:history",
    "conversations.replies": "channels:history",
    "auth.test": "",
}

Said = dict[str, Any]


class FakeSlack:
    """A workspace with one channel, `CHANNEL`, and a bot in it that holds `TOKEN`. `clock_s` stands still but for `advance`.

    `scopes` of the token may be taken away, `revoked` says so of the token itself.
    """

    def __init__(self, *, clock_s: float = 1_000_000.0) -> None:
        self.channel = Channel({BOT}, clock_s)
        self.scopes = set(SCOPES)
        self.revoked = False
        self.asked: list[str] = []
        """The methods, in the order in which they came; a webhook is `hook`."""
        self._lock = threading.Lock()
        self._rules = Rules()
        self._released = threading.Event()
        self._server = HttpFront(self._reply)
        self._thread = threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, name="slack", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._released.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
        assert not self._server.broken, f"the fake itself failed: {self._server.broken}"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}/api/"

    @property
    def hook_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_address[1]}{HOOK}"

    def advance(self, seconds: float) -> None:
        self.channel.clock_s += seconds

    def clock(self) -> float:
        return self.channel.clock_s

    def fail(self, fault: Fault, *, path: str = "", first: int = 1, times: int = 1) -> None:
        """From now on, for `times` of the requests that match, from the `first` on; `path` is searched in the path."""
        with self._lock:
            self._rules.add(Rule(fault, ".*", path, first, times))

    @property
    def mentions(self) -> list[str]:
        """Everybody who was called, in any message."""
        return [name for message in self.channel.messages for name in mentions(message)]

    def _reply(self, target: Target, host: str) -> Answer | None:
        with self._lock:
            self.asked.append("hook" if target.target == HOOK else target.target.removeprefix("/api/"))
            fault = self._rules.meet(target.method, target.target)
            told = met(fault, lambda: self._answer(target))
        if isinstance(fault, Hang):
            self._released.wait(HANG_S_MAX)
        return told

    def _answer(self, target: Target) -> Answer:
        if target.target == HOOK:
            return self._hooked(json.loads(target.body))
        method = target.target.removeprefix("/api/")
        if method not in _NEEDS:
            return _json({"ok": False, "error": "unknown_method"})
        asked = _read(target)
        error = self._stranger(target.headers.get("authorization", ""), _NEEDS[method])
        if error is not None:
            return _json(error)
        if method == "auth.test":
            return _json({"ok": True, "bot_id": BOT, "user_id": "U0TRAIN01", "team": "acme"})
        if asked.get("channel") != CHANNEL:
            return _json(_no("channel_not_found"))
        if BOT not in self.channel.members:
            return _json(_no("not_in_channel"))
        if method.startswith("conversations.") and not self.channel.may_read():
            return _json(_no("ratelimited"), 429, {"Retry-After": "30"})
        match method:
            case "chat.postMessage":
                return self._post(asked)
            case "chat.update":
                return _json(self._update(asked))
            case "conversations.history":
                since_s = float(asked.get("oldest") or 0)
                return _json(page([m for m in reversed(self.channel.top) if float(m["ts"]) > since_s], asked))
            case _:
                return _json(self._replies(asked))

    def _stranger(self, authorization: str, scope: str) -> Said | None:
        """Why whoever asks may not."""
        if not authorization:
            return _no("not_authed")
        if authorization != f"Bearer {TOKEN}":
            return _no("invalid_auth")
        if self.revoked:
            return _no("token_revoked")
        if scope and scope not in self.scopes:
            return _no("missing_scope") | {"needed": scope, "provided": ",".join(sorted(self.scopes))}
        return None

    def _post(self, asked: Said) -> Answer:
        if self.channel.archived:
            return _json(_no("is_archived"))
        wrong = objection(asked)
        if wrong:
            return _json(_no(wrong))
        thread_ts = asked.get("thread_ts")
        if thread_ts is not None and self.channel.find(thread_ts) is None:
            return _json(_no("thread_not_found"))
        wait_s = self.channel.wait_s()
        if wait_s:
            return _json(_no("ratelimited"), 429, {"Retry-After": str(wait_s)})
        message = self.channel.post(BOT, asked)
        return _json({"ok": True, "channel": CHANNEL, "ts": message["ts"], "message": message})

    def _update(self, asked: Said) -> Said:
        message = self.channel.find(asked.get("ts"))
        if message is None:
            return _no("message_not_found")
        if message["bot_id"] != BOT:
            return _no("cant_update_message")
        wrong = objection(asked)
        if wrong:
            return _no(wrong)
        message.update({name: asked[name] for name in ("text", "blocks", "metadata") if name in asked})
        return {"ok": True, "channel": CHANNEL, "ts": message["ts"], "text": message["text"]}

    def _replies(self, asked: Said) -> Said:
        thread = self.channel.thread(str(asked.get("ts")))
        return page(thread, asked) if thread else _no("thread_not_found")

    def _hooked(self, body: Said) -> Answer:
        """A webhook speaks no JSON."""
        if self.revoked:
            return _text(404, "no_service")
        if self.channel.archived:
            return _text(410, "channel_is_archived")
        wrong = objection(body)
        if wrong:
            return _text(400, wrong)
        if wait_s := self.channel.wait_s():
            return _text(429, "rate_limited", {"Retry-After": str(wait_s)})
        self.channel.post("B0HOOK001", body)
        return _text(200, "ok")


def _read(target: Target) -> Said:
    """JSON or a form: Slack takes both."""
    if "json" in target.headers.get("content-type", ""):
        return dict(json.loads(target.body or b"{}"))
    return dict(parse_qsl(target.body.decode()))


def _no(error: str) -> Said:
    return {"ok": False, "error": error}


def _json(said: Said, status: int = 200, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, json.dumps(said).encode(), headers=headers or {})


def _text(status: int, said: str, headers: dict[str, str] | None = None) -> Answer:
    return Answer(status, said.encode(), "text/html", headers or {})
