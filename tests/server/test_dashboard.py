"""The served dashboard: who may see it, what it shows, how it stays up to date, and that heartbeats do not
wait for it.
"""

import http.client
import json
import logging
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from prime_train.app.home import Home
from prime_train.errors import UsageError
from prime_train.pages.dashboard.link import DashboardLink, dashboard_link, revoke_links
from prime_train.pages.dashboard.requests import PageRequest, PageResponse
from prime_train.pages.dashboard.serving import served_here
from prime_train.runs.dashboard_token import HOURS_MAX, cookie_name, dashboard_token
from prime_train.runs.run import Change, RunState
from prime_train.runs.signing import attempt_key, operator_key
from prime_train.webhook import page_server
from prime_train.webhook.server.serve import Server
from tests import builders as b
from tests.chromium import chromium
from tests.server.calling import await_true, call
from tests.waiting import HANG_S
from tests.webhook.calls import ask, heartbeat, held, stored

HOSTILE = "</pre><script>alert(1)</script>\x1b]52;c;ZXZpbA==\x07"
FRAME = (
    "content-security-policy",
    "referrer-policy",
    "x-frame-options",
    "cache-control",
    "x-content-type-options",
)


class Site:
    """A control plane that serves one run, whose machine sends heartbeats."""

    def __init__(self, folder: Path) -> None:
        self.home = Home.of({"PRIME_TRAIN_HOME": str(folder / "home")})
        self.store = self.home.store()
        self.home.make_bucket()
        now_s = self.store.now_s()
        of = held(heartbeat_s=now_s)
        stored(self.store, replace(of, run=replace(of.run, created_s=now_s - 600, next_check_s=now_s + 600)))
        self.server = Server(self.home.webhook(), pages=served_here(self.home))

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def master(self) -> bytes:
        return self.home.master()

    def token(self, *, left_s: int = 3600, master: bytes = b"") -> str:
        return dashboard_token(master or self.master, self.store.now_s() + left_s)

    def cookie(self) -> dict[str, str]:
        return {"cookie": f"{cookie_name(self.master)}={self.token()}"}

    def link(self) -> DashboardLink:
        return dashboard_link(self.home.store, self.home.served, self.home.master, hours=1)

    def beat(self, seq: int, **changes: object) -> int:
        """Send a heartbeat as the run's machine does, and return the status of the response."""
        request = ask("heartbeat", heartbeat(seq, **changes), master=self.master, at_s=self.store.now_s())
        return call(self.url, request)[0]


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    it = Site(tmp_path)
    with it.server:
        yield it


def get(
    url: str, path: str, headers: dict[str, str] | None = None, method: str = "GET"
) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=HANG_S)
    try:
        connection.request(method, path, headers=headers or {})
        response = connection.getresponse()
        return (
            response.status,
            {name.lower(): value for name, value in response.getheaders()},
            response.read().decode(),
        )
    finally:
        connection.close()


# ------------------------------------------------------------------------------------------------------------
# who may see it


def test_a_link_becomes_a_cookie_that_opens_the_pages(site: Site) -> None:
    token = site.token()
    status, headers, body = get(site.url, f"/?token={token}")
    assert status == 200
    assert "content='0;url=./'" in body
    assert token not in body
    name, _, rest = headers["set-cookie"].partition("=")
    assert {"Path=/", "HttpOnly", "SameSite=Strict"} <= set(rest.split("; "))
    assert "Secure" not in rest
    cookie = {"cookie": f"other=1; {name}={rest.partition(';')[0]}"}
    assert "href='runs/tiny-1'" in get(site.url, "/", cookie)[2]
    assert "<h1>tiny-1" in get(site.url, "/runs/tiny-1", cookie)[2]


def test_asking_for_a_link_where_nothing_has_served_makes_no_home(tmp_path: Path) -> None:
    home = Home.of({"PRIME_TRAIN_HOME": str(tmp_path / "home")})
    with pytest.raises(UsageError, match="no control plane has served this home yet"):
        dashboard_link(home.store, home.served, home.master, hours=1)
    assert not (tmp_path / "home").exists()


def test_a_link_to_a_run_leads_to_its_page_and_behind_https_its_cookie_is_for_https_alone(site: Site) -> None:
    _, headers, body = get(site.url, f"/runs/tiny-1?token={site.token()}", {"x-forwarded-proto": "https"})
    assert "content='0;url=tiny-1'" in body
    assert headers["set-cookie"].endswith("; Secure")
    assert "content='0;url=./'" in get(site.url, f"/runs/javascript:alert(1)?token={site.token()}")[2]


