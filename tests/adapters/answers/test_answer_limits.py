"""An answer without an end holds nobody for ever, whichever part of it has none."""

from dataclasses import replace
from typing import Any

import pytest
import requests

from prime_agent import control_plane as agent
from prime_train import http
from prime_train.alerts import url as notify_webhook
from prime_train.alerts.slack import transport
from prime_train.alerts.slack.api import Api, Hook
from prime_train.alerts.url import WebhookNotifier
from prime_train.answer_limits import LimitedAdapter, TooMuch, connections, limited
from prime_train.errors import PermanentError, TemporaryError
from prime_train.http import Http
from prime_train.runs.wire import Ticket
from prime_train.watch import canary_http
from prime_train.watch.canary_http import CanaryHttp
from tests import builders as b
from tests.fakes.http import Response, ScriptedServer
from tests.fakes.http.endless import PARTS, endless

SHORT_S = 0.3
MUCH = 2**20
TOKEN = "xoxb-0123456789-s3cr3t"


@pytest.mark.parametrize("part", PARTS)
def test_whoever_asks_with_limits_gets_away_from_an_answer_without_end(part: str) -> None:
    with endless(part) as url, requests.Session() as session:
        session.mount("http://", LimitedAdapter(SHORT_S, MUCH))
        with pytest.raises(requests.RequestException):
            session.get(url, timeout=5)


@pytest.mark.parametrize("part", PARTS)
def test_a_connection_of_the_standard_library_gets_away_too(part: str) -> None:
    plain, _ = connections(limited(SHORT_S, MUCH))
    with endless(part) as url:
        connection = plain(url.removeprefix("http://"), timeout=5)
        connection.request("GET", "/")
        with pytest.raises(TimeoutError):
            connection.getresponse().read()
        connection.close()


def test_an_answer_that_is_too_long_is_not_kept_in_memory() -> None:
    plain, _ = connections(limited(60, 10_000))
    with ScriptedServer(Response(200, b"x" * 100_000)) as there:
        connection = plain(there.url.removeprefix("http://"), timeout=5)
        connection.request("GET", "/")
        with pytest.raises(TooMuch):
            connection.getresponse().read()
        connection.close()


def test_what_is_within_the_limits_is_read_and_the_connection_is_used_again() -> None:
    with ScriptedServer(Response(200, b"x" * 9000)) as there, requests.Session() as session:
        session.mount("http://", LimitedAdapter(60, 10_000))
        assert [session.get(there.url, timeout=5).content for _ in range(3)] == [b"x" * 9000] * 3


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (http, canary_http, agent):
        monkeypatch.setattr(module, "ANSWER_S_MAX", SHORT_S)
    monkeypatch.setattr(notify_webhook, "READ_S", SHORT_S)
    monkeypatch.setattr(notify_webhook, "_OWN", replace(notify_webhook._OWN, read_s=SHORT_S))
    monkeypatch.setattr(transport, "HEAD_S", SHORT_S)


@pytest.mark.usefixtures("hasty")
@pytest.mark.parametrize("part", PARTS)
def test_no_service_holds_a_watcher_or_an_agent_by_an_answer_without_end(part: str) -> None:
    with endless(part) as url:
        with pytest.raises(TemporaryError):
            Http(url, pause_s=0).ask("POST", "/pods/")
        with pytest.raises(TemporaryError):
            Api(TOKEN, "C12345678", url=f"{url}/", timeout_s=1).me()
        with pytest.raises(TemporaryError):
            Hook(f"{url}/services/T0/B0/s3cr3t", timeout_s=1).post("text", [])
        with pytest.raises(TemporaryError):
            ticket = Ticket(run=b.RUN_ID, attempt=1, url=url, key="key")
            agent.ControlPlane(ticket, lambda: b.T0_S).heartbeat(b.heartbeat())
        assert not CanaryHttp(url, b"master").is_answering(b.T0_S)
        if "body" not in part:  # the status is all that an alert needs to know
            with pytest.raises(TemporaryError):
                WebhookNotifier(None, url).send(b.alert(), None)


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_slacks_token_does_not_follow_to_another_place(status: int) -> None:
    with ScriptedServer(Response(200, b'{"ok": true}')) as elsewhere:
        moved = Response(status, headers={"location": elsewhere.url})
        with ScriptedServer(moved) as there:
            with pytest.raises(PermanentError, match=str(status)):
                Api(TOKEN, "C12345678", url=f"{there.url}/").me()
            with pytest.raises(PermanentError, match=str(status)):
                Hook(f"{there.url}/services/T0/B0/s3cr3t").post("text", [])
        assert elsewhere.requests == []


@pytest.mark.parametrize(
    ("body", "headers"),
    [
        pytest.param(b"[" * 100_000, {}, id="lists in lists"),
        pytest.param(
            b"{}", {"content-type": "text/plain; charset=nothing"}, id="an alphabet that nobody knows"
        ),
    ],
)
@pytest.mark.parametrize("status", [200, 400])
def test_an_answer_of_slack_that_cannot_be_read_is_a_failure_like_others(
    body: bytes, headers: dict[str, Any], status: int
) -> None:
    with (
        ScriptedServer(Response(status, body, headers=headers)) as there,
        pytest.raises((TemporaryError, PermanentError)),
    ):
        Api(TOKEN, "C12345678", url=f"{there.url}/").me()


def test_a_canary_answer_of_lists_in_lists_is_no_answer() -> None:
    with ScriptedServer(Response(200, b"[" * 100_000)) as there:
        assert not CanaryHttp(there.url, b"master").is_answering(b.T0_S)
