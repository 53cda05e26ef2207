"""Alerts as JSON to a URL: the control plane's own, the run's own, or both. One of Discord's webhooks gets a message in Discord's form.

A receiver of our own form knows an alert by its key, so where an answer is lost it is sent again. Discord knows no key: what it was sent
whole counts as told, whatever became of the answer, as it would say the same again each time.

The URL is a secret (whoever knows it can post). So errors name its host only, exceptions of the libraries below, which carry the path, are
not chained, and what those libraries would log while we send is dropped.
"""

import contextlib
import io
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from urllib.parse import unquote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.exceptions import HTTPError
from urllib3.util.retry import Retry

from prime_train.adapters.http import retry_after_s
from prime_train.core.run import Alert, Run, Severity
from prime_train.ports import OutsideError, PermanentError, TemporaryError
from prime_train.reports.alert_card import AlertCard, card_of
from prime_train.reports.discord import discord_message

CONNECT_S = 3.0
READ_S = 5.0
DISCORD_READ_S = 15.0
"""Longer, for nothing is known of what it does with a message after that."""
RETRIES_MAX = 2
RETRY_ONLY_CONNECTING = frozenset({"GET"})
"""We only post: with this, nothing is repeated that was sent. An empty set would mean every method."""
RETRY_STATUS = frozenset({500, 502, 503, 504})
LATER_STATUS = frozenset({408, 425, 429}) | RETRY_STATUS
MUTE_S = 30.0
"""After a failure an address is left alone for so long, so that one that is down does not hold up the watcher alert by alert."""
DISCORD_PATH = "/api/webhooks/"
ANSWER_BYTES_MAX = 1024
SAID_CHARS_MAX = 120
GUESSABLE_CHARS = 4
"""Pieces of a URL shorter than this are no secret."""
TOOK_MAX = 4096

log = logging.getLogger(__name__)


def webhooks_from(secrets: Mapping[str, str], url: str | None) -> "tuple[WebhookNotifier, ...]":
    """One for the URLs that specs name, and one for the `url` that gets every alert, if there is such. Of two URLs in one notifier, a
    process that does not know which of them took an alert would send it to both again."""
    named = WebhookNotifier(secrets, beside=url)
    return (named, WebhookNotifier(None, url)) if url else (named,)


