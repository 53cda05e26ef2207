"""The HTTP client: which requests are retried, how failures are reported, and that a key is sent nowhere
else.
"""

import base64
import logging
import socket
import traceback
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest

from prime_train.api_exchange import Exchange
from prime_train.errors import ExternalError, PermanentError, TemporaryError
from prime_train.http import BODY_BYTES_MAX, RETRIES_MAX, Http, NoSuchHost, failure
from prime_train.text.retry_after import retry_after_s
from tests.fakes.certificates import make_certificate
from tests.fakes.http import CutRequest, Fault, Response, ScriptedServer

KEY = "pit_s3cr3t-key"
OK = Response(200, b'{"a": 1}')


def requested(there: ScriptedServer) -> Http:
    return Http(there.url, key=KEY, pause_s=0)


def raised(http: Http, method: str = "GET") -> ExternalError:
    with pytest.raises(ExternalError) as caught:
        http.ask(method, "/pods/")
    return caught.value


def refused_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_witness_is_told_every_answer_also_those_after_which_the_request_was_repeated_but_no_key() -> None:
    seen: list[Exchange] = []
    with ScriptedServer(
        Response(500, b"no"), Response(503, b"no"), Response(200, f'{{"key": "{KEY}"}}'.encode())
    ) as there:
        Http(f"{there.url}/v2", key=KEY, pause_s=0, witness=seen.append).ask(
            "DELETE", "/pods/7", parameters={"page": 2}
        )
    (told,) = seen
    assert (told.method, told.path, told.parameters, told.status, told.earlier) == (
        "DELETE",
        "/v2/pods/7",
        {"page": 2},
        200,
        (500, 503),
    )
    assert told.body == b'{"key": "***"}'


def test_a_witness_is_told_that_no_answer_came() -> None:
    seen: list[Exchange] = []
    with ScriptedServer(CutRequest()) as there, suppress(ExternalError):
        Http(there.url, key=KEY, pause_s=0, witness=seen.append).ask("POST", "/pods/", body={"a": 1})
    assert [(told.status, told.asked) for told in seen] == [(0, {"a": 1})]
    assert "got no answer" in seen[0].failure


def test_an_answer_has_its_status_and_its_json() -> None:
    with ScriptedServer(OK) as there:
        answer = Http(there.url + "/").ask(
            "POST", "/pods/", parameters={"page": 2, "id": ["a", "b"]}, body={"name": "x"}
        )

    assert (answer.status, answer.is_ok, answer.content()) == (200, True, {"a": 1})
    (request,) = there.requests
    assert (request.method, request.target, request.body) == (
        "POST",
        "/pods/?page=2&id=a&id=b",
        b'{"name": "x"}',
    )
    assert "authorization" not in request.headers


def test_a_key_that_is_a_users_password_is_sent_and_struck_out_as_one() -> None:
    sent = base64.b64encode(f"api:{KEY}".encode()).decode()
    with ScriptedServer(Response(200, f"{sent} {KEY}".encode())) as there:
        answer = Http(there.url, key=KEY, user="api").ask("GET", "/")
    assert there.requests[0].headers["authorization"] == f"Basic {sent}"
    assert answer.body == b"*** ***"


