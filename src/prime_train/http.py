"""HTTP client shared by all adapters: every call has a timeout, every response a size limit, and every
failure is an error of `ports`.

A request is retried here only if a repeat does no harm: a GET, HEAD or DELETE, or any request for which no
connection was made, because then nothing was sent. Later retries are the caller's decision; the type of the
error says whether they may help.

The key is a secret. It is sent to no other host (redirects are not followed), appears in no error and no log,
and is removed from a response that repeats it. Exceptions of the underlying libraries hold the complete
request, so they are not chained.
"""

import json
import socket
import ssl
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from ipaddress import ip_address
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

import requests
from requests.auth import AuthBase
from urllib3.connectionpool import ConnectionPool
from urllib3.exceptions import HTTPError, NameResolutionError
from urllib3.response import BaseHTTPResponse
from urllib3.util.retry import Retry

from prime_train.answer_limits import LimitedAdapter
from prime_train.api_exchange import Exchange, Witness
from prime_train.errors import PermanentError, TemporaryError
from prime_train.text.retry_after import retry_after_s

CONNECT_S = 10.0
READ_S = 30.0
PAUSE_S = 0.2
BODY_S_MAX = 60.0
"""Limit in seconds for reading a complete response body, however slowly it arrives."""
BODY_BYTES_MAX = 8 * 2**20
ANSWER_S_MAX = 150.0
"""Limit in seconds of a complete answer, its head included: the longest wait for a first byte,
`CREATE_READ_S` of the rental APIs, and the body.
"""
ANSWER_BYTES_MAX = BODY_BYTES_MAX + 2**20
"""Limit of everything that is received: more than the longest body, so that it is that limit which is
reported.
"""
READ_BYTES = 64 * 2**10
RETRIES_MAX = 2
RETRY_METHODS = frozenset({"GET", "HEAD", "DELETE"})
RETRY_STATUS = frozenset({500, 502, 503, 504})
LATER_STATUS = frozenset({408, 425, 429})
CONNECTIONS_MAX = 8

Parameters = Mapping[str, str | int | Sequence[str]]


class NoSuchHost(TemporaryError):
    """The host name cannot be resolved now; if the name is a mistake, retrying does not help."""


