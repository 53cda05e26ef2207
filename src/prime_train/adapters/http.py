"""The one door to HTTP: every call has its time, every answer its size, and what fails is told in our words.

What is asked again here is only what cannot do harm twice: a GET or DELETE, and anything at all as long as no connection came about, for
then nothing was sent. Whether to ask again later is the caller's business; the type of the error says whether that may help.

The key is a secret. It is given to no other host (redirects are not followed), is in no error and no log, and where an answer repeats it,
it is struck out before anybody can read it. Exceptions of the libraries below hold the whole request, so they are not chained.
"""

import json
import socket
import time
from base64 import b64encode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http.cookiejar import DefaultCookiePolicy
from ipaddress import ip_address
from urllib.parse import urlsplit

import requests
from requests.adapters import HTTPAdapter
from requests.auth import AuthBase
from urllib3.exceptions import HTTPError, NameResolutionError
from urllib3.util.retry import Retry

from prime_train.ports import PermanentError, TemporaryError

CONNECT_S = 10.0
READ_S = 30.0
PAUSE_S = 0.2
BODY_S_MAX = 60.0
"""For reading an answer's body, whatever the pace at which it drips."""
BODY_BYTES_MAX = 8 * 2**20
READ_BYTES = 64 * 2**10
RETRIES_MAX = 2
RETRY_METHODS = frozenset({"GET", "HEAD", "DELETE"})
RETRY_STATUS = frozenset({500, 502, 503, 504})
LATER_STATUS = frozenset({408, 425, 429})
DELAY_S_MAX = 3600.0
CONNECTIONS_MAX = 8

Parameters = Mapping[str, str | int | Sequence[str]]


class NoSuchHost(TemporaryError):
    """Nobody knows the host's name now; where the name is a mistake, it stays so."""