class WebhookNotifier:
    """A `Notifier`. `secrets` holds the URLs that specs name under `alerts.webhook`, None where those are not this one's; `url` gets every
    alert; `beside` is a URL that another notifier sends every alert to.

    TemporaryError, with `delay_s` where the other side named one: send again later. PermanentError: it was refused, or there is no URL
    by that name. Where an alert goes to two URLs, both are tried, and one that took it is not told again for the other. `discord_read_s`:
    how long Discord may take to answer; `clock`: seconds that only rise.
    """

    def __init__(
        self,
        secrets: Mapping[str, str] | None,
        url: str | None = None,
        *,
        beside: str | None = None,
        discord_read_s: float = DISCORD_READ_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._secrets, self._url, self._beside, self._clock = secrets, url, beside, clock
        self._discord = _Form(discord_message, knows_keys=False, read_s=discord_read_s)
        self._muted: dict[str, float] = {}
        self._took: dict[tuple[str, str | None], None] = {}
        """Who took an alert (by its key) that another URL has not taken yet, the newest `TOOK_MAX`."""

    def send(self, alert: Alert, run: Run | None) -> None:
        failures: list[OutsideError] = []
        targets = self._targets(run) if alert.severity is not Severity.QUIET else []
        for name, url in targets:
            if (alert.key, url) in self._took:
                continue
            try:
                self._post(name, url, card_of(alert, run, int(time.time())))
            except OutsideError as error:
                failures.append(error)
            else:
                self._took[alert.key, url] = None
        # One that may still work decides: the alert comes again.
        later = next((failure for failure in failures if isinstance(failure, TemporaryError)), None)
        if later is not None:
            for oldest in list(self._took)[: max(0, len(self._took) - TOOK_MAX)]:
                del self._took[oldest]
            raise later
        for _, url in targets:
            self._took.pop((alert.key, url), None)
        if failures:
            raise failures[0]

    def _targets(self, run: Run | None) -> list[tuple[str, str | None]]:
        """What to call each URL, and the URL; None where a named one is not there."""
        targets: list[tuple[str, str | None]] = [("the control plane's alert URL", self._url)] if self._url else []
        own = run.spec.alerts.webhook if run is not None else None
        if own is None or self._secrets is None or (self._beside and self._secrets.get(own) == self._beside):
            return targets
        return [*targets, (own, self._secrets.get(own))]

    def _post(self, name: str, url: str | None, card: AlertCard) -> None:
        if not url:
            raise PermanentError(f"alerts.webhook: the control plane's environment has no {name}")
        host = _host(url)
        if host is None:
            raise PermanentError(f"{name} is not an http or https URL")
        left_s = self._muted.get(url, 0.0) - self._clock()
        if left_s > 0:
            raise TemporaryError(f"{host} is left alone after a failure", delay_s=left_s)
        try:
            _post(url, host, card, self._discord if urlsplit(url).path.startswith(DISCORD_PATH) else _OWN)
        except TemporaryError as error:
            self._muted[url] = self._clock() + max(MUTE_S, error.delay_s)
            if not isinstance(error, _Unheard):
                raise
            log.warning("%s; alert %s counts as told, as it would be told twice", error, card.key)


def _host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        return parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        return None


class _Unheard(TemporaryError):
    """It was sent whole, to somebody who would not know it again, and no answer came."""


@dataclass(frozen=True)
class _Form:
    """How somebody wants it. `knows_keys`: the same alert may be sent again, for its key tells that it is the same."""

    body: Callable[[AlertCard], Mapping[str, object]]
    knows_keys: bool
    read_s: float


class _Body(io.BytesIO):
    """`is_sent`: the connection has taken all of it, for its end was asked for. A connection that does not come about reads nothing."""

    is_sent = False

    def read(self, size: int | None = -1, /) -> bytes:
        piece = super().read(size)
        self.is_sent = self.is_sent or not piece
        return piece


def _post(url: str, host: str, card: AlertCard, form: _Form) -> None:
    body = _Body(json.dumps(form.body(card), ensure_ascii=False).encode())
    headers = {"content-type": "application/json", "idempotency-key": card.key}
    timeout = (CONNECT_S, form.read_s)
    with _unlogged(), _session(form) as session:
        try:
            with session.post(url, data=body, headers=headers, timeout=timeout, allow_redirects=False, stream=True) as response:
                _judge(response, url, host)
        except (requests.RequestException, OSError, ValueError) as error:
            # Not chained: the text of these names the whole URL.
            if body.is_sent and not form.knows_keys:
                raise _Unheard(f"{host} was sent it and did not answer: {type(error).__name__}") from None
            raise TemporaryError(f"{host} could not be reached: {type(error).__name__}") from None


def _payload(card: AlertCard) -> dict[str, object]:
    return {
        "key": card.key,
        "run": card.run_id,
        "kind": card.kind,
        "severity": card.severity.value,
        "title": card.title,
        "text": card.text,
        "at": card.at_s,
        "attempt": card.attempt,
        "facts": dict(card.facts),
        "links": dict(card.links),
    }


_OWN = _Form(_payload, knows_keys=True, read_s=READ_S)


def _session(form: _Form) -> requests.Session:
    retry = Retry(
        total=RETRIES_MAX,
        redirect=0,
        allowed_methods=None if form.knows_keys else RETRY_ONLY_CONNECTING,
        status_forcelist=RETRY_STATUS,
        backoff_factor=0.2,
        respect_retry_after_header=False,  # we do not sleep here; whoever sends comes again
        raise_on_status=False,
    )
    session = requests.Session()
    session.mount("http://", HTTPAdapter(max_retries=retry))
    session.mount("https://", HTTPAdapter(max_retries=retry))
    return session


def _judge(response: requests.Response, url: str, host: str) -> None:
    status = response.status_code
    if 200 <= status < 300:
        return
    message = f"{host} answered {status}{_said(response, url)}"
    if status in LATER_STATUS or status >= 500:
        raise TemporaryError(message, delay_s=retry_after_s(response.headers))
    raise PermanentError(message)


def _said(response: requests.Response, url: str) -> str:
    """The start of the answer's body, unless it repeats a piece of the URL, or does not come."""
    try:
        text = response.raw.read(ANSWER_BYTES_MAX, decode_content=True).decode(errors="replace")
    except (HTTPError, OSError):  # the status has said what counts
        return ""
    pieces = {piece for whole in (url, unquote(url)) for piece in _pieces(whole)}
    if not text.strip() or any(piece in text for piece in pieces):
        return ""
    return ": " + " ".join(text.split())[:SAID_CHARS_MAX]


def _pieces(url: str) -> list[str]:
    parts = urlsplit(url)
    separated = f"{parts.path}/{parts.query}/{parts.fragment}/{parts.username or ''}/{parts.password or ''}"
    for mark in "&=;:":
        separated = separated.replace(mark, "/")
    return [piece for piece in separated.split("/") if len(piece) >= GUESSABLE_CHARS]


class _Sending(threading.local):
    now = False


_sending = _Sending()


class _NotOurs(logging.Filter):
    """Drops what is logged by a thread that is sending an alert."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _sending.now


_FILTER = _NotOurs()


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """urllib3 logs paths, when it retries even as warnings."""
    for name in ("urllib3.connectionpool", "urllib3.util.retry"):
        logging.getLogger(name).addFilter(_FILTER)  # adding it again changes nothing
    _sending.now = True
    try:
        yield
    finally:
        _sending.now = False