def forged(site: Site) -> dict[str, str]:
    until, _, seal = site.token().partition(".")
    return {
        "none": "",
        "over": site.token(left_s=0),
        "later than any link is": site.token(left_s=HOURS_MAX * 3600 + 60),
        "of another key": site.token(master=b"guessed"),
        "with more time": f"{int(until) + 60}.{seal}",
        "with less of a seal": f"{until}.{seal[:-1]}",
        "without a seal": f"{until}.",
        "an attempt's key": f"{until}.{attempt_key(site.master, 'tiny-1', 2)}",
        "the operator's key": f"{until}.{operator_key(site.master)}",
        "with an odd number": f"+{until}.{seal}",
        "with odd letters": f"{until}.%C3%A9{seal}",
        "very long": "9" * 10_000,
        "of zeros": "0.0",
    }


@pytest.mark.parametrize("path", ["/", "/runs/tiny-1", "/runs/tiny-1/events", "/runs/nobody"])
def test_without_a_link_that_is_good_nothing_is_shown_and_a_new_one_is_explained(
    site: Site, path: str
) -> None:
    for why, token in forged(site).items():
        for way, headers in (
            (f"{path}?token={token}", {}),
            (path, {"cookie": f"{cookie_name(site.master)}={token}"}),
        ):
            status, answered, body = get(site.url, way, headers)
            assert status == 403, why
            assert "prime-train dashboard" in body
            assert "set-cookie" not in answered
            assert "tiny" not in body


def test_a_link_with_more_in_it_than_a_token_is_read(site: Site) -> None:
    assert get(site.url, f"/?from=chat&token={site.token()}")[0] == 200
    assert get(site.url, f"/?{'a=b&' * 5000}c=d")[0] in (403, 431)
    assert get(site.url, f"/?{'token=a&' * 50}token={site.token()}")[0] == 403
    assert get(site.url, "/?from=chat", site.cookie())[0] == 200


def test_nothing_but_reading_is_possible(site: Site) -> None:
    for method in ("POST", "PUT", "DELETE", "HEAD", "OPTIONS"):
        assert get(site.url, "/runs/tiny-1", site.cookie(), method)[0] == 405
    # What opens the pages opens nothing else.
    assert get(site.url, f"/v1/store/list_runs?token={site.token()}", site.cookie(), "POST")[0] == 401


def test_every_page_keeps_browsers_from_storing_framing_and_telling_others(site: Site) -> None:
    for path, cookie in (
        ("/", site.cookie()),
        ("/runs/tiny-1", site.cookie()),
        ("/runs/nobody", site.cookie()),
        ("/", {}),
    ):
        _, headers, _ = get(site.url, path, cookie)
        assert set(FRAME) <= set(headers)
        assert (headers["referrer-policy"], headers["x-frame-options"], headers["cache-control"]) == (
            "no-referrer",
            "DENY",
            "no-store",
        )
        assert headers["content-security-policy"].startswith("default-src 'none';")
        assert "frame-ancestors 'none'" in headers["content-security-policy"]
        assert "unsafe" not in headers["content-security-policy"]


def test_nothing_of_a_token_is_logged(site: Site, caplog: pytest.LogCaptureFixture) -> None:
    token = site.token()
    with caplog.at_level(logging.DEBUG):
        get(site.url, f"/?token={token}")
        get(site.url, "/runs/nobody", {"cookie": f"{cookie_name(site.master)}={token}"})
        get(site.url, f"/?token={token}x")
    assert token.partition(".")[2] not in caplog.text


# ------------------------------------------------------------------------------------------------------------
# what it shows


def test_a_run_nobody_knows_has_no_page(site: Site) -> None:
    for path in (
        "/runs/nobody",
        "/runs/",
        "/runs/..%2f..%2fetc",
        "/runs/tiny-1/more",
        "/runs/nobody/events",
        "/runs/UPPER",
    ):
        assert get(site.url, path, site.cookie())[0] == 404


