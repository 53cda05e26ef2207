import json
import logging
import socket
import traceback
from itertools import count

import pytest

from prime_train.alerts.url import MUTE_S, RETRIES_MAX, WebhookNotifier
from prime_train.errors import ExternalError, NotHere, PermanentError, TemporaryError
from prime_train.runs.alert_kinds import AlertKind
from prime_train.runs.run import Run, RunState
from tests import builders as b
from tests.fakes.http import CutRequest, Fault, Hang, Response, ScriptedServer

DISCORD = "/api/webhooks/123/s3cr3t-token"
SECRET = "/services/T0SECRET/B0SECRET?token=s3cr3t-token"
OK = Response(200, b"ok")


def own(name: str = "ALERT_URL") -> Run:
    """Return a run whose spec names an alert URL of its own."""
    return b.run(RunState.TRAINING, spec=b.spec(alerts={"webhook": name}))


def raised(notifier: WebhookNotifier, run: Run | None = None, key: str = b.alert().key) -> ExternalError:
    with pytest.raises(ExternalError) as caught:
        notifier.send(b.alert(key), run)
    return caught.value


def test_an_alert_is_posted_as_json_with_its_key() -> None:
    with ScriptedServer(OK) as there:
        WebhookNotifier({}, there.url + SECRET).send(b.alert(), None)

    (request,) = there.requests
    assert request.target == SECRET
    assert request.headers["idempotency-key"] == b.alert().key
    assert json.loads(request.body) == {
        "key": b.alert().key,
        "run": b.RUN_ID,
        "kind": "lost",
        "severity": "warning",
        "title": b.alert().title,
        "text": b.alert().text,
        "at": b.T0_S,
        "attempt": 1,
        "facts": {},
        "links": {},
    }


def test_an_alert_goes_to_the_url_that_the_spec_names() -> None:
    with ScriptedServer(OK) as there, ScriptedServer(OK) as elsewhere:
        notifier = WebhookNotifier({"ALERT_URL": there.url, "OTHER_URL": elsewhere.url})
        notifier.send(b.alert(), own())
        notifier.send(b.alert(), b.run(RunState.TRAINING))

    assert (len(there.requests), len(elsewhere.requests)) == (1, 0)


def test_one_url_that_fails_does_not_keep_the_alert_from_the_other() -> None:
    with ScriptedServer(Response(404)) as broken, ScriptedServer(OK) as there:
        error = raised(WebhookNotifier({"ALERT_URL": there.url}, broken.url), own())

    assert isinstance(error, PermanentError)
    assert len(there.requests) == 1


def test_a_url_that_may_work_later_decides_over_one_that_never_will() -> None:
    with ScriptedServer(Response(404)) as broken, ScriptedServer(Response(503)) as down:
        error = raised(WebhookNotifier({"ALERT_URL": down.url}, broken.url), own())

    assert isinstance(error, TemporaryError)


def test_who_took_an_alert_is_not_reported_again_for_another_who_did_not() -> None:
    with ScriptedServer(Response(204)) as discord, ScriptedServer(Response(429), Response(429), OK) as busy:
        run, minutes = own(), count(0.0, 60.0)
        failing = WebhookNotifier({"ALERT_URL": busy.url}, discord.url + DISCORD, clock=lambda: next(minutes))
        errors = [raised(failing, run), raised(failing, run)]
        failing.send(b.alert(), run)
        assert (len(discord.requests), len(busy.requests)) == (1, 3)
        failing.send(b.alert("tiny-1/lost/2"), run)

    assert [type(error) for error in errors] == [TemporaryError, TemporaryError]
    assert (len(discord.requests), len(busy.requests)) == (2, 4)


def test_a_name_without_a_url_is_left_to_a_watcher_that_has_it() -> None:
    error = raised(WebhookNotifier({}), own("ALERT_URL"))

    assert isinstance(error, NotHere)
    assert "ALERT_URL" in str(error)


@pytest.mark.parametrize("url", ["ftp://host/x", "not a url", "http://[broken"])
def test_a_url_that_is_none_is_reported_without_it(url: str) -> None:
    error = raised(WebhookNotifier({"ALERT_URL": url}), own())

    assert isinstance(error, PermanentError)
    assert url not in str(error)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_refusal_is_for_good(status: int) -> None:
    with ScriptedServer(Response(status, b"invalid_payload")) as there:
        error = raised(WebhookNotifier({}, there.url))

    assert isinstance(error, PermanentError)
    assert str(error) == f"127.0.0.1 answered {status}: invalid_payload"
    assert len(there.requests) == 1


def test_an_alert_does_not_follow_to_another_place() -> None:
    with (
        ScriptedServer(OK) as elsewhere,
        ScriptedServer(Response(307, headers={"location": elsewhere.url})) as there,
    ):
        error = raised(WebhookNotifier({}, there.url))

    assert isinstance(error, PermanentError)
    assert elsewhere.requests == []


def test_a_server_that_fails_is_retried_a_few_times() -> None:
    with ScriptedServer(Response(503), Response(502), OK) as there:
        WebhookNotifier({}, there.url).send(b.alert(), None)

    assert [request.headers["idempotency-key"] for request in there.requests] == [b.alert().key] * 3