def test_the_key_is_sent_whatever_the_netrc_file_says(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "netrc").write_text("machine 127.0.0.1 login somebody password else\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))
    with ScriptedServer(OK) as there:
        Http(there.url, key=KEY).ask("GET", "/")

    assert there.requests[0].headers["authorization"] == f"Bearer {KEY}"


def test_a_proxy_of_the_environment_does_not_lead_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{refused_port()}")
    with ScriptedServer(OK) as there:
        assert Http(there.url).ask("GET", "/").is_ok


@pytest.mark.parametrize("method", ["GET", "DELETE"])
@pytest.mark.parametrize("problem", [Response(503), CutRequest()])
def test_what_does_no_harm_twice_is_retried(method: str, problem: Fault) -> None:
    with ScriptedServer(problem, problem, OK) as there:
        assert requested(there).ask(method, "/pods/x").content() == {"a": 1}

    assert len(there.requests) == 3


def test_what_may_do_harm_twice_is_sent_once() -> None:
    with ScriptedServer(CutRequest(), OK) as there:
        assert isinstance(raised(requested(there), "POST"), TemporaryError)
    with ScriptedServer(Response(503), OK) as busy:
        assert requested(busy).ask("POST", "/pods/").status == 503

    assert (len(there.requests), len(busy.requests)) == (1, 1)


def test_asking_again_has_an_end() -> None:
    with ScriptedServer(Response(503, b"down")) as there:
        assert requested(there).ask("GET", "/").status == 503

    assert len(there.requests) == 1 + RETRIES_MAX


def test_a_server_that_is_not_there_is_named_with_its_reason() -> None:
    error = raised(Http(f"http://127.0.0.1:{refused_port()}", pause_s=0))

    assert isinstance(error, TemporaryError)
    assert "GET 127.0.0.1:" in str(error)
    assert "ConnectionError" in str(error)


def test_a_name_that_nobody_knows_is_distinguished_from_a_server_that_is_not_there() -> None:
    error = raised(Http("https://nowhere.invalid", pause_s=0))

    assert isinstance(error, NoSuchHost)
    assert "GET nowhere.invalid" in str(error)


def test_an_answer_that_does_not_come_in_time_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent, pytest.raises(TemporaryError, match="ReadTimeout"):
        Http(f"http://127.0.0.1:{silent.getsockname()[1]}").ask("POST", "/pods/", read_s=0.05)


@pytest.mark.parametrize("url", ["ftp://127.0.0.1", "nothing", "http://"])
def test_an_address_that_is_none_is_refused_for_good(url: str) -> None:
    assert isinstance(raised(Http(url)), PermanentError)


def test_an_answer_cut_short_is_no_answer() -> None:
    with ScriptedServer(Response(200, b'{"a": 1}', headers={"content-length": "900"})) as there:
        assert isinstance(raised(requested(there), "POST"), TemporaryError)


def test_an_answer_without_an_end_is_not_read_to_the_end() -> None:
    with ScriptedServer(Response(200, b"x" * (BODY_BYTES_MAX + 1))) as there:
        error = raised(requested(there))

    assert isinstance(error, TemporaryError)
    assert "more than" in str(error)


def test_the_key_does_not_follow_to_another_place() -> None:
    with (
        ScriptedServer(OK) as elsewhere,
        ScriptedServer(Response(307, headers={"location": elsewhere.url})) as there,
    ):
        assert requested(there).ask("GET", "/").status == 307

    assert elsewhere.requests == []


def test_a_certificate_nobody_trusts_is_refused_for_good(tmp_path: Path) -> None:
    context = make_certificate(tmp_path).server_context()
    with socket.create_server(("127.0.0.1", 0)) as server, ThreadPoolExecutor(1) as pool:

        def greet() -> None:
            for _ in range(1 + RETRIES_MAX):
                connection, _ = server.accept()
                with connection, suppress(OSError):
                    context.wrap_socket(connection, server_side=True).close()

        greeted = pool.submit(greet)
        error = raised(Http(f"https://127.0.0.1:{server.getsockname()[1]}", pause_s=0))
        greeted.result(60)

    assert isinstance(error, PermanentError)
    assert "REQUESTS_CA_BUNDLE" in str(error)


@pytest.mark.parametrize("kind", ["refused", "cut off", "echo"])
def test_the_key_is_in_no_error_no_answer_and_no_log(kind: str, caplog: pytest.LogCaptureFixture) -> None:
    script: Fault = CutRequest() if kind == "cut off" else Response(400, f"no such key: {KEY}".encode())
    with ScriptedServer(script) as there, caplog.at_level(logging.DEBUG):
        http = Http(
            f"http://127.0.0.1:{refused_port()}" if kind == "refused" else there.url, key=KEY, pause_s=0
        )
        try:
            answer = http.ask("POST", "/pods/")
            reported = repr(answer) + answer.body.decode() + str(failure(answer, answer.body.decode()))
        except ExternalError as error:
            reported = "".join(traceback.format_exception(error))

    assert "127.0.0.1" in reported
    assert KEY not in reported + caplog.text + repr(http) + repr(vars(http)["_session"].auth)


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, PermanentError),
        (404, PermanentError),
        (408, TemporaryError),
        (429, TemporaryError),
        (500, TemporaryError),
        (599, TemporaryError),
    ],
)
def test_the_status_says_whether_later_may_help(status: int, kind: type[ExternalError]) -> None:
    with ScriptedServer(Response(status, headers={"retry-after": "7"})) as there:
        error = failure(requested(there).ask("POST", "/pods/"), "because")

    assert isinstance(error, kind)
    assert str(error).endswith(f"was answered with {status}: because")
    assert not isinstance(error, TemporaryError) or error.delay_s == 7


@pytest.mark.parametrize(
    ("message", "delay_s"), [("120", 120.0), ("999999", 3600.0), ("soon", 0.0), ("-5", 0.0), ("9" * 400, 0.0)]
)
def test_how_long_to_wait_is_read_and_bounded(message: str, delay_s: float) -> None:
    with ScriptedServer(Response(429, headers={"retry-after": message})) as there:
        assert requested(there).ask("GET", "/").delay_s == delay_s


@pytest.mark.parametrize(
    ("until", "sent", "delay_s"),
    [
        ("Thu, 26 Nov 2026 12:02:00 GMT", "Thu, 26 Nov 2026 12:00:30 GMT", 90.0),
        ("Thu, 26 Nov 2026 12:00:00 GMT", "Thu, 26 Nov 2026 12:00:30 GMT", 0.0),
        ("Fri, 27 Nov 2026 12:00:00 GMT", "Thu, 26 Nov 2026 12:00:30 GMT", 3600.0),
        ("Thu, 26 Nov 2026 12:02:00 GMT", "", 0.0),
        ("Thu, 99 Nov 2026 12:02:00 GMT", "Thu, 26 Nov 2026 12:00:30 GMT", 0.0),
    ],
)
def test_a_date_until_which_to_wait_counts_from_the_date_of_the_answer(
    until: str, sent: str, delay_s: float
) -> None:
    assert retry_after_s({"retry-after": until, "date": sent}) == delay_s


def test_nothing_is_repeated_that_a_server_wants_to_be_asked_later() -> None:
    with ScriptedServer(Response(503, headers={"retry-after": "60"}), Response(200, b"{}")) as there:
        answer = requested(there).ask("GET", "/pods/")
        assert (answer.status, answer.delay_s) == (503, 60.0)
        assert len(there.requests) == 1


def test_what_is_no_json_has_no_content() -> None:
    with ScriptedServer(Response(502, b"<html>"), Response(200, b"[" * 100_000)) as there:
        assert requested(there).ask("POST", "/").content() is None
        assert requested(there).ask("POST", "/").content() is None
