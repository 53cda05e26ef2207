"""Alerts as JSON to a URL: the control plane's own, the run's own, or both. A Discord webhook gets a message
in Discord's format.

A receiver of prime-train's own format recognises an alert by its key, so the alert is sent again if the
response was lost. Discord does not deduplicate: an alert that was sent to it completely counts as delivered
whatever the response, because a repeat would be posted twice.

The URL is a secret, since whoever has it can post. So errors name only its host, exceptions of the underlying
libraries, which hold the path, are not chained, and what those libraries log during a send is dropped.
"""

import contextlib
import io
import json
import logging
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from urllib.parse import unquote, urlsplit

import requests
from urllib3.exceptions import HTTPError

from prime_train.alerts.card import AlertCard, card_of
from prime_train.alerts.discord import discord_message
from prime_train.answer_limits import LimitedAdapter
from prime_train.errors import ExternalError, NotHere, PermanentError, TemporaryError
from prime_train.http import Undrained
from prime_train.runs.run import Alert, Run, Severity
from prime_train.text.retry_after import retry_after_s

CONNECT_S = 3.0
READ_S = 5.0
DISCORD_READ_S = 15.0
"""Read timeout in seconds for Discord. It is longer than for other receivers, because after a timeout it is
unknown whether the message was posted.
"""
RETRIES_MAX = 2
RETRY_ONLY_CONNECTING = frozenset({"GET"})
"""HTTP methods that may be retried after the request was sent. Only POST is used here, so no sent request is
repeated. An empty set would mean every method.
"""
RETRY_STATUS = frozenset({500, 502, 503, 504})
LATER_STATUS = frozenset({408, 425, 429}) | RETRY_STATUS
MUTE_S = 30.0
"""Seconds for which an address is skipped after a failure, so that one that is down does not delay the
watcher at every alert.
"""
DISCORD_PATH = "/api/webhooks/"
ANSWER_BYTES_MAX = 1024
RECEIVED_BYTES_MAX = 2**20
"""Limit of everything that is received in answer to one alert."""
REASON_CHARS_MAX = 120
GUESSABLE_CHARS = 4
"""Minimum length of a part of a URL that is treated as secret."""
TOOK_MAX = 4096
PLACE_CHARS = 8

log = logging.getLogger(__name__)


def webhooks_from(secrets: Mapping[str, str], url: str | None) -> "tuple[WebhookNotifier, ...]":
    """Return one notifier for the URLs that specs name and, if `url` is given, one for the URL that gets
    every alert.

    They are separate because a process that does not know which of two URLs has received an alert would send
    it to both again.
    """
    named = WebhookNotifier(secrets, default_url=url)
    return (named, WebhookNotifier(None, url)) if url else (named,)