def test_what_strangers_wrote_is_only_text(site: Site) -> None:
    there = site.store.load("tiny-1")
    assert there is not None
    run = replace(there.run, version=there.run.version + 1, why=HOSTILE)
    trainer = run.spec.trainer.model_copy(update={"command": HOSTILE})
    run = replace(run, spec=run.spec.model_copy(update={"trainer": trainer}))
    assert site.store.save(Change(run, events=(b.history_event(HOSTILE),)))
    kept = site.home.root / "bucket" / "evidence" / "tiny-1" / "e1"
    kept.mkdir(parents=True)
    (kept / "trainer.log").write_text(HOSTILE)
    (kept / "<img src=x onerror=alert(3)>").write_text("")
    _, _, body = get(site.url, "/runs/tiny-1", site.cookie())
    assert body.count("<script") == 1
    assert body.count("&lt;script&gt;alert(1)") == 4  # why, log, history, command
    assert "<img" not in body
    assert not set("\x1b\x07") & set(body)
    assert "&lt;img src=x onerror=alert(3)&gt;" in body


def test_a_bucket_that_is_away_is_reported(site: Site) -> None:
    (site.home.root / "bucket").rename(site.home.root / "elsewhere")
    status, _, body = get(site.url, "/runs/tiny-1", site.cookie())
    assert status == 200
    assert "Not checked: " in body


# ------------------------------------------------------------------------------------------------------------
# how it stays true


@contextmanager
def events(site: Site) -> Iterator[socket.socket]:
    """Return a raw connection that receives events."""
    parts = urlsplit(site.url)
    with socket.create_connection((parts.hostname or "", parts.port or 0), timeout=HANG_S) as connection:
        head = "\r\n".join(f"{name}: {value}" for name, value in {"host": "x", **site.cookie()}.items())
        connection.sendall(f"GET /runs/tiny-1/events HTTP/1.1\r\n{head}\r\n\r\n".encode())
        yield connection


def await_text(connection: socket.socket, text: str) -> str:
    received = ""
    while text not in received:
        piece = connection.recv(65536).decode()
        assert piece, f"it ended with {received!r}"
        received += piece
    return received


def test_a_browser_hears_when_its_page_has_changed(site: Site) -> None:
    with events(site) as connection:
        assert "content-type: text/event-stream" in await_text(connection, "event: changed")
        # What lies outside of the store is looked at meanwhile, and told of, too; the heartbeat is what comes
        # at the latest.
        assert site.beat(8, step=77) == 200
        await_text(connection, "event: changed")
    await_true(lambda: ">77<" in get(site.url, "/runs/tiny-1", site.cookie())[2])


def test_only_so_many_browsers_hear_and_the_others_are_reported_so(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page_server, "STREAMS_MAX", 2)
    with events(site) as one, events(site) as other:
        await_text(one, "event: changed")
        await_text(other, "event: changed")
        with events(site) as third:
            assert " 503 " in await_text(third, "\r\n")
    # One that has gone makes room.

    def is_heard() -> bool:
        with events(site) as later:
            return " 200 " in await_text(later, "\r\n")

    await_true(is_heard)


def test_a_server_that_stops_does_not_wait_for_browsers(tmp_path: Path) -> None:
    site = Site(tmp_path)
    before = {thread.name for thread in threading.enumerate()}
    with site.server, events(site) as connection:
        await_text(connection, "event: changed")
        site.server.stop()
        assert site.server.ended.is_set()
    await_true(lambda: {thread.name for thread in threading.enumerate()} <= before)


class Stuck:
    """Pages that are not made before `free` is set."""

    def __init__(self) -> None:
        self.free, self.begun = threading.Event(), threading.Semaphore(0)

    def screen(self, request: PageRequest) -> PageResponse | None:
        return None

    def respond(self, request: PageRequest) -> PageResponse:
        self.begun.release()
        self.free.wait(HANG_S)
        return PageResponse(200, b"", ())

    def version(self, run_id: str) -> str:
        return "1"


def test_heartbeats_are_answered_while_pages_are_stuck(tmp_path: Path) -> None:
    """Every thread of the dashboard is blocked, and as many requests wait for one as may."""
    site, stuck, statuses = Site(tmp_path), Stuck(), []
    site.server = Server(site.home.webhook(), pages=stuck)

    def browse() -> None:
        statuses.append(get(site.url, "/")[0])

    with site.server:
        browsers = [threading.Thread(target=browse) for _ in range(page_server.WAITING_MAX + 1)]
        for browser in browsers:
            browser.start()
        for _ in range(page_server.THREADS):
            assert stuck.begun.acquire(timeout=HANG_S)
        await_true(lambda: statuses)
        assert statuses == [503]  # one more than may wait
        assert site.beat(8) == 200
        stuck.free.set()
        for browser in browsers:
            browser.join(HANG_S)
    assert sorted(statuses) == [200] * page_server.WAITING_MAX + [503]


# ------------------------------------------------------------------------------------------------------------
# in a real browser