def test_a_server_that_keeps_failing_is_left_for_later_and_then_left_alone() -> None:
    with ScriptedServer(Response(503, b"down")) as there:
        notifier = WebhookNotifier({}, there.url)
        first, second = raised(notifier), raised(notifier)

    assert isinstance(first, TemporaryError)
    assert isinstance(second, TemporaryError)
    assert len(there.requests) == 1 + RETRIES_MAX
    assert 0 < second.delay_s <= MUTE_S


@pytest.mark.parametrize(
    ("text", "delay_s"), [("120", 120.0), ("999999", 3600.0), ("soon", 0.0), ("-5", 0.0)]
)
def test_a_limit_of_rate_says_how_long_to_wait(text: str, delay_s: float) -> None:
    with ScriptedServer(Response(429, headers={"retry-after": text})) as there:
        notifier = WebhookNotifier({}, there.url)
        error = raised(notifier)
        again = raised(notifier)

    assert isinstance(error, TemporaryError)
    assert error.delay_s == delay_s
    assert isinstance(again, TemporaryError)
    assert again.delay_s > max(MUTE_S, delay_s) - 10
    assert len(there.requests) == 1


def _refused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("kind", ["refused", "cut off", "500", "404", "echo"])
def test_the_url_is_in_no_error_and_no_log(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    script: dict[str, Fault] = {
        "cut off": CutRequest(),
        "404": Response(404, b"no such hook"),
        "echo": Response(404, f"no hook {SECRET}".encode()),
    }
    with ScriptedServer(script.get(kind, Response(500, b"oh"))) as there, caplog.at_level(logging.DEBUG):
        url = f"http://127.0.0.1:{_refused_port()}" if kind == "refused" else there.url
        error = raised(WebhookNotifier({}, url + SECRET))

    reported = (
        "".join(traceback.format_exception(error)) + caplog.text + repr(WebhookNotifier({}, url + SECRET))
    )
    assert "127.0.0.1" in str(error)
    for piece in ("T0SECRET", "B0SECRET", "s3cr3t-token"):
        assert piece not in reported


def test_others_still_log_while_no_alert_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    with ScriptedServer(OK) as there:
        WebhookNotifier({}, there.url).send(b.alert(), None)
    with caplog.at_level(logging.DEBUG, logger="urllib3.connectionpool"):
        logging.getLogger("urllib3.connectionpool").debug("of others")

    assert "of others" in caplog.text


def test_a_webhook_of_discord_gets_a_message_in_its_form() -> None:
    with ScriptedServer(Response(204)) as there:
        WebhookNotifier({}, there.url + DISCORD).send(
            b.alert(kind=AlertKind.LAUNCHED), b.run(RunState.TRAINING)
        )

    message = json.loads(there.requests[0].body)
    assert message["content"] == b.alert().title
    assert message["allowed_mentions"] == {"parse": []}
    assert message["embeds"][0]["fields"]


@pytest.mark.parametrize("kind", ["too late", "cut off"])
def test_what_discord_was_sent_and_did_not_answer_counts_as_reported(
    kind: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Otherwise Discord would post it again each time, because it does not deduplicate by key."""
    with ScriptedServer(Hang() if kind == "too late" else CutRequest()) as there:
        notifier = WebhookNotifier({}, there.url + DISCORD, discord_read_s=0.3)
        notifier.send(b.alert(), None)
        left_alone = raised(notifier, key="tiny-1/lost/2")

    assert len(there.requests) == 1
    assert isinstance(left_alone, TemporaryError)
    (text,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert text.startswith("127.0.0.1 received the alert but did not answer: ")
    assert b.alert().key in text
    assert "s3cr3t-token" not in caplog.text


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_discord_was_never_sent_comes_again(scheme: str) -> None:
    """No server listens there, or TLS cannot be established."""
    with ScriptedServer(OK) as there:
        place = (
            f"http://127.0.0.1:{_refused_port()}"
            if scheme == "http"
            else there.url.replace("http:", "https:")
        )
        error = raised(WebhookNotifier({}, place + DISCORD))

    assert isinstance(error, TemporaryError)
    assert there.requests == []


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_discord_is_queried_once_and_what_it_could_not_do_comes_again(status: int) -> None:
    with ScriptedServer(Response(status, b"no")) as there:
        error = raised(WebhookNotifier({}, there.url + DISCORD))

    assert isinstance(error, TemporaryError)
    assert len(there.requests) == 1


def test_others_are_retried_for_an_answer_that_was_cut_off() -> None:
    with ScriptedServer(CutRequest(), OK) as there:
        WebhookNotifier({}, there.url).send(b.alert(), None)

    assert [request.headers["idempotency-key"] for request in there.requests] == [b.alert().key] * 2


def test_a_refusal_whose_text_breaks_off_is_one_all_the_same() -> None:
    with ScriptedServer(Response(404, b"half", headers={"content-length": "100"})) as there:
        error = raised(WebhookNotifier({}, there.url + DISCORD))

    assert isinstance(error, PermanentError)
    assert str(error) == "127.0.0.1 answered 404"