@dataclass(frozen=True)
class Answer:
    """What came back, whatever its status. `what` names the request, such as `GET host/path`."""

    what: str
    status: int
    body: bytes = field(repr=False)
    delay_s: float = 0.0
    """How long the other side asks to be left alone."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    """Names in lower case."""

    @property
    def is_ok(self) -> bool:
        return 200 <= self.status < 300

    def content(self) -> object:
        """The JSON in it; None where there is none."""
        try:
            return json.loads(self.body)
        except (ValueError, RecursionError):
            return None


class Http:
    """Asks the server at `url`, as whoever holds `key`, which is the password of `user` where one is named. Safe between threads.

    `ask` gives an answer of any status back. It raises TemporaryError where none came, or not a whole one: of a request that changes
    something it is then not known whether it did. NoSuchHost, which is one, and PermanentError: nothing was sent.
    """

    def __init__(self, url: str, *, key: str = "", user: str = "", pause_s: float = PAUSE_S) -> None:
        self._url, self._secrets = url.rstrip("/"), _as_sent(key, user)
        self._host = _host(url)
        self._session = _session(pause_s)
        self._session.auth = _Header(f"{'Basic' if user else 'Bearer'} {self._secrets[0]}") if key else None
        self._session.trust_env = not is_loopback(url)  # a proxy never leads to this machine itself

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
    ) -> Answer:
        """`body` is sent as JSON, `data` as it is, which is JSON too."""
        what = f"{method} {self._host}{path}"
        try:
            with self._session.request(
                method,
                self._url + path,
                params=dict(parameters or {}),
                json=body,
                data=data,
                headers={"accept": "application/json", "accept-encoding": "identity"} | _extra(data, headers),
                timeout=(CONNECT_S, read_s),
                allow_redirects=False,
                stream=True,
            ) as response:
                return Answer(
                    what,
                    response.status_code,
                    self._struck(_read(response, what)),
                    retry_after_s(response.headers),
                    _lower(response.headers),
                )
        except (requests.exceptions.InvalidURL, requests.exceptions.InvalidSchema, requests.exceptions.MissingSchema):
            raise PermanentError(f"{what}: the address is no http or https URL") from None
        except (requests.RequestException, HTTPError, OSError) as error:
            raise _unanswered(what, error) from None

    def _struck(self, body: bytes) -> bytes:
        for secret in self._secrets:
            body = body.replace(secret.encode(), b"***")
        return body


def _as_sent(key: str, user: str) -> tuple[str, ...]:
    """The secret as it stands in the header, and the key itself where that is something else."""
    return (b64encode(f"{user}:{key}".encode()).decode(), key) if key and user else (key,) if key else ()


def _lower(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _extra(data: bytes | None, headers: Mapping[str, str] | None) -> dict[str, str]:
    return dict(headers or {}) | ({"content-type": "application/json"} if data is not None else {})


def failure(answer: Answer, said: str = "") -> TemporaryError | PermanentError:
    """The error to raise for an answer that is none of success; `said` is what to tell of its body."""
    told = f"{answer.what} was answered {answer.status}{': ' if said else ''}{said}"
    if answer.status >= 500 or answer.status in LATER_STATUS:
        return TemporaryError(told, delay_s=answer.delay_s)
    return PermanentError(told)


def retry_after_s(headers: Mapping[str, str]) -> float:
    """Retry-After in seconds, bounded; its other form, a date, is not used by those who limit rates."""
    text = headers.get("retry-after", "")
    return min(DELAY_S_MAX, float(text)) if text.isascii() and text.isdigit() and len(text) < 10 else 0.0


def is_loopback(url: str) -> bool:
    try:
        host = urlsplit(url).hostname or ""
        return host == "localhost" or ip_address(host).is_loopback
    except ValueError:
        return False


def is_safe(url: str) -> bool:
    """Whether a secret can be sent there: by https, or within this machine."""
    return urlsplit(url).scheme == "https" or is_loopback(url)


class _Header(AuthBase):
    """As an auth object, for a header of the session would give way to what ~/.netrc says of the host."""

    def __init__(self, value: str) -> None:
        self._value = value

    def __call__(self, request: requests.PreparedRequest) -> requests.PreparedRequest:
        request.headers["authorization"] = self._value
        return request


def _session(pause_s: float) -> requests.Session:
    retry = Retry(
        total=RETRIES_MAX,
        redirect=0,
        allowed_methods=RETRY_METHODS,
        status_forcelist=RETRY_STATUS,
        backoff_factor=pause_s,
        respect_retry_after_header=False,  # we do not sleep here; whoever asks comes again
        raise_on_status=False,
    )
    session = requests.Session()
    session.cookies.set_policy(DefaultCookiePolicy(allowed_domains=[]))  # nothing of one thread's answer is in another's request
    for scheme in ("http://", "https://"):
        session.mount(scheme, HTTPAdapter(max_retries=retry, pool_maxsize=CONNECTIONS_MAX))
    return session


def _host(url: str) -> str:
    """Host and port, without what may be a password."""
    try:
        return urlsplit(url).netloc.rpartition("@")[2]
    except ValueError:
        return "?"


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
    # Found before anything was sent, and it does not go away by itself.
    if "CERTIFICATE_VERIFY_FAILED" in str(error):
        return PermanentError(f"{what}: the server's certificate is not trusted; name its authority's file in REQUESTS_CA_BUNDLE")
    if _is_unknown_name(error):
        return NoSuchHost(f"{what} got no answer: there is no host of that name")
    return TemporaryError(f"{what} got no answer: {type(error).__name__}")


def _is_unknown_name(error: Exception) -> bool:
    """Whether the resolver said for certain that there is no such name; that it cannot say is something else."""
    reason = getattr(error.args[0], "reason", None) if error.args else None
    cause = reason.__cause__ if isinstance(reason, NameResolutionError) else None
    return isinstance(cause, socket.gaierror) and cause.errno == socket.EAI_NONAME