def test_a_link_opens_live_pages_in_a_browser(site: Site, tmp_path: Path) -> None:
    with chromium(tmp_path) as browser:
        browser.open(f"{site.url}/?token={site.token()}")
        browser.await_event("Page.loadEventFired")
        assert browser.value("location.href") == f"{site.url}/"
        assert browser.value("document.cookie") == ""
        for width, scheme in ((400, "dark"), (1400, "light")):
            browser.open(f"{site.url}/", width=width, scheme=scheme)
            assert browser.value("document.documentElement.scrollWidth") <= width
        browser.open(f"{site.url}/runs/tiny-1")
        assert browser.value("document.querySelector('.card b').textContent") == "10"
        assert site.beat(8, step=99) == 200
        step = "document.querySelector('.card b').textContent"
        shows = (
            f"new Promise(done => {{ const look = () => {step} === '99' ? done(true) : "
            "setTimeout(look, "
            f"50); look(); }})"
        )
        assert browser.value(shows) is True
        assert browser.value("document.getElementById('stale').hidden") is True
        assert browser.complaints() == []


def test_a_link_in_a_chat_on_another_site_opens_the_pages(site: Site, tmp_path: Path) -> None:
    """A browser sends a cookie for the same site only with requests that start there."""
    chat = tmp_path / "chat.html"
    chat.write_text(f"<a href='{site.url}/?token={site.token()}'>runs</a>")
    with chromium(tmp_path) as browser:
        browser.open(chat.as_uri())
        browser.value("document.querySelector('a').click()")
        for _ in range(2):
            browser.await_event("Page.loadEventFired")
        assert browser.value("location.href") == f"{site.url}/"
        assert browser.value("document.querySelector('h1').textContent") == "Runs"
        assert browser.value("document.referrer") == ""


def test_the_page_of_a_run_in_any_state_is_served(site: Site) -> None:
    for state in RunState:
        run = b.run(state, run_id=f"run-{state.value}")
        assert site.store.create(run)
        assert get(site.url, f"/runs/{run.run_id}", site.cookie())[0] == 200


def test_a_page_says_of_what_time_it_is(site: Site) -> None:
    assert "As of 2" in get(site.url, "/runs/tiny-1", site.cookie())[2]
    assert json.loads(get(site.url, "/healthz")[2])["now_s"]


# ------------------------------------------------------------------------------------------------------------
# revoked links


def opened(site: Site, token: str) -> list[tuple[int, bool]]:
    """Return how the token's link and its cookie are answered: the status, and whether the page says that the
    link was revoked.
    """
    kept = {"cookie": f"{cookie_name(site.master)}={token}"}
    answers = [get(site.url, f"/?token={token}"), get(site.url, "/", kept)]
    return [(status, "This link was revoked" in body) for status, _, body in answers]


def test_a_revoked_link_shows_so_at_once_also_where_it_was_opened_before_and_the_others_go_on(
    site: Site,
) -> None:
    site.home.write_serving(site.url)
    first, other = (site.link() for _ in range(2))
    tokens = [link.url.partition("?token=")[2] for link in (first, other)]
    assert [opened(site, token) for token in tokens] == [[(200, False)] * 2] * 2

    revoke_links(site.home.store(), first.link_id)

    assert [opened(site, token) for token in tokens] == [[(403, True)] * 2, [(200, False)] * 2]


def test_all_links_are_revoked_also_those_of_earlier_versions_and_new_ones_open(site: Site) -> None:
    site.home.write_serving(site.url)
    tokens = [site.token(), site.link().url.partition("?token=")[2]]

    revoke_links(site.home.store(), None)

    assert [opened(site, token) for token in tokens] == [[(403, True)] * 2] * 2
    assert opened(site, site.link().url.partition("?token=")[2]) == [(200, False)] * 2


@pytest.mark.parametrize("text", ["", "x", "ABCDEF01", "../../ab", "1" * 9])
def test_what_is_no_id_of_a_link_is_refused(site: Site, text: str) -> None:
    with pytest.raises(UsageError, match="is not the id of a link"):
        revoke_links(site.home.store(), text)


def test_a_links_id_and_generation_are_sealed(site: Site) -> None:
    site.home.write_serving(site.url)
    link = site.link()
    token = link.url.partition("?token=")[2]
    revoke_links(site.home.store(), link.link_id)
    for changed in (
        token.replace(link.link_id, "00000000"),
        token.replace("-0.", "-1."),
        token.replace(f"-{link.link_id}-0", ""),
    ):
        assert opened(site, changed) == [(403, False)] * 2
