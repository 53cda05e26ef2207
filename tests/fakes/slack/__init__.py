"""A fake of Slack: one channel of a workspace, reached through the Web API with a bot's token or through an
incoming webhook.

Posts are checked against the SDK's own models of Block Kit, and tokens against their scopes; a channel
accepts one message per second.
"""

from dataclasses import dataclass
from typing import Any

from tests.fakes.http import HttpFake, Json, Refusal, Request, Response, Route, json_response
from tests.fakes.slack.channel import Channel, mentions, objection, page

TOKEN = "xoxb-" + "1" * 24
BOT = "B0TRAIN01"
CHANNEL = "C0TRAINING"
HOOK = "/services/T0SECRET/B0SECRET/s3cr3tPath"
SCOPES = frozenset({"chat:write", "channels:history"})


class FakeSlack(HttpFake):
    """A workspace with one channel, `CHANNEL`, and a bot in it with the token `TOKEN`. `clock_s` stands still
    unless `advance` is called.

    `scopes` of the token may be taken away; `revoked` takes away the token itself.
    """

    def __init__(self, *, clock_s: float = 1_000_000.0) -> None:
        super().__init__()
        self.channel = Channel({BOT}, clock_s)
        self.scopes = set(SCOPES)
        self.revoked = False

    @property
    def url(self) -> str:
        return f"{super().url}/api/"

    @property
    def hook_url(self) -> str:
        return f"{super().url}{HOOK}"

    def advance(self, seconds: float) -> None:
        self.channel.clock_s += seconds

    def clock(self) -> float:
        return self.channel.clock_s

    @property
    def requested(self) -> list[str]:
        """Return the called methods in order; a webhook is `hook`."""
        return [
            "hook" if request.path == HOOK else request.path.removeprefix("/api/")
            for request in self.requests
        ]

    @property
    def mentions(self) -> list[str]:
        """Return everyone who was mentioned in any message."""
        return [name for message in self.channel.messages for name in mentions(message)]

    # --------------------------------------------------------------------------------------------------------
    # the Web API

    def dispatch(self, route: Any, request: Request) -> object:
        if isinstance(route, Method):
            self._authorize(request, route.scope)
            parameters = _parameters(request)
            if route.scope:
                self._admit(parameters, reads=route.scope == "channels:history")
            return route.handler(self, parameters)
        return route.handler(self, request)

    def no_route(self, request: Request) -> Response:
        return json_response(_error("unknown_method"))

    def _authorize(self, request: Request, scope: str) -> None:
        if not request.headers.get("authorization"):
            raise _refused("not_authed")
        if request.headers["authorization"] != f"Bearer {TOKEN}":
            raise _refused("invalid_auth")
        if self.revoked:
            raise _refused("token_revoked")
        if scope and scope not in self.scopes:
            raise Refusal(
                json_response(
                    _error("missing_scope") | {"needed": scope, "provided": ",".join(sorted(self.scopes))}
                )
            )

    def _admit(self, parameters: Json, *, reads: bool) -> None:
        if parameters.get("channel") != CHANNEL:
            raise _refused("channel_not_found")
        if BOT not in self.channel.members:
            raise _refused("not_in_channel")
        if reads and not self.channel.may_read():
            raise _rate_limited(30)

    def _auth_test(self, _: Json) -> Json:
        return {"ok": True, "bot_id": BOT, "user_id": "U0TRAIN01", "team": "acme"}

    def _post(self, parameters: Json) -> Json:
        if self.channel.archived:
            raise _refused("is_archived")
        wrong = objection(parameters)
        if wrong:
            raise _refused(wrong)
        thread_ts = parameters.get("thread_ts")
        if thread_ts is not None and self.channel.find(thread_ts) is None:
            raise _refused("thread_not_found")
        wait_s = self.channel.wait_s()
        if wait_s:
            raise _rate_limited(wait_s)
        message = self.channel.post(BOT, parameters)
        return {"ok": True, "channel": CHANNEL, "ts": message["ts"], "message": message}

    def _update(self, parameters: Json) -> Json:
        message = self.channel.find(parameters.get("ts"))
        if message is None:
            raise _refused("message_not_found")
        if message["bot_id"] != BOT:
            raise _refused("cant_update_message")
        wrong = objection(parameters)
        if wrong:
            raise _refused(wrong)
        message.update(
            {name: parameters[name] for name in ("text", "blocks", "metadata") if name in parameters}
        )
        return {"ok": True, "channel": CHANNEL, "ts": message["ts"], "text": message["text"]}

    def _history(self, parameters: Json) -> Json:
        since_s = float(parameters.get("oldest") or 0)
        return page(
            [message for message in reversed(self.channel.top) if float(message["ts"]) > since_s], parameters
        )

    def _replies(self, parameters: Json) -> Json:
        thread = self.channel.thread(str(parameters.get("ts")))
        if not thread:
            raise _refused("thread_not_found")
        return page(thread, parameters)

    # --------------------------------------------------------------------------------------------------------
    # the webhook

    def _hook(self, request: Request) -> Response:
        """Answer a webhook's request; responses are not JSON."""
        if self.revoked:
            return _text(404, "no_service")
        if self.channel.archived:
            return _text(410, "channel_is_archived")
        wrong = objection(request.json)
        if wrong:
            return _text(400, wrong)
        if wait_s := self.channel.wait_s():
            return _text(429, "rate_limited", {"Retry-After": str(wait_s)})
        self.channel.post("B0HOOK001", request.json)
        return _text(200, "ok")


@dataclass(frozen=True)
class Method(Route):
    """A method of the Web API for which a token needs this scope; its handler gets the parameters."""

    scope: str


FakeSlack.routes = (
    Method("GET|POST", "/api/auth.test", FakeSlack._auth_test, ""),
    Method("POST", "/api/chat.postMessage", FakeSlack._post, "chat:write"),
    Method("POST", "/api/chat.update", FakeSlack._update, "chat:write"),
    Method("GET|POST", "/api/conversations.history", FakeSlack._history, "channels:history"),
    Method("GET|POST", "/api/conversations.replies", FakeSlack._replies, "channels:history"),
    Route("POST", HOOK, FakeSlack._hook),
)


def _parameters(request: Request) -> Json:
    """Return the parameters from JSON or a form, because Slack accepts both."""
    if "json" in request.headers.get("content-type", ""):
        return dict(request.json or {})
    return dict(request.form)


def _error(code: str) -> Json:
    return {"ok": False, "error": code}


def _refused(code: str) -> Refusal:
    return Refusal(json_response(_error(code)))


def _rate_limited(wait_s: int) -> Refusal:
    return Refusal(json_response(_error("ratelimited"), 429, {"Retry-After": str(wait_s)}))


def _text(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(status, text.encode(), "text/html", headers or {})
