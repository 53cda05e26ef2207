"""A client of one repository on GitHub: one method per kind of call; callers name the model that parses the
response.

Rate limits. GitHub answers 403 or 429 both for what is forbidden and for too many requests; the headers
distinguish them. Too many requests raise TemporaryError with the seconds to wait, which the caller has to
observe: nothing sleeps here. A limit that was reached is remembered, so that no request is wasted on it (and
GitHub does not penalise it).
"""

import posixpath
import re
import time
from collections.abc import Callable, Iterator
from typing import TypeVar
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, ValidationError

from prime_train.errors import PermanentError, TemporaryError
from prime_train.http import Http, HttpResponse, Parameters, failure
from prime_train.text.retry_after import DELAY_S_MAX

API_URL = "https://api.github.com"
ENV_API_URL = "GITHUB_API_URL"
VERSION = "2022-11-28"
PAGE_ITEMS = 100
PAGES_MAX = 30
LISTED_MAX = PAGES_MAX * PAGE_ITEMS
"""The largest number of files that GitHub lists for a pull request."""
READ_S = 12.0
"""Read timeout in seconds: GitHub itself ends a request after ten seconds."""
SECONDARY_S = 60.0
"""Seconds to wait after a rate limit without a stated time."""
MESSAGE_CHARS_MAX = 200
NONE = frozenset({404})
MOVED = frozenset({301, 302, 307, 308})
_REPOSITORY = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]{0,38})/[A-Za-z0-9._-]{1,100}")


