"""Alerts as JSON to a URL: the control plane's own, the run's own, or both. One of Discord's webhooks gets a message in Discord's form.

The URL is a secret (whoever knows it can post). So errors name its host only, exceptions of the libraries below, which carry the path, are
not chained, and what those libraries would log while we send is dropped.
"""

import contextlib
import json
import logging
import threading
import time
from collections.abc import Iterator, Mapping
from urllib.parse import unquote, urlsplit

import requests
from requests.adapters import HTTPAdapter
from urllib3.util.retry import Retry

from prime_train.adapters.http import retry_after_s
from prime_train.core.run import Alert, Run, Severity
from prime_train.ports import OutsideError, PermanentError, TemporaryError
from prime_train.told.card import AlertCard, card_of
from prime_train.told.discord import discord_message

TIMEOUT_S = (3.0, 5.0)
RETRIES_MAX = 2
RETRY_STATUS = frozenset({500, 502, 503, 504})
LATER_STATUS = frozenset({408, 425, 429}) | RETRY_STATUS
MUTE_S = 30.0
"""After a failure an address is left alone for so long, so that one that is down does not hold up the watcher alert by alert."""
DISCORD_PATH = "/api/webhooks/"
ANSWER_BYTES_MAX = 1024
SAID_CHARS_MAX = 120
GUESSABLE_CHARS = 4
"""Pieces of a URL shorter than this are no secret."""


class WebhookNotifier:
    """A `Notifier`. `secrets` holds the URLs that specs name under `alerts.webhook`; `url` gets every alert.

    TemporaryError, with `delay_s` where the other side named one: send again later. PermanentError: it was refused, or there is no URL
    by that name. Where an alert goes to two URLs, both are tried.
    """

    def __init__(self, secrets: Mapping[str, str], url: str | None = None) -> None:
        self._secrets, self._url = secrets, url
        self._muted: dict[str, float] = {}

    def send(self, alert: Alert, run: Run | None) -> None:
        failures: list[OutsideError] = []
        for name, url in self._targets(run) if alert.severity is not Severity.QUIET else []:
            try:
                self._post(name, url, card_of(alert, run, int(time.time())))
            except OutsideError as error:
                failures.append(error)
        if failures:
            # One that may still work decides: the alert comes again, and its key tells those who had it.
            raise next((failure for failure in failures if isinstance(failure, TemporaryError)), failures[0])

    def _targets(self, run: Run | None) -> list[tuple[str, str | None]]:
        """What to call each URL, and the URL; None where a named one is not there."""
        own = run.spec.alerts.webhook if run is not None else None
        targets: list[tuple[str, str | None]] = [("the control plane's alert URL", self._url)] if self._url else []
        return targets + ([(own, self._secrets.get(own))] if own is not None else [])

    def _post(self, name: str, url: str | None, card: AlertCard) -> None:
        if not url:
            raise PermanentError(f"alerts.webhook: the control plane's environment has no {name}")
        host = _host(url)
        if host is None:
            raise PermanentError(f"{name} is not an http or https URL")
        left_s = self._muted.get(url, 0.0) - time.monotonic()
        if left_s > 0:
            raise TemporaryError(f"{host} is left alone after a failure", delay_s=left_s)
        try:
            _post(url, host, card)
        except TemporaryError as error:
            self._muted[url] = time.monotonic() + max(MUTE_S, error.delay_s)
            raise


def _host(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        return parts.hostname if parts.scheme in ("http", "https") else None
    except ValueError:
        return None


def _post(url: str, host: str, card: AlertCard) -> None:
    form = discord_message if urlsplit(url).path.startswith(DISCORD_PATH) else _payload
    body = json.dumps(form(card), ensure_ascii=False).encode()
    headers = {"content-type": "application/json", "idempotency-key": card.key}
    with _unlogged(), _session() as session:
        try:
            with session.post(url, data=body, headers=headers, timeout=TIMEOUT_S, allow_redirects=False, stream=True) as response:
                _judge(response, url, host)
        except (requests.RequestException, OSError, ValueError) as error:
            # Not chained: the text of these names the whole URL.
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
        "epoch": card.epoch,
        "facts": dict(card.facts),
        "links": dict(card.links),
    }


def _session() -> requests.Session:
    retry = Retry(
        total=RETRIES_MAX,
        redirect=0,
        allowed_methods=None,  # POST too: the key makes sending twice harmless
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
    """The start of the answer's body, unless it repeats a piece of the URL."""
    text = response.raw.read(ANSWER_BYTES_MAX, decode_content=True).decode(errors="replace")
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