class WebhookNotifier:
    """A `Notifier`. `secrets` holds the URLs that specs name under `alerts.webhook`, or is None if this
    notifier does not handle them; `url` gets every alert; `default_url` is a URL to which another notifier
    sends every alert.

    Raises TemporaryError, with `delay_s` if the receiver named one, if the alert should be sent again later;
    PermanentError if it was refused or no URL has that name. If an alert goes to two URLs, both are tried,
    and one that has received it does not get it again because of the other. `discord_read_s` is the read
    timeout for Discord in seconds; `clock` returns monotonic seconds.
    """

    def __init__(
        self,
        secrets: Mapping[str, str] | None,
        url: str | None = None,
        *,
        default_url: str | None = None,
        discord_read_s: float = DISCORD_READ_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._secrets, self._url, self._default_url, self._clock = secrets, url, default_url, clock
        self._discord = _Form(discord_message, knows_keys=False, read_s=discord_read_s)
        self._muted: dict[str, float] = {}
        self._took: dict[tuple[str, str | None], None] = {}
        """The newest `TOOK_MAX` pairs of alert key and URL: alerts that this URL has received and another one
        has not yet.
        """

    @property
    def place(self) -> str:
        """Return a hash of the URL that gets every alert; empty if there is none."""
        return sha256(self._url.encode()).hexdigest()[:PLACE_CHARS] if self._url else ""

    def send(self, alert: Alert, run: Run | None) -> None:
        failures: list[ExternalError] = []
        targets = self._targets(run) if alert.severity is not Severity.QUIET else []
        for name, url in targets:
            if (alert.key, url) in self._took:
                continue
            try:
                self._post(name, url, card_of(alert, run, int(time.time())))
            except ExternalError as error:
                failures.append(error)
            else:
                self._took[alert.key, url] = None
        # A temporary failure takes precedence, so that the alert is sent again.
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
        """Return the label and the URL of each target; the URL is None if a named one is not in the
        environment.
        """
        targets: list[tuple[str, str | None]] = (
            [("the control plane's alert URL", self._url)] if self._url else []
        )
        own = run.spec.alerts.webhook if run is not None else None
        if (
            own is None
            or self._secrets is None
            or (self._default_url and self._secrets.get(own) == self._default_url)
        ):
            return targets
        return [*targets, (own, self._secrets.get(own))]

    def _post(self, name: str, url: str | None, card: AlertCard) -> None:
        if not url:
            raise NotHere(f"alerts.webhook: this watcher's environment has no {name}")
        host = _host(url)
        if host is None:
            raise PermanentError(f"{name} is not an http or https URL")
        left_s = self._muted.get(url, 0.0) - self._clock()
        if left_s > 0:
            raise TemporaryError(f"no alerts are sent to {host} for a while after a failure", delay_s=left_s)
        try:
            _post(url, host, card, self._discord if urlsplit(url).path.startswith(DISCORD_PATH) else _OWN)
        except TemporaryError as error:
            self._muted[url] = self._clock() + max(MUTE_S, error.delay_s)
            if not isinstance(error, _Unanswered):
                raise
            log.warning("%s; alert %s counts as sent, because a retry could send it twice", error, card.key)


def _host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        return parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        return None


class _Unanswered(TemporaryError):
    """The alert was sent completely, to a receiver that does not deduplicate, and no response arrived."""


@dataclass(frozen=True)
class _Form:
    """A receiver's format. `knows_keys`: the receiver recognises a repeated alert by its key, so it may be
    sent again.
    """

    body: Callable[[AlertCard], Mapping[str, object]]
    knows_keys: bool
    read_s: float


class _Body(io.BytesIO):
    """A request body. `is_sent` is True once it has been read to its end; if no connection is made, nothing
    is read.
    """

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
            with session.post(
                url, data=body, headers=headers, timeout=timeout, allow_redirects=False, stream=True
            ) as response:
                _judge(response, url, host)
        except (requests.RequestException, OSError, ValueError) as error:
            # Not chained: the text of these exceptions holds the whole URL.
            if body.is_sent and not form.knows_keys:
                raise _Unanswered(
                    f"{host} received the alert but did not answer: {type(error).__name__}"
                ) from None
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
    retry = Undrained(
        total=RETRIES_MAX,
        redirect=0,
        allowed_methods=None if form.knows_keys else RETRY_ONLY_CONNECTING,
        status_forcelist=RETRY_STATUS,
        backoff_factor=0.2,
        respect_retry_after_header=False,  # never sleep here; the caller retries
        raise_on_status=False,
    )
    session = requests.Session()
    for scheme in ("http://", "https://"):
        session.mount(scheme, LimitedAdapter(form.read_s + READ_S, RECEIVED_BYTES_MAX, max_retries=retry))
    return session


def _judge(response: requests.Response, url: str, host: str) -> None:
    status = response.status_code
    if 200 <= status < 300:
        return
    message = f"{host} answered {status}{_reason(response, url)}"
    if status in LATER_STATUS or status >= 500:
        raise TemporaryError(message, delay_s=retry_after_s(response.headers))
    raise PermanentError(message)


def _reason(response: requests.Response, url: str) -> str:
    """Return the start of the response body as a suffix for an error; empty if it repeats a part of the URL
    or cannot be read.
    """
    end_s, body = time.monotonic() + READ_S, b""
    try:
        while len(body) < ANSWER_BYTES_MAX and time.monotonic() < end_s:
            piece = response.raw.read1(ANSWER_BYTES_MAX, decode_content=True)
            if not piece:
                break
            body += piece
        text = body[:ANSWER_BYTES_MAX].decode(errors="replace")
    except (HTTPError, OSError):  # the status is enough
        return ""
    pieces = {piece for address in (url, unquote(url)) for piece in _pieces(address)}
    if not text.strip() or any(piece in text for piece in pieces):
        return ""
    return ": " + " ".join(text.split())[:REASON_CHARS_MAX]


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
    """Log filter that drops records of a thread that is sending an alert."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _sending.now


_FILTER = _NotOurs()


@contextlib.contextmanager
def _unlogged() -> Iterator[None]:
    """Drop urllib3's log records during the block: they contain the URL's path, those about retries even at
    warning level.
    """
    for name in ("urllib3.connectionpool", "urllib3.util.retry"):
        logging.getLogger(name).addFilter(_FILTER)  # adding it again changes nothing
    _sending.now = True
    try:
        yield
    finally:
        _sending.now = False
