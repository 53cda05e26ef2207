"""Authentication as a GitHub App: a token that is valid for an hour, and renewed before it ends."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Lock

from prime_train.elapsed import Elapsed
from prime_train.errors import PermanentError
from prime_train.github.api import API_URL, GitHub, GitHubModel

JWT_S = 540
"""Validity in seconds of the token with which the App identifies itself; GitHub accepts ten minutes at
most.
"""
DRIFT_S = 60
EARLY_S = 300
TOKEN_S = 3600


class _Installation(GitHubModel):
    id: int


class _Token(GitHubModel):
    token: str


class _App(GitHubModel):
    slug: str


@dataclass(frozen=True)
class AppKey:
    """An App's id and its private key, as PEM text."""

    app_id: str
    pem: str = field(repr=False)

    def signed(self, now_s: float) -> str:
        # Imported only here: its cryptography is slow to load, and only an App needs it.
        import jwt

        claims = {"iat": int(now_s) - DRIFT_S, "exp": int(now_s) + JWT_S, "iss": self.app_id}
        try:
            return jwt.encode(claims, self.pem, algorithm="RS256")
        except (ValueError, TypeError, jwt.PyJWTError):
            # Not chained: the error may hold a part of the key.
            raise PermanentError("the key of the GitHub App is not a private RSA key in PEM format") from None


class AppToken:
    """A `Token` with the App's permissions in one repository. Thread-safe. `clock` returns monotonic seconds
    that include time asleep; None uses this machine's.
    """

    def __init__(
        self, key: AppKey, repository: str, *, url: str = API_URL, clock: Callable[[], float] | None = None
    ) -> None:
        self._as_app = GitHub(repository, lambda: key.signed(time.time()), url=url)
        self._clock = clock or Elapsed()
        self._lock = Lock()
        self._token, self._until_s = "", self._clock()

    def __call__(self) -> str:
        with self._lock:
            if self._clock() >= self._until_s:
                installation = self._as_app.get(_Installation, "installation").id
                path = f"/app/installations/{installation}/access_tokens"
                name = self._as_app.repository.partition("/")[2]
                self._token = self._as_app.send(_Token, "POST", path, {"repositories": [name]}).token
                self._until_s = self._clock() + TOKEN_S - EARLY_S
            return self._token

    def login(self) -> str:
        """Return the login that authors the App's comments."""
        return f"{self._as_app.get(_App, '/app').slug}[bot]"