class GitHubModel(BaseModel):
    """The fields of an object that are read here; others are ignored, because GitHub adds fields at any
    time.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")


P = TypeVar("P", bound=GitHubModel)
Token = Callable[[], str]
"""A function that returns the token to use now; it may return a new one each time."""


class GitHub:
    """Client for one repository (`owner/name`) with one token. Raises TemporaryError and PermanentError as
    every adapter does; a 404 is a PermanentError, except in `find`. `login`: the author of comments written
    with the token, if GitHub cannot be asked for it; `clock` returns monotonic seconds.
    """

    def __init__(
        self,
        repository: str,
        token: str | Token,
        *,
        url: str = API_URL,
        login: str = "",
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        if not _REPOSITORY.fullmatch(repository) or repository.endswith(("/.", "/..")):
            raise PermanentError(f"{repository[:80]!r} is not a repository such as owner/name")
        self.repository, self.login, self._url = repository, login, url
        self._token: Token = token if callable(token) else lambda: token
        self._http: tuple[str, Http] | None = None
        self._clock, self._closed_until_s = clock, clock()

    def get(self, kind: type[P], path: str, parameters: Parameters | None = None) -> P:
        return parsed(kind, self.ask("GET", path, parameters=parameters))

    def find(
        self, kind: type[P], path: str, parameters: Parameters | None = None, *, none: frozenset[int] = NONE
    ) -> P | None:
        """Return the object, or None for a response with one of the statuses in `none`: it does not exist, or
        is not visible.
        """
        answer = self._answer("GET", path, parameters=parameters)
        if answer.status in none:
            return None
        return parsed(kind, self._checked(answer))

    def find_list(self, kind: type[P], path: str, parameters: Parameters | None = None) -> list[P]:
        """Return the items of a list that has one page only; none if it does not exist."""
        answer = self._answer("GET", path, parameters=parameters)
        if answer.status in NONE:
            return []
        rows = self._checked(answer).content()
        return [_valid(kind, row, answer.what) for row in rows] if isinstance(rows, list) else []

    def newest(self, kind: type[P], path: str, parameters: Parameters | None = None) -> P | None:
        """Return the first item of a list that GitHub sorts newest first, or None if it is empty."""
        answer = self.ask("GET", path, parameters={**(parameters or {}), "per_page": 1})
        rows = answer.content()
        return _valid(kind, rows[0], answer.what) if isinstance(rows, list) and rows else None

    def listed(self, kind: type[P], path: str) -> Iterator[P]:
        """Yield the items of all pages, up to `LISTED_MAX`; if that number is reached, there may be more."""
        for page in range(1, PAGES_MAX + 1):
            answer = self.ask("GET", path, parameters={"per_page": PAGE_ITEMS, "page": page})
            rows = answer.content()
            if not isinstance(rows, list):
                raise TemporaryError(f"{answer.what}: the answer is not a list")
            for row in rows:
                yield _valid(kind, row, answer.what)
            if len(rows) < PAGE_ITEMS:
                return

    def send(self, kind: type[P], method: str, path: str, body: object) -> P:
        """Send a changing request, without retries, and return the response. If no response arrives, it is
        unknown whether it took effect.
        """
        return parsed(kind, self.ask(method, path, body=body))

    def ask(
        self, method: str, path: str, *, parameters: Parameters | None = None, body: object = None
    ) -> HttpResponse:
        """Return a successful response. `path` is relative to the repository, or begins with / for the API's
        root.
        """
        return self._checked(self._answer(method, path, parameters=parameters, body=body))

    def _answer(
        self, method: str, path: str, *, parameters: Parameters | None = None, body: object = None
    ) -> HttpResponse:
        left_s = self._closed_until_s - self._clock()
        if left_s > 0:
            raise TemporaryError(
                f"{self.repository} on GitHub: the API rate limit is reached",
                delay_s=min(left_s, DELAY_S_MAX),
            )
        full_path = path if path.startswith("/") else f"/repos/{self.repository}/{path}".rstrip("/")
        return self._sent(method, full_path, parameters, body)

    def _sent(self, method: str, path: str, parameters: Parameters | None, body: object) -> HttpResponse:
        headers = {
            "accept": "application/vnd.github+json",
            "x-github-api-version": VERSION,
            "user-agent": "prime-train",
        }
        return self._client().ask(
            method, path, parameters=parameters, body=body, headers=headers, read_s=READ_S
        )

    def _client(self) -> Http:
        token = self._token().strip()
        if not all("!" <= char <= "~" for char in token):
            # The libraries' error message about such a header would contain it.
            raise PermanentError("the GitHub token contains invalid characters: it was copied wrongly")
        if self._http is None or self._http[0] != token:
            self._http = (token, Http(self._url, key=token))
        return self._http[1]

    def _checked(self, answer: HttpResponse) -> HttpResponse:
        if answer.is_ok:
            return answer
        wait_s = _wait_s(answer)
        if wait_s is None:
            raise failure(answer, _message(answer))
        self._closed_until_s = self._clock() + wait_s
        raise TemporaryError(
            f"{answer.what} was answered with {answer.status}: {_message(answer)}", delay_s=wait_s
        )


def parsed(kind: type[P], answer: HttpResponse) -> P:
    return _valid(kind, answer.content(), answer.what)


def piece(text: str) -> str:
    """Return `text` escaped as one segment of a path."""
    return quote(text, safe="")


def quoted(path: str) -> str:
    """Return `path` escaped as several segments. Raises PermanentError if it leads outside of the
    repository.
    """
    plain = posixpath.normpath(path)
    if plain.startswith(("/", "..")):
        raise PermanentError(f"{path[:200]!r} is not a path in a repository")
    return quote(plain, safe="/")


def _valid(kind: type[P], content: object, what: str) -> P:
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False, include_context=False)[0]
        where = ".".join(map(str, first["loc"])) or "it"
        raise TemporaryError(f"{what}: the answer cannot be parsed: {where}: {first['msg']}") from None


def _wait_s(answer: HttpResponse) -> float | None:
    """Return the seconds to wait before the next request, or None if the response is not about a rate
    limit.
    """
    if answer.status not in (403, 429):
        return None
    if answer.delay_s > 0:
        return answer.delay_s
    if answer.headers.get("x-ratelimit-remaining") == "0":
        reset = answer.headers.get("x-ratelimit-reset", "")
        left_s = int(reset) - time.time() if reset.isdigit() and len(reset) < 12 else SECONDARY_S
        return min(max(1.0, left_s), DELAY_S_MAX)
    return SECONDARY_S if answer.status == 429 or "rate limit" in _message(answer).lower() else None


def _message(answer: HttpResponse) -> str:
    if answer.status in MOVED:
        return "the repository was moved or renamed"
    content = answer.content()
    message = content.get("message") if isinstance(content, dict) else None
    if message is None:
        return "no reason given"
    errors = content.get("errors") if isinstance(content, dict) else None
    more = (
        [str(one["message"]) for one in errors if isinstance(one, dict) and one.get("message")]
        if isinstance(errors, list)
        else []
    )
    return " ".join(": ".join([str(message), *more[:1]]).split())[:MESSAGE_CHARS_MAX]
