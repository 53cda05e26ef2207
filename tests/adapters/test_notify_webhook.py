import json
import logging
import socket
import traceback
from itertools import count

import pytest

from prime_train.adapters.notify_webhook import MUTE_S, RETRIES_MAX, WebhookNotifier
from prime_train.core.run import Run, RunState
from prime_train.ports import OutsideError, PermanentError, TemporaryError
from tests import builders as b
from tests.adapters.answering import Responder

DISCORD = "/api/webhooks/123/s3cr3t-token"
SECRET = "/services/T0SECRET/B0SECRET?token=s3cr3t-token"
Script = tuple[int, bytes, dict[str, str]]
OK: Script = (200, b"ok", {})


def own(name: str = "ALERT_URL") -> Run:
    """A run whose spec names a URL of its own."""
    return b.run(RunState.TRAINING, spec=b.spec(alerts={"webhook": name}))


def raised(notifier: WebhookNotifier, run: Run | None = None, key: str = b.alert().key) -> OutsideError:
    with pytest.raises(OutsideError) as caught:
        notifier.send(b.alert(key), run)
    return caught.value


def test_an_alert_is_posted_as_json_with_its_key() -> None:
    with Responder([OK]) as there:
        WebhookNotifier({}, there.url + SECRET).send(b.alert(), None)

    (heard,) = there.heard
    assert heard.path == SECRET
    assert heard.headers["idempotency-key"] == b.alert().key
    assert json.loads(heard.body) == {
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
    with Responder([OK]) as there, Responder([OK]) as elsewhere:
        notifier = WebhookNotifier({"ALERT_URL": there.url, "OTHER_URL": elsewhere.url})
        notifier.send(b.alert(), own())
        notifier.send(b.alert(), b.run(RunState.TRAINING))

    assert (len(there.heard), len(elsewhere.heard)) == (1, 0)


def test_one_url_that_fails_does_not_keep_the_alert_from_the_other() -> None:
    with Responder([(404, b"", {})]) as broken, Responder([OK]) as there:
        error = raised(WebhookNotifier({"ALERT_URL": there.url}, broken.url), own())

    assert isinstance(error, PermanentError)
    assert len(there.heard) == 1


def test_a_url_that_may_work_later_decides_over_one_that_never_will() -> None:
    with Responder([(404, b"", {})]) as broken, Responder([(503, b"", {})]) as down:
        error = raised(WebhookNotifier({"ALERT_URL": down.url}, broken.url), own())

    assert isinstance(error, TemporaryError)


def test_who_took_an_alert_is_not_told_again_for_another_who_did_not() -> None:
    with Responder([(204, b"", {})]) as discord, Responder([(429, b"", {}), (429, b"", {}), OK]) as busy:
        run, minutes = own(), count(0.0, 60.0)
        failing = WebhookNotifier({"ALERT_URL": busy.url}, discord.url + DISCORD, clock=lambda: next(minutes))
        errors = [raised(failing, run), raised(failing, run)]
        failing.send(b.alert(), run)
        assert (len(discord.heard), len(busy.heard)) == (1, 3)
        failing.send(b.alert("tiny-1/lost/2"), run)

    assert [type(error) for error in errors] == [TemporaryError, TemporaryError]
    assert (len(discord.heard), len(busy.heard)) == (2, 4)


def test_a_name_without_a_url_is_told() -> None:
    error = raised(WebhookNotifier({}), own("ALERT_URL"))

    assert isinstance(error, PermanentError)
    assert "ALERT_URL" in str(error)


@pytest.mark.parametrize("url", ["ftp://host/x", "not a url", "http://[broken"])
def test_a_url_that_is_none_is_told_without_it(url: str) -> None:
    error = raised(WebhookNotifier({"ALERT_URL": url}), own())

    assert isinstance(error, PermanentError)
    assert url not in str(error)


@pytest.mark.parametrize("status", [400, 401, 403, 404, 410])
def test_a_refusal_is_for_good(status: int) -> None:
    with Responder([(status, b"invalid_payload", {})]) as there:
        error = raised(WebhookNotifier({}, there.url))

    assert isinstance(error, PermanentError)
    assert str(error) == f"127.0.0.1 answered {status}: invalid_payload"
    assert len(there.heard) == 1


def test_an_alert_does_not_follow_to_another_place() -> None:
    with Responder([OK]) as elsewhere, Responder([(307, b"", {"location": elsewhere.url})]) as there:
        error = raised(WebhookNotifier({}, there.url))

    assert isinstance(error, PermanentError)
    assert elsewhere.heard == []


def test_a_server_in_trouble_is_asked_again_a_few_times() -> None:
    with Responder([(503, b"", {}), (502, b"", {}), OK]) as there:
        WebhookNotifier({}, there.url).send(b.alert(), None)

    assert [heard.headers["idempotency-key"] for heard in there.heard] == [b.alert().key] * 3


def test_a_server_that_stays_in_trouble_is_left_for_later_and_then_left_alone() -> None:
    with Responder([(503, b"down", {})]) as there:
        notifier = WebhookNotifier({}, there.url)
        first, second = raised(notifier), raised(notifier)

    assert isinstance(first, TemporaryError)
    assert isinstance(second, TemporaryError)
    assert len(there.heard) == 1 + RETRIES_MAX
    assert 0 < second.delay_s <= MUTE_S


@pytest.mark.parametrize(("said", "delay_s"), [("120", 120.0), ("999999", 3600.0), ("soon", 0.0), ("-5", 0.0)])
def test_a_limit_of_rate_says_how_long_to_wait(said: str, delay_s: float) -> None:
    with Responder([(429, b"", {"retry-after": said})]) as there:
        notifier = WebhookNotifier({}, there.url)
        error = raised(notifier)
        again = raised(notifier)

    assert isinstance(error, TemporaryError)
    assert error.delay_s == delay_s
    assert isinstance(again, TemporaryError)
    assert again.delay_s > max(MUTE_S, delay_s) - 10
    assert len(there.heard) == 1


def _refused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.mark.parametrize("kind", ["refused", "cut off", "500", "404", "echo"])
def test_the_url_is_in_no_error_and_no_log(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    script: dict[str, Script] = {
        "cut off": (0, b"", {}),
        "404": (404, b"no such hook", {}),
        "echo": (404, f"no hook {SECRET}".encode(), {}),
    }
    with Responder([script.get(kind, (500, b"oh", {}))]) as there, caplog.at_level(logging.DEBUG):
        url = f"http://127.0.0.1:{_refused_port()}" if kind == "refused" else there.url
        error = raised(WebhookNotifier({}, url + SECRET))

    told = "".join(traceback.format_exception(error)) + caplog.text + repr(WebhookNotifier({}, url + SECRET))
    assert "127.0.0.1" in str(error)
    for piece in ("T0SECRET", "B0SECRET", "s3cr3t-token"):
        assert piece not in told


def test_others_still_log_while_no_alert_is_sent(caplog: pytest.LogCaptureFixture) -> None:
    with Responder([OK]) as there:
        WebhookNotifier({}, there.url).send(b.alert(), None)
    with caplog.at_level(logging.DEBUG):
        logging.getLogger("urllib3.connectionpool").debug("of others")

    assert "of others" in caplog.text


def test_a_webhook_of_discord_gets_a_message_in_its_form() -> None:
    with Responder([(204, b"", {})]) as there:
        WebhookNotifier({}, there.url + DISCORD).send(b.alert(kind="launched"), b.run(RunState.TRAINING))

    message = json.loads(there.heard[0].body)
    assert message["content"] == b.alert().title
    assert message["allowed_mentions"] == {"parse": []}
    assert message["embeds"][0]["fields"]


@pytest.mark.parametrize("kind", ["too late", "cut off"])
def test_what_discord_was_sent_and_did_not_answer_counts_as_told(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    """It would say it once more each time: it knows no key."""
    with Responder([(0, b"", {})], silent=kind == "too late") as there:
        notifier = WebhookNotifier({}, there.url + DISCORD, discord_read_s=0.3)
        notifier.send(b.alert(), None)
        left_alone = raised(notifier, key="tiny-1/lost/2")

    assert len(there.heard) == 1
    assert isinstance(left_alone, TemporaryError)
    (said,) = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert said.startswith("127.0.0.1 was sent it and did not answer: ")
    assert b.alert().key in said
    assert "s3cr3t-token" not in caplog.text


@pytest.mark.parametrize("scheme", ["http", "https"])
def test_what_discord_was_never_sent_comes_again(scheme: str) -> None:
    """Nobody listens, or no TLS comes about."""
    with Responder([OK]) as there:
        place = f"http://127.0.0.1:{_refused_port()}" if scheme == "http" else there.url.replace("http:", "https:")
        error = raised(WebhookNotifier({}, place + DISCORD))

    assert isinstance(error, TemporaryError)
    assert there.heard == []


@pytest.mark.parametrize("status", [429, 500, 502, 503])
def test_discord_is_asked_once_and_what_it_could_not_do_comes_again(status: int) -> None:
    with Responder([(status, b"no", {})]) as there:
        error = raised(WebhookNotifier({}, there.url + DISCORD))

    assert isinstance(error, TemporaryError)
    assert len(there.heard) == 1


def test_others_are_asked_again_for_an_answer_that_was_cut_off() -> None:
    with Responder([(0, b"", {}), OK]) as there:
        WebhookNotifier({}, there.url).send(b.alert(), None)

    assert [heard.headers["idempotency-key"] for heard in there.heard] == [b.alert().key] * 2


def test_a_refusal_whose_text_breaks_off_is_one_all_the_same() -> None:
    with Responder([(404, b"half", {"content-length": "100"})]) as there:
        error = raised(WebhookNotifier({}, there.url + DISCORD))

    assert isinstance(error, PermanentError)
    assert str(error) == "127.0.0.1 answered 404"