@dataclass(frozen=True)
class HttpResponse:
    """A response of any status. `what` names the request, such as `GET host/path`."""

    what: str
    status: int
    body: bytes = field(repr=False)
    delay_s: float = 0.0
    """Seconds to wait before the next request, as asked for by the server's Retry-After header."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Response headers by name in lower case."""
    earlier: tuple[int, ...] = ()
    """Statuses of the responses after which the request was repeated."""

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    def content(self) -> object:
        """Return the parsed JSON body, or None if the body is not JSON."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


class Http:
    """Client of the server at `url`, authenticated with `key` as a bearer token, or as the password of `user`
    if one is given. `tls`: the authorities to trust instead of the public ones, and a certificate of the
    client's own. `witness` is told every exchange. Thread-safe.

    `ask` returns a response of any status. It raises TemporaryError if no response, or only part of one,
    arrived; it is then unknown whether a changing request took effect. Its subclass NoSuchHost, and
    PermanentError, mean that nothing was sent.
    """

    def __init__(
        self,
        url: str,
        *,
        key: str = "",
        user: str = "",
        pause_s: float = PAUSE_S,
        tls: ssl.SSLContext | None = None,
        witness: Witness | None = None,
    ) -> None:
        self._url, self._secrets = url.rstrip("/"), _as_sent(key, user)
        self._folder = _path(url)
        self._witness = witness or _nobody
        self._host = _host(url)
        self._session = _session(pause_s, tls)
        self._session.auth = _Header(f"{'Basic' if user else 'Bearer'} {self._secrets[0]}") if key else None
        self._session.trust_env = not is_loopback(url)  # a proxy cannot lead back to this machine

    def ask(
        self,
        method: str,
        path: str,
        *,
        parameters: Parameters | None = None,
        body: object = None,
        data: bytes | None = None,
        headers: Mapping[str, str] | None = None,
        read_s: float = READ_S,
    ) -> HttpResponse:
        """Send one request and return its response. `body` is serialised as JSON; `data` is sent unchanged,
        and must be JSON too.
        """
        what = f"{method} {self._host}{path}"
        try:
            with self._session.request(
                method,
                self._url + path,
                params=dict(parameters or {}),
                json=body,
                data=data,
                headers={"accept": "application/json", "accept-encoding": "identity"}
                | (dict(headers or {}) | ({"content-type": "application/json"} if data is not None else {})),
                timeout=(CONNECT_S, read_s),
                allow_redirects=False,
                stream=True,
            ) as response:
                headers = {name.lower(): value for name, value in response.headers.items()}
                read = self._struck(_read(response, what))
                answer = HttpResponse(
                    what, response.status_code, read, retry_after_s(headers), headers, _earlier(response)
                )
        except (
            requests.exceptions.InvalidURL,
            requests.exceptions.InvalidSchema,
            requests.exceptions.MissingSchema,
        ):
            raise PermanentError(f"{what}: the address is not an http or https URL") from None
        except (requests.RequestException, HTTPError, OSError) as error:
            failure = _unanswered(what, error)
            self._witness(
                Exchange(method, self._folder + path, parameters or {}, body, 0, failure=str(failure))
            )
            raise failure from None
        self._witness(
            Exchange(
                method,
                self._folder + path,
                parameters or {},
                body,
                answer.status,
                headers,
                read,
                answer.earlier,
            )
        )
        return answer

    def _struck(self, body: bytes) -> bytes:
        for secret in self._secrets:
            body = body.replace(secret.encode(), b"***")
        return body


def _nobody(exchange: Exchange) -> None:
    """Tell nobody."""


def _earlier(response: requests.Response) -> tuple[int, ...]:
    retries = response.raw.retries
    return (
        tuple(past.status for past in retries.history if past.status is not None)
        if retries is not None
        else ()
    )


def _as_sent(key: str, user: str) -> tuple[str, ...]:
    """Return the secret as it appears in the header, and the key itself if that differs."""
    return (b64encode(f"{user}:{key}".encode()).decode(), key) if key and user else (key,) if key else ()


def failure(answer: HttpResponse, reason: str = "") -> TemporaryError | PermanentError:
    """Return the error to raise for a response whose status is not a success. `reason` is a summary of its
    body for the message.
    """
    message = f"{answer.what} was answered with {answer.status}{': ' if reason else ''}{reason}"
    if answer.status >= 500 or answer.status in LATER_STATUS:
        return TemporaryError(message, delay_s=answer.delay_s)
    return PermanentError(message)


def is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_safe(url: str) -> bool:
    """Return whether a secret may be sent to `url`: by HTTPS, or within this machine."""
    return urlsplit(url).scheme == "https" or is_loopback(url)


class _Header(AuthBase):
    """Authorization header as an auth object: a session's plain header would be overridden by an entry for
    the host in ~/.netrc.
    """

    def __init__(self, value: str) -> None:
        self._value = value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["authorization"] = self._value
        return request


class Undrained(Retry):
    """Closes the connection of a response before its request is repeated. urllib3 would read the body to its
    end to use the connection again, and a body may be endless.
    """

    def increment(
        self,
        method: str | None = None,
        url: str | None = None,
        response: BaseHTTPResponse | None = None,
        error: Exception | None = None,
        _pool: ConnectionPool | None = None,
        _stacktrace: TracebackType | None = None,
    ) -> Self:
        following = super().increment(method, url, response, error, _pool, _stacktrace)
        if response is not None:
            response.close()
        return following


class _UnlessAsked(Undrained):
    """Repeats no request whose response says when to come back: only the caller knows whether to wait so
    long.
    """

    def is_retry(self, method: str, status_code: int, has_retry_after: bool = False) -> bool:
        return not has_retry_after and super().is_retry(method, status_code)


class _OwnTls(LimitedAdapter):
    """Connections that trust the authorities of `tls` and no others: neither the public ones nor those of
    REQUESTS_CA_BUNDLE.
    """

    def __init__(self, tls: ssl.SSLContext, retry: Retry) -> None:
        self._tls = tls
        super().__init__(ANSWER_S_MAX, ANSWER_BYTES_MAX, max_retries=retry, pool_maxsize=CONNECTIONS_MAX)

    def init_poolmanager(self, *arguments: Any, **options: Any) -> None:
        super().init_poolmanager(*arguments, **options, ssl_context=self._tls)

    def proxy_manager_for(self, proxy: str, **options: Any) -> Any:
        return super().proxy_manager_for(proxy, **options, ssl_context=self._tls)

    def cert_verify(self, conn: Any, url: str, verify: object, cert: object) -> None:
        conn.cert_reqs, conn.ca_certs, conn.ca_cert_dir = "CERT_REQUIRED", None, None

    def build_connection_pool_key_attributes(
        self, request: requests.PreparedRequest, verify: object, cert: object = None
    ) -> Any:
        return super().build_connection_pool_key_attributes(request, verify=True, cert=None)


def _session(pause_s: float, tls: ssl.SSLContext | None) -> requests.Session:
    retry = _UnlessAsked(
        total=RETRIES_MAX,
        redirect=0,
        allowed_methods=RETRY_METHODS,
        status_forcelist=RETRY_STATUS,
        backoff_factor=pause_s,
        respect_retry_after_header=False,  # never sleep here; the caller retries
        raise_on_status=False,
    )
    session = requests.Session()
    # no cookie of one thread's response may reach another's request
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))
    for scheme in ("http://", "https://"):
        session.mount(
            scheme,
            LimitedAdapter(ANSWER_S_MAX, ANSWER_BYTES_MAX, max_retries=retry, pool_maxsize=CONNECTIONS_MAX),
        )
    if tls is not None:
        session.mount("https://", _OwnTls(tls, retry))
    return session


def _host(url: str) -> str:
    """Return host and port of `url`, without user info, which may be a password."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return "?"


def _path(url: str) -> str:
    """Return the path that begins those of all requests."""
    try:
        return urlsplit(url).path.rstrip("/")
    except ValueError:
        return ""


def _read(response: requests.Response, what: str) -> bytes:
    end_s = time.monotonic() + BODY_S_MAX
    body = bytearray()
    while part := response.raw.read1(READ_BYTES, decode_content=True):
        body += part
        if len(body) > BODY_BYTES_MAX:
            raise TemporaryError(f"{what} was answered with more than {BODY_BYTES_MAX} bytes")
        if time.monotonic() > end_s:
            raise TemporaryError(f"{what}: the answer did not end within {BODY_S_MAX:.0f} s")
    return bytes(body)


def _unanswered(what: str, error: Exception) -> TemporaryError | PermanentError:
    # The certificate was checked before anything was sent, and the failure will not go away by itself.
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return PermanentError(
            f"{what}: the server's certificate is not trusted; set REQUESTS_CA_BUNDLE to the file of its "
            "certificate authority"
        )
    # Whether the resolver reported for certain that the name does not exist, as opposed to a resolver
    # failure.
    reason = getattr(error.args[0], "reason", None) if error.args else None
    cause = reason.__cause__ if isinstance(reason, NameResolutionError) else None
    if isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME:
        return NoSuchHost(f"{what} got no answer: the host name does not exist")
    return TemporaryError(f"{what} got no answer: {type(error).__name__}")
